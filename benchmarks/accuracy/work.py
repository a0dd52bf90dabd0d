"""One cell: tune a model on a fold, and score it on the test rows; runs in a worker process."""

from __future__ import annotations

import datetime as dt
import warnings
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.data import SETS, cut
from benchmarks.accuracy.plan import Cell, contender
from benchmarks.rivals.contenders import train
from benchmarks.rivals.tuning import Metric, score_of, tune
from benchmarks.source import source
from boostbp.comparison.contenders import Split, deep

__all__ = ["run"]


@cache
def _rehearse(task: str) -> None:
    """Load all code, which is no part of a fit."""
    X = np.random.default_rng(0).uniform(size=(200, 3))
    y = X[:, 0] * X[:, 1] if task == "regression" else (X[:, 0] > X[:, 1]).astype(int)
    train(deep("lightgbm", {}), Split(X, y, X, y), task=task, n_jobs=1, seed=0, length=2)


def run(cell: Cell, data_dir: Path | None, min_seconds: float, trees: int) -> dict[str, Any]:
    """Train and score.

    Parameters
    ----------
    cell : Cell
    data_dir : Path or None
    min_seconds : float
        What the search must spend at least.
    trees : int
        Trees of the deep model on this fold, for the average that must have as many.

    Returns
    -------
    dict
        ``state``, ``reason``; and of a cell that ran ``score`` (RMSE over the standard deviation of
        the target, or log-loss), ``error`` (of classes), ``valid`` (as `score`, on the rows that chose), ``seconds``
        (of all trials), ``fit_seconds`` (of the trial chosen), ``trials``, ``params``, ``length``, ``trees``,
        ``min_seconds``, and ``date`` and ``source``, the code that ran it.
    """
    task, seed = SETS[cell.set].task, zlib.crc32(f"{cell.set} {cell.fold}".encode()) % 2**31  # other draws on each
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the libraries, about what a candidate drew
            fold = cut(cell.set, cell.fold, data_dir, cell.rows)
            who, trials = contender(cell, trees)
            if who.kind not in ("lightgbm", "xgboost", "hist", "average", "mlp"):
                _rehearse(task)
            searched = 0.0 if trials == 1 else min_seconds
            tuned = tune(who, fold.split, task=task, trials=trials, seed=seed, min_seconds=searched)
            metric: Metric = "log_loss" if task == "classification" else "rmse"
            score = score_of(metric, tuned.model, fold.X_test, fold.y_test) / fold.std
            error = score_of("error", tuned.model, fold.X_test, fold.y_test) if task == "classification" else None
    except ImportError as missing:
        return {"state": "skipped", "reason": str(missing)}
    except Exception as failed:
        return {"state": "failed", "reason": f"{type(failed).__name__}: {failed}"}
    chosen = min(tuned.trials, key=lambda trial: trial.score)
    return {
        "state": "ran",
        "reason": "",
        "score": score,
        "error": error,
        "valid": tuned.score / fold.std,
        "seconds": round(tuned.seconds, 3),
        "fit_seconds": round(chosen.seconds, 3),
        "trials": len(tuned.trials),
        "params": {name: value for name, value in tuned.params.items() if name != "max_time"},
        "length": tuned.length,
        "trees": tuned.trees,
        "min_seconds": round(searched, 3),
        "date": dt.date.today().isoformat(),
        "source": source(),
    }
