"""Compiled moments of the terms of leaf regressions: what a gradient in the outputs says about each weight."""

from __future__ import annotations

from boostbp.trees.kernels.entry import LEAF, LEAVES, MATRIX, exact, written
from boostbp.trees.kernels.records import CENTER, INV_SCALE, leaf_at

__all__ = ["term_moments"]


@exact(LEAVES, LEAF, MATRIX, MATRIX, written("f8", 1))
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
