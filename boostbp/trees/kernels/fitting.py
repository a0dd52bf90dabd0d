"""Compiled fit of whole trees: route, sum, solve and evaluate in one call, leaf by leaf.

The pieces are those of the additive path (`leaf_ranges`, `leaf_sums`, `solve_leaves`,
`add_values`) in the same order, so both give the same bits on one block of rows.
"""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.evaluation import add_leaf
from boostbp.trees.kernels.records import BLOCK, CENTER, INV_SCALE, exact
from boostbp.trees.kernels.routing import group_rows, paths_of, route_rows
from boostbp.trees.kernels.solving import move_leaf, solve_leaf
from boostbp.trees.kernels.sums import add_ranges, add_sums, frame_of, gather, scratch

__all__ = ["fit_trees"]


@exact
def _is_one(h):
    different = 0
    for i in range(len(h)):
        different += h[i] != 1.0
    return different == 0


@exact
def fit_trees(
    nodes, tree_split, X, Z, per_feature, degree, grad, hess,
    penalty, penalize_constant, standardize, learning_rate, leaf, out,
):  # fmt: skip
    """Fit the leaves of trees that serve one output each, and add their values to the running fit.

    Parameters
    ----------
    nodes, tree_split : splits of all trees, and the first of each
    grad : (trees, rows) float64
    hess : (trees, rows) or (1, rows) float64
    leaf : (trees, rows), any integer type, written
    out : (trees, rows) float64, added to

    Returns
    -------
    start : (leaves of all trees + 1,) int32
    column : (path columns,) int32
    frame : (path columns, 4) float64
    weight : (terms of all leaves,) float64
    """
    n_rows = len(X)
    start, column = paths_of(nodes, tree_split, per_feature)
    n_leaves = len(start) - 1
    most = np.max(np.diff(start))
    frame = np.empty((len(column), 4))
    ranges = np.empty((most, 4))
    weight = np.zeros(n_leaves + degree * len(column))
    center, scale, fill = np.empty(most), np.empty(most), np.empty(most)
    p = 1 + degree * most
    gram, a = np.empty(p * p), np.empty((p, p))
    terms, weighted = scratch(p, 1)
    total, h = np.empty(BLOCK), np.ones(BLOCK)
    order = np.empty(n_rows, np.int32)
    values = np.empty((1, 1))
    flat_scale = 0.0 if standardize else 1.0
    unit = len(hess) == 1 and _is_one(hess[0])
    first_leaf = 0
    w0 = 0
    for tree in range(len(tree_split) - 1):
        first, last = tree_split[tree], tree_split[tree + 1]
        route_rows(nodes, first, last, X, 0, n_rows, leaf[tree])
        row_start = group_rows(leaf[tree], last - first + 1, order)
        longest = np.max(np.diff(row_start))
        if longest > values.shape[1] or most > values.shape[0]:
            values = np.empty((max(most, 1), longest + longest // 4))
        hess_of = hess[tree if len(hess) > 1 else 0]
        if len(hess) > 1:
            unit = _is_one(hess_of)
        for number in range(last - first + 1):
            path = start[first_leaf + number]
            k = start[first_leaf + number + 1] - path
            p = 1 + degree * k
            begin, end = row_start[number], row_start[number + 1]
            ranges[:, 0] = np.inf
            ranges[:, 1] = -np.inf
            ranges[:, 2:] = 0.0
            gram[: p * p] = 0.0
            for block in range(begin, end, BLOCK):
                n = min(BLOCK, end - block)
                gather(Z, order, 0, block, n, column, path, k, values, block - begin)
                if not unit:
                    for i in range(n):
                        h[i] = hess_of[order[block + i]]
                add_ranges(values, block - begin, n, k, h, unit, 0, ranges)
            for j in range(k):
                frame_of(ranges[j], flat_scale, frame[path + j])
                # The paper's penalty: sums in the user's units, weights then moved into the frame.
                center[j] = frame[path + j, CENTER] if standardize else 0.0
                scale[j] = frame[path + j, INV_SCALE] if standardize else 1.0
                fill[j] = 0.0 if standardize else frame[path + j, CENTER]
            for block in range(begin, end, BLOCK):
                n = min(BLOCK, end - block)
                block_is_unit = True
                if not unit:
                    for i in range(n):
                        h[i] = hess_of[order[block + i]]
                        block_is_unit &= h[i] == 1.0
                for i in range(n):
                    terms[p, i] = -grad[tree, order[block + i]]
                add_sums(
                    values, block - begin, n, 0, k, degree, center, scale, fill, h, block_is_unit,
                    terms, weighted, 1, gram, 0, weight, w0,
                )  # fmt: skip
            solve_leaf(gram, 0, weight, w0, p, 1, penalty, penalize_constant, learning_rate, a)
            if not standardize:
                move_leaf(frame, path, k, degree, 1, weight, w0)
            for block in range(begin, end, BLOCK):
                n = min(BLOCK, end - block)
                add_leaf(values, block - begin, n, path, k, degree, frame, weight, w0, 1, total)
                for i in range(n):
                    out[tree, order[block + i]] += total[i]
            w0 += p
        first_leaf += last - first + 1
    return start, column, frame, weight
