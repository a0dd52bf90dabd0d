"""Locations: layers that learn the mean of a target, from which each of several quantiles keeps a distance of its own.

Outer levels hardly move in a round: the gradient of their loss is small on nearly all rows. Where the noise is the same
everywhere, the mean and the quantiles of its residuals on held-out rows are all there is to learn; elsewhere they are a
part of the average beside layers that were boosted on the levels themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from boostbp.ensemble.candidate import Candidate, LayerTraining
from boostbp.ensemble.output_layers import Boosted, Boosting
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.trained_candidate import TrainedCandidate
from boostbp.inputs.rows import NO_OFFSET
from boostbp.layers import Layer, LayerSettings
from boostbp.losses import SquaredError
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.network.baseline import best_constant
from boostbp.runtime.arrays import Floats


def mean_and_quantiles(candidate: Candidate) -> Candidate:
    """Return a layer that learns the mean of a target, moved to each level; it is not fitted again on all rows."""

    def begin(problem: Problem, needed: TrainedCandidate | None) -> LayerTraining:
        inner = candidate.begin(_of_mean(problem), needed)
        assert isinstance(inner, LayerTraining)
        boosting = cast(Any, _MeanAndQuantiles(inner.boosting, problem))
        return _MeanAndQuantilesTraining(inner.name, inner.network, inner.below, boosting)

    return replace(candidate, begin=begin)


def _of_mean(problem: Problem) -> Problem:
    """The problem of one output for the mean of the target, of which the quantiles have copies, without offsets."""
    loss, held_out = CheckedLoss(SquaredError(), curved=False, separable=True), problem.held_out
    rows = replace(problem.rows, y=_mean(problem.rows.y - problem.rows.offset), offset=NO_OFFSET)
    target = _mean(problem.target - held_out.offset)
    first, *others = problem.evaluation.sets
    first = replace(first, rows=replace(held_out, offset=NO_OFFSET))
    evaluation = replace(problem.evaluation, sets=(first, *others))
    return replace(
        problem,
        loss=loss,
        rows=rows,
        baseline=best_constant(loss, rows),
        target=target,
        smoothed=target,
        evaluation=evaluation,
    )


def _mean(columns: Floats) -> Floats:
    return columns.mean(axis=1, keepdims=True)


@dataclass(frozen=True, slots=True)
class _MeanAndQuantiles:
    """The boosting of a mean, with an output for each level: the mean and the quantile of its held-out residuals.

    Attributes
    ----------
    mean : Boosting
        Of one output.
    problem : Problem
        Of all levels.
    """

    mean: Boosting
    problem: Problem

    @property
    def boosted(self) -> Boosted:
        return self.mean.boosted

    @property
    def settings(self) -> LayerSettings:
        return self.mean.settings

    @property
    def best(self) -> int:
        return self.mean.best

    @property
    def finished(self) -> bool:
        return self.mean.finished

    @property
    def raw(self) -> Floats:
        return self.mean.raw + self._distances(self.mean.raw)

    @property
    def best_raw(self) -> Floats:
        return self.mean.best_raw + self.distances

    @property
    def trial_score(self) -> float:
        return self.problem.score(self.best_raw)

    @property
    def distances(self) -> Floats:
        """Of the levels from the mean that is best, (outputs,)."""
        return self._distances(self.mean.best_raw)

    @property
    def layer(self) -> Layer:
        """The layer of the mean, whose trees serve all outputs alike."""
        forest, n_outputs = self.mean.layer.forest, len(self.problem.baseline)
        leaves = forest.leaves
        served = np.tile(np.array([0, n_outputs]), (forest.n_trees, 1))
        alike = leaves._replace(
            tree_output=served,
            weight_start=leaves.weight_start * n_outputs,
            weight=np.repeat(leaves.weight, n_outputs),
        )
        return Layer(replace(forest, n_outputs=n_outputs, leaves=alike))

    def advance(self) -> _MeanAndQuantiles:
        return replace(self, mean=self.mean.advance())

    def _distances(self, mean: Floats) -> Floats:
        left = self.problem.target - mean - self.problem.held_out.offset
        return self.problem.loss.baseline(left, self.problem.held_out.weight)


class _MeanAndQuantilesTraining(LayerTraining):
    """The training of a `_MeanAndQuantiles`."""

    __slots__ = ()

    @property
    def refit_work(self) -> float:
        return 0.0

    @property
    def result(self) -> TrainedCandidate:
        boosting = cast(_MeanAndQuantiles, self.boosting)
        baseline = boosting.mean.boosted.problem.baseline + boosting.distances
        model = replace(self.below, layers=(*self.below.layers, boosting.layer), baseline=baseline)
        return TrainedCandidate(self.name, self.network, model, boosting.best_raw)
