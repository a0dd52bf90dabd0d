"""Several labels: log-loss, micro and macro F1, seconds and memory beside LightGBM and XGBoost, one thread.

``python -m benchmarks.multilabel --data-dir FOLDER`` takes each model in a process of its own, one after the other. The
drugs that 1,885 people took in the last year are in ``drug_consumption.data``. Files of Mulan's sets in the folder are
read, too: ``emotions.arff`` and ``emotions.xml``, and so on. Rivals have one model for each label, or one of XGBoost
for all with the trees of either of its strategies. They learn 100 rounds, their default, or stop early on a tenth of
the rows. A label without both values among the training rows is left out. Thresholds are 0.5.
"""

from __future__ import annotations

import argparse
import re
import resource
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

Floats = NDArray[np.float64]
TEST, HELD = 0.3, 0.1
OURS = {"boostbp 1": {"quality": 1}, "boostbp 2": {"quality": 2}, "boostbp 3": {}}
MODELS = (
    *OURS, "lightgbm", "lightgbm, stopped", "xgboost, trees by label", "xgboost, vector leaves",
    "xgboost, trees by label, stopped", "xgboost, vector leaves, stopped",
)  # fmt: skip
MULAN = ("flags", "emotions", "birds", "yeast", "scene", "cal500", "enron")
_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)


def drugs(folder: Path) -> tuple[Floats, NDArray[np.int64]]:
    """Measures of people, and the drugs that they took within a year."""
    frame = pd.read_csv(folder / "drug_consumption.data", header=None)
    return frame.iloc[:, 1:13].to_numpy(np.float64), (frame.iloc[:, 13:31] >= "CL3").to_numpy(np.int64)


def mulan(folder: Path, name: str) -> tuple[Floats, NDArray[np.int64]]:
    """A set of Mulan: its files in ARFF, dense or sparse, and the names of its labels in XML."""
    files = [path for path in (folder / f"{name}.arff", *folder.glob(f"{name}-t*.arff")) if path.exists()]
    labels = {str(label.get("name")) for label in ET.parse(folder / f"{name}.xml").getroot()}
    rows, columns = [], []
    for path in files:
        head, _, data = re.split(r"(@data)", path.read_text(encoding="utf-8"), maxsplit=1, flags=re.IGNORECASE)
        columns = [(match[1].strip("'\""), match[2].strip()) for match in _ATTRIBUTE.finditer(head)]
        for line in filter(None, map(str.strip, data.splitlines())):
            cells = dict(cell.split(maxsplit=1) for cell in line.strip("{}").split(",")) if line[0] == "{" else None
            fields = [cells.get(str(j), "0") for j in range(len(columns))] if cells else line.split(",")
            rows.append(["nan" if field.strip() == "?" else field.strip("' ") for field in fields])
    is_label = np.array([name.replace("\\", "") in labels for name, _ in columns])
    values = np.array(rows)
    return values[:, ~is_label].astype(np.float64), values[:, is_label].astype(float).astype(np.int64)


def probabilities(model: str, X: Floats, y: NDArray[np.int64], X_test: Floats) -> Floats:
    """Fit a model, and return the probability of each label, (test rows, labels)."""
    if model in OURS:
        from boostbp import BoostBPClassifier

        return BoostBPClassifier(n_jobs=1, random_state=0, **OURS[model]).fit(X, y).predict_proba(X_test)
    fit_one = _fit_lightgbm if model.startswith("lightgbm") else _fit_xgboost(model)
    stopped = model.endswith("stopped")
    train, held = (
        train_test_split(np.arange(len(y)), test_size=HELD, random_state=0) if stopped else (slice(None), None)
    )
    of_held = None if held is None else (X[held], y[held])
    if model.startswith("lightgbm"):
        columns = [None if of_held is None else (of_held[0], of_held[1][:, k]) for k in range(y.shape[1])]
        fitted = [fit_one(X[train], y[train, k], columns[k]) for k in range(y.shape[1])]
        return np.column_stack(
            [one.predict_proba(X_test)[:, 1] if one else np.full(len(X_test), c) for one, c in fitted]
        )
    return fit_one(X[train], y[train], of_held).predict_proba(X_test)


