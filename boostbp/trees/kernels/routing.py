"""Compiled loops over splits: which leaf a row reaches, which features lie on the way."""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import INT, INT64S, LEAF_OUT, MATRIX, NODES, entry_point, written
from boostbp.trees.kernels.records import TILE, internal, put_leaf

FEW = 16  # rows that are sooner led through the splits one by one than a flat copy of the tree is made


@internal
def sends_left(nodes, split, value):
    """Whether a split sends a value left."""
    if value != value:
        return nodes.missing_left[split]
    if nodes.cat_start[split] < 0:
        return value <= nodes.threshold[split]
    if value > -1.0 and value < 32.0 * nodes.cat_words[split]:
        code = np.int64(value)
        word = nodes.categories[nodes.cat_start[split] + (code >> 5)]
        return (word >> np.uint32(code & 31)) & np.uint32(1) == 1
    return False


@internal
def goes_left(nodes, split, x):
    """Whether a split sends a row left."""
    return sends_left(nodes, split, x[nodes.feature[split]])


# Numbers of a node in a flat tree. They have no sign: such indices need no check whether they count from the end.
FEATURE, MISSING_LEFT, RIGHT, LEFT, WIDTH = np.uint32(0), np.uint32(1), np.uint32(2), np.uint32(3), np.uint32(4)


@internal
def _flatten(nodes, first, last, flat, threshold, todo):
    """Write a numeric tree in which leaves are splits that lead to themselves, so that every row takes as many steps.

    Writes `WIDTH` numbers of each node, splits first, then leaves, into `flat`, and its `threshold`. Returns the number
    of steps to the deepest leaf. `todo` is scratch: nodes, each followed by its depth.
    """
    n_splits = last - first
    for i in range(2 * n_splits + 1):
        k = WIDTH * np.uint32(i)
        if i < n_splits:
            left, right = nodes.left[first + i], nodes.right[first + i]
            flat[k + FEATURE] = nodes.feature[first + i]
            flat[k + MISSING_LEFT] = nodes.missing_left[first + i]
            flat[k + RIGHT] = right if right >= 0 else n_splits + ~right
            flat[k + LEFT] = left if left >= 0 else n_splits + ~left
            threshold[i] = nodes.threshold[first + i]
        else:
            flat[k + FEATURE] = 0
            flat[k + MISSING_LEFT] = 0
            flat[k + RIGHT] = i
            flat[k + LEFT] = i
            threshold[i] = 0.0
    todo[0] = 0
    todo[1] = 0
    n_todo, steps = 1, 0
    while n_todo > 0:  # a parent need not come before its children
        n_todo -= 1
        node, depth = todo[2 * n_todo], todo[2 * n_todo + 1]
        steps = max(steps, np.int64(depth))
        if node < n_splits:
            for side in (RIGHT, LEFT):
                todo[2 * n_todo] = flat[WIDTH * node + side]
                todo[2 * n_todo + 1] = depth + 1
                n_todo += 1
    return steps


@internal
def _step(flat, threshold, X, top, n, at):
    """Move `n` rows one split down. No jump in the code depends on a row."""
    for i in range(n):
        node = at[i]
        k = WIDTH * node
        value = X[top + i, flat[k + FEATURE]]
        left = np.uint32(value <= threshold[node]) | (np.uint32(value != value) & flat[k + MISSING_LEFT])
        at[i] = flat[k + RIGHT + left]


@internal
def _is_numeric(nodes, first, last):
    for i in range(first, last):
        if nodes.cat_start[i] >= 0:
            return False
    return last > first


