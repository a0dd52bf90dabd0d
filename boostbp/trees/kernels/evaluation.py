"""Compiled values and slopes of a forest: evaluate, Jacobian.

A leaf's value is ``w_0 + sum_j u_j (w_j + u_j w_jj)`` of its path columns, without ``w_jj`` for degree 1; its slope in
column j is ``(w_j + 2 u_j w_jj) inv_scale``. A missing value has ``u = 0``, the leaf's training mean. A clipped input
has a slope of 0. See `boostbp.trees.kernels.sums` for the terms.
"""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import (
    BOOL,
    INT,
    INT32S,
    INT64S,
    LEAF,
    LEAVES,
    MATRIX,
    NODES,
    ORDER,
    VECTOR,
    entry_point,
    written,
)
from boostbp.trees.kernels.records import BLOCK, CENTER, INV_SCALE, LOWER, TILE, UPPER, internal, leaf_at
from boostbp.trees.kernels.routing import goes_left


@internal
def add_leaf(values, at, n, path, k, degree, scaling, weight, w0, m, total):
    """Write the values of `n` rows for one of `m` outputs of a leaf to `total`; path columns ``values[:k, at:at + n]``.

    The same operations in the same order as in `evaluate`, for the same bits.
    """
    for i in range(n):
        total[i] = weight[w0]
    for j in range(k):
        center, inverse = scaling[path + j, CENTER], scaling[path + j, INV_SCALE]
        if inverse == 0.0:
            continue
        z, linear = values[j][at : at + n], weight[w0 + (1 + j) * m]
        square = weight[w0 + (1 + k + j) * m] if degree == 2 else 0.0
        for i in range(n):
            u = (z[i] - center) * inverse
            term = u * (linear + u * square) if degree == 2 else u * linear
            total[i] += term if u == u else 0.0


@entry_point(INT64S, ORDER, INT, INT32S, VECTOR, INT, MATRIX, VECTOR, written("f8", 2))
def add_values(row_start, order, first_row, path_start, grouped, degree, scaling, weight, out):
    """Add the values of training rows grouped by leaf to `out`, (outputs, rows)."""
    m = len(out)
    total = np.empty(BLOCK)
    w0 = at = np.int64(0)  # a bare 0 is a type of its own, for which what is called is compiled once more
    for leaf in range(len(row_start) - 1):
        path, begin, end = np.int64(path_start[leaf]), row_start[leaf], row_start[leaf + 1]
        k = path_start[leaf + 1] - path
        values = grouped[at : at + k * (end - begin)].reshape(k, end - begin)
        at += values.size
        for block in range(begin, end, BLOCK):
            n = min(BLOCK, end - block)
            for output in range(m):
                add_leaf(values, block - begin, n, path, k, degree, scaling, weight, w0 + output, m, total)
                of_block, rows = out[output][first_row:], order[block : block + n]
                for i in range(n):
                    of_block[rows[i]] += total[i]
        w0 += (1 + degree * k) * m


@internal
def _standardised(z, scaling, clip):
    """Return ``u`` of a value that is not missing, and whether the leaf's value has a slope there."""
    if scaling[INV_SCALE] == 0.0:
        return 0.0, True
    u = (z - scaling[CENTER]) * scaling[INV_SCALE]
    if clip:
        if u < scaling[LOWER]:
            return scaling[LOWER], False
        if u > scaling[UPPER]:
            return scaling[UPPER], False
        return u, scaling[LOWER] < scaling[UPPER]
    return u, True


@entry_point(LEAVES, LEAF, MATRIX, BOOL, INT, INT, written("f8", 2))
def evaluate(leaves, leaf, Z, clip, begin, end, out):
    """Add the forest's values to `out`, (rows, outputs); `leaf` is leaf numbers of (trees, rows)."""
    n_trees = len(leaves.tree_degree)
    for top in range(begin, end, TILE):
        last = min(top + TILE, end)
        for tree in range(n_trees):
            first = leaves.tree_output[tree, 0]
            n_outputs = leaves.tree_output[tree, 1]
            degree = leaves.tree_degree[tree]
            for row in range(top, last):
                number = leaves.tree_leaf[tree] + leaf_at(leaf, tree, row)
                path = leaves.start[number]
                k = leaves.start[number + 1] - path
                w = leaves.weight_start[number]
                if n_outputs == 1:
                    total = leaves.weight[w]
                    for j in range(k):
                        z = Z[row, leaves.column[path + j]]
                        if z == z:
                            u, _ = _standardised(z, leaves.scaling[path + j], clip)
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
                        u, _ = _standardised(z, leaves.scaling[path + j], clip)
                        linear = w + (1 + j) * n_outputs
                        for output in range(n_outputs):
                            out[row, first + output] += u * leaves.weight[linear + output]
                        if degree == 2:
                            square = w + (1 + k + j) * n_outputs
                            for output in range(n_outputs):
                                out[row, first + output] += u * u * leaves.weight[square + output]


@internal
def _slope_scales(z, scaling, clip, unit):
    """Return ``unit du/dz`` and ``unit d(u^2)/dz``; both 0 where missing or clipped."""
    if z != z:
        return 0.0, 0.0
    u, inside = _standardised(z, scaling, clip)
    if not inside:
        return 0.0, 0.0
    slope = scaling[INV_SCALE] * unit
    return slope, 2.0 * u * slope


