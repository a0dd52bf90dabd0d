"""Baseline: the raw output that training starts from, the best constant beside the offsets of the rows."""

from __future__ import annotations

import numpy as np

from boostbp.inputs.rows import Rows
from boostbp.losses import Loss
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.network.settings import Settings
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

MOST_STEPS, LEAST_STEP = 100, 1e-10
SHORTER = 0.75  # a step as a share of the one before; those of a hessian that is twice too large are half as long


def baseline_of(loss: Loss, rows: Rows, settings: Settings) -> Floats:
    """Raw output that training starts from: 0 in Algorithm 1, the best constant where the output is boosted."""
    if settings.output_target != "loss":
        return np.zeros(rows.y.shape[1])
    return best_constant(loss, rows)


def best_constant(loss: Loss, rows: Rows) -> Floats:
    """Return the constant that is best beside an offset, (outputs,): ``argmin_c sum weight loss(c + offset, y)``.

    It lies between the best one without an offset minus the largest offset, and minus the least. There it is found by
    Newton's method, or by bisection where a step would leave the bracket, or steps hardly become shorter. Of the
    workers of a group it is that of a sample, the same for all.
    """
    y, weight, offset, checked = rows.y, rows.weight, rows.offset, CheckedLoss(loss)
    if not offset.ndim:
        return checked.baseline(*workers().sample(y, weight))
    y, weight, offset = workers().sample(y, weight, offset)
    if loss.scale_free:  # a fit that shifts with the target
        return checked.baseline(y - offset, weight)
    constant = checked.baseline(y, weight)
    low, high = constant - offset.max(axis=0), constant - offset.min(axis=0)
    constant = constant - weight @ offset / weight.sum()
    step = high - low
    for _ in range(MOST_STEPS):
        h = constant + offset
        slope = weight @ checked.gradient(h, y)
        low, high = np.where(slope < 0, constant, low), np.where(slope > 0, constant, high)
        after = constant - slope / (weight @ checked.hessian(h, y))
        newton = (low <= after) & (after <= high) & (np.abs(after - constant) <= SHORTER * step)
        after = np.where(newton, after, (low + high) / 2)
        step, constant = np.abs(after - constant), after
        if (step <= LEAST_STEP).all():
            break
    return constant
