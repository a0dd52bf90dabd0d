"""Compiled values and slopes of a forest: evaluate, Jacobian.

A leaf's value is ``w_0 + sum_j u_j (w_j + u_j w_jj)`` of its path columns, without ``w_jj`` for degree 1; its slope in
column j is ``(w_j + 2 u_j w_jj) inv_scale``. A missing value has ``u = 0``, the leaf's training mean. A clipped input
has a slope of 0. See `boostbp.trees.kernels.sums` for the terms.
"""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import BOOL, INT, INT32S, INT64S, LEAF, LEAVES, MATRIX, ORDER, VECTOR, exact, written
from boostbp.trees.kernels.records import BLOCK, CENTER, INV_SCALE, LOWER, TILE, UPPER, inner, leaf_at


@inner
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


@exact(INT64S, ORDER, INT, INT32S, VECTOR, INT, MATRIX, VECTOR, written("f8", 2))
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


@inner
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


@exact(LEAVES, LEAF, MATRIX, BOOL, INT, INT, written("f8", 2))
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


@inner
def _slope_scales(z, scaling, clip):
    """Return ``du/dz`` and ``d(u^2)/dz``; both 0 where missing or clipped."""
    if z != z:
        return 0.0, 0.0
    u, inside = _standardised(z, scaling, clip)
    if not inside:
        return 0.0, 0.0
    return scaling[INV_SCALE], 2.0 * u * scaling[INV_SCALE]


@exact(LEAVES, LEAF, MATRIX, BOOL, INT, INT, written("f8", 3))
def jacobian(leaves, leaf, Z, clip, begin, end, out):
    """Add the Jacobian to `out`, (rows, outputs, columns)."""
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
                    d_linear, d_square = _slope_scales(Z[row, column], leaves.scaling[path + j], clip)
                    linear = w + (1 + j) * n_outputs
                    square = w + (1 + k + j) * n_outputs
                    for output in range(n_outputs):
                        slope = d_linear * leaves.weight[linear + output]
                        if degree == 2:
                            slope += d_square * leaves.weight[square + output]
                        out[row, first + output, column] += slope
