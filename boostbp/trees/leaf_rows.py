"""Rows of an input: binned once, then routed through each tree and grouped by leaf, with their path columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.core import Leaves
from boostbp.runtime import threads
from boostbp.runtime.arrays import Floats
from boostbp.trees.sparse import Matrix, Sparse, columns_of, row_blocks
from boostbp.trees.tree import Trees

# Cuts of a feature: its bins and the bin of missing values then fit a byte.
CUTS = 254
# Number of rows whose quantiles are the cuts. Routing is exact with any cuts, and fast with bins of equal size.
SAMPLE = 2048
# Rows per block, at most 2^16. It is a constant, so that sums do not depend on the number of threads. Gradients and
# running fit of a block are read in the order of leaves, and stay in cache.
BLOCK_ROWS = 1 << 14


@dataclass(frozen=True, slots=True)
class ColumnBins:
    """Bins of values, which decide most splits without reading the input."""

    bins: NDArray[np.uint8]  # (features, rows) uint8: the bin of each value, in the order of values; 255 where missing
    # lower, upper: (features, 256) each: smallest and largest value in each bin
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @classmethod
    def of(cls, X: NDArray[np.float64]) -> ColumnBins:
        """Return the bins of a dense input, (rows, features)."""
        # If a bin lies on one side of a threshold, so do its rows. Only rows in the bin around it need their values.
        n_rows, n_features = X.shape
        cuts = np.full((n_features, CUTS + 1), np.inf)
        ordered = np.sort(X[:: max(1, n_rows // SAMPLE)], axis=0)  # NaN comes last
        known = len(ordered) - np.isnan(ordered).sum(axis=0)
        at = (np.arange(CUTS)[:, None] * known) // CUTS
        if len(ordered):
            cuts[:, :CUTS] = np.where(known > 0, np.take_along_axis(ordered, at, axis=0), np.inf).T
        bins = np.empty((n_features, n_rows), np.uint8)
        lower, upper = np.empty((n_features, 256)), np.empty((n_features, 256))
        core.put_in_bins(X, cuts, bins, lower, upper)
        return cls(bins, lower, upper)


@dataclass(frozen=True, slots=True)
class LeafRows:
    """The rows of one block of the input, grouped by leaf, with the columns that their leaves read."""

    first: int  # first row of the block
    start: NDArray[np.int64]  # (leaves + 1,)
    # (rows of the block,) uint16: leaf ``l`` has rows ``first + order[start[l]:start[l + 1]]``
    order: NDArray[np.integer]
    values: Floats  # (at least rows of each leaf x its path columns,): see `core.group_paths`


class Workspace:
    """Reusable memory for rows that are grouped by leaf, `LeafRows.order` and `LeafRows.values`.

    First access to new memory can cost more than the arithmetic on it. Several threads may use one workspace.
    """

    def __init__(self) -> None:
        self._free: list[tuple[NDArray[np.uint16], Floats]] = []

    def lend(self, n_rows: int, leaves: Leaves) -> tuple[NDArray[np.uint16], Floats]:
        """Return arrays with undefined content, (rows,) and (rows times columns of the widest leaf,)."""
        n_values = n_rows * int((leaves.start[1:] - leaves.start[:-1]).max())
        # Not `if self._free`: another thread may take the last arrays after the test.
        try:
            order, values = self._free.pop()
        except IndexError:
            order, values = np.empty(0, np.uint16), np.empty(0)
        order = order if len(order) >= n_rows else np.empty(n_rows, np.uint16)
        values = values if len(values) >= n_values else np.empty(n_values)
        return order[:n_rows], values[:n_values]

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
    """Route all rows and group them by leaf, block by block, with the columns that their leaves read.

    Sums and values then read these numbers in memory order, and not the whole input. `tree` is one tree, `leaves` has
    its path columns, `bins` are those of a dense input, and `leaf`, (rows,), is written.
    """

    def group(first: int) -> LeafRows:
        rows = slice(first, min(first + BLOCK_ROWS, len(X)))
        if bins is None:
            return _sparse_rows(tree, leaves, X, Z, rows, leaf[rows], space)
        order, values = space.lend(rows.stop - first, leaves)
        start = np.empty(len(leaves.start), np.int64)
        core.group_block(
            tree.nodes, bins.bins, bins.lower, bins.upper, X, Z, first, leaves.start, leaves.column, leaf[None],
            order, values, start,
        )  # fmt: skip
        return LeafRows(first, start, order, values)

    # a worker without rows has one empty block, for its sums
    return threads.parallel_map(group, range(0, max(len(X), 1), BLOCK_ROWS), n_threads)


def _sparse_rows(
    tree: Trees, leaves: Leaves, X: Matrix, Z: Matrix, block: slice, leaf: NDArray[np.integer], space: Workspace
) -> LeafRows:
    """Group one block of a sparse input; only columns that the tree splits on become dense."""
    features, place = np.unique(tree.feature, return_inverse=True)
    nodes, column = tree.nodes._replace(feature=place.astype(np.int32)), np.searchsorted(features, leaves.column)
    order, values = space.lend(len(leaf), leaves)
    # Two passes: route all rows of the block, then write their path columns leaf by leaf.
    parts = row_blocks(block.start, block.stop, len(features))
    part = np.empty((0, 0))
    for rows in parts:
        part = columns_of(X, features, rows)
        part_leaf = leaf[None, rows.start - block.start : rows.stop - block.start]
        core.route(nodes, tree.tree_split, part, 0, len(part), part_leaf)
    start = np.empty(len(leaves.start), np.int64)
    core.group_rows(leaf[None], 0, 0, len(leaf), order, start)
    at, source = start[:-1].copy(), Z if isinstance(Z, Sparse) else X  # a constant basis reads no column
    for rows in parts:
        part = columns_of(source, features, rows) if len(parts) > 1 or source is not X else part
        begin, end = rows.start - block.start, rows.stop - block.start
        core.group_paths(order, start, leaves.start, column.astype(np.int32), part, begin, end, at, values)
    return LeafRows(block.start, start, order, values)


def add_rows(leaves: Leaves, blocks: Sequence[LeafRows], out: Floats, n_threads: int = 1) -> None:
    """Add the values of training rows under one tree, grouped by leaf, to `out`, (outputs, rows)."""
    [degree] = leaves.tree_degree.tolist()

    def add_block(rows: LeafRows) -> None:
        core.add_values(
            rows.start, rows.order, rows.first, leaves.start, rows.values, degree, leaves.scaling, leaves.weight, out
        )

    threads.parallel_map(add_block, blocks, n_threads)
