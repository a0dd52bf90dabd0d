"""Constants with the least weighted loss: mean, log mean, quantile, Huber centre; one for each column.

`y` is (rows, outputs) float64, `weight` (rows,) float64 >= 0; every function returns (outputs,) and
raises ValueError if no row has a positive, finite weight.
"""

from __future__ import annotations

import numpy as np

from boostbp.floats import Floats

_ABSENT = 1e-6  # stands for the share of a class, or the mean of a count, that never occurs
_ROUNDING = 1e-12  # by which sums such as 1/3 + 1/3 may miss what they should be


def mean(y: Floats, weight: Floats) -> Floats:
    """Weighted mean."""
    return np.asarray(_shares(weight) @ y)


def log_mean(y: Floats, weight: Floats) -> Floats:
    """Log of the weighted mean of `y` >= 0; ``log(1e-6)`` for a column that is 0."""
    average = mean(y, weight)
    return np.log(np.where(average > 0, average, _ABSENT))


def quantile(y: Floats, weight: Floats, alpha: float) -> Floats:
    """Weighted quantile: the middle of all constants with the least pinball loss."""
    share = _shares(weight)
    return np.array([_quantile(column, share, alpha) for column in y.T])


def huber_centre(y: Floats, weight: Floats, delta: float) -> Floats:
    """Weighted Huber centre: the middle of all constants with the least Huber loss."""
    share = _shares(weight)
    median = quantile(y, weight, 0.5)
    # The centre lies within delta of the median: a row further off than 2 delta only pulls with delta.
    near = np.clip(y - median, -2 * delta, 2 * delta)
    return np.asarray(median + [_huber_root(column, share, delta) for column in near.T])


def _shares(weight: Floats) -> Floats:
    """`weight` with sum 1; by its largest first, so that no sum overflows."""
    largest = weight.max()
    if not 0 < largest < np.inf:
        raise ValueError(f"sample_weight has the largest value {largest:g}: give some row a positive, finite weight.")
    scaled = weight / largest
    return np.asarray(scaled / scaled.sum())


def _quantile(column: Floats, share: Floats, alpha: float) -> float:
    order = np.argsort(column, kind="stable")
    below = np.cumsum(share[order])
    lower = int(np.searchsorted(below, alpha * (1 - _ROUNDING), side="left"))
    upper = int(np.searchsorted(below, alpha * (1 + _ROUNDING), side="right"))
    last = len(order) - 1
    return float(0.5 * column[order[min(lower, last)]] + 0.5 * column[order[min(upper, last)]])


def _huber_root(column: Floats, share: Floats, delta: float) -> float:
    """Root ``c`` of ``sum(share * clip(c - column, -delta, delta))``, which is piecewise linear and rises."""
    knots = np.concatenate((column - delta, column + delta))
    order = np.argsort(knots, kind="stable")
    knots = knots[order]
    slope = np.cumsum(np.concatenate((share, -share))[order])
    above_lowest = np.concatenate(([0.0], np.cumsum(slope[:-1] * np.diff(knots))))
    lower, upper = np.interp([delta * (1 - _ROUNDING), delta * (1 + _ROUNDING)], above_lowest, knots)
    return float(0.5 * lower + 0.5 * upper)
