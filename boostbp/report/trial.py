"""One model, trained and measured in a process of its own: ``python -m boostbp.report.trial FOLDER``.

The process holds nothing but the data and one library, so libraries do not disturb each other and the
peak memory is the model's. A rehearsal on few rows comes first: it compiles the kernels and starts the
threads, which happens once on a machine or in a process and is no part of a fit.
"""

from __future__ import annotations

import ctypes
import gc
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

from boostbp.report.contenders import Contender, Fitted, Split, train
from boostbp.report.result import Evidence, curve_of

_STATUS = Path("/proc/self/status")
_REHEARSAL_ROWS = 400
_REHEARSAL_LENGTH = 3
_PREDICTIONS = 3
_SHOWN_ROWS = 1500  # points of a picture


class Peak:
    """Peak resident memory since the object was made, above what was resident then.

    On Linux the kernel's high-water mark is reset first, so that what happened before (imports, compiling,
    loading) neither counts nor hides what comes; `ru_maxrss` would do, but a child inherits its parent's.
    Elsewhere the mark cannot be reset, and a peak below an earlier one shows as 0.

    >>> peak = Peak()
    >>> ballast = bytearray(50_000_000)
    >>> peak.bytes()  # doctest: +SKIP
    50003968
    """

    def __init__(self) -> None:
        gc.collect()
        _free_unused_memory()  # or the next allocations would fill it unseen
        self._linux = _reset()
        self._start = _status("VmRSS") if self._linux else _maxrss()

    def bytes(self) -> int | None:
        """Peak so far in bytes; None where it cannot be known."""
        now = _status("VmHWM") if self._linux else _maxrss()
        return None if now is None or self._start is None else max(0, now - self._start)


def _free_unused_memory() -> None:
    """Let glibc return freed memory to the system."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _reset() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return _status("VmHWM") is not None


def _status(key: str) -> int | None:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    return None


def _maxrss() -> int | None:
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@dataclass(frozen=True, slots=True)
class Data:
    """The rows of a comparison."""

    split: Split  # rows to learn from and to stop by
    # (rows, features), (rows,): rows for the report alone
    X_test: Any
    y_test: NDArray[Any]
    n_classes: int  # 0 for regression
    labels: tuple[str, ...] = ()  # names of the classes, for people


@dataclass(frozen=True, slots=True)
class Job:
    """What a trial is told beside the data."""

    contender: Contender
    task: str  # {"classification", "regression"}
    n_jobs: int
    seed: int
    evidence: bool = False  # whether there will be pictures

    @property
    def method(self) -> str:
        """What predicts."""
        return "predict_proba" if self.task == "classification" else "predict"

    @property
    def settings(self) -> dict[str, Any]:
        """What each of its trainings is told."""
        return {"task": self.task, "n_jobs": self.n_jobs, "seed": self.seed}


def measure(job: Job, data: Data) -> dict[str, Any]:
    """Train, predict and score, and return the fields of a `Result` that are measured."""
    rehearse(job, data)
    peak = Peak()
    start = time.perf_counter()
    model, length = train(job.contender, data.split, **job.settings)
    fit_seconds = time.perf_counter() - start
    peak_bytes = peak.bytes()

    predict, seconds = getattr(model, job.method), []
    for _ in range(_PREDICTIONS):
        start = time.perf_counter()
        predicted = predict(data.X_test)
        seconds.append(time.perf_counter() - start)
    return {
        "scores": _scores(data, predicted),
        "fit_seconds": fit_seconds,
        "predict_seconds": statistics.median(seconds),
        "peak_bytes": peak_bytes,
        "length": length,
        "model_bytes": len(pickle.dumps(model, protocol=5)),
        "evidence": _evidence(job, data, model, length, predicted) if job.evidence else None,
    }


def take(X: Any, rows: NDArray[np.intp]) -> Any:
    """Rows of an array or a data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _evidence(job: Job, data: Data, model: Any, length: int | None, predicted: NDArray[np.float64]) -> Evidence:
    hidden = {}
    if hasattr(model, "history_") and model.history_.network:  # otherwise no hidden layer was trained
        shown, estimators = take(data.X_test, np.arange(min(len(data.y_test), _SHOWN_ROWS))), [model]
        if model.deep is True:  # an average has hidden layers of several networks, or none before back-propagation
            # Trained once more rather than recorded, which would count in the seconds and the memory of the fit.
            estimators.insert(0, train(job.contender, data.split, **job.settings, length=0).model)
        hidden = {estimator.history_.best_epoch: estimator.hidden_representation(shown, -1) for estimator in estimators}
    history = getattr(model, "history_", None)
    return Evidence(data.y_test, predicted, curve_of(model, length), history, hidden, data.labels)


def rehearse(job: Job, data: Data) -> Fitted:
    """Train and predict on few rows that hold each class.

    Their labels in another order are what to stop by: those that are learned from seem better predicted with each
    round, and boosting on them would go on to its end.
    """
    y = data.split.y
    rows = np.arange(min(len(y), _REHEARSAL_ROWS))
    if data.n_classes:
        members = [np.flatnonzero(y == label)[:5] for label in range(data.n_classes)]
        rows = np.unique(np.concatenate([rows, *members]))
    X = take(data.split.X, rows)
    few = Split(X, y[rows], X, y[rows][::-1])
    fitted = train(job.contender, few, **job.settings, length=_REHEARSAL_LENGTH)
    getattr(fitted.model, job.method)(X)
    return fitted


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
        outcome: dict[str, Any] = {"state": "ran", "reason": "", **measure(job, data)}
    except ImportError as error:
        outcome = {"state": "skipped", "reason": str(error)}
    except Exception as error:
        outcome = {"state": "failed", "reason": f"{type(error).__name__}: {error}"}
    (folder / "outcome.pkl").write_bytes(pickle.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
