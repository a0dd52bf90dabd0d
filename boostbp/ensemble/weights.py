"""Weights of candidates: the sum of them that is best on the held-out rows, and how far these rows can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from boostbp.ensemble import constants
from boostbp.ensemble.trained_candidate import TrainedCandidate
from boostbp.losses import Loss, traits_of

__all__ = [
    "ensemble_weights",
    "greedy_selection",
    "half_weight_t_of",
    "shrink_weight",
    "smooth_labels",
    "t_statistic",
]

Floats = NDArray[np.float64]


def half_weight_t_of(loss: Loss) -> float:
    """Return the standard errors of the gain at which networks get half of their weight; 0: they get all of it."""
    return constants.HALF_WEIGHT_T if traits_of(loss).task == "classification" else 0.0


def shrink_weight(t: float, half_at: float) -> float:
    """Return the weight of an effect that is t standard errors above 0: one half at `half_at`."""
    return t**2 / (half_at**2 + t**2) if half_at else 1.0


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


def smooth_labels(target: Floats, weight: Floats, loss: Loss) -> Floats:
    """Return targets of held-out rows; of classes, as if a quarter of a row more like each had another class.

    Few rows may all be told apart by a model that is sure of them without limit: it would seem to lose nothing, and
    lose without limit where it errs. The idea is Platt's (1999), with all held-out rows in place of those of a class,
    and a quarter of his row: models that tell few rows apart may well be right.
    """
    if not traits_of(loss).soft_labels:
        return target
    other = constants.SMOOTHING_ROWS / (np.count_nonzero(weight) + 2.0)
    if target.shape[1] == 1:
        return target * (1.0 - other) + (1.0 - target) * other
    return target * (1.0 - other) + (1.0 - target) * other / (target.shape[1] - 1)


def ensemble_weights(
    candidates: Sequence[TrainedCandidate],
    row_losses: Callable[[Floats], Floats],
    weight: Floats,
    *,
    least_gain: float,
    half_at: float,
) -> tuple[Floats, float, float]:
    """Return the weights of the candidates, what networks add to the best sum of single layers, and its standard error.

    The gain, t standard errors, counts for t^2 / (half_at^2 + t^2): so much of the model is the sum with networks, the
    rest is the sum without. With no more than `least_gain` standard errors it does not count.

    Parameters
    ----------
    row_losses : callable
        Loss of each held-out row, (rows,), for a raw output there.
    weight : (rows,) float64
        Of the held-out rows.
    """
    singles = [k for k, one in enumerate(candidates) if one.network is None]
    shallow, shallow_raw = greedy_selection(candidates, singles, row_losses, weight)
    deep, raw = greedy_selection(candidates, range(len(candidates)), row_losses, weight)
    difference = row_losses(shallow_raw) - row_losses(raw)
    share = weight / weight.sum()
    gain = float(share @ difference)
    error = float(np.sqrt(np.square(share) @ np.square(difference - gain)))
    if not gain > least_gain * error:
        return shallow, gain, error
    share_of_deep = shrink_weight(gain / error, half_at) if error > 0 else 1.0
    return share_of_deep * deep + (1.0 - share_of_deep) * shallow, gain, error


def greedy_selection(
    candidates: Sequence[TrainedCandidate],
    allowed: Sequence[int],
    row_losses: Callable[[Floats], Floats],
    weight: Floats,
) -> tuple[Floats, Floats]:
    """Return weights by greedy selection with replacement (Caruana and others 2004), and the raw output of the sum.

    Candidates are picked one by one, each the best for the mean of all picked, until the mean is no better by it.
    """
    picked: list[int] = []
    total = np.zeros_like(candidates[0].held_out)
    best = np.inf
    while len(picked) < constants.SELECTION_STEPS:
        means = {k: (total + candidates[k].held_out) / (len(picked) + 1) for k in allowed}
        scores = {k: float(np.nan_to_num(weight @ row_losses(mean), nan=np.inf)) for k, mean in means.items()}
        k = min(scores, key=lambda number: scores[number])
        if picked and not scores[k] < best:
            break
        best = scores[k]
        picked.append(k)
        total = total + candidates[k].held_out
    return np.bincount(picked, minlength=len(candidates)) / len(picked), total / len(picked)
