"""The rounds of a layer: one loop, in which the core boosts several rounds by one call, or each is grown by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import FEW_ROWS, OUTPUTS_PER_CALL, CoreCalls, Grower, KnownTrees, core_calls_of
from boostbp.backends.capabilities import accepted_trees, check_leaves, check_streams
from boostbp.core import Leaves
from boostbp.network.layers.bound import LossObjective
from boostbp.network.layers.cheaper_growth import along, random_direction
from boostbp.network.layers.fitting import RunningFit
from boostbp.runtime import interrupts, threads
from boostbp.runtime.arrays import Floats, read_only, refuse_writes
from boostbp.runtime.group import SAMPLE, workers
from boostbp.trees.forest import Forest
from boostbp.trees.rounds import UNSAMPLED, Derivatives, GrowRound, boost_rounds, fit_round
from boostbp.trees.tree import Trees
from boostbp.trees.tree_fits import by_output

# A round, or a refit, is halved down to this share of it at most, which takes 20 halvings. Arbitrary.
LEAST_STEP_SHARE = 1e-6
# Seconds between two looks at the clock, and the most rounds of a call between them. Arbitrary.
LOOK, MOST_AT_ONCE = 0.1, 100
# Limits of one call of the core; arbitrary.
TREE_ROWS = 1 << 22  # leaf numbers: some tenths of a second, after which an interrupt is seen
PATH_COLUMNS = 1 << 20  # of all leaves: 36 MB; and words of category sets
VALUES = 1 << 25  # path columns of all rows, of which a tree fills what it needs: 256 MB


def groups_of(fit: RunningFit) -> list[list[slice]]:
    """Return groups of outputs, with one library call for each group, in lists that can be boosted in parallel.

    Larger groups save calls, smaller ones occupy more threads. If the library draws random numbers, the groups do not
    depend on the number of threads. If the gradients of outputs depend on each other, or rounds of a curved loss may be
    shortened, all groups are in one list and wait for each other after each round.
    """
    n_rows, n_outputs = len(fit.bound.Z), fit.objective.n_outputs
    able, growth = fit.bound.capabilities, fit.bound.settings.growth
    if growth.multi_output:
        n_groups = 1
    elif able.draws(growth):
        # Each group has its own random stream, so the number of groups must not depend on the threads.
        n_groups = able.streams(int(workers().sum(n_rows)[0]), n_outputs, growth)
        check_streams(n_groups, n_outputs)
    elif n_rows > SAMPLE and workers().is_single:
        n_groups = n_outputs  # joint calls save less time than the library's arrays of all outputs cost memory
    else:
        n_groups = min(fit.threads_of_outputs, -(-n_outputs // (1 if n_rows > FEW_ROWS else OUTPUTS_PER_CALL)))
    ends = [n_outputs * k // n_groups for k in range(n_groups + 1)]
    groups = [slice(*ends[k : k + 2]) for k in range(n_groups) if ends[k] < ends[k + 1]]
    independent = fit.objective.separable and not fit.objective.curved
    return [[outputs] for outputs in groups] if independent else [groups]


class Boosting:
    """The rounds of some groups of outputs; each adds the values of its trees to the running fit.

    The core boosts several rounds by one call on a dense input, with one tree for each output, on one worker, if the
    grower has `CoreGrower.core_calls`. Each other round is grown by `Grower.grow`. Both give the same bits.
    """

    def __init__(self, fit: RunningFit, groups: Sequence[slice], over: Callable[[], bool] | None = None) -> None:
        self.fit, self.settings, self.objective = fit, fit.bound.settings, fit.objective
        self.outputs = slice(groups[0].start, groups[-1].stop)
        self.running = fit.values[self.outputs]  # (outputs, rows)
        self.growers = [(fit.fork(outputs), outputs) for outputs in groups]
        is_joint = len(groups) == 1 and not self.settings.growth.multi_output
        self.in_core = is_joint and fit.fits.in_core(fit.n_threads, self.settings.prior)
        self.arrays: Derivatives | None = None  # of the next round, in memory that the core reads
        # of the running fit, if known: the loss, and its derivatives, (rows, outputs)
        self.now: tuple[float, Floats, Floats] | None = None
        # before the round: the loss, and the running fit if the round may be shortened
        self.loss, self.before = 0.0, self.running.copy() if self.objective.curved else self.running
        self.parts: list[Forest] = []  # trees round by round
        self.n_grown = 0
        self.over, self.begun = over, time.perf_counter()  # whether time is up; when the rounds began

    def boost(self) -> list[Forest]:
        """Boost all rounds, or the first one and those until ``over()``; return their trees, round by round."""
        with threads.Team(min(self.fit.threads_of_outputs, len(self.growers))) as team:
            while self.n_grown < self.settings.n_estimators and not (self.n_grown and self.over and self.over()):
                interrupts.check()
                self.in_core = self.in_core and self.boost_in_core()
                if not self.in_core:
                    self.boost_one(team)
        return self.parts

    def _begin_round(self, number: int) -> tuple[Floats, Floats]:
        """Return the checked gradient and hessian of a round, (rows, outputs)."""
        self.loss, grad, hess = self.now or self.derivatives()
        self.now = None
        self.objective.check(self.running.T, self.outputs, grad, hess, number)
        if self.objective.curved:
            np.copyto(self.before, self.running)
        return grad, hess

    def _end_round(self) -> float:
        """Halve a round of Newton steps until it does not raise a curved loss, and return its share."""
        share = 1.0
        if not self.objective.curved:
            return share
        self.now = self.derivatives()
        if self.now[0] <= self.loss or self.settings.prior:
            return share
        # A full Newton step may raise a loss whose hessian varies: halve the step until the loss does not rise.
        step = self.running - self.before
        while share and not self.now[0] <= self.loss:  # also true for NaN; `share` becomes 0 in the end
            share = share / 2 if share > LEAST_STEP_SHARE else 0.0
            np.add(self.before, share * step, out=self.running)
            self.now = self.derivatives()
        if isinstance(self.objective, LossObjective) and np.isnan(self.now[0]):
            self.objective.refuse_value(self.running.T)
        return share

    def derivatives(self) -> tuple[float, Floats, Floats]:
        """Return the loss of all rows (0 if it is not curved), gradient and hessian of the running fit."""
        if isinstance(self.objective, LossObjective) and self.objective.curved:
            loss, grad, hess = self.objective.derivatives(self.running.T)
            return workers().sum(loss)[0], grad, hess
        return 0.0, *self.objective.gradient(self.running.T, self.outputs)

    # A round that is grown by itself

    def boost_one(self, team: threads.Team) -> None:
        """Grow a round, fit its leaves, and add their values to the running fit, in one thread for each group."""
        # Algorithm 1: a tree is fitted to -r, the negative gradient, and added with the factor beta.
        grow = partial(self._grow, *self._begin_round(self.n_grown))
        parts = team.map(grow, self.growers)
        share = self._end_round()
        # A shortened round has the same trees with scaled leaf values.
        self.parts += parts if share == 1.0 else [part.times(share) for part in parts]
        self.n_grown += 1

    def _grow(self, grad: Floats, hess: Floats, group: tuple[Grower, slice]) -> Forest:
        """Grow the trees of a group of outputs, and fit their leaves."""
        (grower, outputs), growth = group, self.settings.growth
        columns = slice(outputs.start - self.outputs.start, outputs.stop - self.outputs.start)
        grad, hess = grad[:, columns], hess[:, columns]
        interrupts.check()
        n_trees, derivatives, weight = outputs.stop - outputs.start, (grad, hess), hess
        if growth.multi_output:
            # All outputs of a row share one hessian, the largest: no output then steps further than Newton's step.
            grad, hess, n_trees = np.ascontiguousarray(grad), np.ascontiguousarray(hess), 1
            weight, derivatives = hess.max(axis=1)[:, None], (grad, hess)
            # Without vector leaves, which no library has on categories, the structure is grown on one column.
            if not self.fit.bound.capabilities.vector_leaf or self.fit.bound.table.categorical:
                derivatives = along(grad, random_direction(grad.shape[1], self.fit.rng)), weight
        with refuse_writes("the backend writes into grad or hess: work on a copy."):
            grown = grower.grow(*map(read_only, self._of_sampled_rows(self.n_grown, *derivatives)))
        trees = self._accepted(grown, n_trees)
        return self.fit.part_of(trees, self._fit_leaves(trees, outputs, grad, weight))

    def _accepted(self, grown: Sequence[Trees], n_trees: int) -> Trees:
        """Return the trees of a round after checks."""
        trees = accepted_trees(grown, n_trees, self.fit.bound.table, self.settings.growth)
        check_leaves(trees, self.fit.most_leaves, self.settings.growth)
        return trees

    def _fit_leaves(self, trees: Trees, outputs: slice, grad: Floats, weight: Floats) -> Leaves:
        """Fit the leaves of trees that serve one output each, or of one that serves all; `weight` is (rows, trees)."""
        fit, prior, n_outputs = self.fit, self.settings.prior, self.objective.n_outputs
        # Outputs are shared among threads first, and the rows of each tree among the remaining threads.
        n_groups = -(-n_outputs // (outputs.stop - outputs.start))
        n_threads = max(1, fit.n_threads // min(n_groups, fit.threads_of_outputs))
        # Trees come in the order of rounds and, within a round, of outputs.
        per_tree = (outputs.stop - outputs.start) // len(trees)
        first = fit.bound.n_base + (self.n_grown * n_outputs + outputs.start) // per_tree
        places = slice(first, first + len(trees))
        leaf = fit.leaf[places] if fit.keeps_leaf else np.empty((len(trees), len(fit.bound.Z)), fit.leaf.dtype)
        leaves = fit_round(
            trees, fit.fits, by_output(grad), by_output(weight), leaf=leaf, out=fit.values[outputs],
            n_threads=n_threads, prior=prior and prior.of(places),
        )  # fmt: skip
        if outputs.start:
            leaves.tree_output[:, 0] += outputs.start
        return leaves

    def _of_sampled_rows(self, number: int, grad: Floats, hess: Floats) -> tuple[Floats, Floats]:
        """Return gradients and hessians, (rows, columns), with negligible weight for rows that are not sampled.

        The sample of a round is the same for all outputs, so it does not depend on how outputs share threads.
        """
        if self.settings.subsample == 1.0:
            return grad, hess
        weight = np.where(self.fit.sampled(number), 1.0, UNSAMPLED)[:, None]
        return grad * weight, hess * weight

    # Rounds that the core boosts

    def boost_in_core(self) -> bool:
        """Boost some rounds by one call of the core; return whether it may boost more of them."""
        fit, first, shares = self.fit, self.n_grown, list[float]()
        with core_calls_of(self.growers[0][0], len(self.running)) as calls:
            n_rounds = self._rounds_of_call(calls) if calls else 0
            if not calls or n_rounds < 1:
                return False
            grown_by, of_loss = self._grown_by(calls, n_rounds), self._of_loss(calls)
            is_sampled = self.settings.subsample < 1.0 and not (calls.along or isinstance(grown_by, Trees))
            leaf = np.empty((n_rounds * len(self.running), len(fit.bound.Z)), fit.leaf.dtype)
            trees, leaves, fault = boost_rounds(
                grown_by, None if of_loss.squared else partial(self._derive, calls, shares), fit.fits, of_loss,
                sampled=np.array([fit.sampled(first + k) for k in range(n_rounds)]) if is_sampled else None,
                most=fit.widths, leaf=leaf, out=self.running,
            )  # fmt: skip
            if fault:
                derivatives = (of_loss.grad, of_loss.hess) if of_loss.shared is None else of_loss.shared
                calls.refuse(fault, *derivatives)
            n_rounds = len(trees) // len(self.running)
            self.n_grown = first + n_rounds
            if not of_loss.squared and len(shares) < n_rounds:
                with calls.pause():
                    shares.append(self._end_round())
        self._keep(first, trees, leaves, leaf, shares)
        if of_loss.squared and isinstance(grown_by, Trees) and self.n_grown == self.settings.n_estimators:
            self._begin_round(self.n_grown - 1)  # the core refuses what is not finite where it grows trees
        return not fault

    def _rounds_of_call(self, calls: CoreCalls) -> int:
        """Return the number of rounds of a call; 0 if none fits."""
        most, (n_outputs, n_rows) = self.fit.widths, self.running.shape
        n_rounds = TREE_ROWS // (n_outputs * max(1, n_rows))
        if isinstance(calls.grown_by, KnownTrees):
            n_rounds = max(1, n_rounds)
        elif n_rows * most.columns > VALUES:
            return 0
        else:
            n_rounds = min(n_rounds, PATH_COLUMNS // (n_outputs * max(1, most.of_tree)))
        if self.over:  # until the next look at the clock
            seconds = max(time.perf_counter() - self.begun, LOOK / MOST_AT_ONCE)
            n_rounds = min(n_rounds, max(1, int(self.n_grown * LOOK / seconds)))
        return min(n_rounds, calls.n_rounds, self.settings.n_estimators - self.n_grown)

    def _grown_by(self, calls: CoreCalls, n_rounds: int) -> tuple[int, ...] | GrowRound | Trees:
        """Return what grows the trees of some rounds, or these trees."""
        if isinstance(calls.grown_by, tuple):
            return calls.grown_by
        if isinstance(calls.grown_by, KnownTrees):
            trees = calls.grown_by.of_rounds(self.n_grown, self.n_grown + n_rounds)
            check_leaves(trees, self.fit.most_leaves, self.settings.growth)
            return trees
        grow = calls.grown_by

        def grown(grad: NDArray[np.float32], hess: NDArray[np.float32]) -> Trees:
            interrupts.check()
            return self._accepted(grow(grad, hess), len(grad))

        return grown

    def _of_loss(self, calls: CoreCalls) -> Derivatives:
        """Return the derivatives of the next round, in the same memory for all rounds."""
        if not self.arrays:
            grad, shared = np.empty(self.running.shape), np.empty((2, 1, len(self.fit.bound.Z)))
            squared = None if calls.along else self.objective.squared(self.outputs)
            hess = self.objective.weight[None] if squared else np.empty_like(grad)
            self.arrays = Derivatives(grad, hess, shared if calls.along else None, squared)
        if not self.arrays.squared:
            with calls.pause():
                self._write(self.n_grown, calls)
        return self.arrays

    def _write(self, number: int, calls: CoreCalls) -> None:
        """Write the derivatives of a round to the memory that the core reads."""
        assert self.arrays
        grad, hess = self._begin_round(number)
        np.copyto(self.arrays.grad, grad.T)
        np.copyto(self.arrays.hess, hess.T)
        if calls.along and self.arrays.shared is not None:
            np.copyto(self.arrays.shared[:, 0], np.hstack(calls.along(*self._of_sampled_rows(number, grad, hess))).T)

    def _derive(self, calls: CoreCalls, shares: list[float], number: int) -> None:
        """End a round within a call of the core, and begin the next one, which has this number in the call."""
        interrupts.check()
        with calls.pause():
            shares.append(self._end_round())
            self._write(self.n_grown + number, calls)

    def _keep(
        self, first: int, trees: Trees, leaves: Leaves, leaf: NDArray[np.integer], shares: Sequence[float]
    ) -> None:
        """Keep the trees of new rounds, the leaves of rows, and leaf values times the share of each round."""
        fit, n_outputs = self.fit, len(self.running)
        if fit.keeps_leaf:
            by_round = fit.leaf[fit.bound.n_base :].reshape(-1, self.objective.n_outputs, leaf.shape[1])
            new = leaf[: len(trees)].reshape(-1, n_outputs, leaf.shape[1])
            by_round[first : self.n_grown, self.outputs] = new
        leaves.tree_output[:, 0] += self.outputs.start
        first_weight = leaves.weight_start[leaves.tree_leaf[::n_outputs]]
        for number, share in enumerate(shares):
            leaves.weight[first_weight[number] : first_weight[number + 1]] *= share
        self.parts.append(fit.part_of(trees, leaves))
