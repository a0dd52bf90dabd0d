"""Compiled loops over splits: which leaf a row reaches, which features lie on the way, rows by leaf."""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.records import TILE, exact

__all__ = ["group_rows", "path_features", "paths_of", "route", "route_rows", "route_tree"]


@exact
def _leaf_of_row(nodes, first, x):
    node = 0
    while True:
        i = first + node
        value = x[nodes.feature[i]]
        if value != value:
            goes_left = nodes.missing_left[i]
        elif nodes.cat_start[i] < 0:
            goes_left = value <= nodes.threshold[i]
        else:
            goes_left = False
            if value > -1.0 and value < 32.0 * nodes.cat_words[i]:
                code = np.int64(value)
                word = nodes.categories[nodes.cat_start[i] + (code >> 5)]
                goes_left = (word >> np.uint32(code & 31)) & np.uint32(1) == 1
        node = nodes.left[i] if goes_left else nodes.right[i]
        if node < 0:
            return ~node


@exact
def _walk(nodes, first, X, begin, end, at):
    """Move rows ``begin .. end - 1`` down a numeric tree together: no jump in the code depends on a row.

    Writes ``~leaf`` into `at`, whose rows begin at 0.
    """
    for i in range(end - begin):
        at[i] = 0
    inside = True
    while inside:
        open_ends = 0
        for i in range(end - begin):
            node = at[i]
            split = first + max(node, 0)
            value = X[begin + i, nodes.feature[split]]
            goes_left = (value <= nodes.threshold[split]) | ((value != value) & nodes.missing_left[split])
            child = nodes.left[split] if goes_left else nodes.right[split]
            child = child if node >= 0 else node
            at[i] = child
            open_ends += child >= 0
        inside = open_ends > 0


@exact
def route_rows(nodes, first, last, X, begin, end, at, leaf):
    """Write the leaf of rows ``begin .. end - 1`` under the tree of splits ``first .. last - 1`` into `leaf`.

    `at` is scratch for `TILE` rows, int32.
    """
    if first == last:
        leaf[begin:end] = 0
        return
    numeric = True
    for i in range(first, last):
        numeric &= nodes.cat_start[i] < 0
    if not numeric:
        for row in range(begin, end):
            leaf[row] = _leaf_of_row(nodes, first, X[row])
        return
    for top in range(begin, end, TILE):
        stop = min(top + TILE, end)
        _walk(nodes, first, X, top, stop, at)
        for i in range(stop - top):
            leaf[top + i] = ~at[i]


@exact
def route_tree(nodes, X, leaf):
    """Write the leaf of each row of `X` under one tree into `leaf`."""
    route_rows(nodes, 0, len(nodes.feature), X, 0, len(X), np.empty(TILE, np.int32), leaf)


@exact
def route(nodes, tree_split, X, begin, end, leaf):
    """Write the leaf of rows ``begin .. end - 1`` under each tree of a forest into `leaf`, (trees, rows)."""
    at = np.empty(TILE, np.int32)
    for top in range(begin, end, TILE):
        stop = min(top + TILE, end)
        for tree in range(len(tree_split) - 1):
            route_rows(nodes, tree_split[tree], tree_split[tree + 1], X, top, stop, at, leaf[tree])


@exact
def paths_of(nodes, tree_split, per_feature):
    """Columns on the path to each leaf of each tree, ascending.

    A numeric feature ``j`` stands for columns ``j * per_feature .. (j + 1) * per_feature - 1``.

    Returns
    -------
    start : (leaves of all trees + 1,) int32
    column : (start[-1],) int32
    """
    n_trees = len(tree_split) - 1
    n_leaves = tree_split[n_trees] - tree_split[0] + n_trees
    start = np.zeros(n_leaves + 1, np.int32)
    column = np.empty(8 * n_leaves * per_feature, np.int32)
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
            while begin + n_found * per_feature > len(column):
                column = np.concatenate((column, np.empty_like(column)))
            for j in range(n_found):
                for q in range(per_feature):
                    column[begin + j * per_feature + q] = found[j] * per_feature + q
            done += 1
            start[done] = begin + n_found * per_feature
    return start, column[: start[done]].copy()


@exact
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


@exact
def path_features(nodes):
    """Numeric path features of each leaf of one tree, ascending: ``(start, features)``."""
    return paths_of(nodes, np.array([0, len(nodes.feature)]), 1)


@exact
def group_rows(leaf, n_leaves):
    """Rows sorted by leaf, in row order within a leaf: ``(start, order)``."""
    start = np.zeros(n_leaves + 1, np.int64)
    for row in range(len(leaf)):
        start[np.int64(leaf[row]) + 1] += 1
    for i in range(n_leaves):
        start[i + 1] += start[i]
    at = start[:-1].copy()
    order = np.empty(len(leaf), np.int32)
    for row in range(len(leaf)):
        number = np.int64(leaf[row])
        order[at[number]] = row
        at[number] += 1
    return start, order
