"""Compiled fit of whole trees: route, sum, solve and evaluate in one call, one block of rows after the other.

The steps are those of the additive path (`leaf_ranges`, `leaf_sums`, `solve_leaves`, `add_values`), and blocks are
added in the same order, so both give the same bits.
"""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import (
    BOOL,
    FLOAT,
    INT,
    INT32S,
    INT64S,
    LEAF_OUT,
    MATRIX,
    NODES,
    entry_point,
    read,
    written,
)
from boostbp.trees.kernels.evaluation import add_values
from boostbp.trees.kernels.grouping import group, sides
from boostbp.trees.kernels.records import CENTER, INV_SCALE, internal, largest, leaf_at, put_leaf
from boostbp.trees.kernels.solving import scale_weights, solve_leaves
from boostbp.trees.kernels.sums import leaf_ranges, leaf_sums, scaling_of


@internal
def _is_one(h):
    different = 0
    for i in range(len(h)):
        different += h[i] != 1.0
    return different == 0


@internal
def _add(total, part):
    for i in range(len(total)):
        total[i] += part[i]


@internal
def _add_ranges(ranges, others):
    for i in range(len(ranges)):
        ranges[i, 0] = min(ranges[i, 0], others[i, 0])
        ranges[i, 1] = max(ranges[i, 1], others[i, 1])
        ranges[i, 2] += others[i, 2]
        ranges[i, 3] += others[i, 3]


@internal
def _alike(nodes, first, other, n_splits):
    for i in range(n_splits):
        a, b = first + i, other + i
        if nodes.feature[a] != nodes.feature[b] or nodes.left[a] != nodes.left[b] or nodes.right[a] != nodes.right[b]:
            return False
        if nodes.missing_left[a] != nodes.missing_left[b] or nodes.cat_start[a] != nodes.cat_start[b]:
            return False
        if nodes.threshold[a] != nodes.threshold[b] and nodes.cat_start[a] < 0:  # NaN, where it splits by a set
            return False
        if nodes.cat_words[a] != nodes.cat_words[b]:
            return False
    return True


@entry_point(
    NODES, INT64S, INT32S, INT32S, read("u1", 2), *[MATRIX] * 4, INT, *[MATRIX] * 2,
    FLOAT, BOOL, BOOL, FLOAT, INT, written("u2", 1), written("f8", 1), written("f8", 2), written("f8", 1), LEAF_OUT,
    written("f8", 2),
)  # fmt: skip
def fit_trees(
    nodes, tree_split, start, column, bins, lower, upper, X, Z, degree, grad, hess,
    penalty, penalize_constant, standardize, learning_rate, block_rows, order, values, scaling, weight, leaf, out,
):  # fmt: skip
    """Fit the leaves of trees that serve one output each, and add their values to the running fit.

    Rows stay as they are grouped for a tree whose structure is that of the one before.

    Parameters
    ----------
    nodes, tree_split : splits of all trees, and the first of each
    start, column : from `paths_of`
    bins, lower, upper : from `put_in_bins`
    grad : (trees, rows) float64
    hess : (trees, rows) or (1, rows) float64
    block_rows : int
        Rows whose sums are taken together, at most 2^16.
    order : (rows,) uint16
        Scratch.
    values : (at least rows x most path columns of a leaf,) float64
        Scratch.
    scaling : (path columns, 4), weight : (terms,) float64, written
        Of the leaves of all trees; see `Leaves`.
    leaf : leaf numbers of (trees, rows), written
    out : (trees, rows) float64, added to
    """
    n_rows, most = len(X), largest(start)
    n_blocks = (n_rows + block_rows - 1) // block_rows
    scratch = np.empty((2, block_rows), np.uint16)
    flat_scale = 0.0 if standardize else 1.0
    unit = len(hess) == 1 and _is_one(hess[0])
    first_leaf = w0 = np.int64(0)  # a bare number is a type of its own, for which what is called is compiled once more
    one_output = np.int64(1)
    row_start = np.empty((n_blocks, 0), np.int64)
    for tree in range(len(tree_split) - 1):
        first, last = tree_split[tree], tree_split[tree + 1]
        n_leaves = last - first + 1
        p0 = start[first_leaf]
        paths, columns = start[first_leaf : first_leaf + n_leaves + 1] - p0, column[p0 : start[first_leaf + n_leaves]]
        of_tree = scaling[p0 : p0 + len(columns)]
        w = weight[w0 : w0 + n_leaves + degree * len(columns)]
        if len(hess) > 1:
            unit = _is_one(hess[tree])
        h = hess[tree if len(hess) > 1 else 0][: 0 if unit else n_rows]
        before = tree_split[max(tree - 1, 0)]
        grouped = tree > 0 and first - before == last - first and _alike(nodes, first, before, last - first)
        if grouped:
            for row in range(n_rows):
                put_leaf(leaf, tree, row, leaf_at(leaf, tree - 1, row))
        else:
            row_start = np.empty((n_blocks, n_leaves + 1), np.int64)
        to = sides(nodes, first, first if grouped else last, lower, upper)
        ranges, of_block = np.empty((len(columns), 4)), np.empty((len(columns), 4))
        for block in range(n_blocks):
            top = block * block_rows
            stop = min(top + block_rows, n_rows)
            rows, near = order[top:stop], values[top * most : stop * most]
            if not grouped:
                group(
                    nodes, first, to, bins, X, Z, top, paths, columns, scratch, leaf, tree, rows, near,
                    row_start[block],
                )  # fmt: skip
            leaf_ranges(row_start[block], rows, top, paths, near, h, ranges if block == 0 else of_block)
            if block > 0:
                _add_ranges(ranges, of_block)
        for j in range(len(columns)):
            scaling_of(ranges[j], flat_scale, of_tree[j])
        # The paper penalises weights in the user's units: its sums are taken in them, the solution is rescaled below.
        center, scale, fill = np.empty(len(columns)), np.empty(len(columns)), np.empty(len(columns))
        for j in range(len(columns)):
            center[j] = of_tree[j, CENTER] if standardize else 0.0
            scale[j] = of_tree[j, INV_SCALE] if standardize else 1.0
            fill[j] = 0.0 if standardize else of_tree[j, CENTER]
        size = 0  # numbers in the Gram matrices of all leaves
        for number in range(n_leaves):
            size += (1 + degree * (paths[number + 1] - paths[number])) ** 2
        gram = np.zeros(size)
        for term in range(len(w)):
            w[term] = 0.0
        for block in range(n_blocks):
            top = block * block_rows
            rows, near = order[top : top + block_rows], values[top * most : (top + block_rows) * most]
            a, b = (gram, w) if block == 0 else (np.zeros(size), np.zeros(len(w)))
            leaf_sums(
                row_start[block], rows, top, paths, near, center, scale, fill, degree, grad[tree : tree + 1], h, a, b
            )
            if block > 0:
                _add(gram, a)
                _add(w, b)
        solve_leaves(paths, degree, one_output, gram, w, penalty, penalize_constant, learning_rate)
        if not standardize:
            scale_weights(paths, degree, one_output, of_tree, w)
        for block in range(n_blocks):
            top = block * block_rows
            rows, near = order[top : top + block_rows], values[top * most : (top + block_rows) * most]
            add_values(row_start[block], rows, top, paths, near, degree, of_tree, w, out[tree : tree + 1])
        first_leaf += n_leaves
        w0 += len(w)
