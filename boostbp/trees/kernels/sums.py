"""Compiled sums over the rows of each leaf: ranges, Gram matrices, moments.

Terms of a leaf with ``k`` path columns, in this order: ``1, u_1 .. u_k`` and, for degree 2,
``u_1^2 .. u_k^2``, where ``u = (z - center) * inv_scale``. The *scaling* of a path column of a leaf is a row
``(center, inv_scale, lower, upper)``; ``lower`` and ``upper`` bound ``u`` at evaluation.

The rows of a leaf are taken `BLOCK` at a time: their path columns lie in rows of a matrix, (columns, rows), and
every sum runs along these rows.
"""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import INT, INT64S, LEAF, LEAVES, MATRIX, ORDER, VECTOR, entry_point, written
from boostbp.trees.kernels.records import BLOCK, CENTER, INV_SCALE, LOWER, UPPER, fastmath, internal, largest, leaf_at

# ---------------------------------------------------------------------------- ranges


@internal
def _key(bits):
    """Turn the bits of a float64 into an integer of the same order, or back: integers have vector minima and maxima.

    IEEE 754 numbers are ordered by sign and magnitude, so the bits below the sign of a negative number are inverted.
    """
    return bits ^ ((bits >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))


@fastmath
def _total(z):
    total = 0.0
    for i in range(len(z)):
        total += z[i]
    return total


@fastmath
def _weighted_total(z, h):
    total = 0.0
    for i in range(len(z)):
        total += h[i] * z[i]
    return total


@internal
def _ends(keys):
    lower, upper = np.int64(0x7FFFFFFFFFFFFFFF), np.int64(-0x7FFFFFFFFFFFFFFF)
    for i in range(len(keys)):
        key = _key(keys[i])
        lower = min(lower, key)
        upper = max(upper, key)
    return lower, upper


@internal
def _add_known(z, h, out, keys):
    """Add the range of a column with missing values, row by row."""
    for i in range(len(z)):
        if z[i] == z[i]:
            key = _key(z[i : i + 1].view(np.int64)[0])
            keys[0] = min(keys[0], key)
            keys[1] = max(keys[1], key)
            out[2] += h[i] * z[i]
            out[3] += h[i]


@entry_point(INT64S, ORDER, INT, INT64S, VECTOR, VECTOR, written("f8", 2))
def leaf_ranges(row_start, order, first_row, path_start, grouped, hess, out):
    """Write smallest and largest value, weighted sum and weight of each path column of each leaf to `out`.

    `order` indexes rows of a block that begins at `first_row` of `hess`; `grouped` is from `group_paths`. An empty
    `hess` stands for ones.
    `out` is (path columns, 4): lower, upper, sum of ``hess * z``, sum of `hess`; NaN left out.
    """
    n_leaves = len(row_start) - 1
    keys = out.view(np.int64)
    for path in range(len(out)):
        out[path, 0], out[path, 1], out[path, 2], out[path, 3] = np.inf, -np.inf, 0.0, 0.0
        keys[path, 0] = _key(keys[path, 0])
        keys[path, 1] = _key(keys[path, 1])
    h_of_block = np.ones(BLOCK)
    unit = len(hess) == 0
    at = 0
    for leaf in range(n_leaves):
        path, begin, end = path_start[leaf], row_start[leaf], row_start[leaf + 1]
        k = path_start[leaf + 1] - path
        values = grouped[at : at + k * (end - begin)].reshape(k, end - begin)
        at += values.size
        for block in range(begin, end, BLOCK):
            n = min(BLOCK, end - block)
            h, rows = h_of_block[:n], order[block : block + n]
            if not unit:
                of_block = hess[first_row:]
                for i in range(n):
                    h[i] = of_block[rows[i]]
            whole = float(n) if unit else _total(h)
            for j in range(k):
                z = values[j][block - begin : block - begin + n]
                total = _total(z) if unit else _weighted_total(z, h)
                if total != total:  # some are missing
                    _add_known(z, h, out[path + j], keys[path + j])
                    continue
                lower, upper = _ends(z.view(np.int64))
                keys[path + j, 0] = min(keys[path + j, 0], lower)
                keys[path + j, 1] = max(keys[path + j, 1], upper)
                out[path + j, 2] += total
                out[path + j, 3] += whole
    for path in range(len(out)):
        keys[path, 0] = _key(keys[path, 0])
        keys[path, 1] = _key(keys[path, 1])


