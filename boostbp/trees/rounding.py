"""Rounding: a fitted forest in numbers of few bits, which make a small file and nearly the same forest.

A leaf's path column has the scaling ``(center, inv_scale, lower, upper)`` and the terms ``u`` and ``u^2`` of
``u = (z - center) inv_scale``. With another center and scale, ``u = ratio v + shift``, the leaf's value is

``w_0 + w_1 shift + w_2 shift^2 + (w_1 + 2 w_2 shift) ratio v + w_2 ratio^2 v^2``.

The scale becomes the next power of two, and the center the nearest multiple of 1/64 of it. This changes the value only
for rows that miss the column. Two steps lose bits: bounds are rounded outwards, so that no row of the leaf is clipped,
and weights are rounded.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boostbp.runtime.arrays import Floats
from boostbp.trees import kernels
from boostbp.trees.forest import Forest
from boostbp.trees.tree import offsets

RANGE_BITS = 6  # of centers and bounds, in units of the scale: 1,000 rows do not determine a mean to 1/64 of it
FLOAT32_BITS = 24  # of a center much larger than the scale: float32 then holds it, which is faster for a single row
LEAST_CENTER_BITS = 4  # of such a center, in units of the scale: rows that miss the column get the value at the center


def rounded(forest: Forest, weight_bits: int) -> Forest:
    """Return the forest with rounded leaves.

    Parameters
    ----------
    weight_bits : int
        Bits of a leaf's weights for an output, counted from the largest of them, or from the root mean square of these
        largest weights over all leaves if that is smaller.
    """
    leaves = rescaled(forest.leaves, *_short_scalings(forest.leaves.scaling))
    return replace(forest, leaves=leaves._replace(weight=_short_weights(leaves, weight_bits)))


def rescaled(leaves: kernels.Leaves, scaling: Floats, ratio: Floats, shift: Floats) -> kernels.Leaves:
    """Return the same regressions with other scalings: ``u = ratio v + shift`` of each path column.

    Parameters
    ----------
    scaling : (path columns, 4) float64
        The scalings of ``v``.
    ratio, shift : (path columns,) float64
    """
    weight = leaves.weight.copy()
    kernels.rescale(leaves, ratio, shift, weight)
    return leaves._replace(scaling=scaling, weight=weight)


def _short_scalings(scaling: Floats) -> tuple[Floats, Floats, Floats]:
    """Return short scalings, (path columns, 4), and the ``ratio`` and ``shift`` of each in ``u = ratio v + shift``.

    Columns that do not vary or that go beyond float64 keep their scaling.
    """
    center, inverse, lower, upper = scaling.T
    grid = 2.0**RANGE_BITS
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(1.0 / inverse)
        exponent -= mantissa == 0.5  # a power of two already
        step = np.ldexp(1.0 / grid, exponent)
        of_float32 = np.ldexp(1.0, np.frexp(center)[1] - FLOAT32_BITS)
        step = np.where(of_float32 <= np.ldexp(1.0, exponent - LEAST_CENTER_BITS), np.maximum(step, of_float32), step)
        short_center, short_inverse = np.rint(center / step) * step, np.ldexp(1.0, -exponent)
        ratio, shift = inverse / short_inverse, (short_center - center) * inverse
        bounds = [np.floor((lower - shift) / ratio * grid) / grid, np.ceil((upper - shift) / ratio * grid) / grid]
    short = np.column_stack([short_center, short_inverse, *bounds]) + 0.0  # -0 has other bits, and no other value
    varies = (inverse > 0) & (lower < upper) & np.isfinite(np.column_stack([short, ratio, shift])).all(1)
    return np.where(varies[:, None], short, scaling), np.where(varies, ratio, 1.0), np.where(varies, shift, 0.0)


def _short_weights(leaves: kernels.Leaves, bits: int) -> Floats:
    """Return weights that are multiples of a power of two for each leaf and output."""
    weight, n_weights = leaves.weight, np.diff(leaves.weight_start)
    n_outputs = np.repeat(leaves.tree_output[:, 1], np.diff(leaves.tree_leaf))
    leaf = np.repeat(np.arange(len(n_weights)), n_weights)
    group = offsets(n_outputs)[leaf] + (np.arange(len(weight)) - leaves.weight_start[leaf]) % n_outputs[leaf]
    largest = np.zeros(int(n_outputs.sum()))
    np.maximum.at(largest, group, np.abs(weight))
    with np.errstate(all="ignore"):
        usual = np.sqrt(np.square(largest).mean(where=largest > 0)) if largest.any() else 0.0
    mantissa, exponent = np.frexp(np.fmin(largest, usual))
    exponent -= mantissa == 0.5
    unit = (exponent - bits)[group]
    return np.ldexp(np.rint(np.ldexp(weight, -unit)), unit)
