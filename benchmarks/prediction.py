"""Predictions beside LightGBM's: those of a layer with linear leaves, and of default models, with their files."""

from __future__ import annotations

import copy
import subprocess
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.data import SETS, cut
from benchmarks.cases import Case, bound, data, objective
from benchmarks.timing import alternate, ratio, seconds
from boostbp import BoostBPClassifier, BoostBPRegressor, load, save
from boostbp.comparison.contenders import Split
from boostbp.network import layers
from boostbp.trees.basis import Polynomial

__all__ = ["TABLES", "default_model", "prediction"]

TABLES = {"california": "california", "ames, numbers": "ames", "digits": "digits", "adult": "adult"}
ROWS_ALONE = 100
QUIET = 0.05  # share of the calls that no other work disturbs
PATIENCE = 50  # rounds after which LightGBM stops
GROWTH = """
import sys
from pathlib import Path
import boostbp

def anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))

models = []
for path in sys.argv[1:]:  # the first one imports what reading takes
    before = anonymous()
    models.append(boostbp.load(path))
print(anonymous() - before)
"""


def prediction(case: Case, *, rows: int, repeats: int) -> dict[str, Any]:
    """Ratios of our time to LightGBM's, one thread each, one output; predictions by the very same trees."""
    import lightgbm

    X, Y = data(case)
    Y = Y[:, :1].copy()
    params = {
        "objective": "regression", "linear_tree": True, "linear_lambda": 1.0, "num_leaves": 2**case.depth,
        "max_depth": case.depth, "min_data_in_leaf": 20, "learning_rate": 0.1, "num_threads": 1, "verbosity": -1,
        "force_col_wise": True, "boost_from_average": False,
    }  # fmt: skip
    theirs = lightgbm.Dataset(X, Y[:, 0], params=params).construct()
    inputs, goal = bound(case, X, "lightgbm", basis=Polynomial(1)), objective(Y)
    training = alternate(
        {
            "theirs": lambda: lightgbm.train(params, theirs, case.rounds),
            "ours": lambda: layers.fit(inputs, goal),
        },
        repeats,
    )
    kept: list[Any] = []
    booster_class = lightgbm.Booster

    class Kept(booster_class):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            kept.append(self)

    lightgbm.Booster = Kept
    try:
        layer = layers.fit(bound(case, X, "lightgbm", leaves="native", basis=Polynomial(1)), goal).layer
    finally:
        lightgbm.Booster = booster_class
    booster = kept[-1]
    fresh = np.random.default_rng(1).standard_normal((rows, case.features))
    many = alternate(
        {"theirs": lambda: booster.predict(fresh, num_threads=1), "ours": lambda: layer.predict(fresh)}, repeats
    )
    one = alternate(
        {
            "theirs": lambda: [booster.predict(fresh[i : i + 1], num_threads=1) for i in range(50)],
            "ours": lambda: [layer.predict(fresh[i : i + 1]) for i in range(50)],
        },
        repeats,
    )
    return {
        "training ratio": ratio(training["ours"], training["theirs"]),
        f"ratio for {rows} rows": ratio(many["ours"], many["theirs"]),
        "ratio for one row": ratio(one["ours"], one["theirs"]),
        "our microseconds for one row": float(np.median(one["ours"])) / 50 * 1e6,
    }


def default_model(table: str, data_dir: Path | None, *, rows: int, repeats: int) -> dict[str, Any]:
    """Our default model beside LightGBM's with early stopping, on the same rows: file, memory, rows that come alone.

    Memory is what the process grows by when it loads the model, over the bytes that the model's arrays hold.
    """
    import lightgbm
    import pandas as pd

    split, fresh, classes = _tables(table, data_dir, rows)
    frame = isinstance(split.X, pd.DataFrame)
    ours = (BoostBPClassifier if classes else BoostBPRegressor)(random_state=0, n_jobs=1)
    theirs = (lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor)(n_jobs=1, verbose=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of columns
        together = pd.concat if frame else np.concatenate
        ours.fit(together([split.X, split.X_valid]), np.concatenate([split.y, split.y_valid]))
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        theirs.fit(split.X, split.y, eval_set=[(split.X_valid, split.y_valid)], callbacks=[stop])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            save(ours, path)
            size, growth = path.stat().st_size, _growth(path)
            loaded = load(path)
        held = sum(_held_by(layer.forest) for layer in loaded.network_.layers)
        theirs_size = len(theirs.booster_.model_to_string().encode())
        found = {
            "trees": sum(layer.forest.n_trees for layer in loaded.network_.layers),
            "LightGBM's": theirs.booster_.num_trees(),
            "kB": size / 1e3,
            "times LightGBM's file": size / theirs_size,
            "times its arrays after load": growth / held,
        }
        return found | _rows_alone(loaded, theirs, fresh, repeats)


def _tables(table: str, data_dir: Path | None, rows: int) -> tuple[Split, Any, bool]:
    """Rows to learn from, fresh rows, and whether there are classes; "numbers" stands for numeric columns, an array."""
    name = TABLES.get(table, table)
    fold = cut(name, 0, data_dir, rows)
    split, fresh = fold.split, fold.X_test
    if table.endswith("numbers"):
        X, X_valid, fresh = (part.select_dtypes("number").to_numpy() for part in (split.X, split.X_valid, fresh))
        split = Split(X, split.y, X_valid, split.y_valid)
    return split, fresh[:ROWS_ALONE], SETS[name].task == "classification"


def _growth(path: Path) -> float:
    """By how much the anonymous memory of a fresh process grows when it loads the file for the second time."""
    done = subprocess.run([sys.executable, "-c", GROWTH, path, path], check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout)


def _held_by(forest: Any) -> int:
    return sum(array.nbytes for array in (*forest.nodes, *forest.leaves, forest.tree_split, forest.trees.gain))


def _rows_alone(ours: Any, theirs: Any, fresh: Any, repeats: int) -> dict[str, float]:
    """Microseconds and ratios of predictions of one row: of an array to the Booster's, of a frame to the wrapper's."""
    import pandas as pd

    method, found = "predict_proba" if hasattr(ours, "predict_proba") else "predict", {}
    if not isinstance(fresh, pd.DataFrame):
        rows = [fresh[i : i + 1].copy() for i in range(len(fresh))]
        calls = {"ours": getattr(ours, method), "theirs": theirs.booster_.predict}
        found |= _alone(calls, rows, repeats, "array row", "Booster's")
        names = [f"x{j}" for j in range(fresh.shape[1])]
        ours, theirs, fresh = _named(ours, names), theirs, pd.DataFrame(fresh, columns=names)
    rows = [fresh.iloc[[i]] for i in range(len(fresh))]
    calls = {"ours": getattr(ours, method), "theirs": getattr(theirs, method)}
    return found | _alone(calls, rows, repeats, "frame row", "wrapper's")


def _named(model: Any, names: list[str]) -> Any:
    """The same model, as if it had been fitted to a frame."""
    model = copy.copy(model)
    model.model_ = replace(model.model_, schema=replace(model.schema_, names=tuple(names)))
    model.feature_names_in_ = np.array(names, object)
    return model


def _alone(calls: dict[str, Any], rows: list[Any], repeats: int, what: str, whose: str) -> dict[str, float]:
    for call in calls.values():
        call(rows[0])
    times = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name] += [seconds(lambda call=call, row=row: call(row)) for row in rows]
    ours, theirs = (float(np.quantile(times[name], QUIET)) for name in ("ours", "theirs"))
    return {f"{what}, us": 1e6 * ours, f"times the {whose}": ours / theirs}
