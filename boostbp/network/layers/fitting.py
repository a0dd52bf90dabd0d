"""The rounds of one layer fit: gradients, trees, leaf regressions, running fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from boostbp import core
from boostbp.backends.base import FEW_ROWS, OUTPUTS_PER_CALL, Grower, LinearLeaves, NativeGrower
from boostbp.backends.capabilities import accepted_trees, check_leaves, check_streams
from boostbp.core import Leaves
from boostbp.network.layers.bound import BoundInput, LossObjective, Objective
from boostbp.network.layers.cheaper_growth import along, random_direction
from boostbp.network.layers.core_rounds import boosted_in_core
from boostbp.runtime import interrupts, threads
from boostbp.runtime.arrays import Floats, read_only, refuse_writes
from boostbp.runtime.group import SAMPLE, workers
from boostbp.trees.forest import RUN_SETTINGS, Forest, Run
from boostbp.trees.leaves import (
    add_to,
    concat_leaves,
    leaves_of_tree,
    rows_by_leaf,
    with_missing_leaves,
)
from boostbp.trees.ridge import LeafRanges
from boostbp.trees.rounds import UNSAMPLED, fit_round
from boostbp.trees.tree import Tree, Trees, leaf_type
from boostbp.trees.tree_fits import LeafFits

# Limit on the bytes of leaf numbers that a layer keeps for its backward pass. Arbitrary: 100 trees of up to 256 leaves
# reach it with ten million rows.
MOST_TRACE = 1 << 30
# A round, or a refit, is halved down to this share of it at most, which takes 20 halvings. Arbitrary.
LEAST_STEP_SHARE = 1e-6
# Seconds between two looks at the clock, and the most rounds of a call between them. Arbitrary.
LOOK, MOST_AT_ONCE = 0.1, 100


class Rounds:
    """The rounds of one fit; each method adds its trees' values to the `running` fit."""

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
        self.running = np.zeros((n_outputs, n_rows))
        self.rng = np.random.default_rng(seed)  # draws the directions along which trees of all outputs are grown
        # bins are computed before threads start
        bins, sign = bound.column_bins if settings.n_estimators else None, np.array(settings.growth.monotone, np.int64)
        self.fits = LeafFits(
            bound.table.X, bound.Z, bins, settings.basis, settings.ridge, settings.learning_rate, sign
        )  # fmt: skip
        self.threads_of_outputs = n_threads if workers().is_single else 1  # only one thread may sum over a group
        self.parts: list[Forest] = []  # the base, then the trees of the first round by output, of the second, ...
        self.over: Callable[[], bool] | None = None  # whether time is up, if the layer may end before its last round
        self.begun = time.perf_counter()

    def is_over(self, n_grown: int) -> bool:
        """Return whether the layer ends after these rounds."""
        return bool(n_grown and self.over and self.over())

    def until_look(self, n_grown: int) -> int:
        """Return the number of rounds until the next look at the clock."""
        if self.over is None:
            return self.bound.settings.n_estimators
        return max(1, int(n_grown * LOOK / max(time.perf_counter() - self.begun, LOOK / MOST_AT_ONCE)))

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

    def part_of(self, trees: Trees, leaves: Leaves) -> Forest:
        """Return some trees of the layer, with their leaves."""
        settings, n_features = self.bound.settings, self.bound.table.X.shape[1]
        return Forest(trees, leaves, n_features, self.objective.n_outputs, settings.basis, settings.clip)

    def fit_base(self) -> None:
        """Fit one ridge regression for all outputs; for a curved loss in steps, as one Newton step is too long."""
        everything = slice(0, self.objective.n_outputs)
        grad, hess = self.objective.gradient(self.running.T, everything)
        self.objective.check(self.running.T, everything, grad, hess, 0)
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
        self.running += out.T
        self.parts.append(self.part_of(trees, base))

    def groups(self) -> list[list[slice]]:
        """Return groups of outputs, with one library call for each group, in lists that can be boosted in parallel.

        Larger groups save calls, smaller ones occupy more threads. If the library draws random numbers, the groups do
        not depend on the number of threads. If the gradients of outputs depend on each other, or rounds of a curved
        loss may be shortened, all groups are in one list and wait for each other after each round.
        """
        n_rows, n_outputs = len(self.bound.Z), self.objective.n_outputs
        able, growth = self.bound.capabilities, self.bound.settings.growth
        if growth.multi_output:
            n_groups = 1
        elif able.draws(growth):
            # Each group has its own random stream, so the number of groups must not depend on the threads.
            n_groups = able.streams(int(workers().sum(n_rows)[0]), n_outputs, growth)
            check_streams(n_groups, n_outputs)
        elif n_rows > SAMPLE and workers().is_single:
            n_groups = n_outputs  # joint calls save less time than the library's arrays of all outputs cost memory
        else:
            n_groups = min(self.threads_of_outputs, -(-n_outputs // (1 if n_rows > FEW_ROWS else OUTPUTS_PER_CALL)))
        ends = [n_outputs * k // n_groups for k in range(n_groups + 1)]
        groups = [slice(*ends[k : k + 2]) for k in range(n_groups) if ends[k] < ends[k + 1]]
        independent = self.objective.separable and not self.objective.curved
        return [[outputs] for outputs in groups] if independent else [groups]

    def boost(self, groups: Sequence[slice]) -> list[list[Forest]]:
        """Return the trees of some groups of outputs for each round, one tree per output or one for all."""
        n_rounds, curved = self.bound.settings.n_estimators, self.objective.curved
        first, outputs = groups[0].start, slice(groups[0].start, groups[-1].stop)
        pieces = [(self._fork(group), group, slice(group.start - first, group.stop - first)) for group in groups]
        grown = boosted_in_core(self, pieces[0][0], outputs) if len(pieces) == 1 else []
        n_outputs = outputs.stop - outputs.start
        n_grown = sum(part.n_trees for part in grown) // n_outputs
        rounds = [[part] for part in grown]
        if n_outputs < self.objective.n_outputs:  # trees of other outputs come between the rounds
            rounds = [
                [part.take(slice(at, at + n_outputs))] for part in grown for at in range(0, part.n_trees, n_outputs)
            ]
        if n_grown == n_rounds or self.is_over(n_grown):
            return rounds
        loss, grad, hess = self.derivatives(outputs)
        before = self.running.copy() if curved else self.running
        n_threads = min(self.threads_of_outputs, len(pieces))
        with threads.Team(n_threads) as team:
            for number in range(n_grown, n_rounds):
                if self.is_over(number):
                    break
                # Algorithm 1: a tree is fitted to -r, the negative gradient, and added with the factor beta.
                if curved:
                    np.copyto(before, self.running)
                grow = partial(self._round, number, grad, hess)
                parts = team.map(grow, pieces)
                share = 1.0
                if curved or number + 1 < n_rounds:
                    share, (loss, grad, hess) = self.backtracked(before, loss, outputs)
                # A shortened round has the same trees with scaled leaf values.
                rounds.append(parts if share == 1.0 else [part.times(share) for part in parts])
        return rounds

    def _fork(self, outputs: slice) -> Grower:
        """Return a grower for some outputs, with its own random stream."""
        return self.bound.grower.fork(outputs, self.seed + outputs.start)

    def derivatives(self, outputs: slice) -> tuple[float, Floats, Floats]:
        """Return the loss of all rows (0 if it is not curved), gradient and hessian of the running fit."""
        if isinstance(self.objective, LossObjective) and self.objective.curved:
            loss, grad, hess = self.objective.derivatives(self.running.T)
            return workers().sum(loss)[0], grad, hess
        return 0.0, *self.objective.gradient(self.running[outputs].T, outputs)

    def backtracked(self, before: Floats, lowest: float, outputs: slice) -> tuple[float, tuple[float, Floats, Floats]]:
        """Halve a round of Newton steps until it does not raise a curved loss; return its share, and derivatives."""
        now, share = self.derivatives(outputs), 1.0
        if now[0] <= lowest or self.bound.settings.prior:
            return share, now
        # A full Newton step may raise a loss whose hessian varies: halve the step until the loss does not rise.
        step = self.running - before
        while share and not now[0] <= lowest:  # also true for NaN; `share` becomes 0 in the end
            share = share / 2 if share > LEAST_STEP_SHARE else 0.0
            np.add(before, share * step, out=self.running)
            now = self.derivatives(outputs)
        if isinstance(self.objective, LossObjective) and np.isnan(now[0]):
            self.objective.refuse_value(self.running.T)
        return share, now

    def _round(self, number: int, grad: Floats, hess: Floats, piece: tuple[Grower, slice, slice]) -> Forest:
        """Grow one round of a group of outputs, fit its leaves, and add their values to the running fit.

        A piece is a grower, the numbers of its outputs, and those of their columns in `grad` and `hess`.
        """
        (grower, outputs, columns), growth = piece, self.bound.settings.growth
        grad, hess = grad[:, columns], hess[:, columns]
        self.objective.check(self.running[outputs].T, outputs, grad, hess, number)
        interrupts.check()
        n_trees, derivatives, weight = outputs.stop - outputs.start, (grad, hess), hess
        if growth.multi_output:
            # All outputs of a row share one hessian, the largest: no output then steps further than Newton's step.
            grad, hess, n_trees = np.ascontiguousarray(grad), np.ascontiguousarray(hess), 1
            weight, derivatives = hess.max(axis=1)[:, None], (grad, hess)
            # Without vector leaves, which no library has on categories, the structure is grown on one column.
            if not self.bound.capabilities.vector_leaf or self.bound.table.categorical:
                derivatives = along(grad, random_direction(grad.shape[1], self.rng)), weight
        with refuse_writes("the backend writes into grad or hess: work on a copy."):
            grown = grower.grow(*map(read_only, self.of_sampled_rows(number, *derivatives)))
        trees = accepted_trees(grown, n_trees, self.bound.table, growth)
        check_leaves(trees, self.most_leaves, growth)
        return self.part_of(trees, self._fit_leaves(number, trees, outputs, grad, weight))

    def _fit_leaves(self, number: int, trees: Trees, outputs: slice, grad: Floats, weight: Floats) -> Leaves:
        """Fit the leaves of trees that serve one output each, or of one that serves all; `weight` is (rows, trees)."""
        bound, settings, n_outputs = self.bound, self.bound.settings, self.objective.n_outputs
        # Outputs are shared among threads first, and the rows of each tree among the remaining threads.
        n_groups = -(-n_outputs // (outputs.stop - outputs.start))
        n_threads = max(1, self.n_threads // min(n_groups, self.threads_of_outputs))
        # Trees come in the order of rounds and, within a round, of outputs.
        per_tree = (outputs.stop - outputs.start) // len(trees)
        first = bound.n_base + (number * n_outputs + outputs.start) // per_tree
        kept = self.leaf[first : first + len(trees)]
        prior = settings.prior and settings.prior.of(slice(first, first + len(trees)))
        leaf = kept if self.keeps_leaf else np.empty((len(trees), len(bound.Z)), kept.dtype)
        derivatives, out = (_by_output(grad), _by_output(weight)), self.running[outputs]
        leaves = fit_round(trees, self.fits, *derivatives, leaf=leaf, out=out, n_threads=n_threads, prior=prior)
        if outputs.start:
            leaves.tree_output[:, 0] += outputs.start
        return leaves

    def of_sampled_rows(self, number: int, grad: Floats, hess: Floats) -> tuple[Floats, Floats]:
        """Return gradients and hessians, (rows, columns), with negligible weight for rows that are not sampled.

        The sample of a round is the same for all outputs, so it does not depend on how outputs share threads.
        """
        if self.bound.settings.subsample == 1.0:
            return grad, hess
        weight = np.where(self.sampled(number), 1.0, UNSAMPLED)[:, None]
        return grad * weight, hess * weight

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
        grower = cast("NativeGrower", self._fork(outputs))
        start = self.running[outputs].T.copy()

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
        self.running[output] += forest.evaluate(bound.table.X, leaf)[:, 0]
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


def _by_output(columns: Floats) -> Floats:
    """Return (rows, outputs) as contiguous (outputs, rows), or (1, rows) if all outputs share a column in memory."""
    shared = columns.strides[1] == 0 and len(columns) > 0  # strides mean nothing without rows
    rows = columns[:, :1].T if shared else columns.T
    return rows if rows.flags.carray and rows.dtype == np.float64 else np.require(rows, np.float64, ["C", "W"])
