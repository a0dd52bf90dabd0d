"""Leaves for missing values: a leaf's constant for rows that miss one of its columns, as splits and leaves of a tree.

LightGBM's linear leaves predict a constant where one of their features is NaN. In place of an exception in every loop
over leaves, such a leaf gets splits above it that ask whether a feature is missing, each with a constant leaf::

    leaf l reads x2, x5       =>      x2 is missing? -> leaf of the constant
                                      x5 is missing? -> leaf of the constant
                                      leaf l
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats
from boostbp.trees.leaf_rows import LeafColumns
from boostbp.trees.leaves import LeafModel
from boostbp.trees.tree import Tree


def with_missing_leaves(tree: Tree, model: LeafModel, constant: Floats) -> tuple[Tree, LeafModel]:
    """Return the tree and its leaves with splits and constant leaves for rows that miss a column of their leaf.

    Leaves keep their numbers; the new ones come after them. The new splits have a gain of 0.

    Parameters
    ----------
    model : LeafModel
        Of one output, whose columns are the features.
    constant : (leaves,) float64
        What a leaf predicts for a row that misses one of its columns.
    """
    pairs = list(_possibly_missing(tree, model.paths))
    leaf, feature = np.array(pairs, np.int64).reshape(-1, 2).T
    first, count = len(tree.feature), len(leaf)
    split, new_leaf = first + np.arange(count), tree.n_leaves + np.arange(count)
    follows = np.diff(leaf, prepend=-1) == 0  # another split of the same leaf stands above
    below = np.where(np.append(follows, False)[1:], split + 1, ~leaf)
    left, right = _redirected(tree, leaf[~follows], split[~follows])
    none, numeric = np.zeros(count, bool), np.full(count, -1)
    rewritten = Tree.of(
        np.concatenate([tree.feature, feature]),
        np.concatenate([tree.threshold, np.full(count, np.inf)]),  # all that is known goes left
        np.concatenate([left, below]),
        np.concatenate([right, ~new_leaf]),
        np.concatenate([tree.missing_left, none]),
        cat_start=np.concatenate([tree.cat_start, numeric]),
        cat_words=np.concatenate([tree.cat_words, none]),
        categories=tree.categories,
        gain=np.concatenate([tree.gain, none]),
    )
    start = np.append(model.paths.start, np.full(count, model.paths.start[-1], np.int32))
    weight = np.append(model.weight, constant[leaf])  # one term, the constant
    return rewritten, LeafModel(LeafColumns(start, model.paths.column, model.paths.degree), model.scaling, weight, 1)


def _possibly_missing(tree: Tree, paths: LeafColumns) -> Iterator[tuple[int, int]]:
    """Yield each leaf and each of its columns that its rows may miss: no split above sends NaN another way."""
    to_leaf = tree.parents()
    for leaf in range(tree.n_leaves):
        elsewhere, child = set(), ~leaf
        while (split := to_leaf.get(child, -1)) >= 0:
            if tree.missing_left[split] != (tree.left[split] == child):
                elsewhere.add(int(tree.feature[split]))
            child = split
        for column in paths.column[paths.start[leaf] : paths.start[leaf + 1]].tolist():
            if column not in elsewhere:
                yield leaf, column


def _redirected(
    tree: Tree, leaf: NDArray[np.int64], split: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the children of the tree's splits, with splits in the place of some leaves."""
    to = ~np.arange(tree.n_leaves)
    to[leaf] = split
    left, right = (np.where(child < 0, to[~child], child) for child in (tree.left, tree.right))
    return left, right
