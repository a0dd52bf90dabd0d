"""Local workers that train a model together: seconds, memory, what they send, how far they are from one process."""

from __future__ import annotations

import multiprocessing
import pickle
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp import BoostBPRegressor
from boostbp.backends.xgboost_network import _Network
from boostbp.distributed import Address, fit_worker, tracked

__all__ = ["MODELS", "QUICK_SIZES", "SIZES", "WORKERS", "apart", "grown"]

Floats = NDArray[np.float64]
WORKERS = (2, 4)
FEATURES = 20
SIZES = ((100_000, 20), (400_000, 20), (1_000_000, 20), (4_000_000, 20), (400_000, 100))  # rows, features
QUICK_SIZES = ((10_000, 20),)
CHUNK = 10_000  # rows that are drawn with one seed, whoever holds them
FEW = 2000  # rows on which everything is imported before it is timed
MODELS: dict[str, dict[str, Any]] = {
    "network": {
        "hidden_layer_sizes": (8,),
        "deep": True,
        "epochs": 4,
        "n_estimators": 30,
        "early_stopping": False,
    },
    "epoch": {
        "hidden_layer_sizes": (4,),
        "deep": True,
        "epochs": 1,
        "n_estimators": 10,
        "early_stopping": False,
        "backprop": {"output_target": "moved"},
    },
    "quality 2": {"quality": 2},
}


class Fit(NamedTuple):
    """What one worker has done. Seconds of the clock and of the processor; bytes above those of its rows."""

    model: BoostBPRegressor
    seconds: float
    cpu: float
    peak: int
    messages: Counter[str]
    sizes: Counter[str]


def apart(model: str, backend: str, workers: int, rows: int, features: int = FEATURES) -> dict[str, Any]:
    """Several workers beside one process, on new rows. Every process has one thread; see `grown`."""
    alone = _alone(model, backend, rows, features)
    found, fits = _measured(model, backend, workers, rows, features)
    X, y = _table(rows, rows + FEW, features)
    expected, *predicted = (fit.model.predict(X) for fit in (alone, *fits))
    return {
        "one process, seconds": alone.seconds,
        "one process, processor seconds": alone.cpu,
        **found,
        "workers agree": all(np.array_equal(one, predicted[0]) for one in predicted),
        "difference": float(np.abs(predicted[0] - expected).max() / expected.std()),
        "one process, R2": alone.model.score(X, y),
        "R2": fits[0].model.score(X, y),
    }


def grown(model: str, backend: str, workers: int, rows: int, features: int = FEATURES) -> dict[str, Any]:
    """Seconds and bytes of one fit, of a table whose parts are made where they are held.

    Seconds are those of the slowest worker, memory that of the largest, above what it had before the fit. Messages and
    their bytes are those that one worker sends. Of the loopback, on Linux, bytes are those of all workers, and of
    whoever else uses it.
    """
    if workers > 1:
        return _measured(model, backend, workers, rows, features)[0]
    return _of([_alone(model, backend, rows, features)])


@cache
def _alone(model: str, backend: str, rows: int, features: int) -> Fit:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(_fit, model, backend, FEW, features).result()
        return pool.submit(_fit, model, backend, rows, features).result()


def _measured(model: str, backend: str, workers: int, rows: int, features: int) -> tuple[dict[str, Any], list[Fit]]:
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        _together(pool, workers, model, backend, FEW, features)
        before = _loopback()
        fits = _together(pool, workers, model, backend, rows, features)
        sent = _loopback() - before
    return {**_of(fits), "loopback, megabytes": sent / 1e6}, fits


def _of(fits: list[Fit]) -> dict[str, Any]:
    first = fits[0]
    return {
        "seconds": max(fit.seconds for fit in fits),
        "processor seconds": max(fit.cpu for fit in fits),
        "memory, megabytes": max(fit.peak for fit in fits) / 1e6,
        "messages": dict(first.messages),
        "megabytes": {name: size / 1e6 for name, size in first.sizes.items()},
    }


def _together(pool: ProcessPoolExecutor, workers: int, *of: Any) -> list[Fit]:
    with tracked(workers, timeout=600.0) as address:
        return [job.result() for job in [pool.submit(_fit, *of, address, rank) for rank in range(workers)]]


def _fit(model: str, backend: str, rows: int, features: int, address: Address | None = None, rank: int = 0) -> Fit:
    import resource  # which Windows has not

    n_workers = 1 if address is None else address.n_workers
    X, y = _table(rank * rows // n_workers, (rank + 1) * rows // n_workers, features)
    estimator = BoostBPRegressor(backend=backend, random_state=0, n_jobs=1, **MODELS[model])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with _counted() as (messages, sizes):
        begun, cpu = time.perf_counter(), time.process_time()
        if address is None:
            estimator.fit(X, y)
        else:
            fit_worker(estimator, X, y, address=address, rank=rank)
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    peak = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    return Fit(estimator, seconds, cpu, peak, messages, sizes)


def _table(first: int, last: int, features: int) -> tuple[Floats, Floats]:
    """Rows of a table that has no end."""
    parts = []
    for chunk in range(first // CHUNK, -(-last // CHUNK)):
        rng = np.random.default_rng([0, chunk])
        X = rng.normal(size=(CHUNK, features))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=CHUNK)
        own = slice(max(first - chunk * CHUNK, 0), last - chunk * CHUNK)
        parts.append((X[own], y[own]))
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


@contextmanager
def _counted() -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Count the messages of a worker, and their bytes, by verb."""
    messages: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    verbs = {name: getattr(_Network, name) for name in ("sum", "max", "gather", "agree")}

    def counted(name: str) -> Any:
        def verb(group: _Network, *values: Any) -> Any:
            messages[name] += 1
            numbers = name in ("sum", "max")
            sizes[name] += sum(8 * np.size(value) if numbers else len(pickle.dumps(value)) for value in values)
            return verbs[name](group, *values)

        return verb

    for name in verbs:
        setattr(_Network, name, counted(name))
    try:
        yield messages, sizes
    finally:
        for name, verb in verbs.items():
            setattr(_Network, name, verb)


def _loopback() -> int:
    """Bytes that came through the loopback device so far; 0 where that is not known."""
    device = Path("/proc/net/dev")
    if not device.exists():
        return 0
    lines = (line.split() for line in device.read_text(encoding="utf-8").splitlines())
    return next((int(fields[1]) for fields in lines if fields and fields[0] == "lo:"), 0)
