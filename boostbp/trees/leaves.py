"""Leaf regressions in flat arrays, `core.Leaves`, and rows: binned once, then routed and grouped by leaf.

A library's linear leaves may predict a constant if one of their features is NaN. Instead of a special case in every
loop over leaves, such a leaf gets splits above it that test whether a feature is missing, each with a constant leaf::

    leaf l reads x2, x5       =>      x2 is missing? -> leaf of the constant
                                      x5 is missing? -> leaf of the constant
                                      leaf l
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp import core
from boostbp.core import LeafRows, Leaves
from boostbp.runtime import threads
from boostbp.runtime.arrays import Floats
from boostbp.trees.basis import BASES, Basis
from boostbp.trees.sparse import Matrix, Sparse, columns_of, row_blocks
from boostbp.trees.tree import ARRAYS, Parts, Tree, Trees, concat, concat_offsets, cut


def leaves_on_paths(trees: Trees, basis: Basis, n_outputs: int = 1) -> Leaves:
    """Return leaves, with unset values, that read the features on their paths, for `n_outputs` outputs of each tree."""
    # Called once per round, often with a few hundred rows: basic NumPy functions take half the time of others.
    n_trees, (start, column) = len(trees), trees.paths(basis.columns_per_feature)
    number = np.arange(n_trees + 1)
    output, degree = np.empty((n_trees, 2), np.int64), np.empty(n_trees, np.int64)
    output[:, 0] = n_outputs * number[:-1]
    output[:, 1] = n_outputs
    degree.fill(basis.powers)
    # phi of Implementation Details: a leaf with k columns has the terms [1, u, u^2], 1 + degree * k in all, and a
    # weight of each term for each output.
    weight_start = basis.powers * start
    weight_start += np.arange(len(start))
    weight_start *= n_outputs
    scaling, weight = np.empty((len(column), 4)), np.empty(weight_start[-1])
    # a tree has one leaf more than splits
    return Leaves(trees.tree_split + number, output, degree, start, column, scaling, weight_start, weight)


def leaves_of_tree(start: ArrayLike, column: ArrayLike, scaling: Floats, weight: Floats, *, degree: int = 1) -> Leaves:
    """Return the leaves of one tree; the size of `weight` determines its number of outputs.

    Leaf ``l`` reads ``column[start[l]:start[l + 1]]``, with the scalings of `LeafRanges.scaling`. The weights of a leaf
    are (terms, outputs) in units of ``u``, for terms ``1, u, u^2`` up to `degree`.
    """
    # The terms are those of all path columns, and a constant for each leaf.
    start = np.asarray(start, np.int64)
    n_leaves = len(start) - 1
    first_term = degree * start + np.arange(n_leaves + 1)
    n_outputs = len(weight) // int(first_term[-1])
    return Leaves(
        np.array([0, n_leaves]), np.array([[0, n_outputs]]), np.array([degree]), start,
        np.ascontiguousarray(column, np.int32), scaling, n_outputs * first_term, weight,
    )  # fmt: skip


def zero_leaves(outputs: Sequence[int]) -> Leaves:
    """Return the leaves of stumps that predict 0, one for each of some outputs."""
    leaves = leaves_on_paths(Trees.stumps(len(outputs)), BASES["constant"])
    leaves.tree_output[:, 0] = outputs
    leaves.weight.fill(0.0)
    return leaves


def concat_leaves(parts: Sequence[Leaves]) -> Leaves:
    """Return a copy of the leaves of all parts, one after the other."""
    fields = list(zip(*parts, strict=True)) or [()] * len(Leaves._fields)
    tree_leaf, tree_output, tree_degree, start, column, scaling, weight_start, weight = fields
    return Leaves(
        concat_offsets(tree_leaf), concat(tree_output, np.int64).reshape(-1, 2), concat(tree_degree, np.int64),
        concat_offsets(start), concat(column, np.int32), concat(scaling, np.float64).reshape(-1, 4),
        concat_offsets(weight_start), concat(weight, np.float64),
    )  # fmt: skip


def take_leaves(leaves: Leaves, trees: Parts) -> Leaves:
    """Return the leaves of some of the trees; a slice gives views of the arrays."""
    tree_leaf, leaf = cut(leaves.tree_leaf, trees)
    start, path = cut(leaves.start, leaf)
    weight_start, at = cut(leaves.weight_start, leaf)
    return Leaves(
        tree_leaf, leaves.tree_output[trees], leaves.tree_degree[trees], start, leaves.column[path],
        leaves.scaling[path], weight_start, leaves.weight[at],
    )  # fmt: skip


def coefficients(leaves: Leaves, leaf: int) -> Floats:
    """Return the weights of a leaf of one tree in the user's units, (terms, outputs): constant, columns, their squares.

    With ``u = (z - c) s``, ``w0 + w1 u + w2 u^2`` is
    ``(w0 - w1 c s + w2 c^2 s^2) + (w1 s - 2 w2 c s^2) z + w2 s^2 z^2``.
    """
    [degree], [[_, n_outputs]] = leaves.tree_degree.tolist(), leaves.tree_output.tolist()
    # Order of a leaf's weights: the constant, all u, then all u^2; outputs of a term are adjacent.
    begin, end = leaves.start[leaf], leaves.start[leaf + 1]
    w = leaves.weight[leaves.weight_start[leaf] : leaves.weight_start[leaf + 1]].reshape(-1, n_outputs)
    center, scale = leaves.scaling[begin:end, 0][:, None], leaves.scaling[begin:end, 1][:, None]
    k = end - begin
    shift = center * scale
    with np.errstate(over="ignore"):  # a weight may exceed float64 in the user's units
        linear, square = w[1 : 1 + k], w[1 + k :] if degree == 2 else np.zeros((k, n_outputs))
        constant = w[0] - (linear * shift).sum(0) + (square * shift**2).sum(0)
        parts = [constant[None], (linear - 2 * square * shift) * scale, square * scale * scale]
    return np.concatenate(parts[: 1 + degree])


def add_to(out: Floats, leaves: Leaves, leaf: NDArray[np.integer], Z: Matrix) -> None:
    """Add the values of training rows with known leaves, (trees, rows), to `out`, (rows, outputs)."""
    # Training rows lie within the bounds, so no value is clipped.
    for narrow, rows, part in dense_blocks(leaves, Z):
        core.evaluate(narrow, (leaf[:, rows], part), False, 0, len(part), out[rows])


def dense_blocks(leaves: Leaves, Z: Matrix) -> Iterator[tuple[Leaves, slice, Floats]]:
    """Yield leaves that read a dense table, the rows of that table, and the table: some rows of sparse Z at a time."""
    if not isinstance(Z, Sparse):
        yield leaves, slice(0, len(Z)), Z
        return
    # Only columns that leaves read become dense.
    columns, place = np.unique(leaves.column, return_inverse=True)
    narrow = leaves._replace(column=place.astype(np.int32))
    for rows in row_blocks(0, len(Z), len(columns)):
        yield narrow, rows, Z.dense(columns, rows)


def with_missing_leaves(tree: Tree, leaves: Leaves, constant: Floats) -> tuple[Tree, Leaves]:
    """Return the tree and its leaves with additional splits, of gain 0, and leaves for rows with missing values.

    The leaves are of degree 1 with one output, and read features. `constant`, (leaves,), is the prediction of each leaf
    for a row that misses one of its columns. Leaves keep their numbers, and the new ones come after them.
    """
    # A chain of splits replaces each leaf that reads columns. Each split tests one column: a missing value goes right
    # to a new leaf, any other left to the next split and finally to the leaf itself.
    leaf, feature = np.array(list(_possibly_missing(tree, leaves)), np.int64).reshape(-1, 2).T
    first, count = len(tree.feature), len(leaf)
    split, new_leaf = first + np.arange(count), tree.n_leaves + np.arange(count)
    follows = np.diff(leaf, prepend=-1) == 0  # another split of the same leaf is above
    below = np.where(np.append(follows, False)[1:], split + 1, ~leaf)
    instead = ~np.arange(tree.n_leaves)  # replacement of each leaf
    instead[leaf[~follows]] = split[~follows]
    left, right = (np.where(child < 0, instead[~child], child) for child in (tree.left, tree.right))
    # With an infinite threshold, all values that are not missing go left.
    none, numeric, known = np.zeros(count, bool), np.full(count, -1), np.full(count, np.inf)
    before = *tree.nodes._replace(left=left, right=right), tree.gain
    added = feature, known, below, ~new_leaf, none, numeric, none, tree.categories[:0], none
    rewritten = Tree.of(**{name: np.concatenate(both) for name, *both in zip(ARRAYS, before, added, strict=True)})
    start = np.append(leaves.start, np.full(count, leaves.start[-1]))
    weight = np.append(leaves.weight, constant[leaf])  # one term, the constant
    return rewritten, leaves_of_tree(start, leaves.column, leaves.scaling, weight)


def _possibly_missing(tree: Tree, leaves: Leaves) -> Iterator[tuple[int, int]]:
    """Yield each leaf with each of its columns that its rows may miss, as no split above sends NaN elsewhere."""
    to_leaf = tree.parents()
    for leaf in range(tree.n_leaves):
        # Columns whose missing values a split above sends to other leaves.
        elsewhere, child = set(), ~leaf
        while (split := to_leaf.get(child, -1)) >= 0:
            if tree.missing_left[split] != (tree.left[split] == child):
                elsewhere.add(int(tree.feature[split]))
            child = split
        for column in leaves.column[leaves.start[leaf] : leaves.start[leaf + 1]].tolist():
            if column not in elsewhere:
                yield leaf, column


# Cuts of a feature: its bins and the bin of missing values then fit a byte.
CUTS = 254
# Number of rows whose quantiles are the cuts. Routing is exact with any cuts, and fast with bins of equal size.
CUTS_SAMPLE = 2048
# Rows per block, at most 2^16. It is a constant, so that sums do not depend on the number of threads. Gradients and
# running fit of a block are read in the order of leaves, and stay in cache.
BLOCK_ROWS = 1 << 14


@dataclass(frozen=True, slots=True)
class ColumnBins:
    """Bins of values, which decide most splits without reading the input."""

    bins: NDArray[np.uint8]  # (features, rows) uint8: the bin of each value, in the order of values; 255 where missing
    lower: Floats  # (features, bins), without that of missing values: smallest value in each bin
    upper: Floats  # (features, bins): largest value in each bin

    @classmethod
    def of(cls, X: NDArray[np.float64]) -> ColumnBins:
        """Return the bins of a dense input, (rows, features)."""
        # If a bin lies on one side of a threshold, so do its rows. Only rows in the bin around it need their values.
        n_rows, n_features = X.shape
        ordered = np.sort(X[:: max(1, n_rows // CUTS_SAMPLE)], axis=0)  # NaN comes last
        known, n_cuts = len(ordered) - np.isnan(ordered).sum(axis=0), min(CUTS, len(ordered))
        cuts = np.full((n_features, n_cuts + 1), np.inf)
        at = (np.arange(n_cuts)[:, None] * known) // max(n_cuts, 1)
        cuts[:, :n_cuts] = np.where(known > 0, np.take_along_axis(ordered, at, axis=0), np.inf).T
        bins, lower, upper = np.empty((n_features, n_rows), np.uint8), np.empty_like(cuts), np.empty_like(cuts)
        core.put_in_bins(X, cuts, bins, lower, upper)
        return cls(bins, lower, upper)

    def with_input(self, X: Floats, Z: Floats) -> tuple[NDArray[Any], ...]:
        """Return the record of the core of an input, (rows, features), and what leaves read, (rows, columns)."""
        return X, Z, self.bins, self.lower, self.upper


class Workspace:
    """Reusable memory for `LeafRows.order` and `values`, as new memory costs more than the arithmetic; thread-safe."""

    def __init__(self) -> None:
        self._free: list[tuple[NDArray[np.uint16], Floats]] = []

    def lend(self, n_rows: int, widest: int) -> tuple[NDArray[np.uint16], Floats]:
        """Return arrays with undefined content, (rows,) and (rows times columns of the widest leaf,)."""
        n_values = n_rows * widest
        order, values = np.empty(0, np.uint16), np.empty(0)
        with suppress(IndexError):  # not `if self._free`: another thread may take the last arrays after the test
            order, values = self._free.pop()
        order = order if len(order) >= n_rows else np.empty(n_rows, np.uint16)
        values = values if len(values) >= n_values else np.empty(n_values)
        return order[:n_rows], values[:n_values]

    def rows(self, first: int, n_rows: int, leaves: Leaves) -> LeafRows:
        """Return undefined `LeafRows` of a block of `n_rows` that begins at `first`."""
        order, values = self.lend(n_rows, int((leaves.start[1:] - leaves.start[:-1]).max()))
        return LeafRows(first, np.empty(len(leaves.start), np.int64), order, leaves.start, values)

    def take_back(self, order: NDArray[np.integer], values: Floats) -> None:
        """Take back what `lend` returned, which the caller must not use any more."""
        assert order.base is not None and values.base is not None  # noqa: PT018
        self._free.append((order.base, values.base))


def rows_by_leaf(
    tree: Trees,
    leaves: Leaves,
    X: Matrix,
    Z: Matrix,
    bins: ColumnBins | None,
    leaf: NDArray[np.integer],
    space: Workspace,
    n_threads: int = 1,
) -> list[LeafRows]:
    """Route all rows under one tree and group them by leaf, block by block, with the columns that their leaves read.

    Sums and values then read memory in order. `bins` are those of a dense input; `leaf`, (rows,), is written.
    """

    def group(first: int) -> LeafRows:
        rows = slice(first, min(first + BLOCK_ROWS, len(X)))
        if bins is None:
            return _sparse_rows(tree, leaves, X, Z, rows, leaf[rows], space)
        grouped = space.rows(first, rows.stop - first, leaves)
        core.group_block(tree.nodes, bins.with_input(X, Z), leaves.column, leaf[None], grouped)
        return grouped

    # a worker without rows has one empty block, for its sums
    return threads.parallel_map(group, range(0, max(len(X), 1), BLOCK_ROWS), n_threads)


def _sparse_rows(
    tree: Trees, leaves: Leaves, X: Matrix, Z: Matrix, block: slice, leaf: NDArray[np.integer], space: Workspace
) -> LeafRows:
    """Group one block of a sparse input; only columns that the tree splits on become dense."""
    features, place = np.unique(tree.feature, return_inverse=True)
    nodes, column = tree.nodes._replace(feature=place.astype(np.int32)), np.searchsorted(features, leaves.column)
    grouped = space.rows(block.start, len(leaf), leaves)
    # Two passes: route all rows of the block, then write their path columns leaf by leaf.
    parts = row_blocks(block.start, block.stop, len(features))
    part = np.empty((0, 0))
    for rows in parts:
        part = columns_of(X, features, rows)
        part_leaf = leaf[None, rows.start - block.start : rows.stop - block.start]
        core.route(nodes, tree.tree_split, part, 0, len(part), part_leaf)
    core.group_rows(leaf, grouped.order, grouped.start)
    at, source = grouped.start[:-1].copy(), Z if isinstance(Z, Sparse) else X  # a constant basis reads no column
    for rows in parts:
        part = columns_of(source, features, rows) if len(parts) > 1 or source is not X else part
        begin, end = rows.start - block.start, rows.stop - block.start
        core.group_paths(grouped, column.astype(np.int32), part, begin, end, at)
    return grouped


def add_rows(leaves: Leaves, blocks: Sequence[LeafRows], out: Floats, n_threads: int = 1) -> None:
    """Add the values of training rows under one tree, grouped by leaf, to `out`, (outputs, rows)."""
    [degree] = leaves.tree_degree.tolist()
    of_leaves = degree, leaves.scaling, leaves.weight, out
    threads.parallel_map(lambda rows: core.add_values(rows, *of_leaves), blocks, n_threads)
