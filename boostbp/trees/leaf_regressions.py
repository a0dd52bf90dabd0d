"""Leaf regressions of whole rounds: the trees of a round, fitted together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees import kernels, leaf_rows
from boostbp.trees.basis import Basis
from boostbp.trees.kernels import Leaves
from boostbp.trees.leaf_rows import ColumnBins, Workspace, add_rows, rows_by_leaf
from boostbp.trees.leaves import concat_leaves, leaves_on_paths, take_leaves
from boostbp.trees.ridge import NOT_MONOTONE, Ridge, TreeRows, fit_together
from boostbp.trees.sparse import Matrix
from boostbp.trees.tree import Trees

ROOM = 1 << 25  # path columns of rows, of trees whose sums go to the other workers together: 256 MB


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
    n_outputs: int = 1,
    sign: NDArray[np.int64] = NOT_MONOTONE,
    n_threads: int = 1,
    space: Workspace | None = None,
) -> Leaves:
    """Fit the leaves of each tree to ``-grad / hess`` of its outputs, and add its values to the running fit.

    On one thread, dense rows and trees of one output go through one compiled call. A sparse input, blocks of rows for
    several threads, those of one worker of a group, and those of monotone trees are summed block by block, in the same
    order for any number of threads. Both give the same bits.

    Parameters
    ----------
    X : (rows, features), Z : (rows, columns) float64, C-contiguous
        The input, and the columns that regressions read of it; or two sparse inputs, of the same columns.
    bins : ColumnBins or None
        Of a dense input.
    grad : (trees * n_outputs, rows) float64, C-contiguous
    hess : (trees, rows) or, if all are equal, (1, rows) float64, C-contiguous
    leaf : (trees, rows), any integer type
        Written: the leaf of each row.
    out : (trees * n_outputs, rows) float64, C-contiguous
        Added to.
    n_outputs : int
        Outputs that each tree serves.
    sign : (features,) int64
        1 for each feature in which trees must rise, -1 where they must fall, else 0; (0,) if there are none. Columns
        are the features then, and settings are standardised.
    n_threads : int
        Threads over blocks of rows.
    space : Workspace
        For fits of many trees.

    Returns
    -------
    Leaves
        Tree ``k`` serves outputs ``k * n_outputs .. (k + 1) * n_outputs - 1``.
    """
    space, leaves = space or Workspace(), leaves_on_paths(trees, basis, n_outputs)
    by_blocks = (
        n_outputs > 1 or len(sign) or not workers().is_single or (n_threads > 1 and len(X) > leaf_rows.BLOCK_ROWS)
    )
    if by_blocks or bins is None:
        fitted: list[Leaves] = []
        together = _together(len(X), leaves)
        while (first := len(fitted)) < len(trees):
            parts = []
            for k in range(first, min(first + together, len(trees))):
                tree, of_tree = trees.take(slice(k, k + 1)), take_leaves(leaves, slice(k, k + 1))
                blocks = rows_by_leaf(tree, of_tree, X, Z, bins, leaf[k], space, n_threads)
                of_outputs = grad[k * n_outputs : (k + 1) * n_outputs]
                parts.append(TreeRows(blocks, of_tree, of_outputs, hess[k if len(hess) > 1 else 0], tree.nodes))
            fitted += fit_together(parts, settings, learning_rate, n_threads, sign)
            for k, part in enumerate(parts, first):
                add_rows(fitted[k], part.blocks, out[k * n_outputs : (k + 1) * n_outputs], n_threads)
                for rows in part.blocks:
                    rows.give_back(space)
        return fitted[0] if len(fitted) == 1 else concat_leaves(fitted)
    order = space.take("order", len(X), np.uint16)
    values = space.take("values", len(X) * int((leaves.start[1:] - leaves.start[:-1]).max()))
    kernels.fit_trees(
        trees.nodes, trees.tree_split, leaves.start, leaves.column, bins.bins, bins.lower, bins.upper, X, Z,
        basis.powers, grad, hess, settings.reg_lambda, settings.penalize_constant, settings.standardize, learning_rate,
        leaf_rows.BLOCK_ROWS, order, values, leaves.scaling, leaves.weight, leaf, out,
    )  # fmt: skip
    space.give("order", order)
    space.give("values", values)
    return leaves


def _together(n_rows: int, leaves: Leaves) -> int:
    """Return how many trees are fitted together: on several workers, those whose rows there is room for."""
    group = workers()
    if group.is_single or len(leaves.tree_degree) == 1:
        return 1
    [most_rows] = group.max(float(n_rows))  # what goes together must be the same on all workers
    return max(1, int(ROOM // max(most_rows * int(np.diff(leaves.start).max()), 1.0)))
