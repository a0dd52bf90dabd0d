"""Repeated rows of a table: which rows are equal, and whether they are equal by chance."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import evenly_spaced, workers
from boostbp.trees.sparse import Matrix, Sparse, Table, row_blocks

Hashes = NDArray[np.uint64]
RowNumbers = NDArray[np.intp]
# Constants of splitmix64 (Steele, Lea and Flood 2014): its increment, and the two factors that mix bits.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTOR_1, _FACTOR_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
HASHED_CELLS = 1 << 15  # cells that are hashed at a time: 256 kB stay in the cache
SAMPLE_ROWS, SAMPLE_COLUMNS = 300, 2000  # limits on the sample for the estimate of chance
BEYOND_CHANCE = 100.0  # ratio of pairs of equal rows to those expected by chance
# Bits of a float64 that are rounded. Noise of 1e-12 changes fewer bits, so it changes the rounded value of only about
# one number in a thousand.
_NOISE_BITS = 22
# Minimum range of a rounded column, as a share of its largest number: large ids may differ only in their last bits.
MIN_RANGE = 1e-6


def distinct_rows(table: Table) -> RowNumbers:
    """Return the number of each row of all workers among the distinct rows, in the order of first appearance.

    If equal rows are equal by chance, every row counts as distinct.

    Rows of few values (ages, categories, switches) are equal by chance, and future rows will be, too. Copies of a
    measurement are equal in numbers that chance would not repeat: there are far more of them than expected for columns
    with so many values and so much correlation. Equal categories alone are no evidence, as they recur.

    Numbers of a dense table that differ by some 1e-12 of their size count as equal, except in columns whose variation
    is in these digits, such as large ids.
    """
    group = workers()
    is_noisy = None if isinstance(table.X, Sparse) else _noisy_columns(table.X)
    [hashes] = group.allgather_rows(row_hashes(table.X, is_noisy))
    every_row = np.arange(len(hashes))
    number, first, counts = _distinct(hashes)
    if len(first) in (1, len(every_row)):
        return every_row
    share_of_pairs = float(counts @ (counts - 1)) / (len(every_row) * (len(every_row) - 1))
    sampled = group.choose_rows(len(table.X), lambda _: np.sort(first)[evenly_spaced(len(first), SAMPLE_ROWS)])
    [X] = group.select_rows(sampled).allgather_rows(cast(Any, table.X)[sampled])
    X = X if is_noisy is None else np.where(is_noisy, _rounded(X), X)
    chance = _share_by_chance(Table(X, table.categorical))
    return number if share_of_pairs > BEYOND_CHANCE * chance else every_row


def number_values(values: NDArray[Any]) -> RowNumbers:
    """Return the number of each value, (rows,), among the distinct ones, in the order of first appearance."""
    return _distinct(values)[0]


def hashes_of(X: Matrix, seed: int) -> Hashes:
    """Return a hash of each row, uniform in uint64, equal for equal values, and different for each seed."""
    return splitmix64(row_hashes(X) + np.array([seed + 1], np.uint64) * _STEP)


def row_hashes(X: Matrix, is_noisy: NDArray[np.bool_] | None = None) -> Hashes:
    """Return a hash of each row, equal for equal values, in `is_noisy` columns up to rounding errors."""
    hashes = np.zeros(len(X), np.uint64)
    if isinstance(X, Sparse):
        indptr, rows, values = X.arrays
        columns = np.repeat(np.arange(X.shape[1], dtype=np.uint64), np.diff(indptr))
        for block in row_blocks(0, len(values), 1):
            np.add.at(hashes, rows[block], _cell_hashes(values[block], columns[block]))
        return hashes
    columns = np.arange(X.shape[1], dtype=np.uint64)
    size = max(1, HASHED_CELLS // max(1, X.shape[1]))
    for block in (slice(first, first + size) for first in range(0, len(X), size)):
        values = X[block] if is_noisy is None else np.where(is_noisy, _rounded(X[block]), X[block])
        # A sum modulo 2^64 does not depend on the order, and zeros may be skipped.
        hashes[block] = _cell_hashes(values, columns).sum(axis=1, dtype=np.uint64)
    return hashes


def _cell_hashes(values: Floats, columns: NDArray[np.uint64]) -> Hashes:
    """Return hashes of cells and their columns; 0 for the value 0, which sparse matrices do not store."""
    values = np.where(np.isnan(values), np.nan, values)  # the same bits for all NaN
    hashes = splitmix64(values.view(np.uint64) + (columns + np.uint64(1)) * _STEP)
    hashes[values == 0] = 0
    return hashes


def splitmix64(bits: Hashes) -> Hashes:
    """Return mixed bits, each of which depends on all bits: the last step of splitmix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FACTOR_1
    bits = (bits ^ (bits >> np.uint64(27))) * _FACTOR_2
    return bits ^ (bits >> np.uint64(31))


