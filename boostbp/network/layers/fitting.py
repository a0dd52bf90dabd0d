"""The running fit of a layer: what its trees add up to; its base, and the native leaves of a library."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from boostbp import core
from boostbp.backends.base import Grower, LinearLeaves, NativeGrower
from boostbp.backends.capabilities import check_leaves
from boostbp.core import Leaves
from boostbp.network.layers.bound import BoundInput, LossObjective, Objective
from boostbp.runtime import interrupts, threads
from boostbp.runtime.arrays import Floats, read_only
from boostbp.runtime.group import workers
from boostbp.trees.forest import RUN_SETTINGS, Forest, Run
from boostbp.trees.leaves import (
    add_to,
    concat_leaves,
    leaves_of_tree,
    rows_by_leaf,
    with_missing_leaves,
)
from boostbp.trees.ridge import LeafRanges
from boostbp.trees.rounds import Widths
from boostbp.trees.tree import Tree, Trees, leaf_type
from boostbp.trees.tree_fits import LeafFits

# Limit on the bytes of leaf numbers that a layer keeps for its backward pass. Arbitrary: 100 trees of up to 256 leaves
# reach it with ten million rows.
MOST_TRACE = 1 << 30


class RunningFit:
    """The running fit of a layer, and what its rounds share; each method adds the values of its trees to `values`."""

    def __init__(self, bound: BoundInput, objective: Objective, n_threads: int, seed: int) -> None:
        settings, n_rows, n_outputs = bound.settings, len(bound.Z), objective.n_outputs
        self.bound, self.objective, self.n_threads, self.seed = bound, objective, n_threads, seed
        n_trees = bound.n_base + settings.n_estimators * (1 if settings.growth.multi_output else n_outputs)
        n_splits = settings.growth.leaves - 1
        if settings.leaves == "native":  # each leaf may get a further leaf for each column with missing values
            n_splits += settings.growth.leaves * min(n_splits, bound.table.X.shape[1])
        dtype = leaf_type(n_splits)
        self.most_leaves = np.iinfo(dtype).max + 1  # whose numbers the type holds
        self.keeps_leaf = keeps_trace(n_trees, n_rows, dtype)
        # the leaf of each row under each tree, (trees, rows); empty if leaf numbers are not kept
        self.leaf: NDArray[np.integer] = np.empty((n_trees if self.keeps_leaf else 0, n_rows), dtype)
        self.values = np.zeros((n_outputs, n_rows))
        self.rng = np.random.default_rng(seed)  # draws the directions along which trees of all outputs are grown
        # bins are computed before threads start
        bins, sign = bound.column_bins if settings.n_estimators else None, np.array(settings.growth.monotone, np.int64)
        self.fits = LeafFits(
            bound.table.X, bound.Z, bins, settings.basis, settings.ridge, settings.learning_rate, sign
        )  # fmt: skip
        self.threads_of_outputs = n_threads if workers().is_single else 1  # only one thread may sum over a group
        self.parts: list[Forest] = []  # the base, then the trees of the first round by output, of the second, ...

    @property
    def forest(self) -> Forest:
        """The base and all rounds in one forest."""
        parts = self.parts or [self.part_of(Trees.stumps(0), concat_leaves([]))]
        forest, settings = Forest.concat(parts), self.bound.settings
        degree = settings.basis.powers if settings.basis.columns_per_feature else 0
        known = settings.leaves == "refit" and not settings.growth.multi_output and forest.n_trees
        kept = {name: getattr(settings, name) for name in RUN_SETTINGS}
        run = Run(forest.n_trees, self.bound.n_base, 1.0, degree, **kept)
        return replace(forest, n_base=run.n_base, runs=(run,) if known else ())

    @property
    def widths(self) -> Widths:
        """The limits of the size of a tree."""
        table, growth, basis = self.bound.table, self.bound.settings.growth, self.bound.settings.basis
        splits = max(min(growth.leaves, len(table.X)), 2) - 1
        depth = growth.max_depth if growth.max_depth >= 0 else splits
        columns = min(splits, depth, table.X.shape[1] - len(table.categorical)) * basis.columns_per_feature

        def words() -> int:
            return int(np.nanmax(table.X[:, list(table.categorical)], initial=-32.0)) // 32 + 1

        return Widths(splits, columns, table.once("words of a set", words))

    def part_of(self, trees: Trees, leaves: Leaves) -> Forest:
        """Return some trees of the layer, with their leaves."""
        settings, n_features = self.bound.settings, self.bound.table.X.shape[1]
        return Forest(trees, leaves, n_features, self.objective.n_outputs, settings.basis, settings.clip)

    def fit_base(self) -> None:
        """Fit one ridge regression for all outputs; for a curved loss in steps, as one Newton step is too long."""
        everything = slice(0, self.objective.n_outputs)
        grad, hess = self.objective.gradient(self.values.T, everything)
        self.objective.check(self.values.T, everything, grad, hess, 0)
        penalty, objective = self.bound.settings.base_lambda, self.objective
        if isinstance(objective, LossObjective) and objective.curved:
            base = self.bound.base.minimise(lambda fit: objective.derivatives(fit)[:2], hess, penalty)
        else:
            # The Newton step of each row, -g / h: the least squares fit to it with weights h minimises the expansion
            # of the loss to second order. A row without weight has hessian 0 and takes no step.
            with np.errstate(divide="ignore", invalid="ignore"):
                target = np.where(hess > 0, -grad / hess, 0.0)
            base = self.bound.base.fit(target, penalty)
        if len(sign := self.fits.sign):
            # Constrained columns are left to the trees. Where the function is less steep than the straight line of the
            # base, trees with slopes of the required sign could not correct it.
            base.weight[1:][sign[base.column] != 0] = 0.0
        trees, leaf = self.bound.base.U.trees, self.bound.base.U.leaf
        self.leaf[: self.bound.n_base] = leaf[: len(self.leaf)]
        out = np.zeros((len(self.bound.Z), self.objective.n_outputs))
        add_to(out, base, leaf, self.bound.Z)
        self.values += out.T
        self.parts.append(self.part_of(trees, base))

    def fork(self, outputs: slice) -> Grower:
        """Return a grower for some outputs, with its own random stream."""
        return self.bound.grower.fork(outputs, self.seed + outputs.start)

    def sampled(self, number: int) -> NDArray[np.bool_]:
        """Return which rows are sampled in a round, (rows,)."""
        drawn = [np.empty(0)]
        for first, count in self.bound.runs:
            bits = np.random.PCG64((self.seed, number))
            bits.advance(first)  # a row draws the same number, however workers share the table
            drawn.append(np.random.Generator(bits).random(count))
        return np.concatenate(drawn) < self.bound.settings.subsample

    def native_leaves(self) -> None:
        """Run all rounds with the library's own linear leaves, output by output."""
        number = self.bound.n_base
        for part, leaf in threads.parallel_map(self._native, range(self.objective.n_outputs), self.n_threads):
            if len(leaf):
                self.parts.append(part)
                self.leaf[number : number + len(leaf)] = leaf[: len(self.leaf)]
                number += len(leaf)

    def _native(self, output: int) -> tuple[Forest, NDArray[np.integer]]:
        settings, bound, outputs = self.bound.settings, self.bound, slice(output, output + 1)
        grower = cast("NativeGrower", self.fork(outputs))
        start = self.values[outputs].T.copy()

        def gradient(score: Floats) -> tuple[Floats, Floats]:
            interrupts.check()
            grad, hess = self.objective.gradient(start + score.reshape(-1, 1), outputs)
            return grad.ravel(), read_only(hess.ravel())  # a view of the weights

        # The library's own score starts from 0, so the running fit so far, such as the base, is added to it.
        native = grower.boost(gradient, settings.n_estimators, settings.learning_rate, settings.ridge.reg_lambda)
        members = [self._from_native(linear) for linear in native]
        trees, leaves = Trees.concat([tree for tree, _ in members]), concat_leaves([leaves for _, leaves in members])
        check_leaves(trees, self.most_leaves, settings.growth)
        leaf = trees.route(bound.table.X)
        forest = Forest(trees, leaves, bound.table.X.shape[1], 1, settings.basis, clip=False)
        self.values[output] += forest.evaluate(bound.table.X, leaf)[:, 0]
        leaves.tree_output[:, 0] = output
        return self.part_of(trees, leaves), leaf

    def _from_native(self, linear: LinearLeaves) -> tuple[Tree, Leaves]:
        """Return the library's linear leaves, with our scaling and further leaves for missing values."""
        X, w = self.bound.table.X, np.insert(linear.coeff, linear.start[:-1], linear.const)
        leaves = leaves_of_tree(linear.start, linear.features, np.empty((0, 4)), w)  # scaled below
        blocks = rows_by_leaf(linear.tree, leaves, X, X, self.fits.bins, np.empty(len(X), np.int32), self.fits.space)
        ranges = [LeafRanges.of(rows, leaves, self.bound.weight) for rows in blocks]
        for rows in blocks:
            self.fits.space.take_back(rows.order, rows.values)
        # The library's leaves are const + coeff x; ours are in u = (x - center) / scale, clipped to the training range.
        scaling = sum(ranges[1:], start=ranges[0]).scaling(flat_scale=1.0)
        core.scale_weights(leaves.start, 1, 1, scaling, w)
        return with_missing_leaves(linear.tree, leaves._replace(scaling=scaling), linear.missing)


def keeps_trace(n_trees: int, n_rows: int, dtype: DTypeLike) -> bool:
    """Return whether leaf numbers of rows are kept for the backward pass; otherwise it routes the rows again."""
    return n_trees * n_rows * np.dtype(dtype).itemsize <= MOST_TRACE
