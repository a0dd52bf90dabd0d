"""Quantiles as a mean and residual quantiles: one layer learns the mean, and each level adds a distance to it.

Outer levels hardly move in a round, because the gradient of their loss is small on nearly all rows. Where the noise is
the same everywhere, the mean and the quantiles of its held-out residuals are all there is to learn. Elsewhere such
layers are a part of the average, beside layers that were boosted on the levels themselves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boostbp.ensemble.problem import Problem
from boostbp.inputs.rows import NO_OFFSET
from boostbp.layers import Layer
from boostbp.losses import SquaredError
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.network.starts import best_constant
from boostbp.runtime.arrays import Floats


def problem_of_mean(levels: Problem) -> Problem:
    """Return the problem of one output, the mean of the target; the outputs of `levels` are its quantiles."""
    loss, held_out = CheckedLoss(SquaredError(), curved=False, separable=True), levels.held_out
    # all levels have the same target, so the mean over columns is that target without the offsets
    y, target = (
        columns.mean(axis=1, keepdims=True)
        for columns in (levels.rows.y - levels.rows.offset, levels.target - held_out.offset)
    )
    rows = replace(levels.rows, y=y, offset=NO_OFFSET)
    first, *others = levels.evaluation.sets
    first = replace(first, rows=replace(held_out, offset=NO_OFFSET))
    return replace(
        levels,
        loss=loss,
        rows=rows,
        baseline=best_constant(loss, rows),
        target=target,
        smoothed=target,
        evaluation=replace(levels.evaluation, sets=(first, *others)),
    )


def residual_quantiles(mean: Floats, levels: Problem) -> Floats:
    """Return the quantile of the held-out residuals of a mean for each level, (outputs,).

    Parameters
    ----------
    mean : (held-out rows, 1) float64
    """
    residuals = levels.target - mean - levels.held_out.offset
    return levels.loss.baseline(residuals, levels.held_out.weight)


def repeated(layer: Layer, n_outputs: int) -> Layer:
    """Return a layer of one output as a layer of several equal outputs, all served by the same trees."""
    forest = layer.forest
    leaves = forest.leaves._replace(
        tree_output=np.tile(np.array([0, n_outputs]), (forest.n_trees, 1)),
        weight_start=forest.leaves.weight_start * n_outputs,
        weight=np.repeat(forest.leaves.weight, n_outputs),
    )
    return Layer(replace(forest, n_outputs=n_outputs, leaves=leaves))
