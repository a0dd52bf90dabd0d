"""Constants with the least weighted loss: mean, log mean, quantile, Huber centre; one for each column.

`y` is (rows, outputs) float64, `weight` (rows,) float64 >= 0; every function returns (outputs,) and
raises ValueError if no row has a positive, finite weight.
"""

from __future__ import annotations

import numpy as np

from boostbp.runtime.arrays import Floats

_ABSENT = 1e-6  # share of a class, or mean of a count, that never occurs; an arbitrary small number
_ROUNDING = 1e-12  # relative rounding error of sums of shares, such as 1/3 + 1/3; a bound with a wide margin


def mean(y: Floats, weight: Floats) -> Floats:
    """Return the weighted mean."""
    # Shares first: a sum of weight * y may overflow where no share of it does.
    return np.asarray(_shares(weight) @ y)


def log_mean(y: Floats, weight: Floats) -> Floats:
    """Return the logarithm of the weighted mean of `y` >= 0; ``log(1e-6)`` for a column of zeros."""
    average = mean(y, weight)
    # The logarithm of 0 is no number, and a floor under all means would change those of rare classes.
    return np.log(np.where(average > 0, average, _ABSENT))


def quantile(y: Floats, weight: Floats, alpha: float) -> Floats:
    """Return the weighted quantile: the middle of all constants with the least pinball loss."""
    share = _shares(weight)
    return np.array([_quantile(column, share, alpha) for column in y.T])


def huber_centre(y: Floats, weight: Floats, delta: float) -> Floats:
    """Return the weighted Huber centre: the middle of all constants with the least Huber loss."""
    share = _shares(weight)
    median = quantile(y, weight, 0.5)
    # The centre lies within delta of the median: a row further off than 2 delta only pulls with delta.
    near = np.clip(y - median, -2 * delta, 2 * delta)
    return np.asarray(median + [_huber_root(column, share, delta) for column in near.T])


def _shares(weight: Floats) -> Floats:
    """Return the weights divided by their sum."""
    largest = weight.max()  # divided by it first, so that no sum overflows
    if not 0 < largest < np.inf:
        raise ValueError(f"sample_weight has the largest value {largest:g}: give some row a positive, finite weight.")
    scaled = weight / largest
    return np.asarray(scaled / scaled.sum())


def _quantile(column: Floats, share: Floats, alpha: float) -> float:
    # The loss falls while the share of the rows below a constant is under alpha. Where it is alpha exactly, the loss is
    # flat from one row to the next: both are found, and the middle is taken.
    order = np.argsort(column, kind="stable")
    below = np.cumsum(share[order])
    lower = int(np.searchsorted(below, alpha * (1 - _ROUNDING), side="left"))
    upper = int(np.searchsorted(below, alpha * (1 + _ROUNDING), side="right"))
    last = len(order) - 1  # rounded sums may end just below 1
    return float(0.5 * column[order[min(lower, last)]] + 0.5 * column[order[min(upper, last)]])


def _huber_root(column: Floats, share: Floats, delta: float) -> float:
    """Return the root ``c`` of ``sum(share * clip(c - column, -delta, delta))``."""
    # The sum rises, piecewise linear in c: a row adds its share to the slope while |c - column| < delta.
    knots = np.concatenate((column - delta, column + delta))
    order = np.argsort(knots, kind="stable")
    knots = knots[order]
    slope = np.cumsum(np.concatenate((share, -share))[order])
    # The sum is -delta at the lowest knot, so its root is where it has risen by delta; two if it is flat there.
    above_lowest = np.concatenate(([0.0], np.cumsum(slope[:-1] * np.diff(knots))))
    lower, upper = np.interp([delta * (1 - _ROUNDING), delta * (1 + _ROUNDING)], above_lowest, knots)
    return float(0.5 * lower + 0.5 * upper)
