"""Grown trees: the trees that a backend, perhaps the user's, returns, checked and in the arrays of this package.

Kernels check no bounds, so everything is checked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from boostbp.backends.base import LinearLeaves, TreeParams
from boostbp.layers.bound import BoundInput
from boostbp.trees import kernels
from boostbp.trees.leaf_regressions import ColumnBins, rows_by_leaf
from boostbp.trees.leaves import LeafColumns, LeafModel, Workspace, with_missing_leaves
from boostbp.trees.packed import check_nodes
from boostbp.trees.ridge import LeafRanges
from boostbp.trees.tree import Tree, Trees


def checked_trees(grown: object, count: int, bound: BoundInput, most: int) -> Trees:
    """Return what a backend grew in a round as trees in flat arrays.

    Parameters
    ----------
    grown : object
        What `Grower.grow` returned.
    count : int
        Number of trees that it should be.
    most : int
        Leaves that a tree may have at most, for their numbers to be kept.

    Raises
    ------
    ValueError
        If it is not `count` well-formed trees, on features of the table and with no more leaves than allowed.
    """
    if not isinstance(grown, Sequence) or len(grown) != count:
        what = f"{len(grown)} trees" if isinstance(grown, Sequence) else repr(grown)
        raise ValueError(f"the backend grew {what} instead of {count}: `grow` must return a sequence of {count} trees.")
    growth = bound.settings.growth
    if isinstance(grown, Trees):  # a library's own arrays
        check_leaves(grown, most, growth)
        return grown
    for tree in grown:
        if not isinstance(tree, Tree):
            raise ValueError(f"the backend grew {tree!r}: `grow` must return objects of boostbp.trees.tree.Tree.")
    trees, n_features = Trees.of(grown), bound.table.X.shape[1]
    feature = trees.nodes.feature
    if len(feature) and not 0 <= feature.min() <= feature.max() < n_features:
        wrong = feature[(feature < 0) | (feature >= n_features)][0]
        raise ValueError(
            f"the backend grew a tree that splits feature {wrong}, of {n_features}: number features from 0, in the "
            "order of the table's columns."
        )
    try:
        check_nodes(trees.nodes, trees.split, n_features)
    except ValueError as error:
        raise ValueError(
            f"the backend grew a tree that cannot be walked down. {error} See boostbp.trees.tree.Tree.of."
        ) from error
    check_leaves(trees, min(most, growth.leaves), growth)
    return trees


def from_native(
    leaves: LinearLeaves, bound: BoundInput, bins: ColumnBins | None, space: Workspace
) -> tuple[Tree, LeafModel]:
    """Return a library's own linear leaves in our scaling, with leaves for missing values: the same function."""
    X, paths = bound.table.X, LeafColumns(leaves.start, leaves.features, 1)
    blocks = rows_by_leaf(leaves.tree, paths, X, X, bins, np.empty(len(X), np.int32), space)
    ranges = [LeafRanges.of(rows, paths, bound.weight) for rows in blocks]
    for rows in blocks:
        rows.give_back(space)
    # The library's leaves are const + coeff x; ours are in u = (x - center) / scale, clipped to the training range.
    scaling = sum(ranges[1:], start=ranges[0]).scaling(flat_scale=1.0)
    w = np.insert(leaves.coeff, leaves.start[:-1], leaves.const)
    kernels.scale_weights(paths.start, 1, 1, scaling, w)
    return with_missing_leaves(leaves.tree, LeafModel(paths, scaling, w, 1), leaves.missing)


def check_leaves(trees: Trees, most: int, growth: TreeParams) -> None:
    """Refuse trees of more leaves than `most`: leaves without a number would be routed wrongly, and silently."""
    leaves = int((trees.split[1:] - trees.split[:-1]).max(initial=0)) + 1
    if leaves > most:
        raise ValueError(
            f"the backend grew a tree of {leaves} leaves, but max_depth and max_leaves allow {growth.leaves}: a "
            "backend must keep to `TreeParams.leaves`."
        )


def check_streams(n_groups: object, n_outputs: int) -> None:
    """Refuse a number of random streams from `Capabilities.streams` that does not suit the outputs."""
    if not isinstance(n_groups, Integral) or not 1 <= int(n_groups) <= n_outputs:
        raise ValueError(
            f"the streams of the backend's capabilities returned {n_groups!r} for {n_outputs} outputs: return a whole "
            f"number from 1 to {n_outputs}."
        )
