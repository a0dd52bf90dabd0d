"""Leaf regressions where the leaf of each row is known, as training groups rows and fits them."""

from __future__ import annotations

import numpy as np

from boostbp.trees import kernels
from boostbp.trees import leaves as tree_leaves
from boostbp.trees.leaves import LeafRows, Workspace
from boostbp.trees.ridge import fit_rows


def grouped(first, leaf, paths, Z):
    """Rows of a block that begins at row `first`; `leaf` and `Z` are those of the block."""
    order, values = LeafRows.lent(len(leaf), paths, Workspace())
    start = np.empty(len(paths.start), np.int64)
    kernels.group_rows(leaf[None], 0, 0, len(leaf), order, start)
    kernels.group_paths(order, start, paths.start, paths.column, Z, 0, len(Z), start[:-1].copy(), values)
    return LeafRows(first, start, order, values)


def blocks(leaf, paths, Z):
    """All rows, in blocks."""
    size = tree_leaves.BLOCK_ROWS
    return [grouped(k, leaf[k : k + size], paths, Z[k : k + size]) for k in range(0, len(leaf), size)]


def fit_leaves(leaf, paths, Z, grad, hess, ridge, learning_rate=1.0):
    """The regression of every leaf; `grad` is (rows, outputs), see `fit_rows`."""
    return fit_rows(blocks(leaf, paths, Z), paths, np.ascontiguousarray(grad.T), hess, ridge, learning_rate)
