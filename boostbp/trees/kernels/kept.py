"""Compiled fit of trees whose rows, weights and structures stay: only the moments are summed again.

Terms, frames and the order of operations are those of `boostbp.trees.kernels.fitting`.
"""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import BOOL, FLOAT, INT, INT32S, INT64S, LEAF, MATRIX, VECTOR, exact, written
from boostbp.trees.kernels.evaluation import add_leaf
from boostbp.trees.kernels.grouping import group_rows
from boostbp.trees.kernels.records import BLOCK, CENTER, INV_SCALE, fast, inner, largest
from boostbp.trees.kernels.solving import factor, move_leaf, solve_factored
from boostbp.trees.kernels.sums import add_sums, gather, scratch

__all__ = ["factor_trees", "refit_trees"]

ROWS = 1 << 14  # rows that are grouped at once, so that what is read of them stays in cache


@inner
def _units(frame, path, k, standardize, center, scale, fill):
    for j in range(k):
        center[j] = frame[path + j, CENTER] if standardize else 0.0
        scale[j] = frame[path + j, INV_SCALE] if standardize else 1.0
        fill[j] = 0.0 if standardize else frame[path + j, CENTER]


@exact(LEAF, INT64S, INT64S, INT32S, MATRIX, INT, VECTOR, MATRIX, FLOAT, BOOL, BOOL, written("f8", 1))
def factor_trees(leaf, tree_leaf, start, column, Z, degree, hess, frame, penalty, penalize_constant, standardize, out):
    """Cholesky factor of each leaf's ``sum(hess phi phi') + penalty``, leaf after leaf, each (terms, terms).

    Parameters
    ----------
    leaf : leaf numbers of (trees, rows)
    tree_leaf : (trees + 1,) first leaf of each tree
    start, column, frame : path columns of the leaves of all trees
    hess : (rows,) float64; empty: ones
    out : (sum of terms^2,) float64
        Written; zeros at first.
    """
    most = largest(start)
    p = 1 + degree * most
    a, unused = np.empty((p, p)), np.empty(0)
    center, scale, fill = np.empty(most), np.empty(most), np.empty(most)
    none = np.int64(0)  # a bare 0 is a type of its own, for which what is called is compiled once more
    terms, weighted = scratch(p, none)
    h, values = np.ones(BLOCK), np.empty((max(most, 1), BLOCK))
    order = np.empty(ROWS, np.uint16)
    g0 = none
    for tree in range(len(tree_leaf) - 1):
        tree_g0 = g0
        row_start = np.empty(tree_leaf[tree + 1] - tree_leaf[tree] + 1, np.int64)
        for top in range(0, len(Z), ROWS):
            n_rows = min(ROWS, len(Z) - top)
            group_rows(leaf, tree, top, n_rows, order, row_start)
            g0 = tree_g0
            for number in range(tree_leaf[tree], tree_leaf[tree + 1]):
                path, own = start[number], number - tree_leaf[tree]
                k = start[number + 1] - path
                _units(frame, path, k, standardize, center, scale, fill)
                for block in range(row_start[own], row_start[own + 1], BLOCK):
                    n = min(BLOCK, row_start[own + 1] - block)
                    gather(Z, order, top, block, n, column, path, k, values, none)
                    different = 0
                    if len(hess) > 0:
                        for i in range(n):
                            h[i] = hess[top + order[block + i]]
                            different += h[i] != 1.0
                    add_sums(
                        values, none, n, none, k, degree, center, scale, fill, h, different == 0, terms, weighted, none,
                        out, g0, unused, none,
                    )  # fmt: skip
                g0 += (1 + degree * k) ** 2
        g0 = tree_g0
        for number in range(tree_leaf[tree], tree_leaf[tree + 1]):
            p = 1 + degree * (start[number + 1] - start[number])
            factor(out, g0, p, penalty, penalize_constant, a)
            for i in range(p):
                for j in range(p):
                    out[g0 + i * p + j] = a[i, j]
            g0 += p * p


