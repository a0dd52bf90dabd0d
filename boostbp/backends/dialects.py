"""Dialects of libraries: exact conversions of float32 comparisons, and of arrays with splits and leaves, to `Tree`.

A library receives the ranks of a column instead of its values if it would merge many of them. Libraries resolve less
than float64: float32 merges the seconds of two minutes of a current Unix time, LightGBM reads numbers closer to zero
than 1e-35 as zero, and scikit-learn merges numbers 1e-7 apart. Splits depend only on the order of values, so ranks give
the same splits, and a split between two ranks is a split between two float64 numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from boostbp import core
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import SAMPLE, workers
from boostbp.trees.sparse import Matrix, Sparse, Table
from boostbp.trees.tree import Tree, Trees

Ints = NDArray[np.int64]


class Numbering(NamedTuple):
    """Split and leaf numbers of a `Tree`, in the order of the library's nodes."""

    splits: Ints  # (splits,): node of each split
    leaves: Ints  # (leaves,): node of each leaf; ``leaves[tree.leaf_of(X)]`` is the library's own leaf assignment
    number: Ints  # (nodes,): number of each node as a child: the index of a split, or ``~leaf``

    @classmethod
    def of(cls, left_child: Ints) -> Numbering:
        """Number the nodes of a tree in which leaves have a negative `left_child`."""
        is_split = left_child >= 0
        # The number of a split is the number of splits before it, that of a leaf the number of leaves before it.
        splits_before = np.cumsum(is_split, dtype=np.int64) - is_split
        number: Ints = ~(np.arange(len(left_child)) - splits_before)
        number[is_split] = splits_before[is_split]
        return cls(np.flatnonzero(is_split), np.flatnonzero(~is_split), number)


def without_small_leaves(tree: Tree, X: NDArray[np.float64], min_rows: int) -> Tree:
    """Replace splits with fewer than `min_rows` rows of `X` on a side by the other: some libraries count no rows."""
    [rows] = workers().sum(np.bincount(tree.leaf_of(X), minlength=tree.n_leaves))
    if tree.n_leaves == 1 or rows.min() >= min_rows:
        return tree
    children: list[tuple[int, int]] = list(zip(tree.left.tolist(), tree.right.tolist(), strict=True))
    # From the leaves up, as rows of a split include those of splits that were removed below it.
    n_rows = {~leaf: float(count) for leaf, count in enumerate(rows)}  # number of rows of each node
    stand_in: dict[int, int] = {}  # node that replaces each removed split
    for split in reversed([node for node in _preorder(0, children) if node >= 0]):
        left, right = children[split]
        n_rows[split] = n_rows[left] + n_rows[right]
        if min(n_rows[left], n_rows[right]) < min_rows:
            larger = left if n_rows[left] >= n_rows[right] else right
            stand_in[split] = stand_in.get(larger, larger)
    children = [(stand_in.get(left, left), stand_in.get(right, right)) for left, right in children]
    nodes = _preorder(stand_in.get(0, 0), children)
    splits, leaves = ([node for node in nodes if (node >= 0) == is_split] for is_split in (True, False))
    if not splits:
        return Tree.stump()
    number = {split: k for k, split in enumerate(splits)} | {leaf: ~k for k, leaf in enumerate(leaves)}
    left, right = np.array([[number[child] for child in children[split]] for split in splits]).T
    names = ("feature", "threshold", "missing_left", "cat_start", "cat_words", "gain")
    kept = {name: getattr(tree, name)[splits] for name in names}
    return Tree.of(left=left, right=right, categories=tree.categories, **kept)


def _preorder(root: int, children: Sequence[tuple[int, int]]) -> list[int]:
    """Return a node and all nodes below it in preorder: a split, its left side, its right side."""
    nodes, ahead = [], [root]
    while ahead:
        nodes.append(ahead.pop())
        ahead += reversed(children[nodes[-1]]) if nodes[-1] >= 0 else ()
    return nodes


_LARGEST = np.finfo(np.float32).max


