"""Ridge regressions in the leaves of the trees of a round, from sums over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.core import CENTER, INV_SCALE, LeafRows, Leaves
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
from boostbp.trees.sparse import Matrix
from boostbp.trees.tree import Parts, Trees

S = TypeVar("S", "LeafRanges", "LeafSums")
# (features,): 1 where trees must rise, -1 where they must fall, otherwise 0; (0,) without constraints
Signs = NDArray[np.int64]
NOT_MONOTONE: Signs = np.empty(0, np.int64)
# Limit on the path columns of rows of trees whose sums go to the other workers in one message: 256 MB.
ROOM = 1 << 25


@dataclass(frozen=True, slots=True)
class Ridge:
    """Penalty of a leaf regression."""

    # strength: ``w = (sum h phi phi' + reg_lambda I)^-1 sum h phi y``, the paper's printed solution
    reg_lambda: float = 1.0
    penalize_constant: bool = True  # whether the constant term is penalised too, as in the paper
    # Whether to penalise the weights of path features that are centred and scaled in their leaf, so that the model does
    # not depend on the units of the input. False penalises the weights in the user's units, as in the paper.
    standardize: bool = True

    def units(self, scaling: Floats) -> Floats:
        """Return centre, inverse scale and ``u`` of missing values of each path column, (3, path columns).

        Without `standardize`, sums are in the user's units (centre 0, scale 1), and `core.scale_weights` converts the
        solution. In both cases a missing value counts as the leaf's mean.
        """
        zeros, ones = np.zeros(len(scaling)), np.ones(len(scaling))
        if self.standardize:
            return np.stack([scaling[:, CENTER], scaling[:, INV_SCALE], zeros])
        return np.stack([zeros, ones, scaling[:, CENTER]])


@dataclass(frozen=True, slots=True)
class LeafRanges:
    """Range and weighted mean of each path column of each leaf; additive over rows."""

    # (path columns, 4): smallest value, largest value, sum of ``hess * z``, sum of `hess`; missing values left out
    values: Floats

    @classmethod
    def of(cls, rows: LeafRows, leaves: Leaves, hess: Floats) -> LeafRanges:
        """Return the ranges over one block of the rows of a tree."""
        values = np.empty((len(leaves.column), 4))
        core.leaf_ranges(rows, hess, values)
        return cls(values)

    def __add__(self, other: LeafRanges) -> LeafRanges:
        # Two columns are a minimum and a maximum, the other two are sums.
        a, b = self.values, other.values
        values = a + b
        np.minimum(a[:, 0], b[:, 0], out=values[:, 0])
        np.maximum(a[:, 1], b[:, 1], out=values[:, 1])
        return LeafRanges(values)

    @staticmethod
    def over_workers(ranges: Sequence[LeafRanges]) -> list[LeafRanges]:
        """Return the ranges of some trees over the rows of all workers, with one message for ends and one for sums."""
        group = workers()
        if group.is_single:
            return list(ranges)
        # The minimum is the negative of the largest negative value.
        ends = group.max(*(part.values[:, :2] * [-1.0, 1.0] for part in ranges))
        sums = group.sum(*(part.values[:, 2:] for part in ranges))
        return [LeafRanges(np.hstack([end * [-1.0, 1.0], total])) for end, total in zip(ends, sums, strict=True)]

    def scaling(self, *, flat_scale: float = 0.0) -> Floats:
        """Return centre, inverse scale, lower and upper bound of each path column, (path columns, 4).

        ``u = (z - centre) * inverse scale`` has mean 0 and largest size 1, so that one penalty suits all columns, and
        the sums of squares of all terms are similar. A column that is constant or always missing in its leaf has the
        inverse scale `flat_scale`; with 0 it has no effect, ``u = 0``. Nor has a column whose range exceeds float64.
        """
        scaling = np.empty_like(self.values)
        core.scalings(self.values, flat_scale, scaling)
        return scaling


@dataclass(frozen=True, slots=True)
class LeafSums:
    """Normal equations of each leaf. They add up over rows, so blocks, threads and workers need a single operation."""

    gram: Floats  # (sum of terms^2,): ``sum h phi phi'`` of each leaf (lower triangle), one leaf after the other
    moment: Floats  # (sum of terms * outputs,): ``-sum phi grad'`` of each leaf, (terms, outputs)
    n_outputs: int

    @classmethod
    def of(cls, rows: LeafRows, leaves: Leaves, grad: Floats, hess: Floats, units: Floats) -> LeafSums:
        """Return the sums over a block of the rows of a tree, in the units of `Ridge.units`.

        `grad` is (outputs, all rows) float64, C-contiguous, and `hess` (all rows,).
        """
        [degree] = leaves.tree_degree.tolist()
        # A leaf with t terms has t^2 products, and t moments for each output.
        terms = 1 + degree * np.diff(leaves.start)
        gram, moment = np.zeros(terms @ terms), np.zeros(terms.sum() * len(grad))
        core.leaf_sums(rows, units, degree, grad, hess, gram, moment)
        return cls(gram, moment, len(grad))

    def __add__(self, other: LeafSums) -> LeafSums:
        return LeafSums(self.gram + other.gram, self.moment + other.moment, self.n_outputs)

    @staticmethod
    def over_workers(sums: Sequence[LeafSums]) -> list[LeafSums]:
        """Return the sums of some trees over the rows of all workers, in one message."""
        totals = iter(workers().sum(*(array for part in sums for array in (part.gram, part.moment))))
        return [LeafSums(next(totals), next(totals), part.n_outputs) for part in sums]


def solve(sums: LeafSums, leaves: Leaves, ridge: Ridge, learning_rate: float = 1.0) -> Floats:
    """Return the ridge weights of each leaf of a tree, shape as ``sums.moment``, times `learning_rate`.

    ``w = (sum h phi phi' + reg_lambda I)^-1 (-sum phi grad')``, the paper's solution for the target ``-grad / h``.

    With ``reg_lambda=0``, a term that is a linear combination of others in its leaf gets weight 0: a constant or
    repeated column, or any further term if the leaf has too few rows.
    """
    weight, [degree] = sums.moment.copy(), leaves.tree_degree.tolist()
    penalty = ridge.reg_lambda, ridge.penalize_constant
    core.solve_leaves(leaves.start, degree, sums.n_outputs, sums.gram, weight, *penalty, learning_rate)
    return weight


class Prior(NamedTuple):
    """Old leaves with which new ones of the same trees are blended.

    A new regression has the units of the old one, and inputs that are clipped to its range, so their weighted mean is
    the regression with the weighted mean of the weights.
    """

    leaves: Leaves
    share: float  # of the old leaves; the new ones have the rest
    clip: bool

    def of(self, trees: Parts) -> Prior:
        """Return the part for some of the trees."""
        return self._replace(leaves=take_leaves(self.leaves, trees))

    def clip_inputs(self, blocks: Sequence[LeafRows]) -> None:
        """Clip the path columns of rows of one tree to the ranges of their leaves, in place, if the forest clips."""
        center, inverse, *bounds = self.leaves.scaling.T
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = (center + bound / inverse for bound in bounds)
        # A column with the scale 0 does not vary in its leaf, and has no effect.
        ends = np.where(inverse == 0, -np.inf, low), np.where(inverse == 0, np.inf, high)
        for rows in blocks if self.clip else ():
            sizes = np.diff(rows.start).repeat(np.diff(rows.path_start))
            values = rows.values[: sizes.sum()]
            np.clip(values, *(end.repeat(sizes) for end in ends), out=values)

    def blended(self, leaves: Leaves) -> Leaves:
        """Return the blend of the old leaves and new ones."""
        return leaves._replace(weight=self.share * self.leaves.weight + (1.0 - self.share) * leaves.weight)


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
    ranges = [] if priors else LeafRanges.over_workers(list(map(ranges_of, trees, weights)))
    # Without standardisation, a column that is constant in its leaf and the constant term share one weight.
    scalings = priors or [part.scaling(flat_scale=0.0 if ridge.standardize else 1.0) for part in ranges]
    sums = LeafSums.over_workers(list(map(sums_of, trees, weights, scalings)))
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
    shares_rows = n_threads > 1 and len(X) > BLOCK_ROWS
    if bins is None or n_outputs > 1 or len(sign) or shares_rows or prior or not workers().is_single:
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
    order, values = space.lend(len(X), leaves)
    core.fit_trees(
        trees.nodes, trees.tree_split, leaves, bins.with_input(X, Z), grad, hess, ridge.reg_lambda,
        ridge.penalize_constant, ridge.standardize, learning_rate, BLOCK_ROWS, order, values, leaf, out,
    )  # fmt: skip
    space.take_back(order, values)
    return leaves


def _trees_at_once(n_rows: int, leaves: Leaves) -> int:
    """Return how many trees are fitted together: in a group, as many as `ROOM` allows, otherwise one."""
    group = workers()
    if group.is_single or len(leaves.tree_degree) == 1:
        return 1
    [most_rows] = group.max(float(n_rows))  # the number must be the same on all workers
    return max(1, int(ROOM // max(most_rows * int(np.diff(leaves.start).max()), 1.0)))
