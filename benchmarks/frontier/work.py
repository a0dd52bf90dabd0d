"""One cell: train a model on a fold beside the reference, and score both on the test rows; runs in a worker process."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, log_loss, root_mean_squared_error

from benchmarks.accuracy.data import SETS, Fold, cut
from benchmarks.frontier.models import (
    REFERENCE,
    Fit,
    UnavailableError,
    fit_of,
    is_ours,
    prepare_of,
    times_of,
    version_of,
)
from benchmarks.frontier.plan import Cell
from benchmarks.source import source

__all__ = ["run", "score", "timed"]

_BRIEF, _REPEATS = 1.0, 3  # a fit of fewer seconds is timed so many times
_LEAST = 1e-7  # probabilities are clipped: those of some libraries are float32
_REHEARSAL = 1.0  # seconds that one of ours may take to load what it needs


def run(cell: Cell, data_dir: Path | None) -> dict[str, Any]:
    """Train and score.

    Returns
    -------
    dict
        ``state`` and ``reason``; and of a cell that ran ``error`` (RMSE over the standard deviation of the target, or
        log-loss), ``accuracy`` (of classes), ``wall`` and ``cpu`` (seconds of the fit), ``reference`` (the same of
        LightGBM, trained just before), ``test_rows``, ``max_time``, ``library``, ``date`` and ``source``, the code that
        ran it.
    """
    classes = SETS[cell.set].task == "classification"
    seed = zlib.crc32(f"{cell.set} {cell.fold}".encode()) % 2**31  # other draws on each
    try:
        fit_of(cell.model)
        with warnings.catch_warnings(), _quiet():
            warnings.simplefilter("ignore")
            fold = cut(cell.set, cell.fold, data_dir, cell.rows)
            ours = reference = _trained(REFERENCE, fit_of(REFERENCE), fold, classes, seed)
            times = times_of(cell.model)
            max_time = None if times is None else times * reference["wall"]
            if cell.model != REFERENCE:
                ours = _trained(cell.model, fit_of(cell.model, max_time), fold, classes, seed)
    except UnavailableError as missing:
        return {"state": "skipped", "reason": str(missing)}
    except Exception as failed:
        return {"state": "failed", "reason": f"{type(failed).__name__}: {failed}"[:500]}
    return {
        "state": "ran",
        "reason": "",
        **ours,
        "reference": reference,
        "test_rows": len(fold.y_test),
        "max_time": max_time,
        "library": version_of(cell.model),
        "date": dt.date.today().isoformat(),
        "source": source(),
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, wall seconds and CPU seconds of some work; of brief work, medians of a few runs."""
    seconds: list[tuple[float, float]] = []
    while not seconds or (len(seconds) < _REPEATS and seconds[0][0] < _BRIEF):
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        seconds.append((time.perf_counter() - wall, time.process_time() - cpu))
    middle = np.median(seconds, axis=0)
    return result, float(middle[0]), float(middle[1])


def score(model: Any, X: Any, y: NDArray[Any], std: float, classes: bool) -> tuple[float, float | None]:
    """Error (RMSE over `std`, or log-loss) and accuracy (of classes) of some rows.

    A class that the model does not know has probability 0 and is clipped as all are.
    """
    if not classes:
        return float(root_mean_squared_error(y, np.asarray(model.predict(X), float).reshape(-1))) / std, None
    known = np.asarray(model.classes_, dtype=int)
    probability = np.zeros((len(y), max(known.max(), y.max()) + 1))
    probability[:, known] = np.asarray(model.predict_proba(X), float)
    probability = np.clip(probability, _LEAST, None)
    probability /= probability.sum(axis=1, keepdims=True)
    labels = np.arange(probability.shape[1])
    return float(log_loss(y, probability, labels=labels)), float(accuracy_score(y, probability.argmax(axis=1)))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what libraries print of their progress."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        yield


def _trained(name: str, fit: Fit, fold: Fold, classes: bool, seed: int) -> dict[str, Any]:
    X, y = _whole(fold)
    X, X_test = prepare_of(name)(X, fold.X_test)
    kind = min(int(y.max()), 2) if classes else 0
    _rehearse(name, kind, hasattr(X, "columns") and any(X[column].dtype.kind not in "biuf" for column in X))
    model, wall, cpu = timed(lambda: fit(X, y, classes, seed))
    error, accuracy = score(model, X_test, fold.y_test, fold.std, classes)
    return {"error": error, "accuracy": accuracy, "wall": round(wall, 5), "cpu": round(cpu, 5)}


def _whole(fold: Fold) -> tuple[Any, NDArray[Any]]:
    """All rows to learn from: each model chooses for itself which of them it stops by."""
    X, y, X_valid, y_valid, *_ = fold.split
    y = np.concatenate([y, y_valid])
    if hasattr(X, "iloc"):
        import pandas as pd

        return pd.concat([X, X_valid]), y
    return np.concatenate([X, X_valid]), y


@cache
def _rehearse(name: str, kind: int, categories: bool) -> None:
    """Train on a few rows, so that all code is loaded, which is no part of a fit.

    `kind` is 0 for numbers, 1 for two classes, 2 for more.
    """
    X: Any = np.random.default_rng(0).uniform(size=(200, 4))
    total = X.sum(axis=1)
    y = total if kind == 0 else np.searchsorted(np.quantile(total, np.arange(1, kind + 1) / (kind + 1)), total)
    if categories:
        import pandas as pd

        X = pd.DataFrame(X, columns=list("abcd"))
        X["d"] = pd.Categorical(np.where(X["d"] > 0.5, "high", "low"))
    X, _ = prepare_of(name)(X, X)
    fit_of(name, _REHEARSAL if is_ours(name) else None)(X, y, kind > 0, 0).predict(X)
