"""Probes of monotone models: rows whose cells come from anywhere, moved along a column past all that may go wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ROUNDING = 1e-12  # of the largest prediction: sums of a few hundred leaves


def along(X: Floats, j: int, thresholds: Floats, rng: np.random.Generator) -> Floats:
    """Ascending values of a column: thresholds, values beyond its range, random ones, and the floats next to them."""
    low, high = np.nanmin(X[:, j]), np.nanmax(X[:, j])
    width = high - low
    some = rng.choice(thresholds, min(len(thresholds), 10), replace=False) if len(thresholds) else thresholds
    values = np.concatenate([some, rng.uniform(low - width, high + width, 10), [low - 9 * width, high + 9 * width]])
    return np.unique(np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)]))


def rows_of(X: Floats, categorical: Sequence[int], count: int, rng: np.random.Generator) -> Floats:
    """Rows of the table, half of whose cells come from other rows; some are far away, some are missing."""
    rows = np.stack([X[rng.integers(len(X), size=count), j] for j in range(X.shape[1])], axis=1)
    rows = np.where(rng.random(rows.shape) < 0.5, rows, X[rng.integers(len(X), size=count)])
    for j in set(range(X.shape[1])) - set(categorical):
        far, missing = rng.random((2, count)) < 0.04
        rows[far, j] += rng.normal(size=far.sum()) * 3 * (np.nanmax(X[:, j]) - np.nanmin(X[:, j]))
        rows[missing, j] = np.nan
    return rows


def violations(
    predict: Callable[[Any], Floats],
    X: Floats,
    signs: Sequence[int],
    thresholds: Callable[[int], Floats] = lambda j: np.empty(0),
    *,
    categorical: Sequence[int] = (),
    probes: int = 10_000,
    seed: int = 0,
) -> float:
    """Share of the steps between neighbouring values of a constrained column at which the prediction goes wrong."""
    rng = np.random.default_rng(seed)
    wrong = total = 0
    columns = [j for j, sign in enumerate(signs) if sign]
    for j in columns:
        values = along(X, j, thresholds(j), rng)
        rows = rows_of(X, categorical, -(-probes // (len(columns) * (len(values) - 1))), rng)
        moved = np.repeat(rows, len(values), axis=0)
        moved[:, j] = np.tile(values, len(rows))
        raw = signs[j] * np.asarray(predict(moved), np.float64).reshape(len(rows), -1)
        steps = np.diff(raw, axis=1)
        wrong += int((steps < -ROUNDING * np.abs(raw).max()).sum())
        total += steps.size
    assert total >= probes
    return wrong / total


def thresholds_of(forest: Any) -> Callable[[int], Floats]:
    """Thresholds of a column in a forest."""
    nodes = forest.trees.nodes
    return lambda j: np.unique(nodes.threshold[(nodes.feature == j) & (nodes.cat_start < 0)])
