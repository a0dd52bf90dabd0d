"""Compiled loops over plain arrays: route, sum, solve, evaluate, pull back.

Nothing here allocates per row, draws random numbers or starts threads; every kernel releases the
interpreter lock, so callers run row blocks or outputs in threads of their own.

Terms of a leaf with ``k`` path columns, in this order: ``1, u_1 .. u_k`` and, for degree 2,
``u_1^2 .. u_k^2``, where ``u = (z - center) * inv_scale``. Missing values have ``u = 0`` (the
leaf's training mean). A *frame* is a row ``(center, inv_scale, lower, upper)`` for each path
column of a leaf; ``lower`` and ``upper`` bound ``u`` at evaluation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

__all__ = [
    "Leaves",
    "Nodes",
    "evaluate",
    "group_rows",
    "jacobian",
    "leaf_ranges",
    "leaf_sums",
    "move_to_frame",
    "path_features",
    "pull_back",
    "route",
    "route_tree",
    "solve_leaves",
]

CENTER, INV_SCALE, LOWER, UPPER = 0, 1, 2, 3
_BLOCK = 128  # rows whose terms are held at once while summing
_TILE = 512  # rows that pass all trees before the next rows come, so that they stay in cache


class Nodes(NamedTuple):
    """Splits of one tree, or of all trees of a forest one after the other; see `Tree`."""

    feature: Any
    threshold: Any
    left: Any
    right: Any
    missing_left: Any
    cat_start: Any
    cat_words: Any
    categories: Any


class Leaves(NamedTuple):
    """Leaf regressions of all trees of a forest.

    tree_leaf : (trees + 1,) int64, first leaf of each tree
    tree_output : (trees, 2) int64, first output and number of outputs that a tree serves
    tree_degree : (trees,) int64, 1 or 2
    start : (leaves + 1,) int64, first path column of each leaf
    column : (path columns,) int32
    frame : (path columns, 4) float64
    weight_start : (leaves + 1,) int64
    weight : float64, per leaf a block (terms, outputs)
    fallback : (leaves,) float64, value of a row with a missing path column; NaN: use ``u = 0``
    """

    tree_leaf: Any
    tree_output: Any
    tree_degree: Any
    start: Any
    column: Any
    frame: Any
    weight_start: Any
    weight: Any
    fallback: Any


_jit = njit(nogil=True, cache=True, error_model="numpy")
_fast = njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract"})


# ---------------------------------------------------------------------------- routing


@_jit
def _leaf_of_row(nodes, first, x):
    node = 0
    while True:
        i = first + node
        value = x[nodes.feature[i]]
        threshold = nodes.threshold[i]
        if value <= threshold:
            node = nodes.left[i]
        elif value > threshold:
            node = nodes.right[i]
        else:  # missing, or a categorical split (its threshold is NaN)
            if value != value:
                goes_left = nodes.missing_left[i]
            else:
                words = nodes.cat_words[i]
                goes_left = False
                if value > -1.0 and value < 32.0 * words:
                    code = np.int64(value)
                    word = nodes.categories[nodes.cat_start[i] + (code >> 5)]
                    goes_left = (word >> np.uint32(code & 31)) & np.uint32(1) == 1
            node = nodes.left[i] if goes_left else nodes.right[i]
        if node < 0:
            return ~node


@_jit
def route_tree(nodes, X, leaf):
    """Write the leaf of each row of `X` under one tree into `leaf`."""
    if len(nodes.feature) == 0:
        leaf[:] = 0
        return
    for row in range(X.shape[0]):
        leaf[row] = _leaf_of_row(nodes, 0, X[row])


@_jit
def route(nodes, tree_split, X, begin, end, leaf):
    """Write the leaf of rows ``begin .. end - 1`` under each tree of a forest into `leaf`, (trees, rows)."""
    for top in range(begin, end, _TILE):
        last = min(top + _TILE, end)
        for tree in range(len(tree_split) - 1):
            first = tree_split[tree]
            if tree_split[tree + 1] == first:
                leaf[tree, top:last] = 0
                continue
            for row in range(top, last):
                leaf[tree, row] = _leaf_of_row(nodes, first, X[row])


@_jit
def path_features(nodes):
    """Numeric path features of each leaf of one tree, ascending: ``(start, features)``."""
    n_splits = len(nodes.feature)
    start = np.zeros(n_splits + 2, np.int32)
    parent = np.full(n_splits, -1, np.int32)
    leaf_parent = np.full(n_splits + 1, -1, np.int32)
    for i in range(n_splits):
        for child in (nodes.left[i], nodes.right[i]):
            if child >= 0:
                parent[child] = i
            else:
                leaf_parent[~child] = i
    found = np.empty(max(n_splits, 1), np.int32)
    features = np.empty(64, np.int32)
    for leaf in range(n_splits + 1):
        n_found = 0
        i = leaf_parent[leaf]
        while i >= 0:
            if nodes.cat_start[i] < 0:
                feature = nodes.feature[i]
                at = n_found
                while at > 0 and found[at - 1] > feature:
                    at -= 1
                if at == 0 or found[at - 1] != feature:
                    for j in range(n_found, at, -1):
                        found[j] = found[j - 1]
                    found[at] = feature
                    n_found += 1
            i = parent[i]
        begin = start[leaf]
        start[leaf + 1] = begin + n_found
        while begin + n_found > len(features):
            features = np.concatenate((features, np.empty_like(features)))
        features[begin : begin + n_found] = found[:n_found]
    return start, features[: start[-1]].copy()


@_jit
def group_rows(leaf, n_leaves):
    """Rows sorted by leaf, in row order within a leaf: ``(start, order)``."""
    start = np.zeros(n_leaves + 1, np.int64)
    for row in range(len(leaf)):
        start[leaf[row] + 1] += 1
    for i in range(n_leaves):
        start[i + 1] += start[i]
    at = start[:-1].copy()
    order = np.empty(len(leaf), np.int64)
    for row in range(len(leaf)):
        order[at[leaf[row]]] = row
        at[leaf[row]] += 1
    return start, order


# ---------------------------------------------------------------------------- sums over rows


@_jit
def leaf_ranges(row_start, order, first_row, path_start, column, Z, hess):
    """Smallest and largest value, weighted sum and weight of each path column of each leaf.

    `order` indexes rows of a block that begins at `first_row` of `Z` and `hess`.
    Returns (path columns, 4): lower, upper, sum of ``hess * z``, sum of `hess`; NaN left out.
    """
    out = np.empty((path_start[-1], 4))
    out[:, 0] = np.inf
    out[:, 1] = -np.inf
    out[:, 2] = 0.0
    out[:, 3] = 0.0
    for leaf in range(len(row_start) - 1):
        begin = path_start[leaf]
        end = path_start[leaf + 1]
        for i in range(row_start[leaf], row_start[leaf + 1]):
            row = first_row + order[i]
            h = hess[row]
            for j in range(begin, end):
                z = Z[row, column[j]]
                if z == z:
                    if z < out[j, 0]:
                        out[j, 0] = z
                    if z > out[j, 1]:
                        out[j, 1] = z
                    out[j, 2] += h * z
                    out[j, 3] += h
    return out


@_jit
def _terms(Z, row, column, begin, end, center, scale, fill, degree, out, at):
    """Write the terms of one row into column `at` of `out`, (terms, rows)."""
    k = end - begin
    out[0, at] = 1.0
    for j in range(k):
        z = Z[row, column[begin + j]]
        u = (z - center[begin + j]) * scale[begin + j] if z == z else fill[begin + j]
        out[1 + j, at] = u
        if degree == 2:
            out[1 + k + j, at] = u * u


@_fast
def _dot(a, b, n):
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@_fast
def leaf_sums(row_start, order, first_row, path_start, column, Z, center, scale, fill, degree, grad, hess):
    """Sums over the rows of each leaf.

    Returns
    -------
    gram : (sum of terms^2,), lower triangles of ``sum(hess * phi phi')``
    moment : (sum of terms * outputs,), ``-sum(phi * grad')``
    """
    n_leaves = len(row_start) - 1
    n_outputs = grad.shape[1]
    size_gram = 0
    size_moment = 0
    most = 1
    for leaf in range(n_leaves):
        p = 1 + degree * (path_start[leaf + 1] - path_start[leaf])
        size_gram += p * p
        size_moment += p * n_outputs
        most = max(most, p)
    gram = np.zeros(size_gram)
    moment = np.zeros(size_moment)
    phi = np.empty((most, _BLOCK))
    weighted = np.empty((most, _BLOCK))
    minus_grad = np.empty((n_outputs, _BLOCK))
    g0 = 0
    m0 = 0
    for leaf in range(n_leaves):
        begin = path_start[leaf]
        end = path_start[leaf + 1]
        p = 1 + degree * (end - begin)
        for block in range(row_start[leaf], row_start[leaf + 1], _BLOCK):
            n = min(_BLOCK, row_start[leaf + 1] - block)
            for i in range(n):
                row = first_row + order[block + i]
                _terms(Z, row, column, begin, end, center, scale, fill, degree, phi, i)
                h = hess[row]
                for a in range(p):
                    weighted[a, i] = h * phi[a, i]
                for output in range(n_outputs):
                    minus_grad[output, i] = -grad[row, output]
            for a in range(p):
                for b in range(a + 1):
                    gram[g0 + a * p + b] += _dot(weighted[a], phi[b], n)
                for output in range(n_outputs):
                    moment[m0 + a * n_outputs + output] += _dot(phi[a], minus_grad[output], n)
        g0 += p * p
        m0 += p * n_outputs
    return gram, moment


# ---------------------------------------------------------------------------- solving


@_fast
def _factor(a, floor):
    """Cholesky factor in place of the lower triangle; a pivot below `floor` drops its term (0 on the diagonal)."""
    p = a.shape[0]
    for j in range(p):
        size = a[j, j]
        pivot = size - _dot(a[j], a[j], j)
        if pivot > floor * size and pivot > 0.0:
            root = np.sqrt(pivot)
            a[j, j] = root
            for i in range(j + 1, p):
                a[i, j] = (a[i, j] - _dot(a[i], a[j], j)) / root
        else:  # the row too: it may hold what overflowed
            for i in range(j):
                a[j, i] = 0.0
            for i in range(j, p):
                a[i, j] = 0.0


@_jit
def solve_leaves(path_start, degree, n_outputs, gram, moment, penalty, penalize_constant, scale):
    """Ridge weights of each leaf: ``scale * (gram + penalty I)^-1 moment``, shape as `moment`.

    A term that the others determine (a pivot below 1e-12 of its size) has weight 0.
    """
    weight = moment.copy()
    g0 = 0
    m0 = 0
    for leaf in range(len(path_start) - 1):
        p = 1 + degree * (path_start[leaf + 1] - path_start[leaf])
        a = gram[g0 : g0 + p * p].copy().reshape(p, p)
        for i in range(p):
            if i > 0 or penalize_constant:
                a[i, i] += penalty
        _factor(a, 1e-12)
        w = weight[m0 : m0 + p * n_outputs].reshape(p, n_outputs)
        for i in range(p):
            for j in range(i):
                for output in range(n_outputs):
                    w[i, output] -= a[i, j] * w[j, output]
            for output in range(n_outputs):
                w[i, output] = w[i, output] / a[i, i] if a[i, i] > 0.0 else 0.0
        for i in range(p - 1, -1, -1):
            for j in range(i + 1, p):
                for output in range(n_outputs):
                    w[i, output] -= a[j, i] * w[j, output]
            for output in range(n_outputs):
                w[i, output] = w[i, output] / a[i, i] if a[i, i] > 0.0 else 0.0
        w *= scale
        g0 += p * p
        m0 += p * n_outputs
    return weight


@_jit
def move_to_frame(path_start, degree, n_outputs, frame, weight):
    """Rewrite weights in the user's units as weights in units of ``u``, in place."""
    w0 = 0
    for leaf in range(len(path_start) - 1):
        begin = path_start[leaf]
        k = path_start[leaf + 1] - begin
        for output in range(n_outputs):
            for j in range(k):
                center = frame[begin + j, CENTER]
                inverse = frame[begin + j, INV_SCALE]
                width = 1.0 / inverse if inverse > 0.0 else 0.0
                linear = w0 + (1 + j) * n_outputs + output
                slope = weight[linear]
                weight[w0 + output] += slope * center
                if degree == 2:
                    square = linear + k * n_outputs
                    curve = weight[square]
                    weight[w0 + output] += curve * center * center
                    slope += 2.0 * curve * center
                    weight[square] = curve * width * width
                weight[linear] = slope * width
        w0 += (1 + degree * k) * n_outputs


# ---------------------------------------------------------------------------- evaluating


@_jit
def _standardised(z, frame, clip):
    """``u`` of a value that is not missing, and whether it may move inside the leaf's range."""
    if frame[INV_SCALE] == 0.0:
        return 0.0, True
    u = (z - frame[CENTER]) * frame[INV_SCALE]
    if clip:
        if u < frame[LOWER]:
            return frame[LOWER], False
        if u > frame[UPPER]:
            return frame[UPPER], False
        return u, frame[LOWER] < frame[UPPER]
    return u, True


@_jit
def _falls_back(leaves, leaf, Z, row):
    if leaves.fallback[leaf] != leaves.fallback[leaf]:
        return False
    for j in range(leaves.start[leaf], leaves.start[leaf + 1]):
        z = Z[row, leaves.column[j]]
        if z != z:
            return True
    return False


@_jit
def evaluate(leaves, leaf, Z, clip, begin, end, out):
    """Add the forest's values to `out`, (rows, outputs); `leaf` is (trees, rows)."""
    n_trees = len(leaves.tree_degree)
    for top in range(begin, end, _TILE):
        last = min(top + _TILE, end)
        for tree in range(n_trees):
            first = leaves.tree_output[tree, 0]
            n_outputs = leaves.tree_output[tree, 1]
            degree = leaves.tree_degree[tree]
            for row in range(top, last):
                number = leaves.tree_leaf[tree] + np.int64(leaf[tree, row])
                if _falls_back(leaves, number, Z, row):
                    out[row, first] += leaves.fallback[number]
                    continue
                path = leaves.start[number]
                k = leaves.start[number + 1] - path
                w = leaves.weight_start[number]
                if n_outputs == 1:
                    total = leaves.weight[w]
                    for j in range(k):
                        z = Z[row, leaves.column[path + j]]
                        if z == z:
                            u, _ = _standardised(z, leaves.frame[path + j], clip)
                            if degree == 2:
                                total += u * (leaves.weight[w + 1 + j] + u * leaves.weight[w + 1 + k + j])
                            else:
                                total += u * leaves.weight[w + 1 + j]
                    out[row, first] += total
                    continue
                for output in range(n_outputs):
                    out[row, first + output] += leaves.weight[w + output]
                for j in range(k):
                    z = Z[row, leaves.column[path + j]]
                    if z == z:
                        u, _ = _standardised(z, leaves.frame[path + j], clip)
                        linear = w + (1 + j) * n_outputs
                        for output in range(n_outputs):
                            out[row, first + output] += u * leaves.weight[linear + output]
                        if degree == 2:
                            square = w + (1 + k + j) * n_outputs
                            for output in range(n_outputs):
                                out[row, first + output] += u * u * leaves.weight[square + output]


@_jit
def _slope_scales(z, frame, clip):
    """``du/dz`` and ``d(u^2)/dz``; both 0 where missing or clipped."""
    if z != z:
        return 0.0, 0.0
    u, inside = _standardised(z, frame, clip)
    if not inside:
        return 0.0, 0.0
    return frame[INV_SCALE], 2.0 * u * frame[INV_SCALE]


@_jit
def pull_back(leaves, leaf, Z, clip, G, begin, end, out):
    """Add ``J' G`` to `out`, (rows, columns), for `G`, (rows, outputs)."""
    n_trees = len(leaves.tree_degree)
    for top in range(begin, end, _TILE):
        last = min(top + _TILE, end)
        for tree in range(n_trees):
            first = leaves.tree_output[tree, 0]
            n_outputs = leaves.tree_output[tree, 1]
            degree = leaves.tree_degree[tree]
            for row in range(top, last):
                number = leaves.tree_leaf[tree] + np.int64(leaf[tree, row])
                if _falls_back(leaves, number, Z, row):
                    continue
                path = leaves.start[number]
                k = leaves.start[number + 1] - path
                w = leaves.weight_start[number]
                for j in range(k):
                    column = leaves.column[path + j]
                    d_linear, d_square = _slope_scales(Z[row, column], leaves.frame[path + j], clip)
                    if d_linear == 0.0:
                        continue
                    linear = w + (1 + j) * n_outputs
                    total = 0.0
                    for output in range(n_outputs):
                        total += d_linear * leaves.weight[linear + output] * G[row, first + output]
                    if degree == 2:
                        square = w + (1 + k + j) * n_outputs
                        for output in range(n_outputs):
                            total += d_square * leaves.weight[square + output] * G[row, first + output]
                    out[row, column] += total


@_jit
def jacobian(leaves, leaf, Z, clip, begin, end, out):
    """Add the Jacobian to `out`, (rows, outputs, columns)."""
    n_trees = len(leaves.tree_degree)
    for top in range(begin, end, _TILE):
        last = min(top + _TILE, end)
        for tree in range(n_trees):
            first = leaves.tree_output[tree, 0]
            n_outputs = leaves.tree_output[tree, 1]
            degree = leaves.tree_degree[tree]
            for row in range(top, last):
                number = leaves.tree_leaf[tree] + np.int64(leaf[tree, row])
                if _falls_back(leaves, number, Z, row):
                    continue
                path = leaves.start[number]
                k = leaves.start[number + 1] - path
                w = leaves.weight_start[number]
                for j in range(k):
                    column = leaves.column[path + j]
                    d_linear, d_square = _slope_scales(Z[row, column], leaves.frame[path + j], clip)
                    linear = w + (1 + j) * n_outputs
                    square = w + (1 + k + j) * n_outputs
                    for output in range(n_outputs):
                        slope = d_linear * leaves.weight[linear + output]
                        if degree == 2:
                            slope += d_square * leaves.weight[square + output]
                        out[row, first + output, column] += slope
