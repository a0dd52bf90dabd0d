"""Leaf regressions where the leaf of each row is known, as training groups rows and fits them."""

from __future__ import annotations

import numpy as np

from boostbp import core
from boostbp.trees.leaves import BLOCK_ROWS, Workspace
from boostbp.trees.tree_fits import TreeRows, fit_together


def grouped(first, leaf, leaves, Z):
    """Rows of a block that begins at row `first`; `leaf` and `Z` are those of the block."""
    rows = Workspace().rows(first, len(leaf), leaves)
    core.group_rows(leaf, rows.order, rows.start)
    core.group_paths(rows, leaves.column, Z, 0, len(Z), rows.start[:-1].copy())
    return rows


def blocks(leaf, leaves, Z, size=BLOCK_ROWS):
    """All rows, in blocks of `size`."""
    return [grouped(k, leaf[k : k + size], leaves, Z[k : k + size]) for k in range(0, len(leaf), size)]


def fit_leaves(leaf, leaves, Z, grad, hess, ridge, learning_rate=1.0, size=BLOCK_ROWS):
    """The regression of every leaf; `grad` is (rows, outputs), see `fit_together`."""
    rows = TreeRows(blocks(leaf, leaves, Z, size), leaves, np.ascontiguousarray(grad.T), hess)
    [fitted] = fit_together([rows], ridge, learning_rate)
    return fitted
