"""One model, trained and measured in a process of its own: ``python -m boostbp.report.trial FOLDER``.

The process holds nothing but the data and one library, so that libraries do not disturb each other and the peak memory
is the model's. A rehearsal on few rows comes first: it imports modules and starts the threads, which happens once in a
process and does not belong to a fit.
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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, log_loss, r2_score, root_mean_squared_error

from boostbp.losses.base import Task
from boostbp.report.contenders import Contender, Fitted, Split, train
from boostbp.report.result import Evidence, Result, curve_of
from boostbp.runtime.arrays import Floats

_STATUS = Path("/proc/self/status")
# Arbitrary numbers: of a rehearsal, short beside any fit; of predictions, whose median is taken; of a picture's points.
_REHEARSAL_ROWS = 400
_REHEARSAL_LENGTH = 3  # rounds or epochs
_PREDICTIONS = 3
_PLOTTED_ROWS = 1500


class Peak:
    """Peak resident memory since the object was made, above the resident memory at that time.

    On Linux the kernel's high-water mark is reset first, so that earlier work (imports, loading) neither
    counts nor hides later peaks; `ru_maxrss` cannot be reset, and a child inherits its parent's. Elsewhere a peak below
    an earlier one shows as 0.

    >>> peak = Peak()
    >>> ballast = bytearray(50_000_000)
    >>> peak.bytes()  # doctest: +SKIP
    50003968
    """

    def __init__(self) -> None:
        gc.collect()
        _free_unused_memory()  # free memory that the process holds would hide the next allocations
        self._linux = _reset()
        self._start = _status("VmRSS") if self._linux else _maxrss()

    def bytes(self) -> int | None:
        """Return the peak so far in bytes; None where it cannot be known."""
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

    split: Split  # rows to train on and to stop by
    # (rows, features), (rows,): rows for the report alone
    X_test: Any
    y_test: NDArray[Any]
    labels: tuple[str, ...] = ()  # names of the classes; none for regression

    @property
    def task(self) -> Task:
        """The task of the target."""
        return "classification" if self.labels else "regression"

    @property
    def method(self) -> Literal["predict_proba", "predict"]:
        """The method of models that predicts."""
        return "predict_proba" if self.labels else "predict"


@dataclass(frozen=True, slots=True)
class Job:
    """A model to train and how, besides the data."""

    contender: Contender
    n_jobs: int
    seed: int
    evidence: bool = False  # whether pictures will be drawn

    def train(self, split: Split, task: Task, length: int | None = None) -> Fitted:
        """Train the model."""
        return train(self.contender, split, task=task, n_jobs=self.n_jobs, seed=self.seed, length=length)


def measure(job: Job, data: Data) -> Result:
    """Train, predict and score."""
    rehearse(job, data)
    peak = Peak()
    start = time.perf_counter()
    model, length = job.train(data.split, data.task)
    fit_seconds = time.perf_counter() - start
    peak_bytes = peak.bytes()

    predict, seconds = getattr(model, data.method), []
    for _ in range(_PREDICTIONS):
        start = time.perf_counter()
        predicted = predict(data.X_test)
        seconds.append(time.perf_counter() - start)
    return Result(
        job.contender.label,
        "ran",
        "",
        _scores(data, predicted),
        fit_seconds,
        statistics.median(seconds),
        peak_bytes,
        length,
        model_bytes=len(pickle.dumps(model, protocol=5)),
        evidence=_evidence(job, data, model, length, predicted) if job.evidence else None,
    )


def take(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return rows of an array or a data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _evidence(job: Job, data: Data, model: Any, length: int | None, predicted: Floats) -> Evidence:
    hidden, history = {}, getattr(model, "history_", None)
    if history is not None and history.network:  # otherwise no hidden layer was trained
        estimators = [model]
        if model.deep is True:  # an average has hidden layers of several networks, or none before back-propagation
            # Training the start once more keeps it out of the seconds and the memory of the fit.
            estimators.insert(0, job.train(data.split, data.task, length=0).model)
        rows = take(data.X_test, np.arange(min(len(data.y_test), _PLOTTED_ROWS)))
        hidden = {estimator.history_.best_epoch: estimator.hidden_representation(rows, -1) for estimator in estimators}
    return Evidence(data.y_test, predicted, curve_of(model, length), history, hidden, data.labels)


def rehearse(job: Job, data: Data) -> Fitted:
    """Train and predict on few rows that hold each class.

    The rows to stop by are the same rows with their labels in reverse order: with the right labels the loss would fall
    in each round, and boosting would not stop before its largest number of rounds.
    """
    y = data.split.y
    rows = np.arange(min(len(y), _REHEARSAL_ROWS))
    members = [np.flatnonzero(y == number)[:5] for number in range(len(data.labels))]
    rows = np.unique(np.concatenate([rows, *members]))
    X = take(data.split.X, rows)
    fitted = job.train(Split(X, y[rows], X, y[rows][::-1]), data.task, length=_REHEARSAL_LENGTH)
    getattr(fitted.model, data.method)(X)
    return fitted


def _scores(data: Data, predicted: Floats) -> dict[str, float]:
    if not np.all(np.isfinite(predicted)):
        raise FloatingPointError("the predictions are not finite")
    if data.labels:
        return {
            "accuracy": float(accuracy_score(data.y_test, predicted.argmax(axis=1))),
            "log_loss": float(log_loss(data.y_test, predicted, labels=np.arange(len(data.labels)))),
        }
    return {
        "r2": float(r2_score(data.y_test, predicted)),
        "rmse": float(root_mean_squared_error(data.y_test, predicted)),
    }


def main(folder: Path) -> None:
    """Read the data and the job from a folder, and write the result there."""
    data, job = (pickle.loads((folder / name).read_bytes()) for name in ("data.pkl", "job.pkl"))
    try:
        result = measure(job, data)
    except ImportError as error:
        result = Result(job.contender.label, "skipped", str(error))
    except Exception as error:
        result = Result(job.contender.label, "failed", f"{type(error).__name__}: {error}")
    (folder / "result.pkl").write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
