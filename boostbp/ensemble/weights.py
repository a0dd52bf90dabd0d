"""Weights of candidates: the sum of them that is best on the held-out rows, and how far these rows can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from boostbp.ensemble import constants
from boostbp.ensemble.problem import Problem
from boostbp.losses import Loss, traits_of
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

MAX_LOG_CHANGE = 5.0  # of a weight in one step; it keeps exp() within bounds. Not varied


def shrink_weight(t: float, half_at: float) -> float:
    """Return the weight of an effect that lies t standard errors above 0: one half at `half_at`."""
    return t**2 / (half_at**2 + t**2)


def t_statistic(raw: Floats, target: Floats, baseline: Floats, weight: Floats, loss: Loss) -> float:
    """Return the slope of a target on a raw output, both measured from the baseline, in standard errors.

    The standard error is robust to unequal noise (White 1980). The result is infinite for the baseline itself, and for
    losses other than squared residuals, where the scale of the noise is unknown.

    Parameters
    ----------
    raw, target : (rows, outputs) float64
    baseline : (outputs,) float64
    weight : (rows,) float64
    """
    u, y = raw - baseline, target - baseline
    size = float(weight @ np.square(u).sum(1))
    if not traits_of(loss).least_squares or not size > 0:
        return np.inf
    slope = float(weight @ (u * y).sum(1)) / size
    score = weight * (u * (y - slope * u)).sum(1)
    error = float(np.sqrt(score @ score)) / size
    return max(slope, 0.0) / error if error > 0 else np.inf


def stacked_weights(raws: Floats, problem: Problem) -> Floats:
    """Return weights of models, (models,), that lower the loss of their sum on the held-out rows.

    Exponentiated gradient descent (Kivinen and Warmuth 1997) starts from equal weights. It runs once with all models,
    and once more without those of low weight. The length of its path grows with the number of held-out rows
    (`path_length`): a few rows tell little about many models, and then the average of all is the safe choice.

    Parameters
    ----------
    raws : (models, held-out rows, outputs) float64

    Raises
    ------
    FloatingPointError
        If no model has finite predictions.
    """
    stacked = np.zeros(len(raws))
    kept = np.flatnonzero(np.isfinite(raws).all(axis=(1, 2)))
    if not len(kept):
        raise FloatingPointError("no model has finite predictions of the held-out rows: check the scale of X and y.")
    if len(kept) > 1:  # a model of infinite loss would make the loss of any sum infinite
        finite = np.isfinite([problem.score(raw) for raw in raws[kept]])
        kept = kept[finite] if finite.any() else kept[:1]
    weights = _descend(raws[kept], problem)
    kept = kept[weights >= min(constants.MIN_WEIGHT, weights.max())]
    stacked[kept] = _descend(raws[kept], problem)
    return stacked


def summed(weights: Floats, raws: Floats) -> Floats:
    """Return the weighted sum of raw outputs, (rows, outputs); those of weight 0 need not be finite."""
    if not np.isfinite(raws).all():
        weights, raws = weights[weights > 0], raws[weights > 0]
    total: Floats = np.tensordot(weights, raws, 1)
    return total


def path_length(problem: Problem, score: float) -> float:
    """Return the sum of the learning rates of all steps, each relative to the score of equal weights.

    For classes the score is a log-loss. The evidence of rows for one model over another is the sum of the differences
    of their log-losses, and by Bayes' rule weights should not differ by more. If nearly all rows are told with
    certainty, the score is small, and without this limit a few of the other rows would decide.
    """
    n_rows = np.count_nonzero(problem.held_out.weight)
    length = max(constants.MIN_STACKING_PATH, constants.STACKING_PATH_PER_ROW * n_rows)
    return min(length, n_rows * score) if traits_of(problem.loss).task == "classification" else length


def _descend(raws: Floats, problem: Problem) -> Floats:
    """Return the weights at the end of the path.

    A step that would raise the loss is dropped, and the next one is half as long. Other steps let the rate grow.
    """
    share = problem.held_out.weight / problem.held_out.weight.sum()
    weights, rate, slopes = np.full(len(raws), 1.0 / len(raws)), constants.STACKING_RATE, None
    raw = np.tensordot(weights, raws, 1)
    score = problem.score(raw)
    left = path_length(problem, score)
    for _ in range(constants.MAX_STACKING_STEPS if len(raws) > 1 else 0):
        if slopes is None:
            gradient = share[:, None] * problem.loss.gradient(raw + problem.held_out.offset, problem.smoothed)
            slopes = np.tensordot(raws - raw, gradient, 2) / problem.scale_of(score)
        rate = min(rate, left)
        moved = weights * np.exp(np.clip(-rate * slopes, -MAX_LOG_CHANGE, MAX_LOG_CHANGE))
        moved /= moved.sum()
        moved_raw = np.tensordot(moved, raws, 1)
        moved_score = problem.score(moved_raw)
        if moved_score > score:
            rate /= 2.0
            continue
        weights, raw, score, slopes = moved, moved_raw, moved_score, None
        left -= rate
        if left <= 0.0:
            break
        rate *= constants.STACKING_GROWTH
    return weights


class HeldOutScore(NamedTuple):
    """Mean loss of a model on the held-out rows, and its standard error, which is NaN if the mean is not finite."""

    mean: float
    error: float

    @classmethod
    def of(cls, raw: Floats, problem: Problem) -> HeldOutScore:
        """Return the score of a raw output, (held-out rows, outputs)."""
        losses, share = problem.row_losses(raw), problem.held_out.weight / problem.held_out.weight.sum()
        mean = float(share @ losses)
        if not np.isfinite(mean):
            return cls(mean, np.nan)
        return cls(mean, float(np.sqrt(np.square(share) @ np.square(losses - mean))))


def member_weights(scores: Sequence[HeldOutScore], scale_of: Callable[[float], float]) -> list[float]:
    """Return the weights of models, each scored on held-out rows of its own.

    They are equal, except that a model that is worse than the best one by more than chance counts less. Its weight
    ``scale / (scale + worse)`` is the ratio of the two losses. For squared errors of independent models, these weights
    give the mean the lowest error.
    """
    best = min(scores)
    weights = np.ones(len(scores))
    for number, score in enumerate(scores):
        worse, chance = score.mean - best.mean, constants.MEMBER_T * np.hypot(score.error, best.error)
        if np.isfinite(best.mean) and not worse <= chance:
            scale = scale_of(best.mean)
            weights[number] = scale / (scale + worse)
    return [float(weight) for weight in workers().agree(weights / weights.sum())]
