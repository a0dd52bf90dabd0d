"""Compiled look for cells that contradict the rest of their row; see `boostbp.inputs.contradictions`."""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import FLOAT, INT64S, MATRIX, VECTOR, exact, written

MARGIN = (
    1e-12  # of the sizes of what is summed: ten thousand times as far as the order of a sum, or a logarithm, matters
)


@exact(INT64S, *[VECTOR] * 3, FLOAT, MATRIX, *[VECTOR] * 4, MATRIX, written("?", 1))
def may_contradict(column, floor, center, scale, far, precision, lowest, highest, least, most, X, out):
    """Write to `out`, (rows,), which rows are those of `Normal.suspects`, or within rounding of them.

    Parameters
    ----------
    column, floor, center, scale : those of `Units`
    far : float
        Largest size of a value in these units.
    precision, lowest, highest, least, most : those of `Normal`
    X : (rows, features) float64
    """
    size = len(column)
    u, error, off, margin = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for row in range(len(X)):
        out[row] = False
        for j in range(size):
            value = X[row, column[j]]
            u[j] = error[j] = off[j] = margin[j] = 0.0
            if value == value:
                if floor[j] > 0.0:
                    value = np.log(max(value, floor[j]))
                u[j] = min(max((value - center[j]) / scale[j], -far), far)
                if most[j] == np.inf:  # not determined by the others
                    u[j] = min(max(u[j], lowest[j]), highest[j])
                error[j] = MARGIN * (np.abs(u[j]) + np.abs(center[j]) / scale[j])
        for i in range(size):
            for j in range(size):
                off[j] += u[i] * precision[i, j]
                margin[j] += error[i] * np.abs(precision[i, j])
        for j in range(size):
            lower, upper = least[j] * precision[j, j] + margin[j], most[j] * precision[j, j] - margin[j]
            if most[j] < np.inf and not lower < off[j] < upper:
                out[row] = True
