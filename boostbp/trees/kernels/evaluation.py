"""Compiled values of training rows grouped by leaf, for `fit_trees`; see `boostbp/core/evaluation.c`."""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import INT, INT64S, MATRIX, ORDER, VECTOR, entry_point, written
from boostbp.trees.kernels.records import BLOCK, CENTER, INV_SCALE, internal


@internal
def add_leaf(values, at, n, path, k, degree, scaling, weight, w0, m, total):
    """Write the values of `n` rows for one of `m` outputs of a leaf to `total`."""
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


@entry_point(INT64S, ORDER, INT, INT64S, VECTOR, INT, MATRIX, VECTOR, written("f8", 2))
def add_values(row_start, order, first_row, path_start, grouped, degree, scaling, weight, out):
    """Add the values of training rows grouped by leaf to `out`, (outputs, rows)."""
    m = len(out)
    total = np.empty(BLOCK)
    w0 = at = np.int64(
        0
    )  # a literal 0 has a type of its own, and numba would compile the called loops once more for it
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
