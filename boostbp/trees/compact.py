"""Compact forests: rounded numbers, and one tree in place of equal ones, for small files and fast predictions.

**Rounding.** A leaf's path column has the scaling ``(center, inv_scale, lower, upper)`` and the terms ``u`` and ``u^2``
of ``u = (z - center) inv_scale``. With another center and scale, ``u = ratio v + shift``, the leaf's value is

``w_0 + w_1 shift + w_2 shift^2 + (w_1 + 2 w_2 shift) ratio v + w_2 ratio^2 v^2``.

The scale becomes the next power of two, and the center the nearest multiple of 1/64 of it. This changes the value only
for rows whose value of the column is missing. Two more steps change values: bounds are rounded outwards, so that no row
of the leaf is clipped, and weights are rounded.

**Shared structures.** Classes may share the structures of a round. Equal trees of successive outputs become one tree
that serves all of these outputs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.core import CENTER, INV_SCALE, LEAST_SCALE
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest, Run
from boostbp.trees.leaves import take_leaves
from boostbp.trees.tree import offsets

# Bits of centers and bounds, in units of the scale: 1,000 rows do not determine a mean more accurately than 1/64 of it.
RANGE_BITS = 6
# Total bits of a center much larger than the scale: it then fits float32, which is faster for a single row.
FLOAT32_BITS = 24
# Minimum bits of such a center, in units of the scale: rows with a missing value get the value at the center.
LEAST_CENTER_BITS = 4
# Beyond this scale, new scalings may overflow float64. Arbitrary.
MOST_SCALE = 1e300


def rounded(forest: Forest, weight_bits: int) -> Forest:
    """Return the forest with rounded leaves: a leaf's weights for an output keep `weight_bits` bits.

    They count from the largest of these weights, or from the root mean square of all leaves' largest if that is less.
    """
    leaves = rescaled(forest.leaves, *_short_scalings(forest.leaves.scaling))
    runs = tuple(replace(run, short=True) for run in forest.runs)
    return replace(forest, leaves=leaves._replace(weight=_short_weights(leaves, weight_bits)), runs=runs)


def rescaled(leaves: core.Leaves, scaling: Floats, ratio: Floats, shift: Floats) -> core.Leaves:
    """Return the same regressions with the scalings of ``v``, (path columns, 4), in ``u = ratio v + shift``."""
    weight = leaves.weight.copy()
    core.rescale(leaves, ratio, shift, weight)
    return leaves._replace(scaling=scaling, weight=weight)


def _short_scalings(scaling: Floats) -> tuple[Floats, Floats, Floats]:
    """Return rounded scalings, and ``ratio`` and ``shift`` in ``u = ratio v + shift``; constant columns keep theirs."""
    center, inverse, lower, upper = scaling.T
    grid = 2.0**RANGE_BITS
    with np.errstate(all="ignore"):
        # frexp has mantissas from 1/2 to 1: 2^exponent is the next power of two, or twice one that is a power already.
        mantissa, exponent = np.frexp(1.0 / inverse)
        exponent -= mantissa == 0.5
        step = np.ldexp(1.0 / grid, exponent)
        of_float32 = np.ldexp(1.0, np.frexp(center)[1] - FLOAT32_BITS)
        step = np.where(of_float32 <= np.ldexp(1.0, exponent - LEAST_CENTER_BITS), np.maximum(step, of_float32), step)
        short_center, short_inverse = np.rint(center / step) * step, np.ldexp(1.0, -exponent)
        ratio, shift = inverse / short_inverse, (short_center - center) * inverse
        # Bounds of v = (u - shift) / ratio, rounded outwards.
        bounds = [np.floor((lower - shift) / ratio * grid) / grid, np.ceil((upper - shift) / ratio * grid) / grid]
    short = np.column_stack([short_center, short_inverse, *bounds]) + 0.0  # turns -0 into 0
    varies = (inverse > 0) & (lower < upper) & np.isfinite(np.column_stack([short, ratio, shift])).all(1)
    return np.where(varies[:, None], short, scaling), np.where(varies, ratio, 1.0), np.where(varies, shift, 0.0)


def _short_weights(leaves: core.Leaves, bits: int) -> Floats:
    """Return weights that are multiples of a power of two for each leaf and output."""
    weight, n_weights = leaves.weight, np.diff(leaves.weight_start)
    n_outputs = np.repeat(leaves.tree_output[:, 1], np.diff(leaves.tree_leaf))
    leaf = np.repeat(np.arange(len(n_weights)), n_weights)
    # Weights of a leaf are (terms, outputs). Those of one output form a group with one unit.
    group = offsets(n_outputs)[leaf] + (np.arange(len(weight)) - leaves.weight_start[leaf]) % n_outputs[leaf]
    largest = np.zeros(int(n_outputs.sum()))
    np.maximum.at(largest, group, np.abs(weight))
    with np.errstate(all="ignore"):
        usual = np.sqrt(np.square(largest).mean(where=largest > 0)) if largest.any() else 0.0
    mantissa, exponent = np.frexp(np.fmin(largest, usual))
    exponent -= mantissa == 0.5
    unit = (exponent - bits)[group]
    return np.ldexp(np.rint(np.ldexp(weight, -unit)), unit)


def share_structures(forest: Forest) -> Forest:
    """Return the forest with one tree in place of each run of equal trees that serve successive outputs.

    The regressions of a leaf get a common scaling: the mean of their centers, and bounds that cover those of each tree.
    Functions change by rounding alone, except that rows with a missing value get the value at the new center.
    """
    begins = _begins_run(forest)
    if begins.all():
        return forest
    first_tree, run = np.flatnonzero(begins), np.cumsum(begins) - 1
    members = np.bincount(run)
    scaling, n_paths = forest.leaves.scaling.copy(), len(forest.leaves.column)
    ratio, shift = np.ones(n_paths), np.zeros(n_paths)
    core.common_scalings(forest.leaves, offsets(members), scaling, ratio, shift)
    leaves = rescaled(forest.leaves, scaling, ratio, shift)
    trees, kept = forest.trees.take(first_tree), take_leaves(leaves, first_tree)
    kept.tree_output[:, 1] = np.where(members > 1, members, kept.tree_output[:, 1])
    weight_start = offsets(np.diff(kept.weight_start) * np.repeat(members, np.diff(kept.tree_leaf)))
    # place of each leaf in the tree of its run, and of its first weight; weights of a term are adjacent
    tree = np.repeat(np.arange(forest.n_trees), np.diff(leaves.tree_leaf))
    place = kept.tree_leaf[run[tree]] + np.arange(len(tree)) - leaves.tree_leaf[tree]
    first = weight_start[place] + tree - first_tree[run[tree]]
    leaf = np.repeat(np.arange(len(tree)), np.diff(leaves.weight_start))
    term = np.arange(len(leaf)) - leaves.weight_start[leaf]
    weight = np.empty(len(leaves.weight))
    weight[first[leaf] + term * members[run[tree[leaf]]]] = leaves.weight
    gain = trees.gain * np.repeat(members, np.diff(trees.tree_split))
    leaves = kept._replace(weight_start=weight_start, weight=weight)
    counts = np.diff(offsets(begins)[offsets([run.n_trees for run in forest.runs])]).tolist()
    runs = tuple(replace(run, n_trees=count) for run, count in zip(forest.runs, counts, strict=True))
    return replace(forest, trees=replace(trees, gain=gain), leaves=leaves, runs=runs)


def separated(forest: Forest, run: Run) -> Forest:
    """Return the trees of a run with one for each output in place of each that `share_structures` made of several."""
    served = np.where(np.arange(forest.n_trees) < run.n_base, 1, forest.leaves.tree_output[:, 1])
    tree = np.arange(forest.n_trees).repeat(served)
    place, count, taken = np.arange(len(tree)) - offsets(served)[tree], served[tree], forest.take(tree)
    trees, leaves = taken.trees, taken.leaves
    # Weights of a term are adjacent: keep those of the output.
    of_leaf, sizes = np.diff(leaves.tree_leaf), np.diff(leaves.weight_start)
    n_outputs = count.repeat(of_leaf)
    at = np.arange(len(leaves.weight)) - leaves.weight_start[:-1].repeat(sizes)
    kept = at % n_outputs.repeat(sizes) == place.repeat(of_leaf).repeat(sizes)
    output = leaves.tree_output + np.column_stack([place, 1 - count])
    start, weight = offsets(sizes // n_outputs), leaves.weight[kept]
    leaves = leaves._replace(tree_output=output, weight_start=start, weight=weight)
    trees = replace(trees, gain=trees.gain / count.repeat(np.diff(trees.tree_split)))
    return replace(taken, trees=trees, leaves=leaves, runs=(replace(run, n_trees=len(tree)),))


def _begins_run(forest: Forest) -> NDArray[np.bool_]:
    """Return which trees begin a run, (trees,): they differ from the previous tree or do not serve the next output."""
    leaves = forest.leaves
    path_split = leaves.start[leaves.tree_leaf]
    center, inverse = np.abs(leaves.scaling[:, CENTER]), leaves.scaling[:, INV_SCALE]
    with np.errstate(divide="ignore", over="ignore"):
        scale = 1.0 / inverse
    extreme = (inverse != 0.0) & ~((LEAST_SCALE * center < scale) & (scale < MOST_SCALE) & (center < MOST_SCALE))
    alike = np.zeros(forest.n_trees, bool)
    alike[1:] = (np.diff(leaves.tree_output, axis=0) == [1, 0]).all(1) & (np.diff(leaves.tree_degree) == 0)
    alike &= leaves.tree_output[:, 1] == 1
    alike[: forest.n_base + 1] = False
    alike[np.cumsum([run.n_trees for run in forest.runs], dtype=int)[:-1]] = False
    for split, fields in (
        (forest.tree_split, forest.nodes[:-1]),
        (leaves.tree_leaf, (np.diff(leaves.start),)),
        (path_split, (leaves.column, extreme)),
    ):
        size = np.diff(split)
        alike[1:] &= np.diff(size) == 0
        tree = np.repeat(np.arange(len(size)), size)
        at = np.flatnonzero(alike[tree])
        alike &= np.bincount(tree[at], _differ(fields, at, at - size[tree[at]]), len(size)) == 0
    alike &= np.bincount(np.repeat(np.arange(len(size)), size), extreme, len(size)) == 0
    return ~alike


def _differ(fields: tuple[NDArray[Any], ...], at: NDArray[np.intp], before: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which entries differ in a field. Two NaN are equal, as thresholds of category sets are NaN."""
    unlike = np.zeros(len(at), bool)
    for field in fields:
        a, b = field[at], field[before]
        unlike |= (a != b) & ((a == a) | (b == b))
    return unlike
