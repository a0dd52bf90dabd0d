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

LONGEST = 5.0  # logarithm of how much a weight may change in a step


def shrink_weight(t: float, half_at: float) -> float:
    """Return the weight of an effect that is t standard errors above 0: one half at `half_at`."""
    return t**2 / (half_at**2 + t**2)


def t_statistic(raw: Floats, target: Floats, baseline: Floats, weight: Floats, loss: Loss) -> float:
    """Return the slope of a target on a raw output, both from the baseline on, in its standard errors.

    The error is robust to unequal noise (White 1980). Infinite for losses that are no squared residuals, of whose
    targets nothing is known, and for the baseline itself.

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
    """Return weights of models, (models,), by the loss of their sum on the held-out rows; most are not 0.

    They are found by exponentiated gradient descent from equal weights (Kivinen and Warmuth 1997), then without the
    models whose weight is least. The way that it goes is as long as there are held-out rows (`_way`): few of them tell
    little of many models, and an average of all is what one falls back on.

    Parameters
    ----------
    raws : (models, held-out rows, outputs) float64
    """
    found = np.zeros(len(raws))
    kept = np.flatnonzero(np.isfinite(raws).all(axis=(1, 2)))
    if not len(kept):
        raise FloatingPointError("no model has finite predictions of the held-out rows: check the scale of X and y.")
    if len(kept) > 1:  # one whose loss is infinite would make that of any sum so
        finite = np.isfinite([problem.score(raw) for raw in raws[kept]])
        kept = kept[finite] if finite.any() else kept[:1]
    weights = _descended(raws[kept], problem)
    kept = kept[weights >= min(constants.LEAST_WEIGHT, weights.max())]
    found[kept] = _descended(raws[kept], problem)
    return found


def summed(weights: Floats, raws: Floats) -> Floats:
    """Return the weighted sum of raw outputs, (rows, outputs), of which those of weight 0 need not be finite."""
    if not np.isfinite(raws).all():
        weights, raws = weights[weights > 0], raws[weights > 0]
    total: Floats = np.tensordot(weights, raws, 1)
    return total


def _way(problem: Problem, score: float) -> float:
    """Return the sum of the rates of all steps, each of which is relative to the score of equal weights.

    Of classes the score is a log-loss. Rows are evidence for one model over another by the sum of the differences of
    theirs, and weights differ by no more than by Bayes' rule: where nearly all rows are told with certainty, the score
    is small, and a few of the others would decide.
    """
    n_rows = np.count_nonzero(problem.held_out.weight)
    way = max(constants.LEAST_STACKING_WAY, constants.STACKING_WAY_OF_ROW * n_rows)
    if traits_of(problem.loss).task == "classification":
        way = min(way, n_rows * score)
    return way


def _descended(raws: Floats, problem: Problem) -> Floats:
    """Return the weights at the end of the way.

    A step that would raise the loss is not taken, and the next one is half as long; others make it longer.
    """
    share = problem.held_out.weight / problem.held_out.weight.sum()
    weights, rate, slopes = np.full(len(raws), 1.0 / len(raws)), constants.STACKING_RATE, None
    raw = np.tensordot(weights, raws, 1)
    score = problem.score(raw)
    left = _way(problem, score)
    for _ in range(constants.MOST_STACKING_STEPS if len(raws) > 1 else 0):
        if slopes is None:
            slope = share[:, None] * problem.loss.gradient(raw + problem.held_out.offset, problem.smoothed)
            slopes = np.tensordot(raws - raw, slope, 2) / problem.scale_of(score)
        rate = min(rate, left)
        moved = weights * np.exp(np.clip(-rate * slopes, -LONGEST, LONGEST))
        moved /= moved.sum()
        raw_there = np.tensordot(moved, raws, 1)
        score_there = problem.score(raw_there)
        if score_there > score:
            rate /= 2.0
            continue
        weights, raw, score, slopes = moved, raw_there, score_there, None
        left -= rate
        if left <= 0.0:
            break
        rate *= constants.STACKING_GROWTH
    return weights


class Score(NamedTuple):
    """Mean loss of a model on the held-out rows, and its standard error; NaN if it is not finite."""

    mean: float
    error: float

    @classmethod
    def of(cls, raw: Floats, problem: Problem) -> Score:
        """The score of a raw output there, (held-out rows, outputs)."""
        losses, share = problem.row_losses(raw), problem.held_out.weight / problem.held_out.weight.sum()
        mean = float(share @ losses)
        if not np.isfinite(mean):
            return cls(mean, np.nan)
        return cls(mean, float(np.sqrt(np.square(share) @ np.square(losses - mean))))


def member_weights(scores: Sequence[Score], scale_of: Callable[[float], float]) -> list[float]:
    """Return the weights of models of which each has a score on held-out rows of its own.

    They are equal but for models that are worse than the best by more than chance, whose weight falls with their loss:
    for a squared error, and if errors of models do not go together, by that the mean has the least.
    """
    best = min(scores)
    weights = np.ones(len(scores))
    for number, one in enumerate(scores):
        worse, chance = one.mean - best.mean, constants.MEMBER_T * np.hypot(one.error, best.error)
        if np.isfinite(best.mean) and not worse <= chance:
            scale = scale_of(best.mean)
            weights[number] = scale / (scale + worse)
    return [float(weight) for weight in workers().agree(weights / weights.sum())]
