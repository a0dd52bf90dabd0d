"""Merging: several forests as one, and like trees of several outputs as one tree that serves them all.

Forests that become one give outputs that are theirs times weights, side by side or summed. Classes may share the
structures of a round. Kept apart, the trees of ten classes hold each structure ten times, and a row walks down it ten
times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.trees import kernels
from boostbp.trees.forest import Forest, TreeBatch
from boostbp.trees.kernels.joining import LEAST_SCALE
from boostbp.trees.kernels.records import CENTER, INV_SCALE
from boostbp.trees.rounding import rescaled
from boostbp.trees.tree import offsets


class PlacedForest(NamedTuple):
    """A forest, and where its features and outputs stand in the merged one.

    Attributes
    ----------
    features : (its features,) int
        Number of each of its features among those of the merged forest.
    first_output : int
        Output of the merged forest that its first output is added to.
    weight : float
        What its outputs are multiplied by; gains, which grow with their square, by its square.
    """

    forest: Forest
    features: NDArray[np.int64]
    first_output: int = 0
    weight: float = 1.0


def merged(parts: Sequence[PlacedForest], *, n_features: int, n_outputs: int) -> Forest:
    """Return one forest of the trees of all parts, on the basis of those whose leaves read columns.

    Trees on [1, x] and on [1, x, x^2] can stand side by side, as each has its own degree.

    Raises
    ------
    ValueError
        If parts have path columns on other different bases, or clip them differently.
    """
    reading = [part.forest for part in parts if len(part.forest.leaves.column)] or [parts[0].forest]
    first = max(reading, key=lambda forest: forest.basis.powers)
    for forest in reading:
        of_features = not (forest.basis.has_functions or first.basis.has_functions)
        if not (of_features or forest.basis == first.basis) or forest.clip != first.clip:
            raise ValueError(f"forests on {first.basis!r} and {forest.basis!r} cannot be one.")
    per_feature = first.basis.columns_per_feature
    placed = [_placed(part, per_feature) for part in parts]
    return Forest.of(placed, n_features=n_features, n_outputs=n_outputs, basis=first.basis, clip=first.clip)


def _placed(part: PlacedForest, per_feature: int) -> TreeBatch:
    """Return its trees, with the feature and output numbers of the merged forest."""
    trees, leaves = part.forest.trees, part.forest.leaves
    feature, function = np.divmod(leaves.column, max(per_feature, 1))
    nodes = trees.nodes._replace(feature=part.features[trees.nodes.feature])
    return TreeBatch(
        replace(trees, nodes=nodes, gain=part.weight**2 * trees.gain),
        leaves._replace(
            tree_output=leaves.tree_output + np.array([part.first_output, 0]),
            column=part.features[feature] * per_feature + function,
            weight=part.weight * leaves.weight,
        ),
    )


MOST_SCALE = 1e300  # with larger ones rounding is not beside the point, either


def joined(forest: Forest) -> Forest:
    """Return the forest with one tree in the place of each run of like trees, whose outputs follow on one another.

    The regressions of a leaf get one scaling: about the mean of their centers, with bounds that hold what each saw.
    They are the same functions but for rounding, and for rows that miss a column, which get the values at that mean.
    """
    begins = _begins_run(forest)
    if begins.all():
        return forest
    size, run = np.diff(forest.tree_split), np.cumsum(begins) - 1
    members = np.bincount(run)
    leaves = _with_common_scalings(forest.leaves, offsets(members))
    kept_splits, kept_leaves = np.repeat(begins, size), np.repeat(begins, size + 1)
    n_columns, n_weights = np.diff(leaves.start), np.diff(leaves.weight_start)
    kept_columns, member_of = np.repeat(kept_leaves, n_columns), np.repeat(members[run], size + 1)
    tree_leaf, weight_start = offsets(size[begins] + 1), offsets((n_weights * member_of)[kept_leaves])
    # of each leaf: its place in the run's tree, and of its first weight there; those of a term lie side by side
    tree = np.repeat(np.arange(len(size)), size + 1)
    place = tree_leaf[run[tree]] + np.arange(len(tree)) - leaves.tree_leaf[tree]
    first = weight_start[place] + tree - np.flatnonzero(begins)[run[tree]]
    leaf = np.repeat(np.arange(len(tree)), n_weights)
    weight = np.empty(len(leaves.weight))
    weight[first[leaf] + (np.arange(len(leaf)) - leaves.weight_start[leaf]) * member_of[leaf]] = leaves.weight
    output = leaves.tree_output[begins]
    output[:, 1] = np.where(members > 1, members, output[:, 1])
    return replace(
        forest,
        tree_split=offsets(size[begins]),
        nodes=kernels.Nodes._make(
            [*[of_split[kept_splits] for of_split in forest.nodes[:-1]], forest.nodes.categories]
        ),
        leaves=kernels.Leaves(
            tree_leaf, output, leaves.tree_degree[begins], offsets(n_columns[kept_leaves]),
            leaves.column[kept_columns], leaves.scaling[kept_columns], weight_start, weight,
        ),
        gain=(forest.gain * np.repeat(members[run], size))[kept_splits],
    )  # fmt: skip


def _begins_run(forest: Forest) -> NDArray[np.bool_]:
    """Return which trees are not like the one before, with the next output, (trees,)."""
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
    """Return which entries differ in a field; NaN, the threshold of a set of categories, is like NaN."""
    unlike = np.zeros(len(at), bool)
    for field in fields:
        a, b = field[at], field[before]
        unlike |= (a != b) & ((a == a) | (b == b))
    return unlike


def _with_common_scalings(leaves: kernels.Leaves, first_tree: NDArray[np.int64]) -> kernels.Leaves:
    """Return the same regressions, those of the trees of a run with one scaling for each of their path columns."""
    n_paths = len(leaves.column)
    scaling, ratio, shift = leaves.scaling.copy(), np.ones(n_paths), np.zeros(n_paths)
    kernels.common_scalings(leaves, first_tree, scaling, ratio, shift)
    return rescaled(leaves, scaling, ratio, shift)