def representable(X: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the input in float32, clipped to its range, because libraries refuse infinities."""
    with np.errstate(over="ignore"):
        Z = X.astype(np.float32)
    return np.clip(Z, -_LARGEST, _LARGEST, out=Z)


def alike_in_float32(values: NDArray[np.float64], within: float = 0.0) -> NDArray[np.bool_]:
    """Return whether each of ascending values, (..., n), equals the next one in float32, within a difference."""
    single = representable(values)
    return np.asarray(single[..., 1:] <= single[..., :-1] + np.float32(within))


def gradients(library: str, *arrays: NDArray[np.float64]) -> tuple[NDArray[np.float32], ...]:
    """Return gradients or hessians in float32, C-contiguous; ValueError if a value exceeds the range of float32."""
    try:
        with np.errstate(over="raise"):
            return tuple([np.ascontiguousarray(array, np.float32) for array in arrays])
    except FloatingPointError:
        size = max(float(np.abs(array).max()) for array in arrays)
        fault = f"gradient or hessian of size {size:.3g} exceeds the range of float32, in which {library}"
        raise ValueError(f"{fault} grows trees: standardise the targets or use smaller steps.") from None


def largest_below(threshold: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the largest float64 whose float32 rounding is below each threshold.

    For a library that sends ``float32(x) < threshold`` left.
    """
    below = np.empty(threshold.shape)
    core.largest_below(threshold.ravel(), below.reshape(-1))
    return below


def largest_not_above(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the same for a library that sends ``float32(x) <= threshold`` left, with a threshold in float64."""
    with np.errstate(over="ignore"):
        # For x in float32, x <= threshold is x < the next float32 above the threshold.
        nearest = threshold.astype(np.float32)
        above = np.where(nearest > threshold, nearest, np.nextafter(nearest, np.float32(np.inf)))
    return largest_below(above)


_PROBED_ROWS = 4096  # rows that decide whether a column needs ranks: 16 times the inverse of `_SHARE`
_SHARE = 1 / 256  # share of the rows that may be merged, as in a bin of the libraries
_NOISE = 8  # difference of two results of the same computation, in units in the last place. Arbitrary
# Function from ascending values, (..., n), to whether a library merges each value with the next one, (..., n - 1).
Alike = Callable[[Floats], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Ranks:
    """Columns that become ranks for a library. A rank is the number of edges below a value minus those below zero."""

    # Numbers between the values of a column, ascending. A value that equals an edge counts as below it.
    edges: Mapping[int, Floats]

    @classmethod
    def of(cls, table: Table, alike: Alike) -> Ranks:
        """Find the columns of a table that need ranks; the same ones on all workers of a group."""
        if isinstance(table.X, Sparse):
            return cls(_edges_of_sparse(table, alike))
        group, X = workers(), table.X
        # A small sample decides which columns need ranks, and a large one determines their edges.
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
        """Return trees on values that send each value to the side to which trees on ranks send its rank."""
        if not self.edges or not np.isin(trees.feature, list(self.edges)).any():
            return trees
        threshold = trees.threshold.copy()
        for j, edges in self.edges.items():
            at = trees.feature == j
            # the largest rank that goes left
            last = np.clip(np.floor(threshold[at]) + np.searchsorted(edges, 0.0), -1, len(edges)).astype(np.int64)
            threshold[at] = np.concatenate([edges, [np.inf, -np.inf]])[last]
        return replace(trees, threshold=threshold)


def _ranks(values: Floats, edges: Floats) -> Floats:
    """Return the ranks of values. The rank of zero is 0, so that sparse columns stay sparse, that of NaN is NaN."""
    return np.where(np.isnan(values), np.nan, np.searchsorted(edges, values) - float(np.searchsorted(edges, 0.0)))


def _edges(values: Floats) -> Floats:
    """Return numbers between successive distinct values."""
    values = np.unique(values[~np.isnan(values)])
    lower, upper = values[:-1], values[1:]
    middle = lower / 2 + upper / 2  # the sum of large numbers would overflow
    return np.where((lower <= middle) & (middle < upper), middle, lower)  # adjacent float64 have no middle


def _suspects(sample: Floats, alike: Alike) -> NDArray[np.intp]:
    """Return the columns in which any two distinct values are merged, by a fast check of all columns."""
    ordered = np.sort(sample.T.copy(), axis=1)
    return np.flatnonzero((alike(ordered) & (ordered[:, 1:] > ordered[:, :-1])).any(axis=1))


def _merges(values: Floats, alike: Alike, n_rows: float) -> bool:
    """Return whether many of `n_rows` rows are merged with values that differ by more than noise."""
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(distinct) < 2:
        return False
    first = np.flatnonzero(np.concatenate([[True], ~alike(distinct)]))  # first value of each merged group
    last = np.append(first[1:], len(distinct)) - 1
    # Affected rows of a group: all except those of its most frequent value.
    lost = np.add.reduceat(counts, first) - np.maximum.reduceat(counts, first)
    low, high = distinct[first], distinct[last]
    with np.errstate(over="ignore"):
        # Values such as 0.3 and 0.1 + 0.2 are one value with rounding errors, which ranks should not separate.
        differ = high - low > _NOISE * np.spacing(np.maximum(np.abs(low), np.abs(high)))
    return bool((differ & (lost > _SHARE * n_rows)).any())


def _edges_of_sparse(table: Table, alike: Alike) -> dict[int, Floats]:
    assert isinstance(table.X, Sparse)
    indptr, _, data = table.X.arrays
    n_rows, edges = len(table.X), {}
    # Entries that are not stored are zeros, so columns with few stored entries cannot have many affected rows.
    large = np.flatnonzero(np.diff(indptr) > _SHARE * n_rows)
    for j in np.setdiff1d(large, table.categorical):
        entries = data[indptr[j] : indptr[j + 1]]
        step = -(-len(entries) // _PROBED_ROWS)
        if _merges(np.append(entries[::step], 0.0), alike, n_rows / step):
            step = -(-len(entries) // SAMPLE)
            edges[int(j)] = _edges(np.append(entries[::step], 0.0))
    return edges
