"""Leaf regressions of whole rounds: trees that serve one output each, fitted together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from boostbp.trees import kernels, ridge, threads
from boostbp.trees.basis import Basis
from boostbp.trees.ridge import LeafModel, LeafRanges, LeafRows, LeafSums, Paths, Ridge, solve
from boostbp.trees.tree import Tree, joined

__all__ = ["fit_trees"]

Floats = NDArray[np.float64]


def fit_trees(
    trees: Sequence[Tree],
    X: Floats,
    Z: Floats,
    basis: Basis,
    grad: Floats,
    hess: Floats,
    settings: Ridge,
    *,
    learning_rate: float,
    leaf: NDArray[np.integer],
    out: Floats,
    n_threads: int = 1,
) -> list[LeafModel]:
    """Fit the leaves of each tree to ``-grad / hess`` of its output, and add its values to the running fit.

    A single block of rows goes through one compiled call, leaf by leaf; more are summed block by
    block, in the same order for any number of threads.

    Parameters
    ----------
    trees : sequence of Tree
    X : (rows, features), Z : (rows, columns) float64, C-contiguous
        The input, and the columns that the basis makes of it.
    grad : (trees, rows) float64, C-contiguous
    hess : (trees, rows) or, if all are equal, (1, rows) float64, C-contiguous
    leaf : (trees, rows), any integer type
        Written: the leaf of each row.
    out : (trees, rows) float64, C-contiguous
        Added to.
    n_threads : int
        Threads over blocks of rows.
    """
    if len(X) > ridge.BLOCK_ROWS:
        models = []
        for k, tree in enumerate(trees):
            h = hess[k if len(hess) > 1 else 0]
            models.append(
                _by_blocks(tree, X, Z, basis, grad[k : k + 1], h, settings, learning_rate, leaf[k], out[k], n_threads)
            )
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


def _by_blocks(
    tree: Tree,
    X: Floats,
    Z: Floats,
    basis: Basis,
    grad: Floats,
    hess: Floats,
    settings: Ridge,
    learning_rate: float,
    leaf: NDArray[np.integer],
    out: Floats,
    n_threads: int,
) -> LeafModel:
    """One tree, from sums over blocks of rows."""
    paths = Paths.of(tree, basis)
    nodes, n_splits = tree.nodes, len(tree.feature)
    # Each row's path columns, side by side: three passes then read these few numbers and not the whole input.
    sizes = np.diff(paths.start)
    near = np.empty((len(X), max(1, int(sizes.max()))))
    places = np.arange(len(paths.column), dtype=np.int32) - np.repeat(paths.start[:-1], sizes)
    here = Paths(paths.start, places, paths.degree)

    def group(first: int) -> LeafRows:
        block = slice(first, first + ridge.BLOCK_ROWS)
        part = X[block], paths.start, 0, paths.column, Z[block], leaf[block], near[block]
        kernels.route_near(nodes, 0, n_splits, *part)
        return LeafRows(first, *kernels.group_rows(leaf[block], tree.n_leaves))

    def ranges_of(rows: LeafRows) -> LeafRanges:
        return LeafRanges.of(rows, here, near, hess)

    blocks = threads.spread(group, range(0, len(X), ridge.BLOCK_ROWS), n_threads)
    frame = reduce(add, threads.spread(ranges_of, blocks, n_threads)).frame(flat_scale=settings.flat_scale)
    units = settings.units(frame)

    def sums_of(rows: LeafRows) -> LeafSums:
        return LeafSums.of(rows, here, near, grad.T, hess, *units)

    sums = reduce(add, threads.spread(sums_of, blocks, n_threads))
    weight = solve(sums, paths, settings, learning_rate)
    if not settings.standardize:
        kernels.move_to_frame(paths.start, paths.degree, 1, frame, weight)

    def values_of(rows: LeafRows) -> None:
        kernels.add_values(
            rows.start, rows.order, rows.first, here.start, here.column, near, here.degree, frame, weight, out
        )

    threads.spread(values_of, blocks, n_threads)
    return LeafModel(paths, frame, weight, 1, np.full(tree.n_leaves, np.nan))
