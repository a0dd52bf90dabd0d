"""Ranks: a library gets the ranks of a column in place of its values if it would merge many of them.

Libraries resolve less than float64: float32 merges the seconds of two minutes in a present Unix time, LightGBM reads
numbers nearer to zero than 1e-35 as zero, and scikit-learn merges numbers 1e-7 apart. Splits depend on the order of the
values alone, so ranks serve as well, and a split between two ranks is a split between two float64 numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from boostbp.backends.base import Table
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import SAMPLE, workers
from boostbp.trees.sparse import Matrix, Sparse
from boostbp.trees.tree import Trees

_PROBED_ROWS = 4096  # rows that show whether a column needs ranks: 16 for each share that follows
_SHARE = 1 / 256  # of the rows may be merged: a bin of the libraries holds as many
_NOISE = 8  # units in the last place by which results of the same computation may differ; arbitrary

# Whether a library merges each value with the next one: from ascending values, (..., n), to (..., n - 1).
Alike = Callable[[Floats], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Ranks:
    """Columns that become ranks for a library: the number of edges below a value, minus the number below zero."""

    # Numbers between the values of a column, ascending. A value that is an edge belongs below it.
    edges: Mapping[int, Floats]

    @classmethod
    def of(cls, table: Table, alike: Alike) -> Ranks:
        """Find the columns of a table that need ranks; the same ones on all workers of a group."""
        if isinstance(table.X, Sparse):
            return cls(_edges_of_sparse(table, alike))
        group, X = workers(), table.X
        # A small sample tells which columns need ranks, and a large one gives their edges.
        rows = group.sampled_rows(len(X), _PROBED_ROWS)
        [sample] = group.select_rows(rows).allgather_rows(X[rows])
        columns = np.setdiff1d(_suspects(sample, alike), table.categorical)
        columns = columns[[_merges(sample[:, j], alike, len(sample)) for j in columns]]
        if not len(columns):
            return cls({})
        rows = group.sampled_rows(len(X), SAMPLE)
        [sample] = group.select_rows(rows).allgather_rows(X[rows][:, columns])
        return cls({int(j): _edges(values) for j, values in zip(columns, sample.T, strict=True)})

    def encode(self, X: Matrix) -> Matrix:
        """Return the rows with ranks, (rows, features), for the library; the same object if no column needs ranks."""
        if not self.edges:
            return X
        if isinstance(X, Sparse):
            indptr, indices, data = X.arrays
            data = data.copy()
            for j, edges in self.edges.items():
                place = slice(indptr[j], indptr[j + 1])
                data[place] = _ranks(data[place], edges)
            return Sparse(sp.csc_matrix((data, indices, indptr), X.shape))
        X = X.copy()
        for j, edges in self.edges.items():
            X[:, j] = _ranks(X[:, j], edges)
        return X

    def decode(self, trees: Trees) -> Trees:
        """Return trees on ranks as trees on values: these send each value where those send its rank."""
        if not self.edges or not np.isin(trees.feature, list(self.edges)).any():
            return trees
        threshold = trees.threshold.copy()
        for j, edges in self.edges.items():
            at = trees.feature == j
            # the largest rank that goes left; infinite where all go one way
            last = np.clip(np.floor(threshold[at]) + _of_zero(edges), -1, len(edges)).astype(np.int64)
            threshold[at] = np.concatenate([edges, [np.inf, -np.inf]])[last]
        return replace(trees, threshold=threshold)


def _of_zero(edges: Floats) -> int:
    return int(np.searchsorted(edges, 0.0))


def _ranks(values: Floats, edges: Floats) -> Floats:
    """Return the ranks of values: that of zero is 0, so that a sparse column stays sparse, and that of NaN is NaN."""
    return np.where(np.isnan(values), np.nan, np.searchsorted(edges, values) - float(_of_zero(edges)))


def _edges(values: Floats) -> Floats:
    """Return the numbers between different values."""
    values = np.unique(values[~np.isnan(values)])
    lower, upper = values[:-1], values[1:]
    middle = lower / 2 + upper / 2  # halves, as the sum of large numbers overflows
    return np.where((lower <= middle) & (middle < upper), middle, lower)  # no number lies between float64 neighbours


def _suspects(sample: Floats, alike: Alike) -> NDArray[np.intp]:
    """Return the columns in which any two different values are merged; the check of all columns at once is fast."""
    ordered = np.sort(sample.T.copy(), axis=1)
    return np.flatnonzero((alike(ordered) & (ordered[:, 1:] > ordered[:, :-1])).any(axis=1))


def _merges(values: Floats, alike: Alike, n_rows: float) -> bool:
    """Return whether many of `n_rows` rows are merged with values that differ by more than noise."""
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(distinct) < 2:
        return False
    first = np.flatnonzero(np.concatenate([[True], ~alike(distinct)]))  # of each group of merged values
    last = np.append(first[1:], len(distinct)) - 1
    # Rows that a group loses: all but those of its most frequent value, which a library could still tell from others.
    lost = np.add.reduceat(counts, first) - np.maximum.reduceat(counts, first)
    low, high = distinct[first], distinct[last]
    with np.errstate(over="ignore"):
        # Values such as 0.3 and 0.1 + 0.2 are one value, computed in two ways: no rank should tell them apart.
        differ = high - low > _NOISE * np.spacing(np.maximum(np.abs(low), np.abs(high)))
    return bool((differ & (lost > _SHARE * n_rows)).any())


def _edges_of_sparse(table: Table, alike: Alike) -> dict[int, Floats]:
    assert isinstance(table.X, Sparse)
    indptr, _, data = table.X.arrays
    n_rows, edges = len(table.X), {}
    # Entries that are not stored are zeros: no column with fewer entries than the share can lose more rows than it.
    large = np.flatnonzero(np.diff(indptr) > _SHARE * n_rows)
    for j in np.setdiff1d(large, table.categorical):
        entries = data[indptr[j] : indptr[j + 1]]
        step = -(-len(entries) // _PROBED_ROWS)
        if _merges(np.append(entries[::step], 0.0), alike, n_rows / step):
            step = -(-len(entries) // SAMPLE)
            edges[int(j)] = _edges(np.append(entries[::step], 0.0))
    return edges