@internal
def scaling_of(ranges, flat_scale, out):
    """Write the scaling of one path column, of its range, to `out`; see `LeafRanges.scaling`."""
    lower, upper = ranges[0], ranges[1]
    center = ranges[2] / ranges[3]
    if not (center >= lower and center <= upper):  # all weights are 0, or the sum exceeds float64
        center = 0.5 * lower + 0.5 * upper
    scale = max(upper - center, center - lower)
    inverse = 1.0 / scale
    out[LOWER] = 0.0
    out[UPPER] = 0.0
    if np.isfinite(scale) and np.isfinite(inverse) and np.isfinite(center):
        out[CENTER] = center
        out[INV_SCALE] = inverse
        out[LOWER] = (lower - center) * inverse
        out[UPPER] = (upper - center) * inverse
    else:
        out[CENTER] = center if np.isfinite(center) else 0.0
        out[INV_SCALE] = 0.0 if scale == np.inf else flat_scale  # the width is 0, or so small that 1 / scale overflows


# ---------------------------------------------------------------------------- Gram matrices and moments


@internal
def scratch(n_terms, n_outputs):
    """Return room for the terms and weighted terms of a block: each (terms + outputs + 4, `BLOCK`).

    `_tile` reads two rows of one and four of the other, beyond the last term.
    """
    return np.zeros((n_terms + n_outputs + 4, BLOCK)), np.zeros((n_terms + n_outputs + 4, BLOCK))


@fastmath
def _tile(left, a, right, b, n):
    """Return the products of two rows of `left` with four of `right`: eight sums in registers, for six loads."""
    l0, l1 = left[a], left[a + 1]
    r0, r1, r2, r3 = right[b], right[b + 1], right[b + 2], right[b + 3]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    for i in range(n):
        x = l0[i]
        y = l1[i]
        s00 += x * r0[i]
        s01 += x * r1[i]
        s02 += x * r2[i]
        s03 += x * r3[i]
        s10 += y * r0[i]
        s11 += y * r1[i]
        s12 += y * r2[i]
        s13 += y * r3[i]
    return (s00, s01, s02, s03), (s10, s11, s12, s13)


@internal
def _add_products(left, right, n, p, m, gram, g0, moment, m0):
    for a in range(0, p + m, 2):
        last = p if a + 1 >= p else a + 2
        for b in range(0, last, 4):
            both = _tile(left, a, right, b, n)
            for r in range(2):
                for c in range(4):
                    row, col = a + r, b + c
                    if row < p:
                        if col <= row:
                            gram[g0 + row * p + col] += both[r][c]
                    elif row < p + m and col < p:
                        moment[m0 + col * m + row - p] += both[r][c]


@internal
def add_sums(values, at, n, path, k, degree, center, scale, fill, h, unit, terms, weighted, m, gram, g0, moment, m0):
    """Add a block's ``sum(h phi phi')`` (lower triangle) and ``sum(phi t')`` to `gram` and `moment`.

    The caller has written the `m` target rows ``t`` behind the terms of `terms`; `terms` and
    `weighted` come from `scratch`.
    """
    p = 1 + degree * k
    size = (n + 7) // 8 * 8  # whole vectors of 8 numbers, with zeros after the rows
    for i in range(n):
        terms[0, i] = 1.0
    for j in range(k):
        z, u = values[j][at : at + n], terms[1 + j]
        c, s, missing = center[path + j], scale[path + j], fill[path + j]
        for i in range(n):
            value = z[i]
            u[i] = (value - c) * s if value == value else missing
        if degree == 2:
            square = terms[1 + k + j]
            for i in range(n):
                square[i] = u[i] * u[i]
    for a in range(p + m):
        for i in range(n, size):
            terms[a, i] = 0.0
    if unit:
        _add_products(terms, terms, size, p, m, gram, g0, moment, m0)
        return
    for a in range(p):
        for i in range(n):
            weighted[a, i] = h[i] * terms[a, i]
        for i in range(n, size):
            weighted[a, i] = 0.0
    for a in range(p, p + m):
        for i in range(size):
            weighted[a, i] = terms[a, i]
    _add_products(weighted, terms, size, p, m, gram, g0, moment, m0)