@entry_point(NODES, INT64S, MATRIX, INT, INT, LEAF_OUT)
def route(nodes, tree_split, X, begin, end, leaf):
    """Write the leaf of rows ``begin .. end - 1`` under each tree of a forest into `leaf`, leaf numbers."""
    n_trees = len(tree_split) - 1
    most = np.int64(0)
    for tree in range(n_trees):
        most = max(most, tree_split[tree + 1] - tree_split[tree])
    n_nodes = 2 * most + 1
    flat, todo = np.empty(4 * n_nodes, np.uint32), np.empty(2 * n_nodes, np.uint32)
    threshold, at = np.empty(n_nodes), np.empty(TILE, np.uint32)
    for first_row in range(begin, end, 32 * TILE):
        last_row = min(first_row + 32 * TILE, end)
        for tree in range(n_trees):
            first, last = tree_split[tree], tree_split[tree + 1]
            if last_row - first_row <= FEW or not _is_numeric(nodes, first, last):
                for row in range(first_row, last_row):
                    # `goes_left`, written out: to hand arrays to a function counts their users, atomically, which lets
                    # no load of the next tree begin before the last one of this has come.
                    node = np.int64(0 if last > first else ~0)
                    while node >= 0:
                        split = first + node
                        value = X[row, nodes.feature[split]]
                        left = False
                        if value != value:
                            left = nodes.missing_left[split]
                        elif nodes.cat_start[split] < 0:
                            left = value <= nodes.threshold[split]
                        elif value > -1.0 and value < 32.0 * nodes.cat_words[split]:
                            code = np.int64(value)
                            word = nodes.categories[nodes.cat_start[split] + (code >> 5)]
                            left = (word >> np.uint32(code & 31)) & np.uint32(1) == 1
                        node = np.int64(nodes.left[split] if left else nodes.right[split])
                    put_leaf(leaf, tree, row, ~node)
                continue
            steps = _flatten(nodes, first, last, flat, threshold, todo)
            for top in range(first_row, last_row, TILE):
                n = min(TILE, last_row - top)
                for i in range(n):
                    at[i] = 0
                for _ in range(steps):
                    _step(flat, threshold, X, top, n, at)
                for i in range(n):
                    put_leaf(leaf, tree, top + i, np.int64(at[i]) - (last - first))


@entry_point(NODES, INT64S, INT, *[written("i4", 1)] * 2)
def paths_of(nodes, tree_split, per_feature, start, column):
    """Write the columns on the path to each leaf of each tree, ascending.

    A numeric feature ``j`` stands for columns ``j * per_feature .. (j + 1) * per_feature - 1``.

    Parameters
    ----------
    start : (leaves of all trees + 1,) int32
        Written.
    column : (start[-1],) int32
        Written as far as there is room; ``start[-1]`` tells how much is needed.
    """
    n_trees = len(tree_split) - 1
    start[0] = 0
    done = 0
    for tree in range(n_trees):
        first = tree_split[tree]
        n_splits = tree_split[tree + 1] - first
        parent = np.full(n_splits, -1, np.int32)
        leaf_parent = np.full(n_splits + 1, -1, np.int32)
        for i in range(n_splits):
            for child in (nodes.left[first + i], nodes.right[first + i]):
                if child >= 0:
                    parent[child] = i
                else:
                    leaf_parent[~child] = i
        features = np.empty(max(n_splits, 1), np.int32)
        for leaf in range(n_splits + 1):
            n_features = _ascending(nodes, first, parent, leaf_parent[leaf], features)
            begin = start[done]
            done += 1
            start[done] = begin + n_features * per_feature
            if start[done] > len(column):
                continue
            for j in range(n_features):
                for q in range(per_feature):
                    column[begin + j * per_feature + q] = features[j] * per_feature + q


@internal
def _ascending(nodes, first, parent, split, features):
    """Write the numeric features from a split up to the root into `features`, ascending, each once; return how many."""
    n_features = 0
    while split >= 0:
        if nodes.cat_start[first + split] < 0:
            feature = nodes.feature[first + split]
            at = n_features
            while at > 0 and features[at - 1] > feature:
                at -= 1
            if at == 0 or features[at - 1] != feature:
                for j in range(n_features, at, -1):
                    features[j] = features[j - 1]
                features[at] = feature
                n_features += 1
        split = parent[split]
    return n_features
