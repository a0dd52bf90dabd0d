"""Survival curves of a model: what a fit learns of them beside the raw output, and their values.

With proportional hazards, the cumulative hazard is ``exp(h)`` times that of the baseline, which Breslow's estimate of
some rows knows at their distinct times of events. With accelerated failure time, the loss has the distribution, whose
scale is estimated again once there is a model: that of the constant, with which training begins, is too large.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boostbp.losses.aft import AFT
from boostbp.metrics.survival_curves import breslow
from boostbp.model.model import Model
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers


def with_curves(model: Model, raw: Floats, y: Floats, weight: Floats) -> Model:
    """Return the model with the distinct times of events, and with the baseline hazard of proportional hazards.

    `raw` is the raw output, offset included, (rows, 1); `y` are bounds, (rows, 2).
    """
    if isinstance(model.targets.loss, AFT):
        distinct = np.unique(y[np.isfinite(y) & (y > 0) & (weight > 0)[:, None]])
        return replace(model, event_times=np.unique(np.concatenate(workers().gather(distinct))))
    curve = breslow(raw[:, 0], y[:, 0], y[:, 0] == y[:, 1], sample_weight=weight)
    steps = np.diff(curve.y, prepend=0.0) > 0
    steps[-1] = True  # the curve is known until the last row
    return replace(model, event_times=curve.x[steps], hazard=curve.y[steps])


def with_scale(model: Model, raw: Floats, y: Floats, weight: Floats) -> Model:
    """Return the model with the scale of accelerated failure times that is most likely for some rows."""
    if not isinstance(model.targets.loss, AFT):
        return model
    loss = model.targets.loss.estimated(y, weight, raw, shifted=False)
    return replace(model, targets=replace(model.targets, loss=loss))


def cumulative_hazards(model: Model, raw: Floats, times: Floats) -> Floats:
    """Return the cumulative hazard of each raw output, (rows, 1), at times: (rows, times).

    Raises ValueError for times beyond the last row of proportional hazards.
    """
    if isinstance(model.targets.loss, AFT):
        return -model.targets.loss.log_survival(raw, times)
    assert model.event_times is not None and model.hazard is not None  # noqa: PT018
    if (times > model.event_times[-1]).any():
        last = f"{model.event_times[-1]:g}, the last time of training"
        raise ValueError(f"times holds {times.max():g}, and hazards are known until {last}: leave later ones out.")
    baseline = np.append(0.0, model.hazard)[np.searchsorted(model.event_times, times, side="right")]
    with np.errstate(divide="ignore", over="ignore"):
        return np.exp(np.log(baseline) + raw)


def times_by_which(model: Model, raw: Floats, shares: Floats) -> Floats:
    """Return the times by which the shares have had the event, (rows, shares); infinite where a curve ends before."""
    if isinstance(model.targets.loss, AFT):
        return model.targets.loss.quantiles(raw, shares)
    assert model.event_times is not None and model.hazard is not None  # noqa: PT018
    with np.errstate(divide="ignore"):
        needed = np.log(-np.log1p(-shares)) - raw  # logarithm of the baseline hazard at these times
        place = np.searchsorted(np.log(model.hazard), needed)
    return np.append(model.event_times, np.inf)[place]
