"""Compiled loops over splits: which leaf a row reaches, which features lie on the way."""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.records import TILE, exact, inner

__all__ = [
    "goes_left",
    "paths_of",
    "route",
    "route_rows",
    "route_tree",
    "sends_left",
]

FEW = 16  # rows that are sooner led through the splits one by one than a flat copy of the tree is made


@inner
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


@inner
def goes_left(nodes, split, x):
    """Whether a split sends a row left."""
    return sends_left(nodes, split, x[nodes.feature[split]])


@inner
def _leaf_of_row(nodes, first, x):
    node = 0
    while True:
        i = first + node
        node = nodes.left[i] if goes_left(nodes, i, x) else nodes.right[i]
        if node < 0:
            return ~node


@inner
def _flat_tree(nodes, first, last):
    """A numeric tree in which leaves are splits that lead to themselves, so that every row takes as many steps.

    Returns feature, threshold, missing_left and children (left, right, left, ...) of each node,
    splits first, then leaves; and the number of steps to the deepest leaf. Numbers without a sign
    are indices that need no check whether they count from the end.
    """
    n_splits = last - first
    n_nodes = 2 * n_splits + 1
    feature, threshold = np.zeros(n_nodes, np.uint32), np.zeros(n_nodes)
    missing_left, child = np.zeros(n_nodes, np.uint32), np.empty(2 * n_nodes, np.uint32)
    depth = np.zeros(n_nodes, np.int32)
    for i in range(n_splits):
        feature[i] = nodes.feature[first + i]
        threshold[i] = nodes.threshold[first + i]
        missing_left[i] = nodes.missing_left[first + i]
        left, right = nodes.left[first + i], nodes.right[first + i]
        child[2 * i] = left if left >= 0 else n_splits + ~left
        child[2 * i + 1] = right if right >= 0 else n_splits + ~right
    for i in range(n_splits, n_nodes):
        child[2 * i] = i
        child[2 * i + 1] = i
    todo = np.zeros(n_nodes, np.int32)
    n_todo = 1
    steps = 0
    while n_todo > 0:  # a parent need not come before its children
        n_todo -= 1
        i = todo[n_todo]
        steps = max(steps, depth[i])
        if i < n_splits:
            for c in (np.int32(child[2 * i]), np.int32(child[2 * i + 1])):
                depth[c] = depth[i] + 1
                todo[n_todo] = c
                n_todo += 1
    return feature, threshold, missing_left, child, steps


@inner
def _step(flat, X, top, n, at):
    """Move `n` rows one split down. No jump in the code depends on a row."""
    feature, threshold, missing_left, child, _ = flat
    for i in range(n):
        node = at[i]
        value = X[top + i, feature[node]]
        left = np.uint32(value <= threshold[node]) | (np.uint32(value != value) & missing_left[node])
        at[i] = child[np.uint32(2) * node + np.uint32(1) - left]


@inner
def _walk(flat, X, begin, end, leaf):
    """Write the leaves of rows ``begin .. end - 1`` into `leaf`."""
    n_splits = len(flat[0]) // 2
    at = np.empty(TILE, np.uint32)
    for top in range(begin, end, TILE):
        n = min(TILE, end - top)
        at[:n] = 0
        for _ in range(flat[4]):
            _step(flat, X, top, n, at)
        for i in range(n):
            leaf[top + i] = at[i] - n_splits


@inner
def _is_numeric(nodes, first, last):
    for i in range(first, last):
        if nodes.cat_start[i] >= 0:
            return False
    return last > first


@inner
def route_rows(nodes, first, last, X, begin, end, leaf):
    """Write the leaf of rows ``begin .. end - 1`` under the tree of splits ``first .. last - 1`` into `leaf`."""
    if first == last:
        leaf[begin:end] = 0
    elif end - begin > FEW and _is_numeric(nodes, first, last):
        _walk(_flat_tree(nodes, first, last), X, begin, end, leaf)
    else:
        for row in range(begin, end):
            leaf[row] = _leaf_of_row(nodes, first, X[row])


@exact
def route_tree(nodes, X, leaf):
    """Write the leaf of each row of `X` under one tree into `leaf`."""
    route_rows(nodes, 0, len(nodes.feature), X, 0, len(X), leaf)


@exact
def route(nodes, tree_split, X, begin, end, leaf):
    """Write the leaf of rows ``begin .. end - 1`` under each tree of a forest into `leaf`, (trees, rows)."""
    for top in range(begin, end, 32 * TILE):
        stop = min(top + 32 * TILE, end)
        for tree in range(len(tree_split) - 1):
            route_rows(nodes, tree_split[tree], tree_split[tree + 1], X, top, stop, leaf[tree])


@exact
def paths_of(nodes, tree_split, per_feature, start, column):
    """Columns on the path to each leaf of each tree, ascending.

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
        found = np.empty(max(n_splits, 1), np.int32)
        for leaf in range(n_splits + 1):
            n_found = _ascending(nodes, first, parent, leaf_parent[leaf], found)
            begin = start[done]
            done += 1
            start[done] = begin + n_found * per_feature
            if start[done] > len(column):
                continue
            for j in range(n_found):
                for q in range(per_feature):
                    column[begin + j * per_feature + q] = found[j] * per_feature + q


@inner
def _ascending(nodes, first, parent, split, found):
    """Write the numeric features from a split up to the root into `found`, each once; how many."""
    n_found = 0
    while split >= 0:
        if nodes.cat_start[first + split] < 0:
            feature = nodes.feature[first + split]
            at = n_found
            while at > 0 and found[at - 1] > feature:
                at -= 1
            if at == 0 or found[at - 1] != feature:
                for j in range(n_found, at, -1):
                    found[j] = found[j - 1]
                found[at] = feature
                n_found += 1
        split = parent[split]
    return n_found
