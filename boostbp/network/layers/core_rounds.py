"""Rounds that the core boosts itself, with the bits of single rounds: few calls, and little Python between them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.backends.base import CoreCalls, Grower, KnownTrees
from boostbp.backends.capabilities import accepted_trees, check_leaves
from boostbp.core import Leaves
from boostbp.runtime import interrupts
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest
from boostbp.trees.rounds import Derivatives, GrowRound, Widths, boost_rounds
from boostbp.trees.tree import Trees

if TYPE_CHECKING:
    from boostbp.network.layers.fitting import Rounds

# Limits of one call; arbitrary.
TREE_ROWS = 1 << 22  # leaf numbers: some tenths of a second, after which an interrupt is seen
PATH_COLUMNS = 1 << 20  # of all leaves: 36 MB; and words of category sets
VALUES = 1 << 25  # path columns of all rows, of which a tree fills what it needs: 256 MB


def boosted_in_core(rounds: Rounds, grower: Grower, outputs: slice) -> list[Forest]:
    """Return the trees of some outputs in the first rounds, boosted by few calls of the core; none if it cannot.

    It can on a dense input, with one tree for each output, on one worker, if the grower has `CoreGrower.grow_in_core`.
    """
    settings, grow_in_core = rounds.bound.settings, getattr(grower, "grow_in_core", None)
    able = rounds.fits.in_core(rounds.n_threads, settings.prior) and not settings.growth.multi_output
    if not grow_in_core or not able:
        return []
    growing = _Growing(rounds, outputs)
    while growing.n_grown < settings.n_estimators and not rounds.is_over(growing.n_grown):
        if not grow_in_core(growing.n_outputs, growing.grow):
            break
        interrupts.check()
    return growing.parts


class _Growing:
    """The state of rounds that the core grows."""

    def __init__(self, rounds: Rounds, outputs: slice) -> None:
        n_rows, n_outputs = len(rounds.bound.Z), outputs.stop - outputs.start
        self.rounds, self.outputs, self.n_outputs, self.most = rounds, outputs, n_outputs, _widths(rounds)
        self.parts: list[Forest] = []
        self.n_grown = 0
        self.calls: CoreCalls | None = None
        self.squared: tuple[Floats, Floats] | None = None
        # derivatives of the next round, (outputs, rows), and those on which one tree is grown for all outputs
        self.grad, self.hess, self.shared = np.empty((n_outputs, n_rows)), np.empty((1, 0)), np.empty((2, 0, n_rows))
        self.loss, self.before = 0.0, rounds.running  # before the last round
        self.shares: list[float] = []  # of the rounds of this call: see `Rounds.backtracked`

    def grow(self, calls: CoreCalls) -> int:
        """Grow some rounds; return a fault of the core, or 0."""
        rounds, bound, n_outputs = self.rounds, self.rounds.bound, self.n_outputs
        settings, n_rows = bound.settings, len(bound.Z)
        n_rounds = min(calls.n_rounds, self._at_once(calls), settings.n_estimators - self.n_grown)
        n_rounds = min(n_rounds, rounds.until_look(self.n_grown))
        if n_rounds < 1:
            return core.STOPPED
        if not self.n_grown:
            self._begin(calls)
        grown_by: tuple[int, ...] | GrowRound | Trees
        if isinstance(calls.grown_by, KnownTrees):
            grown_by = calls.grown_by.of_rounds(self.n_grown, self.n_grown + n_rounds)
            check_leaves(grown_by, rounds.most_leaves, settings.growth)
        elif isinstance(calls.grown_by, tuple):
            grown_by = calls.grown_by
        else:
            grown_by = partial(self._grown, calls.grown_by)
        is_known = isinstance(grown_by, Trees)
        is_sampled = settings.subsample < 1.0 and not calls.along and not is_known
        numbers = range(self.n_grown, self.n_grown + n_rounds) if is_sampled else ()
        leaf = np.empty((n_rounds * n_outputs, n_rows), rounds.leaf.dtype)
        self.shares.clear()
        trees, leaves, fault = boost_rounds(
            grown_by, None if self.squared else self._derive, rounds.fits,
            Derivatives(self.grad, self.hess, self.shared if calls.along else None, self.squared),
            sampled=np.array([rounds.sampled(number) for number in numbers], bool).reshape(-1, n_rows),
            most=self.most, leaf=leaf, out=rounds.running[self.outputs],
        )  # fmt: skip
        if fault == core.STOPPED:
            calls.check(*(self.shared if calls.along else (self.grad, self.hess)))
        n_rounds = len(trees) // n_outputs
        if rounds.keeps_leaf:
            by_round = rounds.leaf[bound.n_base :].reshape(-1, rounds.objective.n_outputs, n_rows)
            new = slice(self.n_grown, self.n_grown + n_rounds)
            by_round[new, self.outputs] = leaf[: len(trees)].reshape(-1, n_outputs, n_rows)
        leaves.tree_output[:, 0] += self.outputs.start
        self.n_grown += n_rounds
        if not self.squared:
            with calls.pause():
                self._end_rounds(leaves, n_rounds)
        self.parts.append(rounds.part_of(trees, leaves))
        if self.squared and is_known and self.n_grown == settings.n_estimators:
            grad, hess = rounds.objective.gradient(rounds.running[self.outputs].T, self.outputs)
            rounds.objective.check(rounds.running[self.outputs].T, self.outputs, grad, hess, self.n_grown - 1)
        return fault

    def _at_once(self, calls: CoreCalls) -> int:
        """Return the number of rounds of a call; 0 if none fits."""
        n_rows, most = len(self.rounds.bound.Z), self.most
        of_rows = TREE_ROWS // (self.n_outputs * max(1, n_rows))
        if isinstance(calls.grown_by, KnownTrees):
            return max(1, of_rows)
        if n_rows * most.columns > VALUES:
            return 0
        return min(of_rows, PATH_COLUMNS // (self.n_outputs * max(1, most.of_tree)))

    def _begin(self, calls: CoreCalls) -> None:
        """Compute the derivatives of the first round, unless the core does."""
        squared, self.calls = None if calls.along else self.rounds.objective.squared(), calls
        if squared:
            base, target = squared
            self.squared, self.hess = (base[self.outputs], target[self.outputs]), self.rounds.objective.weight[None]
            return
        self.hess, self.shared = np.empty_like(self.grad), np.empty((2, 1 if calls.along else 0, self.grad.shape[1]))
        with calls.pause():
            self.loss, grad, hess = self.rounds.derivatives(self.outputs)
            self._take(self.n_grown, grad, hess)

    def _grown(self, grow: GrowRound, grad: NDArray[np.float32], hess: NDArray[np.float32]) -> Trees:
        """Grow a round by a Python function."""
        interrupts.check()
        bound = self.rounds.bound
        trees = accepted_trees(grow(grad, hess), len(grad), bound.table, bound.settings.growth)
        check_leaves(trees, self.rounds.most_leaves, bound.settings.growth)
        return trees

    def _derive(self, number: int) -> None:
        """Compute the derivatives of a round, unless the core does."""
        assert self.calls
        interrupts.check()
        with self.calls.pause():
            grad, hess = self._backtrack()
            self._take(self.n_grown + number, grad, hess)

    def _backtrack(self) -> tuple[Floats, Floats]:
        """Shorten the last round if it raised a curved loss, and return the derivatives of the next one."""
        share, (self.loss, grad, hess) = self.rounds.backtracked(self.before, self.loss, self.outputs)
        self.shares.append(share)
        return grad, hess

    def _take(self, number: int, grad: Floats, hess: Floats) -> None:
        """Check and store the derivatives of a round."""
        rounds, objective = self.rounds, self.rounds.objective
        objective.check(rounds.running[self.outputs].T, self.outputs, grad, hess, number)
        if objective.curved:
            self.before = rounds.running.copy()
        np.copyto(self.grad, grad.T)
        np.copyto(self.hess, hess.T)
        if self.calls and self.calls.along:
            np.copyto(self.shared[:, 0], np.hstack(self.calls.along(*rounds.of_sampled_rows(number, grad, hess))).T)

    def _end_rounds(self, leaves: Leaves, n_rounds: int) -> None:
        """Compute the derivatives after the last round, and scale the leaf values of rounds that were shortened."""
        is_last = self.n_grown == self.rounds.bound.settings.n_estimators
        if len(self.shares) < n_rounds and (self.rounds.objective.curved or not is_last):
            grad, hess = self._backtrack()
            if not is_last:
                self._take(self.n_grown, grad, hess)
        first_weight = leaves.weight_start[leaves.tree_leaf[:: self.n_outputs]]
        for number, share in enumerate(self.shares):
            leaves.weight[first_weight[number] : first_weight[number + 1]] *= share


def _widths(rounds: Rounds) -> Widths:
    """Return the limits of the size of a tree."""
    table, growth, basis = rounds.bound.table, rounds.bound.settings.growth, rounds.bound.settings.basis
    splits = max(min(growth.leaves, len(table.X)), 2) - 1
    depth = growth.max_depth if growth.max_depth >= 0 else splits
    columns = min(splits, depth, table.X.shape[1] - len(table.categorical)) * basis.columns_per_feature

    def words() -> int:
        return int(np.nanmax(table.X[:, list(table.categorical)], initial=-32.0)) // 32 + 1

    return Widths(splits, columns, table.once("words of a set", words))
