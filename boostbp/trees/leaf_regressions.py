"""Leaf regressions of whole rounds: trees that serve one output each, fitted together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime import threads
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees import kernels
from boostbp.trees import leaves as tree_leaves
from boostbp.trees.basis import Basis
from boostbp.trees.leaves import LeafColumns, LeafRows, Workspace, stacked
from boostbp.trees.ridge import NOT_MONOTONE, Ridge, TreeRows, fit_together
from boostbp.trees.sparse import Matrix, Sparse, columns_of, row_blocks
from boostbp.trees.tree import Tree, Trees, offsets, paths_of

CUTS = 254
SAMPLE = 2048  # rows that the cuts are quantiles of: any cuts give exact routing, those of even bins are fast
ROOM = 1 << 25  # path columns of rows, of trees whose sums go to the other workers together: 256 MB


@dataclass(frozen=True, slots=True)
class ColumnBins:
    """Bins of values, by which most splits are decided without looking at the input.

    Attributes
    ----------
    bins : (features, rows) uint8
        Number of a value's bin, in order; 255 where missing.
    lower, upper : (features, 256) float64
        Smallest and largest value in each bin.
    """

    bins: NDArray[np.uint8]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @classmethod
    def of(cls, X: NDArray[np.float64]) -> ColumnBins:
        """Return the bins of a dense input, (rows, features)."""
        n_rows, n_features = X.shape
        cuts = np.full((n_features, CUTS + 1), np.inf)
        ordered = np.sort(X[:: max(1, n_rows // SAMPLE)], axis=0)  # NaN comes last
        known = len(ordered) - np.isnan(ordered).sum(axis=0)
        at = (np.arange(CUTS)[:, None] * known) // CUTS
        if len(ordered):
            cuts[:, :CUTS] = np.where(known > 0, np.take_along_axis(ordered, at, axis=0), np.inf).T
        bins = np.empty((n_features, n_rows), np.uint8)
        lower, upper = np.empty((n_features, 256)), np.empty((n_features, 256))
        kernels.put_in_bins(X, cuts, bins, lower, upper)
        return cls(bins, lower, upper)


def fit_trees(
    trees: Trees,
    X: Matrix,
    Z: Matrix,
    bins: ColumnBins | None,
    basis: Basis,
    grad: Floats,
    hess: Floats,
    settings: Ridge,
    *,
    learning_rate: float,
    leaf: NDArray[np.integer],
    out: Floats,
    sign: NDArray[np.int64] = NOT_MONOTONE,
    n_threads: int = 1,
    space: Workspace | None = None,
) -> kernels.Leaves:
    """Fit the leaves of each tree to ``-grad / hess`` of its output, and add its values to the running fit.

    On one thread, dense rows go through one compiled call. A sparse input, blocks of rows for several threads, those of
    one worker of a group, or those of monotone trees are summed block by block, in the same order for any number of
    threads. Both give the same bits.

    Parameters
    ----------
    X : (rows, features), Z : (rows, columns) float64, C-contiguous
        The input, and the columns that regressions read of it; or two sparse inputs, of the same columns.
    bins : ColumnBins or None
        Of a dense input.
    grad : (trees, rows) float64, C-contiguous
    hess : (trees, rows) or, if all are equal, (1, rows) float64, C-contiguous
    leaf : (trees, rows), any integer type
        Written: the leaf of each row.
    out : (trees, rows) float64, C-contiguous
        Added to.
    sign : (features,) int64
        1 for each feature in which trees must rise, -1 where they must fall, else 0; (0,) if there are none. Columns
        are the features then, and settings are standardised.
    n_threads : int
        Threads over blocks of rows.
    space : Workspace
        For fits of many trees.

    Returns
    -------
    kernels.Leaves
        Tree ``k`` serves output ``k``.
    """
    space = space or Workspace()
    if len(sign) or not workers().is_single or bins is None or (n_threads > 1 and len(X) > tree_leaves.BLOCK_ROWS):
        models = []
        together = _together(len(X), trees, basis)
        for first in range(0, len(trees), together):
            numbers, parts = range(first, min(first + together, len(trees))), []
            for k in numbers:
                paths = LeafColumns.of(trees[k], basis)
                blocks = rows_by_leaf(trees[k], paths, X, Z, bins, leaf[k], space, n_threads)
                parts.append(TreeRows(blocks, paths, grad[k : k + 1], hess[k if len(hess) > 1 else 0], trees[k].nodes))
            fitted = fit_together(parts, settings, learning_rate, n_threads, sign)
            for k, part, model in zip(numbers, parts, fitted, strict=True):
                model.add_rows(part.blocks, out[k : k + 1], n_threads)
                for rows in part.blocks:
                    rows.give_back(space)
            models += fitted
        leaves = [model.leaves(k) for k, model in enumerate(models)]
        return leaves[0] if len(leaves) == 1 else stacked(leaves)
    start, column = paths_of(trees.nodes, trees.split, basis.columns_per_feature)
    order = space.take("order", len(X), np.uint16)
    values = space.take("values", len(X) * int((start[1:] - start[:-1]).max()))
    unfitted = _unfitted(trees, start, column, basis.powers)
    kernels.fit_trees(
        trees.nodes, trees.split, start, column, bins.bins, bins.lower, bins.upper, X, Z, basis.powers, grad, hess,
        settings.reg_lambda, settings.penalize_constant, settings.standardize, learning_rate, tree_leaves.BLOCK_ROWS,
        order, values, unfitted.scaling, unfitted.weight, leaf, out,
    )  # fmt: skip
    space.give("order", order)
    space.give("values", values)
    return unfitted


def _together(n_rows: int, trees: Trees, basis: Basis) -> int:
    """How many trees are fitted together: those whose rows there is room for, where their sums go to other workers."""
    group = workers()
    if group.is_single or len(trees) == 1:
        return 1
    start, _ = paths_of(trees.nodes, trees.split, basis.columns_per_feature)
    [most_rows] = group.max(float(n_rows))  # what goes together must be the same on all workers
    return max(1, int(ROOM // max(most_rows * int(np.diff(start).max()), 1.0)))


def _unfitted(trees: Trees, start: NDArray[np.int32], column: NDArray[np.int32], degree: int) -> kernels.Leaves:
    """Room for the regressions of all leaves of trees that serve one output each."""
    # Called once per round, often of a few hundred rows: numpy's plainest functions, in half the time of the others.
    n_trees = len(trees)
    number = np.arange(n_trees + 1)
    output, degrees = np.ones((n_trees, 2), np.int64), np.empty(n_trees, np.int64)
    output[:, 0] = number[:-1]
    degrees.fill(degree)
    first_column = start.astype(np.int64)
    weight_start = degree * first_column
    weight_start += np.arange(len(start))
    scaling, weight = np.empty((len(column), 4)), np.empty(weight_start[-1])
    # a tree has one leaf more than splits
    return kernels.Leaves(trees.split + number, output, degrees, first_column, column, scaling, weight_start, weight)


def rows_by_leaf(
    tree: Tree,
    paths: LeafColumns,
    X: Matrix,
    Z: Matrix,
    bins: ColumnBins | None,
    leaf: NDArray[np.integer],
    space: Workspace,
    n_threads: int = 1,
) -> list[LeafRows]:
    """Route all rows and group them by leaf, block by block, with their path columns side by side.

    What comes after reads these few numbers, in the order in which they lie, and not the whole input.

    Parameters
    ----------
    X : (rows, features), Z : (rows, columns) float64, C-contiguous; or two sparse inputs, of the same columns
    bins : ColumnBins or None
        Of a dense input.
    leaf : (rows,), any integer type
        Written.
    """

    def group(first: int) -> LeafRows:
        rows = slice(first, min(first + tree_leaves.BLOCK_ROWS, len(X)))
        if bins is None:
            return _sparse_rows(tree, paths, X, Z, rows, leaf[rows], space)
        order, values = LeafRows.lent(rows.stop - first, paths, space)
        start = np.empty(tree.n_leaves + 1, np.int64)
        kernels.group_block(
            tree.nodes, bins.bins, bins.lower, bins.upper, X, Z, first, paths.start, paths.column, leaf[None],
            order, values, start,
        )  # fmt: skip
        return LeafRows(first, start, order, values)

    # a worker may have no rows, whose sums are those of an empty block
    return threads.parallel_map(group, range(0, max(len(X), 1), tree_leaves.BLOCK_ROWS), n_threads)


def _sparse_rows(
    tree: Tree, paths: LeafColumns, X: Matrix, Z: Matrix, block: slice, leaf: NDArray[np.integer], space: Workspace
) -> LeafRows:
    """One block of a sparse input; only the columns that the tree splits on are made dense."""
    features, place = np.unique(tree.feature, return_inverse=True)
    nodes, column = tree.nodes._replace(feature=place.astype(np.int32)), np.searchsorted(features, paths.column)
    order, values = LeafRows.lent(len(leaf), paths, space)
    parts, split = row_blocks(block.start, block.stop, len(features)), offsets([len(tree.feature)])
    part = np.empty((0, 0))
    for rows in parts:
        part = columns_of(X, features, rows)
        part_leaf = leaf[None, rows.start - block.start : rows.stop - block.start]
        kernels.route(nodes, split, part, 0, len(part), part_leaf)
    start = np.empty(tree.n_leaves + 1, np.int64)
    kernels.group_rows(leaf[None], 0, 0, len(leaf), order, start)
    at, source = start[:-1].copy(), Z if isinstance(Z, Sparse) else X  # a constant basis has no columns of either
    for rows in parts:
        part = columns_of(source, features, rows) if len(parts) > 1 or source is not X else part
        begin, end = rows.start - block.start, rows.stop - block.start
        kernels.group_paths(order, start, paths.start, column.astype(np.int32), part, begin, end, at, values)
    return LeafRows(block.start, start, order, values)
