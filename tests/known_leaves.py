"""Leaf regressions where the leaf of each row is known, as training groups rows and fits them."""

from __future__ import annotations

import numpy as np

from boostbp.trees import kernels, leaf_rows
from boostbp.trees.leaf_rows import LeafRows, Workspace
from boostbp.trees.ridge import TreeRows, fit_together


def grouped(first, leaf, leaves, Z):
    """Rows of a block that begins at row `first`; `leaf` and `Z` are those of the block."""
    order, values = LeafRows.lent(len(leaf), leaves, Workspace())
    start = np.empty(len(leaves.start), np.int64)
    kernels.group_rows(leaf[None], 0, 0, len(leaf), order, start)
    kernels.group_paths(order, start, leaves.start, leaves.column, Z, 0, len(Z), start[:-1].copy(), values)
    return LeafRows(first, start, order, values)


def blocks(leaf, leaves, Z):
    """All rows, in blocks."""
    size = leaf_rows.BLOCK_ROWS
    return [grouped(k, leaf[k : k + size], leaves, Z[k : k + size]) for k in range(0, len(leaf), size)]


def fit_leaves(leaf, leaves, Z, grad, hess, ridge, learning_rate=1.0):
    """The regression of every leaf; `grad` is (rows, outputs), see `fit_together`."""
    rows = TreeRows(blocks(leaf, leaves, Z), leaves, np.ascontiguousarray(grad.T), hess)
    [fitted] = fit_together([rows], ridge, learning_rate)
    return fitted
