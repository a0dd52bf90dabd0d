"""Shared structures: trees of several outputs that are alike become one tree that serves all of these outputs.

Classes may share the structures of a round. Kept apart, the trees of ten classes hold each structure ten times, and a
row walks down it ten times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.core import CENTER, INV_SCALE, LEAST_SCALE
from boostbp.trees import kernels
from boostbp.trees.forest import Forest
from boostbp.trees.leaves import take_leaves
from boostbp.trees.rounding import rescaled
from boostbp.trees.tree import offsets

MOST_SCALE = 1e300  # arbitrary: beyond it, new scalings may overflow float64


def share_structures(forest: Forest) -> Forest:
    """Return the forest with one tree in place of each run of like trees that serve successive outputs.

    The regressions of a leaf get one scaling: about the mean of their centers, with bounds that cover the range that
    each tree saw. The functions stay the same but for rounding, and for rows that miss a column: these get the values
    at that mean.
    """
    begins = _begins_run(forest)
    if begins.all():
        return forest
    first_tree, run = np.flatnonzero(begins), np.cumsum(begins) - 1
    members = np.bincount(run)
    leaves = _with_common_scalings(forest.leaves, offsets(members))
    trees, kept = forest.trees.take(first_tree), take_leaves(leaves, first_tree)
    kept.tree_output[:, 1] = np.where(members > 1, members, kept.tree_output[:, 1])
    weight_start = offsets(np.diff(kept.weight_start) * np.repeat(members, np.diff(kept.tree_leaf)))
    # of each leaf: its place in the run's tree, and of its first weight there; those of a term lie side by side
    tree = np.repeat(np.arange(forest.n_trees), np.diff(leaves.tree_leaf))
    place = kept.tree_leaf[run[tree]] + np.arange(len(tree)) - leaves.tree_leaf[tree]
    first = weight_start[place] + tree - first_tree[run[tree]]
    leaf = np.repeat(np.arange(len(tree)), np.diff(leaves.weight_start))
    term = np.arange(len(leaf)) - leaves.weight_start[leaf]
    weight = np.empty(len(leaves.weight))
    weight[first[leaf] + term * members[run[tree[leaf]]]] = leaves.weight
    gain = trees.gain * np.repeat(members, np.diff(trees.tree_split))
    return replace(
        forest,
        trees=replace(trees, gain=gain),
        leaves=kept._replace(weight_start=weight_start, weight=weight),
    )


def _begins_run(forest: Forest) -> NDArray[np.bool_]:
    """Return which trees begin a run: they differ from the tree before, or do not serve the next output, (trees,)."""
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
    """Return which entries differ in a field; two NaN, the thresholds of category sets, do not."""
    unlike = np.zeros(len(at), bool)
    for field in fields:
        a, b = field[at], field[before]
        unlike |= (a != b) & ((a == a) | (b == b))
    return unlike


def _with_common_scalings(leaves: kernels.Leaves, first_tree: NDArray[np.int64]) -> kernels.Leaves:
    """Return the same regressions; the trees of a run get one scaling for each of their path columns."""
    n_paths = len(leaves.column)
    scaling, ratio, shift = leaves.scaling.copy(), np.ones(n_paths), np.zeros(n_paths)
    kernels.common_scalings(leaves, first_tree, scaling, ratio, shift)
    return rescaled(leaves, scaling, ratio, shift)
