"""Merging: make one forest of several, whose outputs are theirs times weights, side by side or summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.trees.forest import Forest, TreeBatch


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
