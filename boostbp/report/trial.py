"""One model, trained and measured in a process of its own: ``python -m boostbp.report.trial FOLDER``.

The process holds nothing but the data and one library, so libraries do not disturb each other and the
peak memory is the model's. A rehearsal on few rows comes first: it compiles the kernels and starts the
threads, which happens once on a machine or in a process and is no part of a fit.
"""

from __future__ import annotations

import json
import pickle
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, log_loss, r2_score, root_mean_squared_error

from boostbp.report.contenders import Contender, Split, train
from boostbp.report.memory import Peak

__all__ = ["Data", "Job", "measure"]

_REHEARSAL_ROWS = 400
_REHEARSAL_LENGTH = 3
_PREDICTIONS = 3


@dataclass(frozen=True, slots=True)
class Data:
    """The rows of a comparison.

    Attributes
    ----------
    split : Split
        Rows to learn from and to stop by.
    X_test, y_test : (rows, features), (rows,)
        Rows for the report alone.
    n_classes : int
        0 for regression.
    """

    split: Split
    X_test: Any
    y_test: NDArray[Any]
    n_classes: int


@dataclass(frozen=True, slots=True)
class Job:
    """What a trial is told beside the data."""

    contender: Contender
    task: str
    n_jobs: int
    seed: int


def measure(job: Job, data: Data) -> dict[str, Any]:
    """Train, predict and score.

    Returns
    -------
    dict
        ``scores`` (name to number), ``fit_seconds``, ``predict_seconds`` (median of 3 passes over
        the test rows), ``peak_bytes`` (of the fit, or None) and ``length`` (rounds or epochs, or None).
    """
    settings: dict[str, Any] = {"task": job.task, "n_jobs": job.n_jobs, "seed": job.seed}
    predict = "predict_proba" if job.task == "classification" else "predict"
    few = _rehearsal(data)
    rehearsed = train(job.contender, few, **settings, length=_REHEARSAL_LENGTH)
    getattr(rehearsed.model, predict)(few.X_valid)
    del rehearsed

    peak = Peak()
    start = time.perf_counter()
    model, length = train(job.contender, data.split, **settings)
    fit_seconds = time.perf_counter() - start
    peak_bytes = peak.bytes()

    seconds = []
    for _ in range(_PREDICTIONS):
        start = time.perf_counter()
        predicted = getattr(model, predict)(data.X_test)
        seconds.append(time.perf_counter() - start)
    return {
        "scores": _scores(data, predicted),
        "fit_seconds": fit_seconds,
        "predict_seconds": statistics.median(seconds),
        "peak_bytes": peak_bytes,
        "length": length,
    }


def _rehearsal(data: Data) -> Split:
    """Few rows that hold each class, to learn from and to stop by."""
    y = data.split.y
    rows = np.arange(min(len(y), _REHEARSAL_ROWS))
    if data.n_classes:
        members = [np.flatnonzero(y == label)[:5] for label in range(data.n_classes)]
        rows = np.unique(np.concatenate([rows, *members]))
    X = data.split.X.iloc[rows] if hasattr(data.split.X, "iloc") else data.split.X[rows]
    return Split(X, y[rows], X, y[rows])


def _scores(data: Data, predicted: NDArray[np.float64]) -> dict[str, float]:
    if not np.all(np.isfinite(predicted)):
        raise FloatingPointError("the predictions are not finite")
    if data.n_classes:
        labels = np.arange(data.n_classes)
        return {
            "accuracy": float(accuracy_score(data.y_test, predicted.argmax(axis=1))),
            "log_loss": float(log_loss(data.y_test, predicted, labels=labels)),
        }
    return {
        "r2": float(r2_score(data.y_test, predicted)),
        "rmse": float(root_mean_squared_error(data.y_test, predicted)),
    }


def main(folder: Path) -> None:
    """Read the data and the job from a folder, and leave the outcome there."""
    data, job = (pickle.loads((folder / name).read_bytes()) for name in ("data.pkl", "job.pkl"))
    try:
        outcome = {"state": "ran", "reason": "", **measure(job, data)}
    except ImportError as error:
        outcome = {"state": "skipped", "reason": str(error)}
    except Exception as error:
        outcome = {"state": "failed", "reason": f"{type(error).__name__}: {error}"}
    (folder / "outcome.json").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
