"""Fits of many rows: processor seconds, error and peak memory of each quality beside LightGBM, one thread.

``python -m benchmarks.many_rows --rows 100000 1000000`` takes each model in a process of its own, one after the other.
The table has 20 normal columns and the target ``sin 2x0 + x1 x2 + |x3| + (x4 + ... + x9) / 2 if x10 > 0``, with noise
of .3; the error is that of predictions of the target without its noise.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
N_TEST = 50_000
MODELS = ("lightgbm", "1", "2", "3")


def table(n_rows: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Features, target without noise, and target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 20))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + np.where(X[:, 10] > 0, X[:, 4:10].sum(1) / 2, 0)
    return X, y, y + 0.3 * rng.normal(size=n_rows)


def measured(model: str, n_rows: int) -> dict[str, float]:
    """Fit one model: processor seconds, error, peak memory of the process in MB, and that before the fit."""
    import resource

    X, _, y = table(n_rows, 0)
    predict = _library(X[:2000], y[:2000], 10) if model == "lightgbm" else _ours(X[:300], y[:300], 2)  # imports modules
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    predict = _library(X, y, 20_000) if model == "lightgbm" else _ours(X, y, int(model))
    seconds, peak = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    X, clean, _ = table(N_TEST, 1)
    error = float(np.sqrt(np.mean(np.square(predict(X) - clean))))
    return {"seconds": seconds, "error": error, "peak_mb": peak / 1e3, "before_mb": before / 1e3}


def _ours(X: Floats, y: Floats, quality: int) -> Any:
    from boostbp import BoostBPRegressor

    return BoostBPRegressor(quality=quality, n_jobs=1, random_state=0).fit(X, y).predict


def _library(X: Floats, y: Floats, most_rounds: int) -> Any:
    """LightGBM with its defaults, stopped early on a tenth of the rows."""
    import lightgbm

    n_held = len(y) // 10
    params = {"objective": "l2", "num_threads": 1, "verbosity": -1}
    train = lightgbm.Dataset(X[n_held:], y[n_held:], params=params)
    held = lightgbm.Dataset(X[:n_held], y[:n_held], reference=train)
    stop = lightgbm.early_stopping(50, verbose=False)
    booster = lightgbm.train(params, train, most_rounds, valid_sets=[held], callbacks=[stop])
    return booster.predict


def main(argv: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Measure the models on tables of each size, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_rows", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--models", nargs="+", choices=(*MODELS, "4", "5"), default=MODELS, metavar="MODEL")
    options = parser.parse_args(argv)
    results: list[dict[str, Any]] = []
    for n_rows in options.rows:
        for model in options.models:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                found = {"rows": n_rows, "model": model} | pool.submit(measured, model, n_rows).result()
            print(
                "  ".join(f"{k}: {v:.4g}" if isinstance(v, float) else f"{k}: {v}" for k, v in found.items()),
                flush=True,
            )
            results.append(found)
    return results


if __name__ == "__main__":
    main()
