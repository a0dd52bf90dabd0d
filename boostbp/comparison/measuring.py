"""One model on one fold, in a process of its own: scores, seconds, memory, size, and the latency of one row.

A rehearsal on few rows, which imports modules and starts threads, comes before the first fold's clock.
"""

from __future__ import annotations

import ctypes
import gc
import pickle
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from boostbp.comparison.contenders import ComparedTask, Contender, Model, Split, Table, train_contender
from boostbp.comparison.folds import Fold
from boostbp.comparison.measures import Measure
from boostbp.comparison.searches import fit_contender, searched
from boostbp.runtime.arrays import Floats

_REFUSED_CHARACTERS = frozenset(',:[]{}"<')  # that LightGBM or XGBoost refuse in column names
# Arbitrary numbers: of a rehearsal, short beside any fit; of predictions of one row, whose median is taken.
_REHEARSAL_ROWS, _REHEARSAL_LENGTH = 200, 3  # length: rounds or epochs
_PREDICTIONS = 15


@dataclass(frozen=True, slots=True)
class TableData:
    """The rows of a comparison."""

    X: Table
    # (rows,): class numbers, numbers, relevances, or times of survival, negative where a row is censored
    y: NDArray[Any]
    task: ComparedTask
    classes: NDArray[Any] = field(default_factory=lambda: np.array([]))  # labels in sorted order
    groups: NDArray[np.intp] | None = None  # query or group of each row; rows of a query are together

    def target_of_user(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return a target as an estimator of the user takes it: labels, or events and times as scikit-survival has."""
        if self.task == "classification":
            return self.classes[y]
        if self.task == "survival":
            events: NDArray[Any] = np.rec.fromarrays(
                (~np.signbit(y), np.abs(y)), dtype=[("event", "?"), ("time", "f8")]
            )
            return events
        return y

    def table_for(self, contender: Contender) -> Table:
        """Return the features as the library of a contender takes them."""
        if contender.kind not in ("lightgbm", "xgboost", "catboost") or not hasattr(self.X, "columns"):
            return self.X
        table: Any = self.X
        text = [name for name in table.columns if table[name].dtype.kind == "O"]  # categories, too
        if contender.kind == "catboost":  # takes no missing value in a category
            return table.assign(**{name: table[name].astype(object).fillna("").astype(str) for name in text})
        table = table.astype(dict.fromkeys(text, "category"))
        if any(set(str(name)) & _REFUSED_CHARACTERS for name in table.columns):
            return table.set_axis([f"x{column}" for column in range(table.shape[1])], axis=1)
        return table

    def rows(self, contender: Contender, rows: NDArray[np.intp]) -> Split:
        """Return rows to train on as a contender takes them."""
        y = self.y[rows] if contender.kind != "estimator" or self._is_signed(contender) else self._of_user(rows)
        groups = None if self.groups is None else self.groups[rows]
        return Split(_safe_indexing(self.table_for(contender), rows), y, groups=groups)

    def _of_user(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        return self.target_of_user(self.y[rows])

    def _is_signed(self, contender: Contender) -> bool:
        """Return whether an estimator takes negative times of censored rows, as XGBoost's and CatBoost's do."""
        params = contender.params["estimator"].get_params() if contender.kind == "estimator" else {}
        named = {str(params.get(name)) for name in ("objective", "loss_function")}
        return self.task == "survival" and bool(named & {"survival:cox", "Cox"})

    def predicted(self, contender: Contender, model: Model, X: Table) -> Floats:
        """Return probabilities, (rows, classes), or numbers, (rows,); of survival, risks."""
        if self.task != "classification":
            values = np.asarray(model.predict(X), np.float64).reshape(X.shape[0])
            sign = 1.0 if self.task != "survival" or getattr(model, "_predict_risk_score", True) else -1.0
            return sign * values
        if not hasattr(model, "predict_proba"):
            raise TypeError("it has no predict_proba: wrap it in sklearn.calibration.CalibratedClassifierCV.")
        shares = np.asarray(model.predict_proba(X), np.float64)
        if shares.shape[1] == len(self.classes):
            return shares
        known = np.asarray(model.classes_)  # a class without training rows has probability 0
        places = np.searchsorted(self.classes, known) if contender.kind == "estimator" else known.astype(np.intp)
        whole = np.zeros((len(shares), len(self.classes)))
        whole[:, places] = shares
        return whole


@dataclass(frozen=True, slots=True)
class Job:
    """A model to train and measure on a fold."""

    contender: Contender
    fold: Fold
    measures: Mapping[str, Measure]
    n_jobs: int
    seed: int
    tune: int = 0
    seconds: float = 0.0  # that a search spends at least
    rehearse: bool = True


@dataclass(frozen=True, slots=True)
class FoldOutcome:
    """What was measured of one model on one fold."""

    state: Literal["ran", "skipped", "failed"]  # skipped: its library is not installed
    reason: str = ""  # why it did not run; empty if it ran
    scores: Mapping[str, float] = field(default_factory=dict)
    fit_seconds: float = np.nan  # wall time of the fit, and of a search that comes with it
    row_seconds: float = np.nan  # wall time of predicting one row, median
    peak_bytes: int | None = None  # peak memory of the fit above that before it, None if unknown
    model_bytes: int | None = None  # size of the fitted model as pickle writes it; None if it cannot
    # of the test rows: probabilities, (rows, classes), or numbers, (rows,)
    predicted: Floats = field(default_factory=lambda: np.empty(0), repr=False, compare=False)


def measure(job: Job, data: TableData) -> FoldOutcome:
    """Train, predict and score; a failure is an outcome, too."""
    try:
        return _measured(job, data)
    except Exception as error:
        skipped = isinstance(error, ImportError)
        reason = str(error) if skipped else f"{type(error).__name__}: {error}"
        return FoldOutcome("skipped" if skipped else "failed", reason)


def _measured(job: Job, data: TableData) -> FoldOutcome:
    if job.rehearse:
        rehearse(job, data)
    rows = data.rows(job.contender, job.fold[0])
    X, y = _safe_indexing(data.table_for(job.contender), job.fold[1]), data.y[job.fold[1]]
    groups = None if data.groups is None else data.groups[job.fold[1]]
    name, first = next(iter(job.measures.items()))

    def error(model: Model, X: Table, y: NDArray[Any], groups: NDArray[np.intp] | None) -> float:
        score = scores_of({name: first}, model, X, y, groups, data, job.contender)[0][name]
        return -score if first.greater_is_better else score

    options: dict[str, Any] = {"task": data.task, "n_jobs": job.n_jobs, "seed": job.seed}
    options |= {"tune": job.tune, "seconds": job.seconds}
    peak, start = Peak(), time.perf_counter()
    model = fit_contender(job.contender, rows, error=error, **options)
    fit_seconds, peak_bytes = time.perf_counter() - start, peak.bytes()
    scores, predicted = scores_of(job.measures, model, X, y, groups, data, job.contender)
    row_seconds = _latency(job.contender, data, model, X)
    return FoldOutcome("ran", "", scores, fit_seconds, row_seconds, peak_bytes, _size(model), predicted)


def rehearse(job: Job, data: TableData) -> None:
    """Train and predict on few rows that contain each class, as far as a model can learn from them."""
    train = job.fold[0]
    members = [train[data.y[train] == number][:5] for number in range(len(data.classes))]
    rows = data.rows(job.contender, np.unique(np.concatenate([train[:_REHEARSAL_ROWS], *members])))
    # validation labels in reverse order: with the right ones, boosting would only stop at its last round
    valid = rows._replace(X_valid=rows.X, y_valid=rows.y[::-1], groups_valid=rows.groups)
    split = valid if searched(job.contender) else rows
    length = None if job.contender.kind == "estimator" else _REHEARSAL_LENGTH
    with suppress(Exception):  # too few rows for it, or not those that it needs
        options: dict[str, Any] = {"task": data.task, "n_jobs": job.n_jobs, "seed": job.seed, "length": length}
        data.predicted(job.contender, train_contender(job.contender, split, **options).model, rows.X)


def _size(model: Model) -> int | None:
    """Return the bytes of a pickle; None for classes and functions of scripts and notebooks, which have none."""
    try:
        return len(pickle.dumps(model, protocol=5))
    except Exception:
        return None


def _latency(contender: Contender, data: TableData, model: Model, X: Table) -> float:
    """Return the median seconds of predicting one row."""
    row, seconds = _safe_indexing(X, [0]), []
    for _ in range(_PREDICTIONS):
        start = time.perf_counter()
        data.predicted(contender, model, row)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def scores_of(
    measures: Mapping[str, Measure],
    model: Model,
    X: Table,
    y: NDArray[Any],
    groups: NDArray[np.intp] | None,
    data: TableData,
    contender: Contender,
) -> tuple[dict[str, float], Floats]:
    """Return all scores of some rows, and the predictions.

    Raises FloatingPointError if the predictions, or the first score, on which the verdict rests, are not finite.
    """
    predicted = data.predicted(contender, model, X)
    if not np.isfinite(predicted).all():
        raise FloatingPointError("the predictions are not finite")
    y_user, of_user = data.target_of_user(y), model
    if contender.kind != "estimator" and data.task == "classification":
        of_user = Labelled(model, data.classes)
    scores = {}
    for name, measure in measures.items():
        function: Callable[..., float] | None = measure.function
        if function is not None:
            scores[name] = function(y, predicted, groups)
        elif measure.scorer is not None:
            scores[name] = float(measure.scorer(of_user, X, y_user))
    first, score = next(iter(scores.items()))
    if not np.isfinite(score):
        raise FloatingPointError(f"{first} of a fold is {score}: choose another metric, or other folds.")
    return scores, predicted


@dataclass(frozen=True, slots=True)
class Labelled:
    """A classifier of class numbers that predicts labels, for scorers."""

    model: Any
    classes_: NDArray[Any]

    def predict(self, X: Table) -> NDArray[Any]:
        """Return labels, (rows,)."""
        return self.classes_[np.asarray(self.model.predict(X)).ravel()]

    def predict_proba(self, X: Table) -> Floats:
        """Return probabilities, (rows, classes)."""
        return np.asarray(self.model.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        return self.model.__sklearn_tags__()


class Peak:
    """Peak resident memory since the object was created, minus the resident memory at that time; Linux only.

    The mark of other systems (`ru_maxrss`) cannot be reset, and a child process inherits that of its parent.

    >>> peak = Peak()
    >>> ballast = bytearray(50_000_000)
    >>> peak.bytes()  # doctest: +SKIP
    50003968
    """

    def __init__(self) -> None:
        gc.collect()
        self._start = None
        try:
            ctypes.CDLL(None).malloc_trim(0)  # otherwise free memory of the process would hide allocations
            Path("/proc/self/clear_refs").write_bytes(b"5")
            self._start = _resident()
        except (OSError, AttributeError, TypeError, StopIteration):  # another system or C library, or a sandbox
            pass

    def bytes(self) -> int | None:
        """Return the peak so far in bytes; None if it is unknown."""
        return None if self._start is None else _resident() - self._start


def _resident() -> int:
    """Return the high-water mark of the resident memory in bytes; a reset sets it to what is resident."""
    lines = Path("/proc/self/status").read_bytes().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(b"VmHWM:"))
