"""Merging: several forests as one, whose outputs are their weighted outputs, side by side or summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.trees import kernels
from boostbp.trees.basis import Linear
from boostbp.trees.forest import Forest

__all__ = ["Part", "merged"]


class Part(NamedTuple):
    """A forest, and its place in the whole.

    Attributes
    ----------
    forest : Forest
    features : (its features,) int
        Number of each of its features among those of the whole.
    first_output : int
        Output of the whole that its first output is added to.
    weight : float
        What its outputs are multiplied by.
    """

    forest: Forest
    features: NDArray[np.int64]
    first_output: int = 0
    weight: float = 1.0


def merged(parts: Sequence[Part], *, n_features: int, n_outputs: int) -> Forest:
    """One forest of the trees of all parts, on the basis of those that have path columns.

    Trees on [1, x] and on [1, x, x^2] can stand side by side, as each has its own degree.

    Raises
    ------
    ValueError
        If parts have path columns on other different bases, or clip them differently.
    """
    pathed = [part.forest for part in parts if len(part.forest.leaves.column)] or [parts[0].forest]
    first = max(pathed, key=lambda forest: forest.basis.degree)
    for forest in pathed:
        powers = isinstance(forest.basis, Linear) and isinstance(first.basis, Linear)
        if not (powers or forest.basis == first.basis) or forest.clip != first.clip:
            raise ValueError(f"forests on {first.basis!r} and {forest.basis!r} cannot be one.")
    forests = [part.forest for part in parts]
    nodes = [forest.nodes for forest in forests]
    leaves = [forest.leaves for forest in forests]
    per_feature = first.basis.columns_per_feature
    columns, outputs, sets, words = [], [], [], 0
    for part, its in zip(parts, leaves, strict=True):
        feature, function = np.divmod(its.column, max(per_feature, 1))
        columns.append(part.features[feature] * per_feature + function)
        outputs.append(its.tree_output + np.array([part.first_output, 0]))
        own = part.forest.nodes.cat_start
        sets.append(np.where(own >= 0, own + words, own))
        words += len(part.forest.nodes.categories)

    def joined(field: str, of: Sequence[Any]) -> NDArray[Any]:
        return np.concatenate([getattr(one, field) for one in of])

    both_nodes = kernels.Nodes(
        np.concatenate([part.features[part.forest.nodes.feature] for part in parts]).astype(np.int32),
        joined("threshold", nodes),
        joined("left", nodes),
        joined("right", nodes),
        joined("missing_left", nodes),
        np.concatenate(sets).astype(np.int32),
        joined("cat_words", nodes),
        joined("categories", nodes),
    )
    both_leaves = kernels.Leaves(
        _starts([its.tree_leaf for its in leaves]),
        np.concatenate(outputs),
        joined("tree_degree", leaves),
        _starts([its.start for its in leaves]),
        np.concatenate(columns).astype(np.int32),
        joined("frame", leaves),
        _starts([its.weight_start for its in leaves]),
        np.concatenate([part.weight * part.forest.leaves.weight for part in parts]),
        np.concatenate([part.weight * part.forest.leaves.fallback for part in parts]),
    )
    split = _starts([forest.tree_split for forest in forests])
    gain = joined("gain", forests)
    return Forest(n_features, n_outputs, first.basis, first.clip, split, both_nodes, both_leaves, gain)


def _starts(starts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Starts in several arrays as starts in all of them, one after the other."""
    sizes = np.concatenate([np.diff(one) for one in starts])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
