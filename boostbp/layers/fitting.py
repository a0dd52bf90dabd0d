"""The rounds of one layer fit: gradients, trees, leaf regressions, running fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import FEW_ROWS, OUTPUTS_PER_CALL, Grower, LinearLeaves, NativeGrower
from boostbp.backends.grown_trees import check_leaves, check_streams, grown_trees
from boostbp.floats import Floats
from boostbp.group import SAMPLE, workers
from boostbp.layers.bound import BoundInput
from boostbp.layers.cheaper_growth import projected
from boostbp.layers.objective import Objective
from boostbp.trees import interrupts, kernels, threads
from boostbp.trees.forest import Forest
from boostbp.trees.kernels import Leaves
from boostbp.trees.leaf_regressions import fit_trees
from boostbp.trees.leaf_rows import Workspace, rows_by_leaf
from boostbp.trees.leaves import add_to, concat_leaves, leaves_of_tree, with_missing_leaves
from boostbp.trees.ridge import LeafRanges
from boostbp.trees.tree import Tree, Trees

MOST_TRACE = 1 << 30  # bytes of leaf numbers that a layer keeps for its backward pass
LEAST_SHARE = 1e-6  # of a round: smaller steps than these are none
# Weight of a row that is not sampled: a target -grad / hess stays a number, and no sum of float64 with a sampled row in
# it changes; splits between which only other rows lie are alike then, whatever the order in which rows are added.
UNSAMPLED = 1e-20


@dataclass
class Rounds:
    """The rounds of one fit; each method adds its trees' values to `running`.

    Attributes
    ----------
    running : (outputs, rows) float64
        The running fit.
    parts : list of Forest
        The trees: the base, then those of the first round by output, those of the second, and so on.
    leaf : (trees, rows), smallest integer type
        The leaf of each row under each tree; of no tree unless they are kept.
    """

    bound: BoundInput
    objective: Objective
    n_threads: int
    seed: int
    running: Floats
    parts: list[Forest]
    leaf: NDArray[Any]
    keeps_leaf: bool = True
    space: Workspace = field(default_factory=Workspace)

    @classmethod
    def of(cls, bound: BoundInput, objective: Objective, n_threads: int, seed: int) -> Rounds:
        """Room for all trees of a fit, and a running fit of 0."""
        settings, n_rows, n_outputs = bound.settings, len(bound.Z), objective.n_outputs
        n_trees = bound.n_base + settings.n_estimators * (1 if settings.growth.multi_output else n_outputs)
        most = settings.growth.leaves - 1
        if settings.leaves == "native":  # a leaf brings along one for each column that a row may miss
            most += settings.growth.leaves * min(most, bound.table.X.shape[1])
        dtype = np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.int32
        keeps = keeps_trace(n_trees, n_rows, dtype)
        leaf = np.empty((n_trees if keeps else 0, n_rows), dtype)
        return cls(bound, objective, n_threads, seed, np.zeros((n_outputs, n_rows)), [], leaf, keeps)

    @cached_property
    def sign(self) -> NDArray[np.int64]:
        """Sign of each feature in which the layer must rise or fall, (features,); (0,) if in none."""
        return np.array(self.bound.settings.growth.monotone, np.int64)

    @property
    def first(self) -> int:
        """Number of the first tree of the first round."""
        return self.bound.n_base

    @property
    def forest(self) -> Forest:
        """The base and all rounds in one forest."""
        empty = self._part(Trees.stumps(0), concat_leaves([]))
        return replace(Forest.concat(self.parts or [empty]), n_base=self.first)

    def _part(self, trees: Trees, leaves: Leaves) -> Forest:
        """Some trees of the layer, with their leaves."""
        settings, n_features = self.bound.settings, self.bound.table.X.shape[1]
        return Forest(trees, leaves, n_features, self.objective.n_outputs, settings.basis, settings.clip)

    def fit_base(self) -> None:
        """One ridge regression for all outputs; of a curved loss, its minimum: a Newton step would go too far."""
        everything = slice(0, self.objective.n_outputs)
        grad, hess = self.objective.gradient(self.running.T, everything)
        self.objective.check(self.running.T, everything, grad, hess, 0)
        penalty = self.bound.settings.base_lambda
        if self.objective.curved:
            base = self.bound.base.minimise(lambda fit: self.objective.derivatives(fit)[:2], hess, penalty)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                target = np.where(hess > 0, -grad / hess, 0.0)
            base = self.bound.base.fit(target, penalty)
        if len(self.sign):
            # where the function is less steep than a straight line, trees would have to take back what they cannot
            base.weight[1:][self.sign[base.column] != 0] = 0.0
        trees, leaf = self.bound.base.U.trees, self.bound.base.U.leaf
        self.leaf[: self.first] = leaf[: len(self.leaf)]
        out = np.zeros((len(self.bound.Z), self.objective.n_outputs))
        add_to(out, base, leaf, self.bound.Z)
        self.running += out.T
        self.parts.append(self._part(trees, base))

    def one_tree_per_output(self) -> None:
        """All rounds with one tree per output.

        Outputs go together as far as the threads gain by it, which saves calls. If the library draws, who goes
        together does not depend on the threads. Those of a curved loss wait for each other after each round, to be
        settled.
        """
        n_rounds, groups = self.bound.settings.n_estimators, self._groups()
        batches: list[list[Forest]] = [[] for _ in groups]

        def alone(k: int) -> None:
            grower = self._fork(groups[k])  # libraries keep some dozen bytes for each row, which end with it
            for number in range(n_rounds):
                grad, hess = self.objective.gradient(self.running[groups[k]].T, groups[k])
                batches[k].append(self._round(number, grower, groups[k], grad, hess))

        if self.objective.separable and not self.objective.curved:
            threads.parallel_map(alone, range(len(groups)), self._threads_of_outputs)
            self.parts += [part for of_round in zip(*batches, strict=True) for part in of_round]
            return
        with threads.Team(min(self._threads_of_outputs, len(groups))) as team:
            self._lockstep(team, [self._fork(outputs) for outputs in groups], groups)

    @property
    def _threads_of_outputs(self) -> int:
        """Threads that outputs are shared among: the sums of a group of workers belong to one."""
        return self.n_threads if workers().alone else 1

    def _groups(self) -> list[slice]:
        """Outputs that go together."""
        n_rows, n_outputs = len(self.bound.Z), self.objective.n_outputs
        able, growth = self.bound.capabilities, self.bound.settings.growth
        if able.draws(growth):
            n_groups = able.streams(int(workers().sum(n_rows)[0]), n_outputs, growth)
            check_streams(n_groups, n_outputs)
        elif n_rows > SAMPLE and workers().alone:
            n_groups = n_outputs  # what a library keeps for each row of all outputs is more than the calls cost
        else:
            n_groups = min(self._threads_of_outputs, -(-n_outputs // (1 if n_rows > FEW_ROWS else OUTPUTS_PER_CALL)))
        ends = [n_outputs * k // n_groups for k in range(n_groups + 1)]
        return [slice(*ends[k : k + 2]) for k in range(n_groups) if ends[k] < ends[k + 1]]

    def _fork(self, outputs: slice) -> Grower:
        """A grower of some outputs, which draws from a stream of its own."""
        return self.bound.grower.fork(outputs, self.seed + outputs.start)

    def _lockstep(self, team: threads.Team, growers: list[Grower], groups: list[slice]) -> None:
        """All rounds with one tree per output, where the gradient of an output depends on the others."""
        curved, n_rounds = self.objective.curved, self.bound.settings.n_estimators
        loss, grad, hess = self._derivatives()
        before = self.running.copy() if curved else self.running
        for number in range(n_rounds):
            if curved:
                np.copyto(before, self.running)

            def part(k: int, number: int = number, grad: Floats = grad, hess: Floats = hess) -> Forest:
                return self._round(number, growers[k], groups[k], grad[:, groups[k]], hess[:, groups[k]])

            of_round = team.map(part, range(len(groups)))
            share = 1.0
            if curved or number + 1 < n_rounds:
                share, (loss, grad, hess) = self._backtracked(before, loss)
            self.parts += of_round if share == 1.0 else [part.times(share) for part in of_round]

    def _derivatives(self) -> tuple[float, Floats, Floats]:
        """Loss of all rows, gradient and hessian of the running fit; the loss is 0 if not curved, for nobody asks."""
        if self.objective.curved:
            loss, grad, hess = self.objective.derivatives(self.running.T)
            return workers().sum(loss)[0], grad, hess
        return 0.0, *self.objective.gradient(self.running.T, slice(0, self.objective.n_outputs))

    def _backtracked(self, before: Floats, lowest: float) -> tuple[float, tuple[float, Floats, Floats]]:
        """Halve a round of Newton steps until it does not raise a curved loss; its share, loss and derivatives then."""
        now, share = self._derivatives(), 1.0
        if now[0] <= lowest:
            return share, now
        step = self.running - before
        while share and not now[0] <= lowest:  # a loss that is no number would be halved for ever
            share = share / 2 if share > LEAST_SHARE else 0.0
            np.add(before, share * step, out=self.running)
            now = self._derivatives()
        if np.isnan(now[0]):
            self.objective.refuse_value(self.running.T)
        return share, now

    def _round(self, number: int, grower: Grower, outputs: slice, grad: Floats, hess: Floats) -> Forest:
        """One round of some outputs."""
        self.objective.check(self.running[outputs].T, outputs, grad, hess, number)
        settings, n_outputs = self.bound.settings, self.objective.n_outputs
        n_groups = -(-n_outputs // (outputs.stop - outputs.start))
        interrupts.check()
        trees = self._grow(grower, number, grad, hess, outputs.stop - outputs.start)
        first = self.first + number * n_outputs
        at = slice(first + outputs.start, first + outputs.stop)
        bound = self.bound
        leaves = fit_trees(
            trees, bound.table.X, bound.Z, bound.column_bins, settings.basis, _by_output(grad), _by_output(hess),
            settings.ridge, learning_rate=settings.learning_rate, leaf=self._leaf_of(at), out=self.running[outputs],
            sign=self.sign,
            n_threads=max(1, self.n_threads // min(n_groups, self._threads_of_outputs)), space=self.space,
        )  # fmt: skip
        leaves.tree_output[:, 0] += outputs.start
        return self._part(trees, leaves)

    def _grow(self, grower: Grower, number: int, grad: Floats, hess: Floats, count: int) -> Trees:
        """Return the trees of a round."""
        derivatives, growth = self._of_sampled_rows(number, grad, hess), self.bound.settings.growth
        trees = grown_trees(grower, *derivatives, count, self.bound.table, growth)
        check_leaves(trees, np.iinfo(self.leaf.dtype).max + 1, growth)
        return trees

    def _leaf_of(self, trees: slice) -> NDArray[Any]:
        """Room for the leaf of each row under some trees, (trees, rows)."""
        if self.keeps_leaf:
            return self.leaf[trees]
        return np.empty((trees.stop - trees.start, self.leaf.shape[1]), self.leaf.dtype)

    def _of_sampled_rows(self, number: int, grad: Floats, hess: Floats) -> tuple[Floats, Floats]:
        """Gradients and hessians, (rows, outputs), by which other rows than those of this round's sample hardly count.

        The rows of a round are the same for all outputs, so that they do not depend on how outputs share threads.
        """
        share = self.bound.settings.subsample
        if share == 1.0:
            return grad, hess
        drawn = [np.empty(0)]
        for first, count in self.bound.runs:
            bits = np.random.PCG64((self.seed, number))
            bits.advance(first)  # rows of a table draw the same numbers, however many workers share it out
            drawn.append(np.random.Generator(bits).random(count))
        weight = np.where(np.concatenate(drawn) < share, 1.0, UNSAMPLED)[:, None]
        return grad * weight, hess * weight

    def multi_output_trees(self) -> None:
        """All rounds with one tree for all outputs, whose leaves weigh a row by its largest hessian.

        A smaller one would be a longer step than Newton's for some output. The tree is grown on all gradients where
        the library has vector leaves, and on a random projection of them where not.
        """
        settings, curved = self.bound.settings, self.objective.curved
        grower = self._fork(slice(0, self.objective.n_outputs))
        rng = np.random.default_rng(self.seed)
        end = self.first + settings.n_estimators
        loss, grad, hess = self._derivatives()
        before = self.running.copy() if curved else self.running
        for number in range(self.first, end):
            interrupts.check()
            if curved:
                np.copyto(before, self.running)
            everything = slice(0, self.objective.n_outputs)
            self.objective.check(self.running.T, everything, grad, hess, number - self.first)
            grad, hess = np.ascontiguousarray(grad), np.ascontiguousarray(hess)
            weight = hess.max(axis=1)
            if self.bound.vector_leaf:
                derivatives = grad, hess
            else:
                derivatives = projected(grad, rng), weight[:, None]
            trees = self._grow(grower, number - self.first, *derivatives, 1)
            leaves = fit_trees(
                trees, self.bound.table.X, self.bound.Z, self.bound.column_bins, settings.basis, _by_output(grad),
                weight[None], settings.ridge, learning_rate=settings.learning_rate,
                leaf=self._leaf_of(slice(number, number + 1)), out=self.running, n_outputs=self.objective.n_outputs,
                n_threads=self.n_threads, space=self.space,
            )  # fmt: skip
            share, part = 1.0, self._part(trees, leaves)
            if curved or number + 1 < end:
                share, (loss, grad, hess) = self._backtracked(before, loss)
            self.parts.append(part if share == 1.0 else part.times(share))

    def native_leaves(self) -> None:
        """All rounds with the library's own linear leaves, output by output."""
        boosted = threads.parallel_map(self._native, range(self.objective.n_outputs), self.n_threads)
        number = self.first
        for part, leaf in boosted:
            if len(leaf):
                self.parts.append(part)
                self.leaf[number : number + len(leaf)] = leaf[: len(self.leaf)]
                number += len(leaf)

    def _native(self, output: int) -> tuple[Forest, NDArray[Any]]:
        settings, bound = self.bound.settings, self.bound
        outputs = slice(output, output + 1)
        grower = cast("NativeGrower", self._fork(outputs))
        start = self.running[outputs].T.copy()

        def gradient(score: Floats) -> tuple[Floats, Floats]:
            interrupts.check()
            grad, hess = self.objective.gradient(start + score.reshape(-1, 1), outputs)
            return grad.ravel(), hess.ravel()

        native = grower.boost(gradient, settings.n_estimators, settings.learning_rate, settings.ridge.reg_lambda)
        members = [self._from_native(linear) for linear in native]
        trees, leaves = Trees.concat([tree for tree, _ in members]), concat_leaves([leaves for _, leaves in members])
        check_leaves(trees, np.iinfo(self.leaf.dtype).max + 1, self.bound.settings.growth)
        leaf = trees.route(bound.table.X)
        forest = Forest(trees, leaves, bound.table.X.shape[1], 1, settings.basis, clip=False)
        self.running[output] += forest.evaluate(bound.table.X, leaf)[:, 0]
        leaves.tree_output[:, 0] = output
        return self._part(trees, leaves), leaf

    def _from_native(self, linear: LinearLeaves) -> tuple[Tree, Leaves]:
        """The library's linear leaves in our scaling, and leaves for missing values: same function, with ranges."""
        bound, leaf = self.bound, np.empty(len(self.bound.Z), np.int32)
        w, no_scaling = np.insert(linear.coeff, linear.start[:-1], linear.const), np.empty((0, 4))
        leaves = leaves_of_tree(linear.start, linear.features, no_scaling, w)
        blocks = rows_by_leaf(linear.tree, leaves, bound.table.X, bound.table.X, bound.column_bins, leaf, self.space)
        ranges = [LeafRanges.of(rows, leaves, bound.weight) for rows in blocks]
        for rows in blocks:
            rows.give_back(self.space)
        scaling = sum(ranges[1:], start=ranges[0]).scaling(flat_scale=1.0)
        kernels.scale_weights(leaves.start, 1, 1, scaling, w)
        return with_missing_leaves(linear.tree, leaves._replace(scaling=scaling), linear.missing)


def keeps_trace(n_trees: int, n_rows: int, dtype: Any) -> bool:
    """Whether the leaf of each row under each tree is kept for the backward pass, or rows are routed again there."""
    return n_trees * n_rows * np.dtype(dtype).itemsize <= MOST_TRACE


def _by_output(columns: Floats) -> Floats:
    """(rows, outputs) as (outputs, rows) in one piece; a single row if all outputs share one column in memory."""
    shared = columns.strides[1] == 0 and len(columns) > 0  # strides of no rows say nothing
    return np.require(columns[:, :1].T if shared else columns.T, np.float64, ["C", "W"])