@entry_point(LEAVES, LEAF, MATRIX, BOOL, VECTOR, INT, INT, written("f8", 3))
def jacobian(leaves, leaf, Z, clip, unit, begin, end, out):
    """Add the Jacobian to `out`, (rows, outputs, columns), for steps of a `unit` of each column, (columns,)."""
    n_trees = len(leaves.tree_degree)
    for top in range(begin, end, TILE):
        last = min(top + TILE, end)
        for tree in range(n_trees):
            first = leaves.tree_output[tree, 0]
            n_outputs = leaves.tree_output[tree, 1]
            degree = leaves.tree_degree[tree]
            for row in range(top, last):
                number = leaves.tree_leaf[tree] + leaf_at(leaf, tree, row)
                path = leaves.start[number]
                k = leaves.start[number + 1] - path
                w = leaves.weight_start[number]
                for j in range(k):
                    column = leaves.column[path + j]
                    scaling = leaves.scaling[path + j]
                    d_linear, d_square = _slope_scales(Z[row, column], scaling, clip, unit[column])
                    linear = w + (1 + j) * n_outputs
                    square = w + (1 + k + j) * n_outputs
                    for output in range(n_outputs):
                        slope = d_linear * leaves.weight[linear + output]
                        if degree == 2:
                            slope += d_square * leaves.weight[square + output]
                        out[row, first + output, column] += slope


@internal
def _where_parted(nodes, first, a, b):
    """Feature of the split at which two rows go different ways; they do somewhere."""
    node = 0
    while True:
        i = first + node
        left = goes_left(nodes, i, a)
        if left != goes_left(nodes, i, b):
            return nodes.feature[i]
        node = nodes.left[i] if left else nodes.right[i]


@internal
def _u(z, scaling, clip):
    """A value as the leaf regression reads it; its mean, 0, where missing."""
    return _standardised(z, scaling, clip)[0] if z == z else 0.0


@internal
def _value(leaves, number, Z, row, clip, degree, n_outputs, output):
    """Value of a leaf for one row and output."""
    path = leaves.start[number]
    k = leaves.start[number + 1] - path
    w = leaves.weight_start[number] + output
    total = leaves.weight[w]
    for j in range(k):
        u = _u(Z[row, leaves.column[path + j]], leaves.scaling[path + j], clip)
        total += u * leaves.weight[w + (1 + j) * n_outputs]
        if degree == 2:
            total += u * u * leaves.weight[w + (1 + k + j) * n_outputs]
    return total


@internal
def _add_within(leaves, number, share, ZA, ZB, row, clip, degree, n_outputs, output, out):
    """Add `share` of the change within one leaf, column by column, to `out`, (columns,); returns its sum."""
    path = leaves.start[number]
    k = leaves.start[number + 1] - path
    w = leaves.weight_start[number] + output
    total = 0.0
    for j in range(k):
        column = leaves.column[path + j]
        a, b = ZA[row, column], ZB[row, column]
        if a == b:
            continue
        scaling = leaves.scaling[path + j]
        u_a, u_b = _u(a, scaling, clip), _u(b, scaling, clip)
        # w1 u + w2 u^2 changes by (w1 + w2 (u_a + u_b)) (u_b - u_a): a difference of two squares would lose digits
        slope = leaves.weight[w + (1 + j) * n_outputs]
        if degree == 2:
            slope += (u_a + u_b) * leaves.weight[w + (1 + k + j) * n_outputs]
        change = share * slope * (u_b - u_a)
        out[column] += change
        total += change
    return total


@entry_point(NODES, INT64S, LEAVES, BOOL, LEAF, LEAF, *[MATRIX] * 4, INT, INT, *[written("f8", 3)] * 2)
def changes(nodes, tree_split, leaves, clip, leaf_a, leaf_b, A, B, ZA, ZB, begin, end, smooth, jump):
    """Tell apart the change of a forest's output from rows `A` to rows `B`.

    Parameters
    ----------
    leaf_a, leaf_b : leaf numbers of (trees, rows)
        Their leaves.
    ZA, ZB : (rows, columns)
        The columns of the basis.
    smooth : (rows, outputs, columns) float64
        Added to: change along the leaf regressions. Of a tree with both rows in one leaf this is all. If they
        are in two leaves, the mean of what either leaf's regression would change.
    jump : (rows, outputs, features) float64
        Added to: what else a tree changes, at the feature of the split where the two rows part.
    """
    for tree in range(len(leaves.tree_degree)):
        first = leaves.tree_output[tree, 0]
        n_outputs = leaves.tree_output[tree, 1]
        degree = leaves.tree_degree[tree]
        for row in range(begin, end):
            a = leaves.tree_leaf[tree] + leaf_at(leaf_a, tree, row)
            b = leaves.tree_leaf[tree] + leaf_at(leaf_b, tree, row)
            if a != b:
                # The whole change is leaf b at B minus leaf a at A. Half of what each of the two regressions changes
                # between the rows goes to its columns: neither leaf is preferred, and to go back from B to A changes
                # nothing but the sign. The rest is the jump from one leaf to the other, at the split between them.
                feature = _where_parted(nodes, tree_split[tree], A[row], B[row])
                for output in range(n_outputs):
                    out = smooth[row, first + output]
                    rest = _value(leaves, b, ZB, row, clip, degree, n_outputs, output)
                    rest -= _value(leaves, a, ZA, row, clip, degree, n_outputs, output)
                    rest -= _add_within(leaves, a, 0.5, ZA, ZB, row, clip, degree, n_outputs, output, out)
                    rest -= _add_within(leaves, b, 0.5, ZA, ZB, row, clip, degree, n_outputs, output, out)
                    jump[row, first + output, feature] += rest
                continue
            for output in range(n_outputs):
                out = smooth[row, first + output]
                _add_within(leaves, a, 1.0, ZA, ZB, row, clip, degree, n_outputs, output, out)
