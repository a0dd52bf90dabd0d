"""`boostbp/core/solving.c` once more, for the compiled loops that call it."""

from __future__ import annotations

import numpy as np
from numba import njit

from boostbp.trees.kernels.records import CENTER, ENTERED, INV_SCALE, internal, largest


@internal
def _factor(a, p, floor):
    """Write the Cholesky factor over the lower triangle; a pivot below `floor` drops its term (0 on the diagonal).

    A pivot is the part of a term's sum of squares that the terms before it do not explain. Below `floor` of the sum it
    is rounding, and the term is a combination of the others. Rows are too short for vector operations, and the sums of
    a column are independent, so plain loops are fast.
    """
    for j in range(p):
        size = a[j, j]
        pivot = size
        for k in range(j):
            pivot -= a[j, k] * a[j, k]
        if pivot > floor * size and pivot > 0.0:
            root = np.sqrt(pivot)
            inverse = 1.0 / root
            a[j, j] = root
            for i in range(j + 1, p):
                total = a[i, j]
                for k in range(j):
                    total -= a[i, k] * a[j, k]
                a[i, j] = total * inverse
        else:  # the row, too, as it may hold overflowed numbers
            for i in range(j):
                a[j, i] = 0.0
            for i in range(j, p):
                a[i, j] = 0.0


@internal
def solve_leaf(gram, g0, weight, w0, p, m, penalty, penalize_constant, scale, a):
    """Turn the moments of one leaf, ``weight[w0:w0 + p * m]``, into its ridge weights.

    `a`, (p, p) or larger, is scratch: its lower triangle becomes the Cholesky factor of the penalised Gram matrix.
    """
    for i in range(p):
        for j in range(i + 1):
            a[i, j] = gram[g0 + i * p + j]
        if i > 0 or penalize_constant:
            a[i, i] += penalty
    _factor(a, p, 1e-12)
    w = weight[w0 : w0 + p * m].reshape(p, m)
    for i in range(p):
        for j in range(i):
            for output in range(m):
                w[i, output] -= a[i, j] * w[j, output]
        for output in range(m):
            w[i, output] = w[i, output] / a[i, i] if a[i, i] > 0.0 else 0.0
    for i in range(p - 1, -1, -1):
        for output in range(m):
            w[i, output] = w[i, output] / a[i, i] if a[i, i] > 0.0 else 0.0
        for j in range(i):
            for output in range(m):
                w[j, output] -= a[i, j] * w[i, output]
    for i in range(p):
        for output in range(m):
            w[i, output] *= scale


@njit(**ENTERED)
def solve_leaves(path_start, degree, n_outputs, gram, weight, penalty, penalize_constant, scale):
    """Write the ridge weights of each leaf, ``scale * (gram + penalty I)^-1 moment``, over the moments in `weight`.

    A term that the others determine (a pivot below 1e-12 of its size) has weight 0.
    """
    most = 1 + degree * largest(path_start)
    a = np.empty((most, most))
    g0 = w0 = np.int64(
        0
    )  # a literal 0 has a type of its own, and numba would compile the called loops once more for it
    for leaf in range(len(path_start) - 1):
        p = 1 + degree * (path_start[leaf + 1] - path_start[leaf])
        solve_leaf(gram, g0, weight, w0, p, n_outputs, penalty, penalize_constant, scale, a)
        g0 += p * p
        w0 += p * n_outputs


@internal
def scale_leaf(scaling, path, k, degree, n_outputs, weight, w0):
    """Rewrite the weights of one leaf, in the user's units, as weights in units of ``u``.

    With ``z = c + d u``, ``a + b z + q z^2`` is ``(a + b c + q c^2) + (b + 2 q c) d u + q d^2 u^2``.
    """
    for output in range(n_outputs):
        for j in range(k):
            center = scaling[path + j, CENTER]
            inverse = scaling[path + j, INV_SCALE]
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


@njit(**ENTERED)
def scale_weights(path_start, degree, n_outputs, scaling, weight):
    """Rewrite weights in the user's units as weights in units of ``u``, in place."""
    w0 = np.int64(0)  # as in `solve_leaves`
    for leaf in range(len(path_start) - 1):
        k = path_start[leaf + 1] - path_start[leaf]
        scale_leaf(scaling, np.int64(path_start[leaf]), k, degree, n_outputs, weight, w0)
        w0 += (1 + degree * k) * n_outputs
