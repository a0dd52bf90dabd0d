"""Rows of a table that are repeated: which are alike, and whether that can be chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Table
from boostbp.floats import Floats
from boostbp.group import evenly_spaced, workers
from boostbp.trees.sparse import Matrix, Sparse, row_blocks

Hashes = NDArray[np.uint64]
# Constants of splitmix64
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
CELLS = 1 << 15  # hashed at a time: they stay in the cache
SAMPLE, COLUMNS = 300, 2000  # distinct rows and columns by which chance is judged
BEYOND_CHANCE = 100.0  # times as many pairs of equal rows as chance would make
# Bits of a float64 that are rounded away. Noise of 1e-12 changes fewer bits, so it moves about one number in a thousand
# to another rounded value.
_NOISE_BITS = 22
# Span of a column, as a share of its largest number, from which it is rounded: large ids may differ in the last bits.
LEAST_SPAN = 1e-6


def distinct_rows(table: Table) -> NDArray[np.intp]:
    """Number of each row, of all workers, among the distinct rows, as they first appear; its own if all are by chance.

    Rows of few values (ages, categories, switches) are equal by chance, and so will rows to come be. Rows that were
    measured once and written down again are equal in numbers that chance would not repeat: far more often than columns
    with as many values, and as much correlation, would be. Equal categories alone say nothing: they are to come again.

    Numbers of a dense table that differ by some 1e-12 of their size are equal, but for columns that hardly vary in so
    many digits, such as large ids.
    """
    group, dense = workers(), not isinstance(table.X, Sparse)
    noisy = _noisy(table.X) if dense else None
    [hashes] = group.together(row_hashes(table.X, noisy))
    rows = np.arange(len(hashes))
    number, first, counts = _distinct(hashes)
    if len(first) in (1, len(rows)):
        return rows
    pairs = float(counts @ (counts - 1)) / (len(rows) * (len(rows) - 1))
    sampled = group.chosen(len(table.X), lambda _: np.sort(first)[evenly_spaced(len(first), SAMPLE)])
    [X] = group.of(sampled).together(table.X[sampled])
    X = X if noisy is None else np.where(noisy, _rounded(X), X)
    return number if pairs > BEYOND_CHANCE * _chance(Table(X, table.categorical)) else rows


def _noisy(X: Floats) -> NDArray[np.bool_]:
    """Which columns may be rounded, (columns,), by the ends of all rows of all workers."""
    largest = np.fmax.reduce(X, axis=0, initial=-np.inf)
    largest, minus_least = workers().max(largest, -np.fmin.reduce(X, axis=0, initial=np.inf))
    with np.errstate(over="ignore", invalid="ignore"):  # at the ends of float64, and in columns without a number
        return np.asarray(largest + minus_least >= LEAST_SPAN * np.maximum(np.abs(largest), np.abs(minus_least)))


def _rounded(X: Floats) -> Floats:
    """Return numbers rounded to fewer bits; NaN stays NaN."""
    half, bits = np.int64(1 << (_NOISE_BITS - 1)), np.ascontiguousarray(X).view(np.int64)
    return ((bits + half) >> _NOISE_BITS << _NOISE_BITS).view(np.float64)


def numbered(values: NDArray[Any]) -> NDArray[np.intp]:
    """Number of each value, (rows,), among the distinct ones, in the order of their first appearance."""
    return _distinct(values)[0]


def hashes_of(X: Matrix, seed: int) -> Hashes:
    """A number for each row, uniform in all of uint64, the same for the same values, and others for each seed."""
    return stirred(row_hashes(X) + np.array([seed + 1], np.uint64) * _STEP)


def _distinct(values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Numbers of the values; of the distinct ones, sorted by value, their first rows and how many rows they have."""
    _, first, place, counts = np.unique(values, return_index=True, return_inverse=True, return_counts=True)
    return np.argsort(np.argsort(first))[place], first, counts


