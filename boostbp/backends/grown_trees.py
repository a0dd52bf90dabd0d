"""Grown trees: the trees that a backend, perhaps the user's, returns for a round, checked and in flat arrays.

Kernels check no bounds, so everything is checked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from boostbp.backends.base import Table, TreeParams
from boostbp.runtime import checks
from boostbp.trees.packed import check_nodes
from boostbp.trees.tree import Tree, Trees, as_trees


def accepted_trees(grown: object, count: int, table: Table, growth: TreeParams) -> Trees:
    """Return what a backend grew as `checked_trees` does; arrays that boostbp read of a library need no check."""
    if type(grown) is Trees and len(grown) == count:  # a `Tree` of the user is no sequence of trees
        return grown
    return checked_trees(grown, count, table, growth)


def checked_trees(grown: object, count: int, table: Table, growth: TreeParams) -> Trees:
    """Return what a backend grew, in flat arrays; ValueError if it is not `count` trees that can be walked down."""
    if not isinstance(grown, Sequence) or isinstance(grown, Tree) or len(grown) != count:
        what = checks.shown(grown)
        if isinstance(grown, Sequence) and not isinstance(grown, Tree):
            what = f"{len(grown)} trees"
        raise ValueError(f"the backend grew {what} instead of {count}: `grow` must return a sequence of {count} trees.")
    for tree in grown:
        if not isinstance(tree, Tree):
            raise ValueError(
                f"the backend grew {checks.shown(tree)}: `grow` must return objects of boostbp.trees.tree.Tree, made "
                "by Tree.of(...)."
            )
    trees, n_features = as_trees(list(grown)), table.X.shape[1]
    feature = trees.feature
    if len(feature) and not 0 <= feature.min() <= feature.max() < n_features:
        wrong = feature[(feature < 0) | (feature >= n_features)][0]
        raise ValueError(
            f"the backend grew a tree that splits feature {wrong}, of {n_features}: number features from 0, in the "
            "order of the table's columns."
        )
    try:
        check_nodes(trees.nodes, trees.tree_split, n_features)
    except ValueError as error:
        raise ValueError(
            f"the backend grew a tree that cannot be walked down. {error} Split 0 is the root; each other split 1, 2, "
            "... and each leaf ~0, ~1, ... is a child once, see boostbp.trees.tree.Tree.of. "
            "boostbp.backends.dialects.Numbering makes these numbers where splits and leaves are mixed."
        ) from error
    check_leaves(trees, growth.leaves, growth)
    return trees


def check_leaves(trees: Trees, most: int, growth: TreeParams) -> None:
    """Refuse trees of more leaves than `most`: leaves without a number would be routed wrongly, and silently."""
    leaves = int(np.diff(trees.tree_split).max(initial=0)) + 1
    if leaves > most:
        raise ValueError(
            f"the backend grew a tree of {leaves} leaves, but max_depth and max_leaves allow {growth.leaves}: a "
            "backend must keep to `TreeParams.leaves`."
        )


def check_streams(count: object, n_outputs: int) -> None:
    """Refuse a number of random streams from `Capabilities.streams` that does not suit the outputs."""
    if not isinstance(count, Integral) or not 1 <= int(count) <= n_outputs:
        raise ValueError(
            f"the streams of the backend's capabilities returned {checks.shown(count)} for {n_outputs} outputs: return "
            f"a whole number from 1 to {n_outputs}."
        )
