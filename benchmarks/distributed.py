"""Several local workers against one process: seconds, what they send, and how far their models are apart."""

from __future__ import annotations

import multiprocessing
import pickle
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp import BoostBPRegressor
from boostbp.backends.xgboost_network import _Network
from boostbp.distributed import Address, fit_worker, tracked

__all__ = ["WORKERS", "distributed"]

Floats = NDArray[np.float64]
WORKERS = (2, 4)
FEATURES, UNITS, EPOCHS = 20, 8, 4
LOOPBACK = Path("/proc/net/dev")


def distributed(workers: int, rows: int) -> dict[str, Any]:
    """A network of some epochs; every process has one thread. Bytes are those of one worker, of a single fit.

    Of the loopback, on Linux, they are those of all workers and of whoever else uses it.
    """
    alone, seconds = _alone(rows)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        _together(pool, workers, min(rows, 2000))  # imports and compiles
        before = _loopback()
        fits = _together(pool, workers, rows)
        sent = _loopback() - before
    X = _table(rows)[0][:10_000]
    models, times, counts = zip(*fits, strict=True)
    predicted = [model.predict(X) for model in models]
    expected = alone.predict(X)
    return {
        "one process, seconds": seconds,
        "seconds": max(times),
        "messages": {name: number for name, (number, _) in counts[0].items()},
        "megabytes": {name: size / 1e6 for name, (_, size) in counts[0].items()},
        "loopback, megabytes": sent / 1e6,
        "workers agree": all(np.array_equal(one, predicted[0]) for one in predicted),
        "difference": float(np.abs(predicted[0] - expected).max() / expected.std()),
    }


def _model() -> BoostBPRegressor:
    return BoostBPRegressor(
        (UNITS,),
        deep=True,
        backend="xgboost",
        epochs=EPOCHS,
        n_estimators=30,
        early_stopping=False,
        random_state=0,
    )


def _table(rows: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, FEATURES))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=rows)


@cache
def _alone(rows: int) -> tuple[BoostBPRegressor, float]:
    _model().fit(*_table(2000))
    X, y = _table(rows)
    begun = time.perf_counter()
    model = _model().fit(X, y)
    return model, time.perf_counter() - begun


def _together(pool: ProcessPoolExecutor, workers: int, rows: int) -> list[Any]:
    with tracked(workers, timeout=600.0) as address:
        return [job.result() for job in [pool.submit(_work, address, rank, rows) for rank in range(workers)]]


def _work(address: Address, rank: int, rows: int) -> tuple[BoostBPRegressor, float, dict[str, tuple[int, int]]]:
    """One worker's model, seconds, and the number and bytes of its messages by verb."""
    X, y = _table(rows)
    own = slice(rank * rows // address.n_workers, (rank + 1) * rows // address.n_workers)
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
        begun = time.perf_counter()
        model = fit_worker(_model(), X[own], y[own], address=address, rank=rank)
        seconds = time.perf_counter() - begun
    finally:
        for name, verb in verbs.items():
            setattr(_Network, name, verb)
    return model, seconds, {name: (messages[name], sizes[name]) for name in verbs}


def _loopback() -> int:
    """Bytes that came through the loopback device so far; 0 where that is not known."""
    if not LOOPBACK.exists():
        return 0
    lines = (line.split() for line in LOOPBACK.read_text(encoding="utf-8").splitlines())
    return next((int(fields[1]) for fields in lines if fields and fields[0] == "lo:"), 0)