def _distinct(values: NDArray[Any]) -> tuple[RowNumbers, RowNumbers, RowNumbers]:
    """Return the numbers of the values, and the first rows and counts of the distinct ones, sorted by value."""
    _, first, place, counts = np.unique(values, return_index=True, return_inverse=True, return_counts=True)
    return np.argsort(np.argsort(first))[place], first, counts


def _noisy_columns(X: Floats) -> NDArray[np.bool_]:
    """Return which columns may be rounded, (columns,), by the minimum and maximum over all workers."""
    largest = np.fmax.reduce(X, axis=0, initial=-np.inf)
    largest, minus_least = workers().max(largest, -np.fmin.reduce(X, axis=0, initial=np.inf))
    with np.errstate(over="ignore", invalid="ignore"):  # near the float64 limits, and in columns without a number
        return np.asarray(largest + minus_least >= MIN_RANGE * np.maximum(np.abs(largest), np.abs(minus_least)))


def _rounded(X: Floats) -> Floats:
    """Return numbers rounded to fewer bits; NaN stays NaN."""
    # Round half up: as integers, the bits of floats of one sign have the order of the floats.
    half, bits = np.int64(1 << (_NOISE_BITS - 1)), np.ascontiguousarray(X).view(np.int64)
    return ((bits + half) >> _NOISE_BITS << _NOISE_BITS).view(np.float64)


def _share_by_chance(distinct: Table) -> float:
    """Return the expected share of pairs of rows that are equal in all numeric columns by chance, from distinct rows.

    It is the product of the chances of the columns, to the power of the share of independent columns. That share is the
    participation ratio of the eigenvalues of the rank correlations, (their sum)^2 / (sum of their squares), divided by
    the number of columns. Squared correlations are reduced by their expectation by chance, 1 / (rows - 1).
    """
    numeric = distinct.numeric
    columns = evenly_spaced(numeric.shape[1], SAMPLE_COLUMNS) if numeric.shape[1] else np.arange(0)
    X = numeric.dense(columns, slice(0, len(numeric))) if isinstance(numeric, Sparse) else numeric[:, columns]
    X = np.where(np.isnan(X), np.inf, X)  # missing counts as a value, and sorts last
    X = X[:, [np.any(x != x[0]) for x in X.T]]
    if not X.shape[1]:
        return 1.0
    with np.errstate(divide="ignore"):  # a column without repeated values
        log_chance = np.log([_column_chance(np.sort(x)) for x in X.T]).sum()
    ranks = np.column_stack([np.searchsorted(np.sort(x), x) for x in X.T]).astype(np.float64)
    ranks -= ranks.mean(axis=0)
    ranks /= np.sqrt(np.square(ranks).sum(axis=0))
    n_rows, n_columns = ranks.shape
    # The sum of squares of R R^T equals that of the correlations R^T R: the diagonal of ones, and each pair twice.
    excess = np.square(ranks @ ranks.T).sum() - n_columns - n_columns * (n_columns - 1) / (n_rows - 1)
    return float(np.exp(log_chance * n_columns / (n_columns + max(excess, 0.0))))


def _column_chance(x: Floats) -> float:
    """Return the chance that two different rows have the same value of a sorted column.

    In columns of few steps, such as ages in years, it is at least the chance with all steps equally likely.
    """
    counts = np.diff(np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1], [True]])))
    return max(float(counts @ (counts - 1)) / (len(x) * (len(x) - 1)), 1.0 / _n_steps(x[np.isfinite(x)]))


def _n_steps(x: Floats) -> float:
    """Return the number of possible steps of a sorted column; infinite unless gaps are multiples of the smallest."""
    gaps = np.diff(x / 2)  # halved, as the difference of the float64 limits overflows
    gaps = gaps[gaps > 0]
    if not len(gaps):
        return 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        multiples = gaps / gaps.min()
        is_multiple = np.abs(multiples - np.rint(multiples)) <= 1e-6 * multiples  # false for infinite ones
    return float(multiples.sum()) + 1.0 if is_multiple.all() else np.inf