def _fit_lightgbm(X: Floats, y: NDArray[np.int64], held: Any) -> tuple[Any, float]:
    from lightgbm import LGBMClassifier, early_stopping

    if y.min() == y.max():  # the stopping rows have the only rows with, or without, the label
        return None, float(y[0])
    if held is None:
        return LGBMClassifier(n_jobs=1, verbose=-1, random_state=0).fit(X, y), 0.0
    model = LGBMClassifier(n_estimators=2000, n_jobs=1, verbose=-1, random_state=0)
    return model.fit(X, y, eval_set=[held], callbacks=[early_stopping(50, verbose=False)]), 0.0


def _fit_xgboost(model: str) -> Callable[..., Any]:
    from xgboost import XGBClassifier

    strategy = "multi_output_tree" if "vector" in model else "one_output_per_tree"
    settings: dict[str, Any] = {"multi_strategy": strategy, "n_jobs": 1, "random_state": 0}

    def fit(X: Floats, y: NDArray[np.int64], held: Any) -> Any:
        if held is None:
            return XGBClassifier(**settings).fit(X, y)
        stopping = XGBClassifier(n_estimators=2000, early_stopping_rounds=50, eval_metric="logloss", **settings)
        return stopping.fit(X, y, eval_set=[held], verbose=False)

    return fit


def measured(model: str, X: Floats, y: NDArray[np.int64], seed: int) -> dict[str, float]:
    """Scores of a model on a third of the rows, processor seconds of the fit, and its peak memory in MB."""
    warnings.simplefilter("ignore")
    train, test = train_test_split(np.arange(len(y)), test_size=TEST, random_state=seed)
    known = (y[train].min(axis=0) == 0) & (y[train].max(axis=0) == 1)
    y = y[:, known]
    small = np.random.default_rng(0).normal(size=(100, 3))
    probabilities(model, small, (small[:, :2] > 0).astype(np.int64), small)  # imports
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    p = np.clip(probabilities(model, X[train], y[train], X[test]), 1e-15, 1 - 1e-15)
    seconds, peak = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loss = -np.log(np.where(y[test] == 1, p, 1 - p)).mean()
    micro, macro = (f1_score(y[test], p > 0.5, average=average, zero_division=0) for average in ("micro", "macro"))
    return {"logloss": loss, "micro": micro, "macro": macro, "seconds": seconds, "mb": (peak - before) / 1e3}


def main() -> None:
    """Measure all models on all sets whose files are there, and print a row for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.multilabel", description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of the data files")
    parser.add_argument("--sets", nargs="+", choices=("drugs", *MULAN), default=("drugs", *MULAN))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    context = get_context("forkserver")  # imports once for all processes
    context.set_forkserver_preload(["boostbp.estimators", "lightgbm", "pandas", "sklearn.metrics", "xgboost"])
    print(f"{'set':9} {'model':34} log-loss  micro F1  macro F1  seconds      MB", flush=True)
    for name in options.sets:
        if not (options.data_dir / ("drug_consumption.data" if name == "drugs" else f"{name}.xml")).exists():
            continue
        X, y = drugs(options.data_dir) if name == "drugs" else mulan(options.data_dir, name)
        print(f"{name}: {len(y)} rows, {X.shape[1]} features, {y.shape[1]} labels", flush=True)
        for model in options.models:
            rows = []
            for seed in range(options.splits):
                with ProcessPoolExecutor(1, mp_context=context) as pool:
                    rows.append(pool.submit(measured, model, X, y, seed).result())
            loss, micro, macro, seconds, mb = (np.mean([row[key] for row in rows]) for key in rows[0])
            print(f"{name:9} {model:34} {loss:8.4f}  {micro:8.4f}  {macro:8.4f}  {seconds:7.2f}  {mb:6.0f}", flush=True)


if __name__ == "__main__":
    main()