@entry_point(INT64S, ORDER, INT, INT64S, *[VECTOR] * 4, INT, MATRIX, VECTOR, *[written("f8", 1)] * 2)
def leaf_sums(
    row_start, order, first_row, path_start, grouped, center, scale, fill, degree, grad, hess, gram, moment
):  # fmt: skip
    """Add sums over the rows of each leaf; `grad` is (outputs, rows), the rest as in `leaf_ranges`.

    Parameters
    ----------
    gram : (sum of terms^2,), lower triangles of ``sum(hess * phi phi')``
    moment : (sum of terms * outputs,), ``-sum(phi * grad')``
    """
    n_leaves = len(row_start) - 1
    m = len(grad)
    most = largest(path_start)
    terms, weighted = scratch(1 + degree * most, m)
    h = np.ones(BLOCK)
    g0 = m0 = at = np.int64(
        0
    )  # a literal 0 has a type of its own, and numba would compile the called loops once more for it
    for leaf in range(n_leaves):
        path, begin, end = np.int64(path_start[leaf]), row_start[leaf], row_start[leaf + 1]
        k = path_start[leaf + 1] - path
        p = 1 + degree * k
        values = grouped[at : at + k * (end - begin)].reshape(k, end - begin)
        at += values.size
        for block in range(begin, end, BLOCK):
            n = min(BLOCK, end - block)
            different, rows = 0, order[block : block + n]
            if len(hess) > 0:
                of_block = hess[first_row:]
                for i in range(n):
                    h[i] = of_block[rows[i]]
                    different += h[i] != 1.0
            for output in range(m):
                of_block, target = grad[output][first_row:], terms[p + output]
                for i in range(n):
                    target[i] = -of_block[rows[i]]
            add_sums(
                values, block - begin, n, path, k, degree, center, scale, fill, h, different == 0, terms,
                weighted, m, gram, g0, moment, m0,
            )  # fmt: skip
        g0 += p * p
        m0 += p * m


@entry_point(LEAVES, LEAF, MATRIX, MATRIX, written("f8", 1))
def term_moments(leaves, leaf, Z, G, out):
    """Add ``sum over rows of phi(u) g'`` to `out`, in the places of ``leaves.weight``.

    Parameters
    ----------
    leaves : Leaves
        Of trees that each serve all outputs.
    leaf : leaf numbers of (trees, rows)
    Z : (rows, columns) float64
        A missing value has ``u = 0``; nothing is clipped.
    G : (rows, outputs) float64
    """
    m = G.shape[1]
    for tree in range(len(leaves.tree_degree)):
        degree = leaves.tree_degree[tree]
        for row in range(len(Z)):
            number = leaves.tree_leaf[tree] + leaf_at(leaf, tree, row)
            path, w = leaves.start[number], leaves.weight_start[number]
            k = leaves.start[number + 1] - path
            for output in range(m):
                out[w + output] += G[row, output]
            for j in range(k):
                z = Z[row, leaves.column[path + j]]
                if z != z:
                    continue
                u = (z - leaves.scaling[path + j, CENTER]) * leaves.scaling[path + j, INV_SCALE]
                linear = w + (1 + j) * m
                for output in range(m):
                    out[linear + output] += u * G[row, output]
                if degree == 2:
                    square = w + (1 + k + j) * m
                    for output in range(m):
                        out[square + output] += u * u * G[row, output]
