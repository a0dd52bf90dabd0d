"""Rounds: the leaves of a round of trees, fitted to gradients, and several rounds in one call of the core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.core import LeafRows, Leaves
from boostbp.core.binding import CFunction
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
from boostbp.trees.tree import SplitRoom, Trees

S = TypeVar("S", LeafRanges, LeafSums)
# (features,): 1 where trees must rise, -1 where they must fall, otherwise 0; (0,) without constraints
Signs = NDArray[np.int64]
NOT_MONOTONE: Signs = np.empty(0, np.int64)
# Grows a round of trees by gradients and hessians, (trees, rows)
GrowRound = Callable[[NDArray[np.float32], NDArray[np.float32]], Trees]
# Weight of a row that is not sampled. Above 0, so that its target -grad / hess is finite, and too small to change a
# float64 sum with a sampled row in it. So splits that differ only in such rows have exactly the same gain, whatever the
# order of summation.
UNSAMPLED = 1e-20
# Limit on the path columns of rows of trees whose sums go to the other workers in one message: 256 MB.
MESSAGE_NUMBERS = 1 << 25


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


def in_one_call(n_rows: int, sign: Signs, n_threads: int, prior: Prior | None) -> bool:
    """Return whether the core may fit trees of one output on a dense input by one call, see `fit_round`."""
    shares_rows = n_threads > 1 and n_rows > BLOCK_ROWS
    return not (len(sign) or shares_rows or prior) and workers().is_single


def fit_round(
    trees: Trees,
    X: Matrix,
    Z: Matrix,
    bins: ColumnBins | None,
    basis: Basis,
    grad: Floats,
    hess: Floats,
    ridge: Ridge,
    *,
    learning_rate: float,
    leaf: NDArray[np.integer],
    out: Floats,
    n_outputs: int = 1,
    sign: Signs = NOT_MONOTONE,
    n_threads: int = 1,
    space: Workspace | None = None,
    prior: Prior | None = None,
) -> Leaves:
    """Fit the leaves of each tree to ``-grad / hess`` of its outputs, and add its values to the running fit.

    On one thread, a dense input and trees of one output need one call of the core. Otherwise (sparse input, several
    threads, a group of workers, monotone trees) sums are computed block by block, in the same order for any number of
    threads. Both give the same bits.

    Parameters
    ----------
    X : (rows, features), Z : (rows, columns) float64, C-contiguous
        The input, and the columns that regressions read; or a sparse input for both.
    bins : ColumnBins or None
        Bins of a dense input.
    grad : (trees * n_outputs, rows) float64, C-contiguous
    hess : (trees, rows) or, if all are equal, (1, rows) float64, C-contiguous
    leaf : (trees, rows), any integer type
        Output: the leaf of each row.
    out : (trees * n_outputs, rows) float64, C-contiguous
        Running fit, to which the values are added.
    n_outputs : int
        Number of outputs of each tree.
    sign : (features,) int64
        See `Signs`. With constraints, columns must be the features and the ridge standardised.
    space : Workspace
        Memory that fits of many trees reuse.
    prior : Prior or None
        Old leaves of the trees.

    Returns
    -------
    Leaves
        Tree ``k`` serves outputs ``k * n_outputs .. (k + 1) * n_outputs - 1``.
    """
    space, leaves = space or Workspace(), leaves_on_paths(trees, basis, n_outputs)
    if bins is None or n_outputs > 1 or not in_one_call(len(X), sign, n_threads, prior):
        fitted: list[Leaves] = []
        # One at a time, a tree is fitted while its rows are in cache. In a group, several trees share messages.
        at_once = _trees_at_once(len(X), leaves)
        while (first := len(fitted)) < len(trees):
            parts = []
            for k in range(first, min(first + at_once, len(trees))):
                tree, of_tree = trees.take(slice(k, k + 1)), take_leaves(leaves, slice(k, k + 1))
                blocks = rows_by_leaf(tree, of_tree, X, Z, bins, leaf[k], space, n_threads)
                of_outputs = grad[k * n_outputs : (k + 1) * n_outputs]
                if old := prior and prior.of(slice(k, k + 1)):
                    old.clip_inputs(blocks)
                parts.append(TreeRows(blocks, of_tree, of_outputs, hess[k if len(hess) > 1 else 0], tree.nodes, old))
            fitted += fit_together(parts, ridge, learning_rate, n_threads, sign)
            for k, part in enumerate(parts, first):
                add_rows(fitted[k], part.blocks, out[k * n_outputs : (k + 1) * n_outputs], n_threads)
                for rows in part.blocks:
                    space.take_back(rows.order, rows.values)
        return fitted[0] if len(fitted) == 1 else concat_leaves(fitted)
    # One call of the core for all trees; the widest leaf determines the memory for path columns.
    order, values = space.lend(len(X), int((leaves.start[1:] - leaves.start[:-1]).max()))
    core.fit_trees(
        trees.nodes, trees.tree_split, leaves, bins.with_input(X, Z), (grad, hess), _of_fits(ridge, learning_rate),
        (order, values), leaf, out,
    )  # fmt: skip
    space.take_back(order, values)
    return leaves


@dataclass(frozen=True, slots=True)
class Widths:
    """Limits of the size of a tree."""

    splits: int
    columns: int  # path columns of a leaf
    words: int  # of a category set

    @property
    def of_tree(self) -> int:
        """Path columns, or words of sets, of a tree: the larger number."""
        return max((self.splits + 1) * self.columns, self.splits * self.words)


def boost_rounds(
    grown_by: tuple[int, ...] | GrowRound | Trees,
    derive: Callable[[int], object],
    X: Floats,
    Z: Floats,
    bins: ColumnBins,
    basis: Basis,
    grad: Floats,
    hess: Floats,
    ridge: Ridge,
    *,
    shared: Floats,
    squared: tuple[Floats, Floats] | None,
    sampled: NDArray[np.bool_],
    learning_rate: float,
    most: Widths,
    leaf: NDArray[np.integer],
    out: Floats,
    space: Workspace,
) -> tuple[Trees, Leaves, int]:
    """Boost rounds with one tree for each output in one call of the core: grow them, and fit leaves as by `fit_round`.

    Parameters
    ----------
    grown_by : tuple of int, function, or Trees
        Addresses of a library, or a function, see `boostbp.backends.base.CoreCalls`; or the trees of all rounds, which
        are known.
    derive : function
        Writes `grad`, `hess` and `shared` for the round of a number, from 1, and may change `out`. An error that it
        raises ends the rounds.
    grad : (outputs, rows), hess : (outputs, rows) or (1, rows) float64, C-contiguous
        Of the first round.
    shared : (2, 1, rows) or (2, 0, rows) float64, C-contiguous
        Gradient and hessian on which one tree is grown for all outputs, if there are any.
    squared : tuple of two arrays, or None
        Base and target, each (outputs, rows), if the loss is the squared error of ``base + out``. The core then
        computes the gradients; `derive` and the content of `grad` are not used.
    sampled : (rounds, rows) bool
        Rows on which trees are grown; (0, rows) for all. The weight of other rows is multiplied by `UNSAMPLED`.
    leaf : (trees, rows), any integer type
        Output: the leaf of each row. Its length determines the number of rounds.

    Returns
    -------
    trees : Trees
        Of the rounds that were boosted.
    leaves : Leaves
    fault : int
        Why no more rounds were boosted, or 0.
    """
    n_outputs, done = len(out), np.zeros(2, np.int64)
    in_float32 = np.empty((2, n_outputs, len(X)), np.float32)
    steps = [] if squared else [CFunction(derive)]
    if isinstance(grown_by, Trees):
        addresses: tuple[int, ...] = (0,) * 4
        splits, room = SplitRoom.holding(grown_by), leaves_on_paths(grown_by, basis)
        most = Widths(int(np.diff(grown_by.tree_split).max()), int(np.diff(room.start).max()), 0)
    else:
        room = _leaf_room(len(leaf), most, basis)
        splits = SplitRoom.of(len(leaf), len(leaf) * most.splits, len(leaf) * most.splits * most.words)
        if not isinstance(grown_by, tuple):
            n_grown = len(shared[0]) or n_outputs
            grad_hess = in_float32.reshape(-1, len(X))[: 2 * n_grown].reshape(2, n_grown, -1)
            steps.append(CFunction(partial(_grow, grown_by, n_outputs, grad_hess, splits, done)))
            grown_by = 0, steps[-1].address, 0, 0
        addresses = grown_by
    order, values = space.lend(len(X), most.columns)
    base, target = squared or (np.empty((0, len(X))),) * 2
    derive_at = 0 if squared else steps[0].address
    of_leaves = room.start, room.column, room.scaling, room.weight_start, room.weight
    fault = core.boost_rounds(
        (*addresses, derive_at, sampled.view(np.uint8), UNSAMPLED, in_float32), bins.with_input(X, Z),
        (grad, hess, *shared, base, target), _of_fits(ridge, learning_rate), (order, values), splits, most.splits,
        (basis.columns_per_feature, basis.powers, *of_leaves), leaf, out, done,
    )  # fmt: skip
    space.take_back(order, values)
    for step in steps:
        step.check()
    n_rounds, n_words = done.tolist()
    n_trees = n_rounds * n_outputs
    trees = grown_by[:n_trees] if isinstance(grown_by, Trees) else splits.trees(n_trees, n_words)
    number = np.arange(n_trees + 1)
    tree_leaf = trees.tree_split + number
    start, weight_start = room.start[: tree_leaf[-1] + 1], room.weight_start[: tree_leaf[-1] + 1]
    output = np.column_stack([number[:-1] % n_outputs, np.ones(n_trees, np.int64)])
    leaves = Leaves(
        tree_leaf, output, np.full(n_trees, basis.powers), start, room.column[: start[-1]], room.scaling[: start[-1]],
        weight_start, room.weight[: weight_start[-1]],
    )  # fmt: skip
    return trees, leaves, fault


def _of_fits(ridge: Ridge, learning_rate: float) -> tuple[float, bool, bool, float, int]:
    """Return the settings of fits, as the core takes them."""
    return ridge.reg_lambda, ridge.penalize_constant, ridge.standardize, learning_rate, BLOCK_ROWS


def _grow(
    grow: GrowRound,
    n_outputs: int,
    derivatives: NDArray[np.float32],
    splits: SplitRoom,
    done: NDArray[np.int64],
    number: int,
) -> None:
    """Grow a round by a Python function, and write its trees where the core reads them."""
    trees = grow(*derivatives)
    first, word = number * n_outputs, done[1]
    splits.write(trees, splits.tree_split[first], word)
    splits.tree_split[first + 1 : first + 1 + len(trees)] = splits.tree_split[first] + trees.tree_split[1:]
    done[1] += len(trees.categories)


def _leaf_room(n_trees: int, most: Widths, basis: Basis) -> Leaves:
    """Return memory for the leaves of trees that will be grown; the arrays of trees are empty."""
    n_leaves = n_trees * (most.splits + 1)
    n_paths, of_trees = n_leaves * most.columns, np.empty(0, np.int64)
    start, weight_start = np.empty((2, n_leaves + 1), np.int64)
    column, scaling = np.empty(n_paths, np.int32), np.empty((n_paths, 4))
    weight = np.empty(n_leaves + basis.powers * n_paths)
    return Leaves(of_trees, of_trees, of_trees, start, column, scaling, weight_start, weight)


def _trees_at_once(n_rows: int, leaves: Leaves) -> int:
    """Return how many trees are fitted together: in a group, as many as `MESSAGE_NUMBERS` allows, otherwise one."""
    group = workers()
    if group.is_single or len(leaves.tree_degree) == 1:
        return 1
    [most_rows] = group.max(float(n_rows))  # the number must be the same on all workers
    return max(1, int(MESSAGE_NUMBERS // max(most_rows * int(np.diff(leaves.start).max()), 1.0)))
