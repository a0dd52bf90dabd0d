"""Baseline: the raw output that training starts from, which is the best constant beside the offsets of the rows."""

from __future__ import annotations

import numpy as np

from boostbp.inputs.rows import Rows
from boostbp.losses import Loss
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.network.settings import Settings
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

MAX_STEPS, MIN_STEP = 100, 1e-10  # limit on the steps of Newton's method, and the step at which it ends. Arbitrary
# A Newton step must be at most this share of the step before. With a hessian twice too large, steps halve each time.
SHORTER = 0.75


def baseline_of(loss: Loss, rows: Rows, settings: Settings) -> Floats:
    """Return the raw output that training starts from: 0 in Algorithm 1, the best constant if the output is boosted."""
    if settings.output_target != "loss":
        return np.zeros(rows.y.shape[1])
    return best_constant(loss, rows)


def best_constant(loss: Loss, rows: Rows) -> Floats:
    """Return the best constant beside an offset, (outputs,): ``argmin_c sum weight loss(c + offset, y)``.

    It lies between ``c - max(offset)`` and ``c - min(offset)``, where c is the best constant without offset. Newton's
    method finds it there, with bisection if a step would leave the bracket or is hardly shorter than the one before.
    In a group, all workers use the same sample of the rows.
    """
    y, weight, offset, checked = rows.y, rows.weight, rows.offset, CheckedLoss(loss)
    if not offset.ndim:
        return checked.baseline(*workers().sample(y, weight))
    y, weight, offset = workers().sample(y, weight, offset)
    if loss.scale_free:  # the fit shifts with the target
        return checked.baseline(y - offset, weight)
    constant = checked.baseline(y, weight)
    low, high = constant - offset.max(axis=0), constant - offset.min(axis=0)
    constant = constant - weight @ offset / weight.sum()
    step = high - low
    for _ in range(MAX_STEPS):
        h = constant + offset
        slope = weight @ checked.gradient(h, y)
        low, high = np.where(slope < 0, constant, low), np.where(slope > 0, constant, high)
        after = constant - slope / (weight @ checked.hessian(h, y))
        newton = (low <= after) & (after <= high) & (np.abs(after - constant) <= SHORTER * step)
        after = np.where(newton, after, (low + high) / 2)
        step, constant = np.abs(after - constant), after
        if (step <= MIN_STEP).all():
            break
    return constant
