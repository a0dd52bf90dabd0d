"""Compiled ridge regression of a leaf whose slopes in some columns keep their sign."""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.records import INV_SCALE, LOWER, UPPER, inner
from boostbp.trees.kernels.solving import solve_leaf

FREE, FLAT_END, ABSENT = 0, 1, 2  # a column of a leaf: as it is; with a slope of 0 at one end of its range; left out


@inner
def _leave_out(gram, moment, p, term):
    """Take a term out of normal equations, which give it a weight of 0 then."""
    for i in range(p):
        gram[term * p + i] = 0.0
        gram[i * p + term] = 0.0
    moment[term] = 0.0


@inner
def _join(gram, moment, p, term, other, ratio):
    """Put ``term + ratio * other`` in the place of a term, and take the other out."""
    for i in range(p):
        gram[term * p + i] += ratio * gram[other * p + i]
    for i in range(p):
        gram[i * p + term] += ratio * gram[i * p + other]
    moment[term] += ratio * moment[other]
    _leave_out(gram, moment, p, other)


@inner
def _restricts(j, k, degree, w, sign, scaling, state, ratio, gram, moment, p):
    """Restrict column `j` of a leaf if its slope has the wrong sign somewhere; returns whether it had.

    A slope, ``w_j + 2 u w_jj``, is between those at the ends of the range. Where one end alone is wrong, the parabola
    gets its top there: ``u + ratio u^2``.
    """
    linear, square = sign * w[1 + j], sign * w[1 + k + j] if degree == 2 else 0.0
    lower, upper = scaling[LOWER], scaling[UPPER]
    at_lower, at_upper = linear + 2.0 * square * lower, linear + 2.0 * square * upper
    if state[j] == ABSENT or (at_lower >= 0.0 and at_upper >= 0.0):
        return False
    if state[j] == FLAT_END and linear >= 0.0:  # the slope at that end is 0 but for rounding
        return False
    if degree == 2 and state[j] == FREE and max(at_lower, at_upper) > 0.0 and lower < 0.0 < upper:
        state[j], ratio[j] = FLAT_END, -0.5 / (lower if at_lower < 0.0 else upper)
        _join(gram, moment, p, 1 + j, 1 + k + j, ratio[j])
        return True
    state[j] = ABSENT
    _leave_out(gram, moment, p, 1 + j)
    if degree == 2:
        _leave_out(gram, moment, p, 1 + k + j)
    return True


@inner
def solve_signed(gram, g0, w, path, degree, column, scaling, sign, penalty, penalize_constant, a, matrix, moment):
    """Turn the moments of one leaf, `w`, into ridge weights whose slopes have no wrong sign within the leaf's range.

    Columns are restricted until none is wrong: each round restricts one more at least. `a`, `matrix` and `moment` are
    scratch for as many terms; the last becomes the moments of the terms as restricted.
    """
    p = len(w)
    k = (p - 1) // degree
    state, ratio = np.zeros(k, np.int64), np.zeros(k)
    for i in range(p):
        moment[i] = w[i]
        for j in range(i + 1):
            matrix[i * p + j] = matrix[j * p + i] = gram[g0 + i * p + j]
    begin, n_outputs = np.int64(0), np.int64(1)
    wrong = True
    while wrong:
        for i in range(p):
            w[i] = moment[i]
        solve_leaf(matrix, begin, w, begin, p, n_outputs, penalty, penalize_constant, 1.0, a)
        for j in range(k):
            if state[j] == FLAT_END:
                w[1 + k + j] = ratio[j] * w[1 + j]
        wrong = False
        for j in range(k):
            way = sign[column[path + j]]
            if way != 0 and scaling[path + j, INV_SCALE] != 0.0:
                wrong |= _restricts(j, k, degree, w, way, scaling[path + j], state, ratio, matrix, moment, p)
