"""Leaf regressions of whole rounds: trees that serve one output each, fitted together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boostbp.trees import kernels, leaf_rows, threads
from boostbp.trees.basis import Basis
from boostbp.trees.column_bins import ColumnBins
from boostbp.trees.leaf_rows import LeafColumns, LeafRows
from boostbp.trees.leaves import stacked
from boostbp.trees.ridge import Ridge, fit_rows
from boostbp.trees.sparse import Matrix, Sparse, tiles
from boostbp.trees.tree import Tree, Trees, paths_of, starts
from boostbp.trees.workspace import Workspace

__all__ = ["fit_trees", "rows_by_leaf"]

Floats = NDArray[np.float64]


def fit_trees(
    trees: Trees,
    X: Matrix,
    Z: Matrix,
    codes: ColumnBins | None,
    basis: Basis,
    grad: Floats,
    hess: Floats,
    settings: Ridge,
    *,
    learning_rate: float,
    leaf: NDArray[np.integer],
    out: Floats,
    n_threads: int = 1,
    space: Workspace | None = None,
) -> kernels.Leaves:
    """Fit the leaves of each tree to ``-grad / hess`` of its output, and add its values to the running fit.

    On one thread, dense rows go through one compiled call. A sparse input, or blocks of rows for several threads, are
    summed block by block, in the same order for any number of threads. Both give the same bits.

    Parameters
    ----------
    trees : Trees
    X : (rows, features), Z : (rows, columns) float64, C-contiguous
        The input, and the columns that regressions read of it; or two sparse inputs, of the same columns.
    codes : ColumnBins or None
        Of a dense input.
    grad : (trees, rows) float64, C-contiguous
    hess : (trees, rows) or, if all are equal, (1, rows) float64, C-contiguous
    leaf : (trees, rows), any integer type
        Written: the leaf of each row.
    out : (trees, rows) float64, C-contiguous
        Added to.
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
    if codes is None or (n_threads > 1 and len(X) > leaf_rows.BLOCK_ROWS):
        models = []
        for k, tree in enumerate(trees):
            paths, own = LeafColumns.of(tree, basis), slice(k, k + 1)
            blocks = rows_by_leaf(tree, paths, X, Z, codes, leaf[k], space, n_threads)
            h = hess[k if len(hess) > 1 else 0]
            models.append(fit_rows(blocks, paths, grad[own], h, settings, learning_rate, n_threads))
            models[-1].add_rows(blocks, out[own], n_threads)
            for rows in blocks:
                rows.give_back(space)
        return stacked([model.leaves(k) for k, model in enumerate(models)])
    start, column = paths_of(trees.nodes, trees.split, basis.columns_per_feature)
    order = space.take("order", len(X), np.uint16)
    values = space.take("values", len(X) * int(np.diff(start).max()))
    leaves = _unfitted(trees, start, column, basis.powers)
    kernels.fit_trees(
        trees.nodes, trees.split, start, column, codes.codes, codes.lower, codes.upper, X, Z, basis.powers, grad, hess,
        settings.reg_lambda, settings.penalize_constant, settings.standardize, learning_rate, leaf_rows.BLOCK_ROWS,
        order, values, leaves.frame, leaves.weight, leaf, out,
    )  # fmt: skip
    space.give("order", order)
    space.give("values", values)
    return leaves


def _unfitted(trees: Trees, start: NDArray[np.int32], column: NDArray[np.int32], degree: int) -> kernels.Leaves:
    """Room for the regressions of all leaves of trees that serve one output each."""
    numbers, n_all = np.arange(len(trees) + 1), len(start) - 1
    output = np.column_stack([numbers[:-1], np.ones_like(numbers[:-1])])
    weight_start = np.arange(n_all + 1) + degree * start.astype(np.int64)
    return kernels.Leaves(
        trees.split + numbers, output, np.full(len(trees), degree), start.astype(np.int64), column,
        np.empty((len(column), 4)), weight_start, np.empty(weight_start[-1]),
    )  # fmt: skip


def rows_by_leaf(
    tree: Tree,
    paths: LeafColumns,
    X: Matrix,
    Z: Matrix,
    codes: ColumnBins | None,
    leaf: NDArray[np.integer],
    space: Workspace,
    n_threads: int = 1,
) -> list[LeafRows]:
    """Route all rows and group them by leaf, block by block, with their path columns side by side.

    What comes after reads these few numbers, in the order in which they lie, and not the whole input.

    Parameters
    ----------
    X : (rows, features), Z : (rows, columns) float64, C-contiguous; or two sparse inputs, of the same columns
    codes : ColumnBins or None
        Of a dense input.
    leaf : (rows,), any integer type
        Written.
    """

    def group(first: int) -> LeafRows:
        rows = slice(first, min(first + leaf_rows.BLOCK_ROWS, len(X)))
        if codes is None:
            return _sparse_rows(tree, paths, X, Z, rows, leaf[rows], space)
        order, values = LeafRows.lent(rows.stop - first, paths, space)
        start = np.empty(tree.n_leaves + 1, np.int64)
        kernels.group_block(
            tree.nodes, codes.codes, codes.lower, codes.upper, X, Z, first, paths.start, paths.column, leaf[None],
            order, values, start,
        )  # fmt: skip
        return LeafRows(first, start, order, values)

    return threads.parallel_map(group, range(0, len(X), leaf_rows.BLOCK_ROWS), n_threads)


def _sparse_rows(
    tree: Tree, paths: LeafColumns, X: Sparse, Z: Sparse, block: slice, leaf: NDArray[np.integer], space: Workspace
) -> LeafRows:
    """One block of a sparse input; only the columns that the tree splits on are made dense."""
    features, place = np.unique(tree.feature, return_inverse=True)
    nodes, column = tree.nodes._replace(feature=place.astype(np.int32)), np.searchsorted(features, paths.column)
    order, values = LeafRows.lent(len(leaf), paths, space)
    parts, split = tiles(block.start, block.stop, len(features)), starts([len(tree.feature)])
    part = np.empty((0, 0))
    for rows in parts:
        part = X.dense(features, rows)
        own = leaf[None, rows.start - block.start : rows.stop - block.start]
        kernels.route(nodes, split, part, 0, len(part), own)
    start = np.empty(tree.n_leaves + 1, np.int64)
    kernels.group_rows(leaf[None], 0, 0, len(leaf), order, start)
    at, source = start[:-1].copy(), Z if isinstance(Z, Sparse) else X  # a constant basis has no columns of either
    for rows in parts:
        part = source.dense(features, rows) if len(parts) > 1 or source is not X else part
        begin, end = rows.start - block.start, rows.stop - block.start
        kernels.group_paths(order, start, paths.start, column.astype(np.int32), part, begin, end, at, values)
    return LeafRows(block.start, start, order, values)
