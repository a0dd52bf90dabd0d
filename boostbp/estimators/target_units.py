"""Units of a target: the shift and scale to mean 0 and standard deviation 1."""

from __future__ import annotations

import numpy as np

from boostbp.losses import Loss, location, traits_of
from boostbp.network.steps import std
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

# Quantile levels q, and the distance between the quantiles q and 1 - q of a Gaussian in standard deviations.
_QUARTILES = ((0.75, 1.349), (0.9, 2.563), (0.98, 4.107))


def standard_units(target: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean and standard deviation of each output, (outputs,)."""
    total, moment = workers().sum(weight.sum(), weight @ target)
    shift = moment / total
    unit = np.maximum(std(target, weight), 1e-12 * np.abs(shift))  # smaller values are rounding errors
    return shift, np.where(unit > 0, unit, 1.0)


def robust_units(target: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the weighted median of each output, and its standard deviation by quartiles, both (outputs,).

    If both quartiles are equal, wider quantiles take their place; if these are equal too, it is `standard_units`'s.
    """
    _, unit = standard_units(target, weight)
    target, weight = workers().sample(target, weight)
    shift = location.quantile(target, weight, 0.5)
    robust = np.zeros_like(unit)
    for upper, between in _QUARTILES:
        width = location.quantile(target, weight, upper) - location.quantile(target, weight, 1.0 - upper)
        robust = np.where(robust > 0, robust, width / between)
    return shift, np.where(robust > 1e-12 * np.abs(shift), robust, unit)


def units_of(target: Floats, weight: Floats, loss: Loss) -> tuple[Floats, Floats]:
    """Return the shift and scale of a target for a loss, both (outputs,).

    They are 0 and 1 for a loss that depends on the units, and the median and quartiles for a robust loss.
    """
    n_outputs = target.shape[1]
    if not loss.scale_free:
        return np.zeros(n_outputs), np.ones(n_outputs)
    if traits_of(loss).robust:
        return robust_units(target, weight)
    return standard_units(target, weight)
