"""Kept: a fitted layer whose input, weights and tree structures stay, so that only moments are summed again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from boostbp.learning.layers.bound import BoundInput
from boostbp.learning.layers.fitting import Rounds, groups_of
from boostbp.learning.layers.layer import Fit, Layer, Trace
from boostbp.learning.layers.objective import SquaredTo
from boostbp.trees import interrupts, kernels, threads
from boostbp.trees.ridge import without_ones
from boostbp.trees.sparse import Matrix, Sparse

__all__ = ["Kept"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
MOST = 1 << 25  # numbers of all factors: 256 MB


class Kept:
    """Leaf numbers, frames and Cholesky factors of a fitted layer, from which it is fitted to other targets.

    Nothing is binned, grown, routed or factored then: one pass sums the moments, one adds the values. It needs
    one tree per output with leaves fitted by us, and a squared error, whose weights do not change.

    Parameters
    ----------
    bound : BoundInput
    fitted : Fit
        Of this input.
    n_threads : int
    """

    @interrupts.held()
    def __init__(self, bound: BoundInput, fitted: Fit, n_threads: int) -> None:
        self.forest, self.leaf = fitted.layer.forest, fitted.trace.leaf
        leaves, settings = self.forest.leaves, bound.settings
        terms = 1 + settings.basis.powers * np.diff(leaves.start)
        ends = np.concatenate([[0], np.cumsum(terms * terms)])
        self._of_tree = ends[leaves.tree_leaf]  # first number of each tree among the factors
        self.hess, self.factors = without_ones(bound.weight), np.empty(0)
        first = self.forest.n_base
        # the base of a checkpoint, which only says how many trees it has, is not taken at its word
        self.fits = bool(first == bound.n_base and ends[-1] - self._of_tree[first] <= MOST)
        if self.fits:
            work = [slice(tree, tree + 1) for tree in range(first, self.forest.n_trees)]
            self.factors = np.concatenate(
                threads.parallel_map(lambda trees: self._factor(bound, trees), work, n_threads)
            )
            self._of_tree -= self._of_tree[first]

    @staticmethod
    def allows(bound: BoundInput) -> bool:
        """Whether a layer on this input can be kept."""
        settings = bound.settings
        grown = settings.n_estimators > 0 and not settings.growth.shared
        return grown and settings.leaves == "refit"

    @interrupts.held()
    def fit(self, bound: BoundInput, objective: SquaredTo, n_threads: int) -> Fit:
        """The layer with the same trees, fitted to another target."""
        run = Rounds.of(bound, objective, n_threads, 0)
        weight = np.empty_like(self.forest.leaves.weight)
        if run.first:
            base = run.fit_base()
            weight[: len(base.leaves.weight)] = base.leaves.weight
        n_outputs = objective.n_outputs
        # the path columns of a sparse input are made dense: those of one tree at a time
        groups = groups_of(n_outputs, n_outputs if isinstance(bound.Z, Sparse) else n_threads)

        def alone(outputs: slice) -> None:
            for begin in range(run.first, self.forest.n_trees, n_outputs):
                interrupts.check()
                grad, _ = objective.gradient(run.running[outputs].T, outputs)
                trees = slice(begin + outputs.start, begin + outputs.stop)
                self._refit(bound, trees, np.ascontiguousarray(grad.T), run.running[outputs], weight)

        threads.parallel_map(alone, groups, n_threads)
        forest = replace(self.forest, leaves=self.forest.leaves._replace(weight=weight))
        trace = Trace(forest, bound.table.X, self.leaf, n_threads)
        return Fit(Layer(forest), np.ascontiguousarray(run.running.T), trace)

    def _paths(self, trees: slice) -> tuple[tuple[Ints, Ints, Ints, Ints], slice]:
        """Leaves, leaf numbers and path columns of some trees, counted from the first of them; where these stand."""
        leaves = self.forest.leaves
        tree_leaf = leaves.tree_leaf[trees.start : trees.stop + 1]
        start = leaves.start[tree_leaf[0] : tree_leaf[-1] + 1]
        columns = slice(start[0], start[-1])
        return (self.leaf[trees], tree_leaf - tree_leaf[0], start - start[0], leaves.column[columns]), columns

    @staticmethod
    def _dense(Z: Matrix, paths: tuple[Ints, Ints, Ints, Ints]) -> tuple[tuple[Ints, Ints, Ints, Ints], Floats]:
        """Paths, and the input that their columns are counted in; of a sparse one, these columns alone."""
        if not isinstance(Z, Sparse):
            return paths, Z
        columns, place = np.unique(paths[-1], return_inverse=True)
        return (*paths[:-1], place.astype(np.int32)), Z.dense(columns, slice(0, len(Z)))

    def _factor(self, bound: BoundInput, trees: slice) -> Floats:
        paths, columns = self._paths(trees)
        settings = bound.settings
        ridge, degree = settings.ridge, settings.basis.powers
        paths, Z = self._dense(bound.Z, paths)
        factors = np.zeros(self._of_tree[trees.stop] - self._of_tree[trees.start])
        kernels.factor_trees(
            *paths, Z, degree, self.hess, self.forest.leaves.frame[columns], ridge.reg_lambda,
            ridge.penalize_constant, ridge.standardize, factors,
        )  # fmt: skip
        return factors

    def _refit(self, bound: BoundInput, trees: slice, grad: Floats, out: Floats, weight: Floats) -> None:
        paths, columns = self._paths(trees)
        settings, leaves = bound.settings, self.forest.leaves
        factors = self.factors[self._of_tree[trees.start] : self._of_tree[trees.stop]]
        first, last = leaves.weight_start[leaves.tree_leaf[[trees.start, trees.stop]]]
        paths, Z = self._dense(bound.Z, paths)
        kernels.refit_trees(
            *paths, Z, settings.basis.powers, grad, leaves.frame[columns], factors, settings.ridge.standardize,
            settings.learning_rate, weight[first:last], out,
        )  # fmt: skip
