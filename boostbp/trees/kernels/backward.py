"""Compiled backward pass: the gradient in the columns of a forest, from that in its outputs.

Rows pass tree by tree in blocks that lie column by column, grouped by leaf: then the weights of a leaf stay in
registers. The rows of a leaf are copied together, multiplied without a branch, and added where they belong. Arrays are
indexed, not sliced: a leaf has few rows of a block, and a slice costs as much as a dozen of them.
"""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import BOOL, INT, LEAF, LEAVES, MATRIX, VECTOR, entry_point, written
from boostbp.trees.kernels.records import CENTER, INV_SCALE, LOWER, UPPER, internal, leaf_at

MOST_ROWS, LEAST_ROWS = 2048, 256  # of a block; fewer where columns are many
CELLS = 1 << 20  # numbers in a block: 8 MB


@entry_point(LEAVES, LEAF, MATRIX, BOOL, MATRIX, VECTOR, INT, INT, written("f8", 2))
def vjp(leaves, leaf, Z, clip, G, unit, begin, end, out):
    """Write ``J' G`` of rows ``begin .. end - 1`` to `out`, (rows, columns), for `G`, (rows, outputs).

    `leaf` is leaf numbers of (trees, rows); J is the Jacobian for steps of a `unit` of each column, (columns,).
    """
    n_columns, n_trees = Z.shape[1], len(leaves.tree_degree)
    most = min(end - begin, max(LEAST_ROWS, min(MOST_ROWS, CELLS // max(1, n_columns))))
    z, total = np.empty((n_columns, most)), np.empty((n_columns, most))
    order, g_of_leaf, z_of_leaf = np.empty(most, np.uint16), np.empty(most), np.empty(most)
    most_leaves = 0
    for tree in range(n_trees):
        most_leaves = max(most_leaves, leaves.tree_leaf[tree + 1] - leaves.tree_leaf[tree])
    row_start = np.empty(most_leaves + 1, np.int64)
    for top in range(begin, end, most):
        n_rows = min(most, end - top)
        _take_columns(Z, top, n_rows, z, total)
        for tree in range(n_trees):
            first, n_outputs = leaves.tree_output[tree, 0], leaves.tree_output[tree, 1]
            n_leaves = leaves.tree_leaf[tree + 1] - leaves.tree_leaf[tree]
            _group(leaf, tree, top, n_rows, n_leaves, row_start, order)
            g = G[top : top + n_rows, first : first + n_outputs]
            for number in range(n_leaves):
                rows = order[row_start[number] : row_start[number + 1]]
                if n_outputs == 1:
                    _vjp_of_one_output(leaves, tree, number, rows, z, clip, g[:, 0], unit, g_of_leaf, z_of_leaf, total)
                else:
                    _vjp_of_several_outputs(leaves, tree, number, rows, z, clip, g, unit, total)
        for i in range(n_rows):
            for j in range(n_columns):
                out[top + i, j] = total[j, i]


@internal
def _take_columns(Z, top, n_rows, z, total):
    """Write rows from `top` on into `z`, (columns, rows), and zeros into `total`."""
    for j in range(Z.shape[1]):
        for i in range(n_rows):
            z[j, i] = Z[top + i, j]
            total[j, i] = 0.0


@internal
def _group(leaf, tree, top, n_rows, n_leaves, row_start, order):
    """Sort rows by leaf: leaf ``l`` has rows ``order[row_start[l]:row_start[l + 1]]``, in their order."""
    row_start[: n_leaves + 1] = 0
    for row in range(n_rows):
        row_start[np.uint64(leaf_at(leaf, tree, top + row))] += 1
    before = 0
    for number in range(n_leaves + 1):
        before += row_start[number]
        row_start[number] = before
    for row in range(n_rows - 1, -1, -1):
        number = np.uint64(leaf_at(leaf, tree, top + row))
        row_start[number] -= 1
        order[np.uint64(row_start[number])] = row


@internal
def _range(scaling, at, clip):
    """Return the range of ``u`` in which an input has a slope; if it has none, an empty one with its ends exchanged."""
    if scaling[at, INV_SCALE] == 0.0 or (clip and not scaling[at, LOWER] < scaling[at, UPPER]):
        return np.inf, -np.inf
    if clip:
        return scaling[at, LOWER], scaling[at, UPPER]
    return -np.inf, np.inf


@internal
def _vjp_of_one_output(leaves, tree, number, rows, z, clip, g, unit, g_of_leaf, z_of_leaf, total):
    """Add ``g (w_j + 2 u_j w_jj) inv_scale unit`` of the rows of one leaf of a tree that serves one output."""
    degree = leaves.tree_degree[tree]
    number += leaves.tree_leaf[tree]
    path = leaves.start[number]
    k = leaves.start[number + 1] - path
    w = leaves.weight_start[number]
    n = len(rows)
    for i in range(n):
        g_of_leaf[i] = g[rows[i]]
    for j in range(k):
        at, column = path + j, np.uint64(leaves.column[path + j])
        lower, upper = _range(leaves.scaling, at, clip)
        if lower > upper:
            continue
        center, inverse, linear = leaves.scaling[at, CENTER], leaves.scaling[at, INV_SCALE], leaves.weight[w + 1 + j]
        per_unit = inverse * unit[column]
        square = 2.0 * leaves.weight[w + 1 + k + j] if degree == 2 else 0.0
        for i in range(n):
            z_of_leaf[i] = z[column, rows[i]]
        for i in range(n):
            u = (z_of_leaf[i] - center) * inverse
            slope = linear + u * square if degree == 2 else linear
            product = g_of_leaf[i] * slope * per_unit
            z_of_leaf[i] = product if (u >= lower) & (u <= upper) else 0.0
        for i in range(n):
            total[column, rows[i]] += z_of_leaf[i]


@internal
def _vjp_of_several_outputs(leaves, tree, number, rows, z, clip, g, unit, total):
    """Add ``sum_o g_o (w_jo + 2 u_j w_jjo) inv_scale unit`` of the rows of one leaf of a tree of several outputs.

    Gradients times weights first: a slope may be beyond float64 where the gradient is 0.
    """
    degree, n_outputs = leaves.tree_degree[tree], g.shape[1]
    number += leaves.tree_leaf[tree]
    path = leaves.start[number]
    k = leaves.start[number + 1] - path
    w = leaves.weight_start[number]
    for j in range(k):
        at, column = path + j, leaves.column[path + j]
        lower, upper = _range(leaves.scaling, at, clip)
        if lower > upper:
            continue
        center, inverse = leaves.scaling[at, CENTER], leaves.scaling[at, INV_SCALE]
        per_unit = inverse * unit[column]
        linear = leaves.weight[w + (1 + j) * n_outputs : w + (2 + j) * n_outputs]
        square = leaves.weight[w + (1 + k + j) * n_outputs : w + (2 + k + j) * n_outputs]
        of_column, to = z[column], total[column]
        for row in rows:
            u = (of_column[row] - center) * inverse
            if not ((u >= lower) & (u <= upper)):
                continue
            product = 0.0
            for output in range(n_outputs):
                product += linear[output] * g[row, output]
            product *= per_unit
            if degree == 2:
                curved = 0.0
                for output in range(n_outputs):
                    curved += square[output] * g[row, output]
                if curved != 0.0:
                    product += 2.0 * u * per_unit * curved
            to[row] += product
