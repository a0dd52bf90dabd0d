"""Leaves of trees, fitted to gradients by sums over blocks of rows, threads and workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.core import LeafRows, Leaves
from boostbp.runtime import threads
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.basis import Basis
from boostbp.trees.leaves import (
    BLOCK_ROWS,
    ColumnBins,
    Workspace,
    add_rows,
    concat_leaves,
    leaves_on_paths,
    rows_by_leaf,
    take_leaves,
)
from boostbp.trees.ridge import LeafRanges, LeafSums, Prior, Ridge, solve
from boostbp.trees.sparse import Matrix
from boostbp.trees.tree import Trees

S = TypeVar("S", LeafRanges, LeafSums)
# (features,): 1 where trees must rise, -1 where they must fall, otherwise 0; (0,) without constraints
Signs = NDArray[np.int64]
NOT_MONOTONE: Signs = np.empty(0, np.int64)
# Limit on the path columns of rows of trees whose sums go to the other workers in one message: 256 MB.
MESSAGE_NUMBERS = 1 << 25


@dataclass(frozen=True, slots=True)
class LeafFits:
    """How the leaves of the trees of a layer are fitted, and on which input."""

    X: Matrix  # (rows, features) float64, C-contiguous, or sparse
    Z: Matrix  # (rows, columns): what regressions read, or the same sparse input
    bins: ColumnBins | None  # of a dense input
    basis: Basis
    ridge: Ridge
    learning_rate: float
    # With constraints, columns must be the features and the ridge standardised.
    sign: Signs = field(default_factory=lambda: NOT_MONOTONE)
    space: Workspace = field(default_factory=Workspace)  # memory that fits of many trees reuse

    @property
    def of_ridge(self) -> tuple[float, bool, bool, float, int]:
        """Settings of fits, as the core takes them."""
        ridge = self.ridge
        return ridge.reg_lambda, ridge.penalize_constant, ridge.standardize, self.learning_rate, BLOCK_ROWS

    def in_core(self, n_threads: int, prior: Prior | None = None) -> bool:
        """Return whether the core may fit trees of one output by one call: see `fit_round`."""
        shares_rows = n_threads > 1 and len(self.X) > BLOCK_ROWS
        return not (self.bins is None or len(self.sign) or shares_rows or prior) and workers().is_single


@dataclass(frozen=True, slots=True)
class TreeRows:
    """Rows of a tree, and the gradients to which its regressions are fitted."""

    blocks: Sequence[LeafRows]  # all rows, grouped by leaf
    leaves: Leaves  # leaves of the tree, whose scalings and weights are not read
    grad: Floats  # (outputs, rows) float64, C-contiguous
    hess: Floats  # (rows,)
    nodes: core.Nodes | None = None  # splits of the tree, if it must be monotone
    prior: Prior | None = None  # of the tree


def fit_together(
    trees: Sequence[TreeRows], ridge: Ridge, learning_rate: float = 1.0, n_threads: int = 1, sign: Signs = NOT_MONOTONE
) -> list[Leaves]:
    """Return the fitted leaves of some trees, with one message for their sums over the workers of a group.

    Sums over blocks of rows are added in the order of the blocks, for any number of threads, and then over the workers.
    """
    # If all weights are 1, an empty array tells the core to skip the products.
    weights = [tree.hess[:0] if (tree.hess == 1.0).all() else tree.hess for tree in trees]

    def summed(of_rows: Callable[[LeafRows], S], tree: TreeRows) -> S:
        return reduce(lambda total, part: total + part, threads.parallel_map(of_rows, tree.blocks, n_threads))

    def ranges_of(tree: TreeRows, hess: Floats) -> LeafRanges:
        return summed(lambda rows: LeafRanges.of(rows, tree.leaves, hess), tree)

    def sums_of(tree: TreeRows, hess: Floats, scaling: Floats) -> LeafSums:
        units = ridge.units(scaling)
        return summed(lambda rows: LeafSums.of(rows, tree.leaves, tree.grad, hess, units), tree)

    # Two passes over the rows of a leaf: the terms u = (z - center) * inv_scale need its scaling first.
    priors = [tree.prior.leaves.scaling for tree in trees if tree.prior]
    ranges = (
        [] if priors else LeafRanges.over_workers([ranges_of(*of_tree) for of_tree in zip(trees, weights, strict=True)])
    )
    # Without standardisation, a column that is constant in its leaf and the constant term share one weight.
    scalings = priors or [part.scaling(flat_scale=0.0 if ridge.standardize else 1.0) for part in ranges]
    sums = LeafSums.over_workers([sums_of(*of_tree) for of_tree in zip(trees, weights, scalings, strict=True)])
    fitted = [_fitted(*of_tree, ridge, learning_rate, sign) for of_tree in zip(trees, scalings, sums, strict=True)]
    return [tree.prior.blended(new) if tree.prior else new for tree, new in zip(trees, fitted, strict=True)]


def _fitted(tree: TreeRows, scaling: Floats, sums: LeafSums, ridge: Ridge, learning_rate: float, sign: Signs) -> Leaves:
    """Return the fitted leaves of a tree, which is monotone if `sign` is not empty."""
    leaves, [degree] = tree.leaves, tree.leaves.tree_degree.tolist()
    if len(sign):
        leaves = leaves._replace(scaling=scaling, weight=sums.moment.copy())
        penalty = ridge.reg_lambda, ridge.penalize_constant, learning_rate
        core.solve_monotone(tree.nodes, leaves, sign, sums.gram, *penalty)
        return leaves
    weight = solve(sums, leaves, ridge, learning_rate)
    if not ridge.standardize:
        core.scale_weights(leaves.start, degree, sums.n_outputs, scaling, weight)
    return leaves._replace(scaling=scaling, weight=weight)


def fit_by_blocks(
    trees: Trees,
    fits: LeafFits,
    grad: Floats,
    hess: Floats,
    *,
    leaf: NDArray[np.integer],
    out: Floats,
    n_threads: int = 1,
    prior: Prior | None = None,
) -> Leaves:
    """Fit the leaves of a round by sums of blocks of rows, in one order for any number of threads; see `fit_round`."""
    n_outputs, space = len(grad) // len(trees), fits.space
    leaves = leaves_on_paths(trees, fits.basis, n_outputs)
    done: list[Leaves] = []
    # One at a time, a tree is fitted while its rows are in cache. In a group, several trees share messages.
    at_once = _trees_at_once(len(fits.X), leaves)
    while (first := len(done)) < len(trees):
        parts = []
        for k in range(first, min(first + at_once, len(trees))):
            tree, of_tree = trees.take(slice(k, k + 1)), take_leaves(leaves, slice(k, k + 1))
            blocks = rows_by_leaf(tree, of_tree, fits.X, fits.Z, fits.bins, leaf[k], space, n_threads)
            of_outputs = grad[k * n_outputs : (k + 1) * n_outputs]
            if old := prior and prior.of(slice(k, k + 1)):
                old.clip_inputs(blocks)
            parts.append(TreeRows(blocks, of_tree, of_outputs, hess[k if len(hess) > 1 else 0], tree.nodes, old))
        done += fit_together(parts, fits.ridge, fits.learning_rate, n_threads, fits.sign)
        for k, part in enumerate(parts, first):
            add_rows(done[k], part.blocks, out[k * n_outputs : (k + 1) * n_outputs], n_threads)
            for rows in part.blocks:
                space.take_back(rows.order, rows.values)
    return done[0] if len(done) == 1 else concat_leaves(done)


def by_output(columns: Floats) -> Floats:
    """Return (rows, outputs) as contiguous (outputs, rows), or (1, rows) if all outputs share a column in memory."""
    shared = columns.strides[1] == 0 and len(columns) > 0  # strides mean nothing without rows
    rows = columns[:, :1].T if shared else columns.T
    return rows if rows.flags.carray and rows.dtype == np.float64 else np.require(rows, np.float64, ["C", "W"])


def _trees_at_once(n_rows: int, leaves: Leaves) -> int:
    """Return how many trees are fitted together: in a group, as many as `MESSAGE_NUMBERS` allows, otherwise one."""
    group = workers()
    if group.is_single or len(leaves.tree_degree) == 1:
        return 1
    [most_rows] = group.max(float(n_rows))  # the number must be the same on all workers
    return max(1, int(MESSAGE_NUMBERS // max(most_rows * int(np.diff(leaves.start).max()), 1.0)))