def row_hashes(X: Matrix, noisy: NDArray[np.bool_] | None = None) -> Hashes:
    """Return a hash of each row, the same for the same values, sparse or dense.

    In the columns of a dense table that are `noisy`, (columns,), numbers are the same that differ by rounding.
    """
    out = np.zeros(len(X), np.uint64)
    if isinstance(X, Sparse):
        indptr, rows, values = X.arrays
        columns = np.repeat(np.arange(X.shape[1], dtype=np.uint64), np.diff(indptr))
        for part in row_blocks(0, len(values), 1):
            np.add.at(out, rows[part], _mixed(values[part], columns[part]))
        return out
    columns = np.arange(X.shape[1], dtype=np.uint64)
    size = max(1, CELLS // max(1, X.shape[1]))
    for part in (slice(first, first + size) for first in range(0, len(X), size)):
        values = X[part] if noisy is None else np.where(noisy, _rounded(X[part]), X[part])
        out[part] = _mixed(values, columns).sum(axis=1, dtype=np.uint64)
    return out


def _mixed(values: Floats, columns: NDArray[np.uint64]) -> Hashes:
    """Hashes of cells, each in its column; 0 for the value 0, which sparse matrices do not hold."""
    values = np.where(np.isnan(values), np.nan, values)  # one NaN of the many
    bits = stirred(values.view(np.uint64) + (columns + np.uint64(1)) * _STEP)
    bits[values == 0] = 0
    return bits


def stirred(bits: Hashes) -> Hashes:
    """The bits mixed, so that each depends on all: the last step of splitmix64 (Steele, Lea and Flood 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))


def _chance(distinct: Table) -> float:
    """Share of the pairs of rows that chance makes equal in all numeric columns, judged by some distinct rows.

    The product of what it does in each column, to the power of the share of the columns that are independent of each
    other: the participation ratio of the eigenvalues of their rank correlations, (sum of them)^2 / sum of their
    squares, over the number of columns. Squared correlations are less what they are by chance, 1 / (rows - 1).
    """
    numeric = distinct.numeric
    columns = evenly_spaced(numeric.shape[1], COLUMNS) if numeric.shape[1] else np.arange(0)
    X = numeric.dense(columns, slice(0, len(numeric))) if isinstance(numeric, Sparse) else numeric[:, columns]
    X = np.where(np.isnan(X), np.inf, X)  # missing is a value like others, and the last
    X = X[:, [np.any(x != x[0]) for x in X.T]]
    if not X.shape[1]:
        return 1.0
    with np.errstate(divide="ignore"):  # a column that no chance repeats
        logarithm = np.log([_chance_of(np.sort(x)) for x in X.T]).sum()
    Z = np.column_stack([np.searchsorted(np.sort(x), x) for x in X.T]).astype(np.float64)
    Z -= Z.mean(axis=0)
    Z /= np.sqrt(np.square(Z).sum(axis=0))
    n_rows, n_columns = Z.shape
    between = np.square(Z @ Z.T).sum() - n_columns - n_columns * (n_columns - 1) / (n_rows - 1)
    return float(np.exp(logarithm * n_columns / (n_columns + max(between, 0.0))))


def _chance_of(x: Floats) -> float:
    """How likely two different rows have the same value of a sorted column.

    As often as distinct rows have; but in columns of few steps, such as ages in years, at least as often as steps of
    equal chance would.
    """
    counts = np.diff(np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1], [True]])))
    return max(float(counts @ (counts - 1)) / (len(x) * (len(x) - 1)), 1.0 / _steps(x[np.isfinite(x)]))


def _steps(x: Floats) -> float:
    """Steps that a sorted column may stand on: infinite if its gaps are no multiples of the smallest."""
    gaps = np.diff(x / 2)  # of the ends of float64 the difference is none
    gaps = gaps[gaps > 0]
    if not len(gaps):
        return 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        multiples = gaps / gaps.min()
        even = np.abs(multiples - np.rint(multiples)) <= 1e-6 * multiples  # not so of infinite ones
    return float(multiples.sum()) + 1.0 if even.all() else np.inf
