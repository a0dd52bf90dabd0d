"""Bounds of columns: regressions read isolated values, such as mistyped cells, as the nearest of the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats
from boostbp.group import workers
from boostbp.trees.sparse import Matrix, Sparse, column_of

ROWS = 100  # isolated values, on either side, are at most one row in so many: more of them are a group of their own
GAP = 1.25  # a gap is wide if it is so many times the distance from the median to its near side


def bounded(Z: Matrix, columns: NDArray[np.integer], weight: Floats) -> Matrix:
    """The input with some columns clipped to their bounds; the input itself where nothing is isolated.

    Parameters
    ----------
    Z : (rows, all columns) float64, C-contiguous, or Sparse
        Not changed. NaN is missing, and stays.
    columns : (columns,) int
        Those with numbers.
    weight : (rows,) float64
        See `bounds_of`.
    """
    clipped = {}
    for j, lower, upper in _limits(Z, columns, weight):
        z = column_of(Z, j)
        if (((z < lower) | (z > upper)) & (weight > 0)).any():
            clipped[j] = np.clip(z, lower, upper)
    if isinstance(Z, Sparse):
        return Z.replaced(clipped)
    if clipped:
        Z = Z.copy()
        for j, z in clipped.items():
            Z[:, j] = z
    return Z


def _limits(Z: Matrix, columns: NDArray[np.integer], weight: Floats) -> Iterator[tuple[int, float, float]]:
    """Yield the columns that may have isolated values, and the bounds of each."""
    group = workers()
    if group.alone:
        for j in _may_exceed(Z, columns, weight):
            yield int(j), *bounds_of(column_of(Z, j), weight)
        return
    sample, of_sample = group.sample(Z[:, columns], weight)
    for j, z in zip(columns, sample.T, strict=True):
        lower, upper = bounds_of(z, of_sample)
        counted = z[of_sample > 0]
        # the range of the sample is not that of all rows: where it has no isolated values, the column is left alone
        yield int(j), lower if (counted < lower).any() else -np.inf, upper if (counted > upper).any() else np.inf


def bounds_of(z: Floats, weight: Floats) -> tuple[float, float]:
    """Smallest and largest value of a column that are not isolated.

    Values are isolated if they are few, and a gap separates them from the others that is wider than all that lies
    between the gap and the median: they are more than 2.25 times as far from it as their neighbour. Cells off by a
    factor of ten are isolated, and zeros in a column far from 0. A column without such a gap keeps its range, however
    long its tails are, and so does one that has a single value in all but a few of its rows, such as a rare indicator.

    Parameters
    ----------
    z : (rows,) float64
        NaN is missing.
    weight : (rows,) float64
        A weight of 2 is a row twice, a weight of 0 is none.
    """
    counts = (weight > 0) & ~np.isnan(z)
    order = np.argsort(z[counts])
    z, weight = z[counts][order], weight[counts][order]
    if not len(z):
        return -np.inf, np.inf
    total = weight.cumsum()
    # the mean of both middle values, where there are two: bounds turn round with the sign of a column
    at = np.searchsorted(total, total[-1] / 2), np.searchsorted(total, total[-1] / 2, side="right")
    median = z[at[0]] / 2 + z[min(at[1], len(z) - 1)] / 2
    return -_upper(-z[::-1], weight[::-1], -median), _upper(z, weight, median)


def _upper(z: Floats, weight: Floats, median: float) -> float:
    """Largest value that is not isolated, of values in ascending order."""
    first, last = _first_rare(weight), len(z) - 1 - _first_rare(weight[::-1])
    inside, outside = z[first:-1], z[first + 1 :]
    with np.errstate(over="ignore"):  # columns too wide for float64 have no gap
        # of a column whose median is the largest of its usual values, such as 0, the other side says what is far
        near = inside - median if z[first] > median else np.maximum(inside - median, median - z[last])
        wide = outside - inside > GAP * near
    return float(inside[wide.argmax()]) if z[first] > z[last] and wide.any() else float(z[-1])


def _first_rare(weight: Floats) -> int:
    """Place of the first value, in ascending order, beyond which there are few rows."""
    beyond = weight[::-1].cumsum()[::-1]
    return int(np.searchsorted(-beyond[1:] * ROWS, -beyond[0]))


def _may_exceed(Z: Matrix, columns: NDArray[np.integer], weight: Floats) -> NDArray[np.integer]:
    """Columns that may have isolated values: of a sparse input, those with more than a few entries."""
    if not isinstance(Z, Sparse):
        return columns
    indptr, indices, _ = Z.arrays
    stored = np.diff(np.concatenate([[0.0], weight[indices].cumsum()])[indptr])
    # sums in another order than those of `bounds_of`: a column on the edge is looked at
    return columns[stored[columns] * ROWS > weight.sum() * (1 - 1e-9)]