@fast
def _moment(t, u, n):
    total = 0.0
    square = 0.0
    for i in range(n):
        total += t[i] * u[i]
        square += t[i] * u[i] * u[i]
    return total, square


@fast
def _sum(t, n):
    total = 0.0
    for i in range(n):
        total += t[i]
    return total


@exact(
    LEAF, INT64S, INT64S, INT32S, MATRIX, INT, MATRIX, MATRIX, VECTOR, BOOL, FLOAT, written("f8", 1),
    written("f8", 2),
)  # fmt: skip
def refit_trees(
    leaf, tree_leaf, start, column, Z, degree, grad, frame, factors, standardize, learning_rate, weight, out
):  # fmt: skip
    """Fit the leaves of trees that serve one output each from their moments, and add their values to the running fit.

    Parameters
    ----------
    grad, out : (trees, rows) float64
    factors : from `factor_trees`
    weight : (terms of all leaves,) float64
        Written.
    """
    most = largest(start)
    for term in range(len(weight)):
        weight[term] = 0.0
    p = 1 + degree * most
    center, scale, fill = np.empty(most), np.empty(most), np.empty(most)
    values, t, u, total = np.empty((max(most, 1), BLOCK)), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    order = np.empty(ROWS, np.uint16)
    once = len(Z) <= ROWS
    none, one_output = np.int64(0), np.int64(1)  # as in `factor_trees`
    g0 = w0 = none
    for tree in range(len(tree_leaf) - 1):
        first, last = tree_leaf[tree], tree_leaf[tree + 1]
        row_start = np.empty(last - first + 1, np.int64)
        tree_w0 = w0
        for top in range(0, len(Z), ROWS):
            group_rows(leaf, tree, top, min(ROWS, len(Z) - top), order, row_start)
            w0 = tree_w0
            for number in range(first, last):
                path, own = start[number], number - first
                k = start[number + 1] - path
                _units(frame, path, k, standardize, center, scale, fill)
                for block in range(row_start[own], row_start[own + 1], BLOCK):
                    n = min(BLOCK, row_start[own + 1] - block)
                    gather(Z, order, top, block, n, column, path, k, values, none)
                    of_block, rows = grad[tree, top:], order[block : block + n]
                    for i in range(n):
                        t[i] = -of_block[rows[i]]
                    weight[w0] += _sum(t, n)
                    for j in range(k):
                        near = values[j]
                        for i in range(n):
                            z = near[i]
                            u[i] = (z - center[j]) * scale[j] if z == z else fill[j]
                        linear, square = _moment(t, u, n)
                        weight[w0 + 1 + j] += linear
                        if degree == 2:
                            weight[w0 + 1 + k + j] += square
                w0 += 1 + degree * k
        w0 = tree_w0
        for number in range(first, last):
            k = start[number + 1] - start[number]
            p = 1 + degree * k
            solve_factored(factors[g0 : g0 + p * p].reshape(p, p), weight, w0, p, one_output, learning_rate)
            if not standardize:
                move_leaf(frame, start[number], k, degree, one_output, weight, w0)
            g0 += p * p
            w0 += p
        for top in range(0, len(Z), ROWS):
            if not once:
                group_rows(leaf, tree, top, min(ROWS, len(Z) - top), order, row_start)
            w0 = tree_w0
            for number in range(first, last):
                path, own = start[number], number - first
                k = start[number + 1] - path
                for block in range(row_start[own], row_start[own + 1], BLOCK):
                    n = min(BLOCK, row_start[own + 1] - block)
                    gather(Z, order, top, block, n, column, path, k, values, none)
                    add_leaf(values, none, n, path, k, degree, frame, weight, w0, one_output, total)
                    of_block, rows = out[tree, top:], order[block : block + n]
                    for i in range(n):
                        of_block[rows[i]] += total[i]
                w0 += 1 + degree * k
