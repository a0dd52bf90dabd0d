"""Time against validation score over epochs, for each mode that grows fewer trees; and the single layers of today."""

from __future__ import annotations

import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.data import SETS, cut
from benchmarks.rivals.tuning import score_of
from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.comparison.contenders import SINGLE_LAYER, Split, train_contender
from boostbp.search import parameters

__all__ = ["MODES", "TASKS", "mode", "peers", "tasks"]

TASKS = {"random network": "network-glorot-0", "adult": "adult", "california": "california", "digits": "digits"}
SHARED = {"multi_strategy": "multi_output_tree"}
MODES: dict[str, dict[str, Any]] = {
    "full": {},
    "structures kept 4 epochs": {"structure_epochs": 4},
    "shared trees": SHARED,
    "xgboost": {"backend": "xgboost"},
    "xgboost, vector leaves": {"backend": "xgboost", **SHARED},
    "structures on a third": {"structure_samples": 1 / 3},
    "shared and kept": {**SHARED, "structure_epochs": 4},
    "shared, kept and on a third": {**SHARED, "structure_epochs": 4, "structure_samples": 1 / 3},
}


def tasks(data_dir: Path | None) -> list[str]:
    """The tasks whose files are there."""
    folder = data_dir or Path()
    return [name for name, key in TASKS.items() if all((folder / file).exists() for file in SETS[key].files)]


def peers(task: str, data_dir: Path | None, rows: int) -> dict[str, Any]:
    """Seconds and validation score (log-loss, or RMSE over the target's standard deviation) of single layers."""
    return {name: dict(each) for name, each in _peers(task, data_dir, rows).items()}


def mode(task: str, name: str, data_dir: Path | None, *, rows: int, epochs: int) -> dict[str, Any]:
    """A deep model by epochs: seconds of training until then, and its validation score.

    The validation rows also choose the rounds of the output layer, as they do for the single layers.
    """
    metric, split, std = _split(task, data_dir, rows)
    model = BoostBPClassifier if metric == "log_loss" else BoostBPRegressor
    params = {"epochs": epochs, "structure_epochs": 1, "deep": True, "n_iter_no_change": None}
    params |= {"random_state": 0, "eval_metric": metric}
    estimator = model(**parameters({**params, **MODES[name]}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(**parameters({**params, **MODES[name], "epochs": 1})).fit(*_some(split))  # imports modules
        begun = time.perf_counter()
        estimator.fit(split.X, split.y, eval_set=[(split.X_valid, split.y_valid)])
        seconds = time.perf_counter() - begun
    history = estimator.history_
    ends = np.cumsum([epoch.seconds for epoch in history.epochs])
    ends += seconds - ends[-1]
    scores = np.array([next(iter(epoch.metrics.values())) for epoch in history.epochs]) / std
    single = _peers(task, data_dir, rows)["LightGBM"]
    reached = np.flatnonzero(scores <= single["score"])
    at = sorted({min(n, len(scores) - 1) for n in (0, 1, 2, 5, 10, 20, 50, 100)})
    return {
        "seconds": seconds,
        "best score": float(scores.min()),
        "seconds to LightGBM's score": float(ends[reached[0]]) if len(reached) else None,
        "times LightGBM's seconds": seconds / single["seconds"],
        "epoch: score at seconds": {str(n): f"{scores[n]:.4f}@{ends[n]:.1f}" for n in at},
        "curve": [[float(end), float(score)] for end, score in zip(ends, scores, strict=True)],
    }


@cache
def _peers(task: str, data_dir: Path | None, rows: int) -> dict[str, dict[str, float]]:
    metric, split, std = _split(task, data_dir, rows)
    kind = SETS[TASKS[task]].task
    found = {}
    for contender in SINGLE_LAYER:
        begun = time.perf_counter()
        model = train_contender(contender, split, task=kind, n_jobs=1, seed=0).model
        seconds = time.perf_counter() - begun
        found[contender.label] = {
            "seconds": seconds,
            "score": float(score_of(metric, model, split.X_valid, split.y_valid)) / std,
        }
    return found


@cache
def _split(task: str, data_dir: Path | None, rows: int) -> tuple[Any, Split, float]:
    fold = cut(TASKS[task], 0, data_dir, rows)
    return ("log_loss" if SETS[TASKS[task]].task == "classification" else "rmse"), fold.split, fold.std


def _some(split: Split) -> tuple[Any, Any]:
    return split.X[:500], split.y[:500]
