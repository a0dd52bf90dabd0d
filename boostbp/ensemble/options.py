"""Options: what a model may be made of, the sum of them that held-out rows like best, and what networks add to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.ensemble.output_layers import OutputLayerPlan
from boostbp.losses import Loss, traits_of
from boostbp.network.network import Network

__all__ = [
    "HALF_WEIGHT_T",
    "WEAK_SIGNAL_T",
    "Option",
    "distinct",
    "ensemble_weights",
    "greedy_selection",
    "half_weight_t_of",
    "shrink_weight",
    "smooth_labels",
    "t_statistic",
]

Floats = NDArray[np.float64]
PICKS = 20  # steps of the search for weights
SMOOTHING = 0.25  # rows like each held-out row that have another class, in the eyes of those who weigh
HALF_WEIGHT_T = 2.0  # standard errors of the gain on held-out rows at which networks get half of their weight
WEAK_SIGNAL_T = 6.0  # standard errors of the slope of held-out targets on outputs below which numbers are, too


@dataclass(frozen=True, slots=True)
class Option:
    """What may be part of the model.

    Attributes
    ----------
    name : str
    stack : str or None
        Name of the network whose hidden layers it has; None for a single layer.
    network : Network
    held : (rows, outputs) float64
        Its raw output on the held-out rows.
    head : OutputLayerPlan or None
        How its output layer may be grown again on more rows.
    """

    name: str
    stack: str | None
    network: Network
    held: Floats
    head: OutputLayerPlan | None = None


def half_weight_t_of(loss: Loss) -> float:
    """Standard errors of the gain at which networks have half a say in the sum."""
    return HALF_WEIGHT_T if traits_of(loss).task == "classification" else 0.0


def shrink_weight(t: float, half_at: float) -> float:
    """How much something counts that stands t standard errors above nothing, and half at `half_at`."""
    return t**2 / (half_at**2 + t**2) if half_at else 1.0


def t_statistic(raw: Floats, target: Floats, baseline: Floats, weight: Floats, loss: Loss) -> float:
    """Slope of a target on a raw output, (rows, outputs), both from the baseline on, in its standard errors.

    Infinite for losses that are no squared residuals, of whose targets nothing is known, and for the baseline itself.
    """
    u, y = raw - baseline, target - baseline
    size = float(weight @ np.square(u).sum(1))
    if not traits_of(loss).least_squares or not size > 0:
        return np.inf
    slope = float(weight @ (u * y).sum(1)) / size
    pull = weight * (u * (y - slope * u)).sum(1)
    error = float(np.sqrt(pull @ pull)) / size
    return max(slope, 0.0) / error if error > 0 else np.inf


def smooth_labels(target: Floats, weight: Floats, loss: Loss) -> Floats:
    """Targets of held-out rows; of classes, as if a quarter of a row more like each had another class.

    Few rows may all be told apart by a model that is sure of them without limit: it would seem to lose nothing, and
    lose without limit where it errs. The idea is Platt's (1999), with all held-out rows in place of those of a class,
    and a quarter of his row: models that tell few rows apart may well be right.
    """
    if not traits_of(loss).soft_labels:
        return target
    other = SMOOTHING / (np.count_nonzero(weight) + 2.0)
    if target.shape[1] == 1:
        return target * (1.0 - other) + (1.0 - target) * other
    return target * (1.0 - other) + (1.0 - target) * other / (target.shape[1] - 1)


def distinct(options: Sequence[Option]) -> list[Option]:
    """Leave out an option that predicts the held-out rows exactly as an earlier one does, of networks or of others.

    A backend may not do what tells two of them apart, and native parameters may undo it.
    """
    first: dict[tuple[bool, bytes], Option] = {}
    for option in options:
        first.setdefault((option.stack is None, option.held.tobytes()), option)
    return list(first.values())


def ensemble_weights(
    options: Sequence[Option],
    row_losses: Callable[[Floats], Floats],
    weight: Floats,
    *,
    least_gain: float,
    half_at: float,
) -> tuple[Floats, float, float]:
    """Weights of the options; what deep ones add to the best sum of shallow ones, and its standard error.

    The gain, t standard errors, counts for t^2 / (half_at^2 + t^2): so much of the model is the sum with deep ones, the
    rest is the sum without. With no more than `least_gain` standard errors it does not count.
    """
    singles = [k for k, option in enumerate(options) if option.stack is None]
    shallow, shallow_raw = greedy_selection(options, singles, row_losses, weight)
    deep, raw = greedy_selection(options, range(len(options)), row_losses, weight)
    difference = row_losses(shallow_raw) - row_losses(raw)
    share = weight / weight.sum()
    gain = float(share @ difference)
    error = float(np.sqrt(np.square(share) @ np.square(difference - gain)))
    if not gain > least_gain * error:
        return shallow, gain, error
    share_of_deep = shrink_weight(gain / error, half_at) if error > 0 else 1.0
    return share_of_deep * deep + (1.0 - share_of_deep) * shallow, gain, error


def greedy_selection(
    options: Sequence[Option], allowed: Sequence[int], row_losses: Callable[[Floats], Floats], weight: Floats
) -> tuple[Floats, Floats]:
    """Forward selection with replacement: options picked one by one, each the best for the mean of all picked.

    Their weights, and the raw output of their sum.
    """
    picked: list[int] = []
    total = np.zeros_like(options[0].held)
    best = np.inf
    while len(picked) < PICKS:
        means = {k: (total + options[k].held) / (len(picked) + 1) for k in allowed}
        scores = {k: float(np.nan_to_num(weight @ row_losses(mean), nan=np.inf)) for k, mean in means.items()}
        k = min(scores, key=lambda option: scores[option])
        if picked and not scores[k] < best:
            break
        best = scores[k]
        picked.append(k)
        total = total + options[k].held
    return np.bincount(picked, minlength=len(options)) / len(picked), total / len(picked)
