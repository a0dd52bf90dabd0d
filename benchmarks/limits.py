"""Limits: a fit with `max_time` ends in time, on tables of every shape.

::

    python -m benchmarks.limits
    python -m benchmarks.limits --times 2 8 --tables wide classes --cpu

Each limit is a multiple of the seconds that LightGBM takes with early stopping, trained just before in the same process
with one thread. A fit is late if it takes longer than 1.2 times the limit and a second. The command lists each fit with
its error as a share of LightGBM's, and ends with status 1 if a fit is late. On a busy machine, ``--cpu`` lets the clock
of the process, which runs one thread, take the place of the wall clock in all places.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import lightgbm
import numpy as np
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.model_selection import train_test_split

from boostbp import BoostBPClassifier, BoostBPRegressor

LEAST = 0.1  # seconds of a fit of LightGBM, as a limit counts it
# (rows, columns, classes): 0 classes stand for numbers
SHAPES: dict[str, list[tuple[int, int, int]]] = {
    "small": [(30, 1, 0), (30, 1, 2), (40, 10, 0), (60, 20, 3), (100, 5, 2), (200, 100, 0), (300, 30, 10), (500, 8, 0)],
    "medium": [(1000, 20, 0), (2000, 50, 2), (3000, 10, 5), (5000, 30, 0), (10_000, 15, 2), (20_000, 40, 0)],
    "wide": [
        *((40, 30_000, 0), (60, 8000, 2), (200, 5000, 0), (200, 5000, 3), (2000, 2000, 0), (500, 50_000, 2)),
        *((40, 50_000, 3), (1000, 1500, 0), (100, 1200, 5)),
    ],
    "classes": [(2000, 10, 200), (3000, 20, 50), (1000, 100, 20), (600, 5, 100), (20_000, 10, 30)],
    "long": [(50_000, 10, 0), (100_000, 20, 2), (200_000, 5, 0), (200_000, 10, 3), (60_000, 50, 0)],
    "missing": [(300, 20, 0), (3000, 40, 2), (60_000, 8, 0)],
    "categories": [(500, 6, 0), (5000, 10, 2), (60_000, 5, 0)],
    "sparse": [(2000, 5000, 2)],
}


def table_of(kind: str, rows: int, columns: int, classes: int) -> tuple[Any, Any]:
    """Return a table of some kind and its target, with as many rows again to judge models by."""
    rng = np.random.default_rng(rows + columns + classes)
    X = rng.standard_normal((rows + min(rows, 2000) + 200, columns))
    if kind == "sparse":
        X[rng.random(X.shape) < 0.99] = 0.0
    signal = np.sin(2.0 * X[:, 0]) + X[:, min(1, columns - 1)] + X[:, : min(columns, 5)].sum(1) * 0.3
    signal += 0.3 * rng.standard_normal(len(X))
    if kind == "missing":
        X[rng.random(X.shape) < 0.2] = np.nan
    if kind == "categories":
        level = np.minimum(rng.geometric(0.02, len(X)), 300)
        signal += rng.standard_normal(301)[level]
        X[:, -1] = level
    if not classes:
        return X, signal
    labels = np.argsort(np.argsort(signal)) * classes // len(signal)
    labels[:classes] = range(classes)
    return X, labels


def fits(options: argparse.Namespace) -> Iterator[bool]:
    """Print a line for each table; yield for each fit whether it ended in time."""
    clock = time.process_time if options.cpu else time.perf_counter
    for kind in options.tables:
        for shape in SHAPES[kind]:
            X, y = table_of(kind, *shape)
            seconds, reference = trained(library(kind, shape), X, y, shape, clock)
            seconds = max(seconds, LEAST)
            parts = []
            for times in options.times:
                limit = times * seconds
                took, error = trained(ours(kind, shape, limit, options), X, y, shape, clock)
                in_time = took <= 1.2 * limit + 1.0
                parts.append(f"{times:g}x {took:6.2f} {error / reference:5.2f}{' ' if in_time else '*'}")
                yield in_time
            name = "x".join(map(str, shape[:2])) + f" {shape[2] or ''}"
            print(f"{kind:10} {name:16} {seconds:7.2f} | {' | '.join(parts)}", flush=True)


def library(kind: str, shape: tuple[int, int, int]) -> Any:
    """Return a function that trains LightGBM with early stopping."""

    def fit(X: Any, y: Any) -> Any:
        kind_of = lightgbm.LGBMClassifier if shape[2] else lightgbm.LGBMRegressor
        a, b = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0)
        a = np.union1d(a, np.unique(y, return_index=True)[1]) if shape[2] else a
        model = kind_of(n_estimators=1000, n_jobs=1, verbosity=-1)
        stop = lightgbm.early_stopping(20, verbose=False)
        columns = [X.shape[1] - 1] if kind == "categories" else "auto"
        return model.fit(X[a], y[a], eval_set=[(X[b], y[b])], callbacks=[stop], categorical_feature=columns)

    return fit


def ours(kind: str, shape: tuple[int, int, int], limit: float, options: argparse.Namespace) -> Any:
    """Return a function that trains the model under a limit."""
    kind_of = BoostBPClassifier if shape[2] else BoostBPRegressor
    categories = [shape[1] - 1] if kind == "categories" else None
    deep: Any = options.deep or "auto"
    how = {"quality": options.quality, "deep": deep, "random_state": 0, "n_jobs": 1, "categorical_features": categories}
    return kind_of(max_time=limit, **how).fit


def trained(fit: Any, X: Any, y: Any, shape: tuple[int, int, int], clock: Any) -> tuple[float, float]:
    """Return the seconds of a fit and its error on the other rows."""
    rows = shape[0]
    begun = clock()
    model = fit(X[:rows], y[:rows])
    seconds = clock() - begun
    if shape[2]:
        known = np.isin(y[rows:], model.classes_)
        return seconds, log_loss(y[rows:][known], model.predict_proba(X[rows:][known]), labels=model.classes_)
    return seconds, root_mean_squared_error(y[rows:], model.predict(X[rows:]))


def main() -> int:
    parser = argparse.ArgumentParser(description="A fit with max_time ends in time, on tables of every shape.")
    parser.add_argument("--times", type=float, nargs="+", default=[2.0, 4.0, 8.0], help="limits, in fits of LightGBM")
    parser.add_argument("--tables", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--quality", type=int, choices=range(1, 6), default=3)
    parser.add_argument("--deep", action="store_true", help="train the network in any case")
    parser.add_argument("--cpu", action="store_true", help="count the seconds of the process, not those of the wall")
    options = parser.parse_args()
    if options.cpu:
        time.perf_counter = time.process_time
    warnings.simplefilter("ignore")
    in_time = list(fits(options))
    print(f"{len(in_time)} fits, {in_time.count(False)} late")
    return in_time.count(False) > 0


if __name__ == "__main__":
    sys.exit(main())
