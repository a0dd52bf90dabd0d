"""Leaf regressions of whole rounds: trees that serve one output each, fitted together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from boostbp.trees import kernels, ridge, threads
from boostbp.trees.basis import Basis
from boostbp.trees.ridge import LeafModel, LeafRows, Paths, Ridge, fit_rows
from boostbp.trees.sparse import Matrix, Sparse, tiles
from boostbp.trees.tree import Tree, joined
from boostbp.trees.workspace import Workspace

__all__ = ["fit_trees", "rows_by_leaf"]

Floats = NDArray[np.float64]
FAR = 1 << 19  # numbers: an input beyond this does not stay in cache from one use to the next


def fit_trees(
    trees: Sequence[Tree],
    X: Matrix,
    Z: Matrix,
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
) -> list[LeafModel]:
    """Fit the leaves of each tree to ``-grad / hess`` of its output, and add its values to the running fit.

    A single block of dense rows that stays in cache goes through one compiled call, leaf by leaf; more are summed
    block by block, in the same order for any number of threads. Both give the same bits.

    Parameters
    ----------
    trees : sequence of Tree
    X : (rows, features), Z : (rows, columns) float64, C-contiguous
        The input, and the columns that the basis makes of it; or one sparse input for both.
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
    """
    space = space or Workspace()
    if len(X) > ridge.BLOCK_ROWS or isinstance(X, Sparse) or Z.size > FAR:
        models = []
        for k, tree in enumerate(trees):
            paths, own = Paths.of(tree, basis), slice(k, k + 1)
            blocks = rows_by_leaf(tree, paths, X, Z, leaf[k], space, n_threads)
            h = hess[k if len(hess) > 1 else 0]
            models.append(fit_rows(blocks, paths, grad[own], h, settings, learning_rate, n_threads))
            models[-1].add_rows(blocks, out[own], n_threads)
            for rows in blocks:
                rows.give_back(space)
        return models
    nodes, split = joined(trees)
    start, column, frame, weight = kernels.fit_trees(
        nodes, split, X, Z, basis.columns_per_feature, basis.degree, grad, hess, settings.reg_lambda,
        settings.penalize_constant, settings.standardize, learning_rate, leaf, out,
    )  # fmt: skip
    return _models(trees, start, column, frame, weight, basis.degree)


def _models(
    trees: Sequence[Tree],
    start: NDArray[np.int32],
    column: NDArray[np.int32],
    frame: Floats,
    weight: Floats,
    degree: int,
) -> list[LeafModel]:
    models = []
    first = 0
    fallback = np.full(len(start) - 1, np.nan)
    for tree in trees:
        last = first + tree.n_leaves
        at = slice(int(start[first]), int(start[last]))
        terms = slice(first + degree * at.start, last + degree * at.stop)
        paths = Paths(start[first : last + 1] - start[first], column[at], degree)
        models.append(LeafModel(paths, frame[at], weight[terms], 1, fallback[first:last]))
        first = last
    return models


def rows_by_leaf(
    tree: Tree,
    paths: Paths,
    X: Matrix,
    Z: Matrix,
    leaf: NDArray[np.integer],
    space: Workspace,
    n_threads: int = 1,
) -> list[LeafRows]:
    """Route all rows and group them by leaf, block by block, with their path columns side by side.

    What comes after reads these few numbers, in the order in which they lie, and not the whole input.

    Parameters
    ----------
    X : (rows, features), Z : (rows, columns) float64, C-contiguous; or one sparse input for both
    leaf : (rows,), any integer type
        Written.
    """
    most = max(1, int(np.diff(paths.start).max()))

    def group(first: int) -> LeafRows:
        last = min(first + ridge.BLOCK_ROWS, len(X))
        lent = space.take("near", (last - first) * most)
        near = lent.reshape(-1, most)
        for rows, nodes, column, part, part_Z in _pieces(tree, paths, X, Z, first, last):
            kernels.route_near(
                nodes, 0, len(tree.feature), part, paths.start, 0, column, part_Z,
                leaf[rows], near[rows.start - first : rows.stop - first],
            )  # fmt: skip
        grouped = LeafRows.of(first, leaf[first:last], paths, near, space)
        space.give("near", lent)
        return grouped

    return threads.spread(group, range(0, len(X), ridge.BLOCK_ROWS), n_threads)


def _pieces(
    tree: Tree, paths: Paths, X: Matrix, Z: Matrix, first: int, last: int
) -> Iterator[tuple[slice, kernels.Nodes, NDArray[np.int32], Floats, Floats]]:
    """Dense rows, with splits and path columns as numbers of their columns; of a sparse input only columns in use."""
    nodes = tree.nodes
    if not isinstance(X, Sparse):
        rows = slice(first, last)
        yield rows, nodes, paths.column, X[rows], Z[rows]
        return
    features, place = np.unique(tree.feature, return_inverse=True)
    nodes, column = nodes._replace(feature=place.astype(np.int32)), np.searchsorted(features, paths.column)
    for rows in tiles(first, last, len(features)):
        part = X.dense(features, rows)
        yield rows, nodes, column.astype(np.int32), part, part
