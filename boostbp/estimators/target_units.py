"""Units of a target: shift and scale that bring it to mean 0 and standard deviation 1."""

from __future__ import annotations

import numpy as np

from boostbp.losses import Loss, location, traits_of
from boostbp.network.steps import std
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

# Quantiles above the median (those below stand opposite), and the distance between the two in a Gaussian's standard
# deviations.
_QUARTILES = ((0.75, 1.349), (0.9, 2.563), (0.98, 4.107))


def standard_units(target: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Weighted mean and standard deviation of each output, (outputs,)."""
    total, moment = workers().sum(weight.sum(), weight @ target)
    shift = moment / total
    unit = np.maximum(std(target, weight), 1e-12 * np.abs(shift))  # what is less is rounding
    return shift, np.where(unit > 0, unit, 1.0)


def robust_units(target: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Weighted median of each output, (outputs,), and its standard deviation as quartiles, or wider quantiles, tell it.

    Where most rows have one value it is the standard deviation.
    """
    _, unit = standard_units(target, weight)
    target, weight = workers().sample(target, weight)
    shift = location.quantile(target, weight, 0.5)
    found = np.zeros_like(unit)
    for upper, between in _QUARTILES:
        width = location.quantile(target, weight, upper) - location.quantile(target, weight, 1.0 - upper)
        found = np.where(found > 0, found, width / between)
    return shift, np.where(found > 1e-12 * np.abs(shift), found, unit)


def units_of(target: Floats, weight: Floats, loss: Loss) -> tuple[Floats, Floats]:
    """Shift and standard deviation that bring a target to mean 0 and standard deviation 1, where the loss allows it.

    Of losses that a few rows far off do not bend these are the median and the quartiles, which such rows do not either.
    """
    n_outputs = target.shape[1]
    if not loss.scale_free:
        return np.zeros(n_outputs), np.ones(n_outputs)
    if traits_of(loss).robust:
        return robust_units(target, weight)
    return standard_units(target, weight)
