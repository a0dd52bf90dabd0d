"""Compiled change of a forest's output between two inputs, told apart by input columns and by splits."""

from __future__ import annotations

from boostbp.trees.kernels.entry import BOOL, INT, INT64S, LEAF, LEAVES, MATRIX, NODES, exact, written
from boostbp.trees.kernels.evaluation import _standardised
from boostbp.trees.kernels.records import inner, leaf_at
from boostbp.trees.kernels.routing import goes_left


@inner
def _where_parted(nodes, first, a, b):
    """Feature of the split at which two rows go different ways; they do somewhere."""
    node = 0
    while True:
        i = first + node
        left = goes_left(nodes, i, a)
        if left != goes_left(nodes, i, b):
            return nodes.feature[i]
        node = nodes.left[i] if left else nodes.right[i]


@inner
def _u(z, scaling, clip):
    """A value as the leaf regression reads it; its mean, 0, where missing."""
    return _standardised(z, scaling, clip)[0] if z == z else 0.0


@inner
def _value(leaves, number, Z, row, clip, degree, n_outputs, output):
    """Value of a leaf for one row and output."""
    path = leaves.start[number]
    k = leaves.start[number + 1] - path
    w = leaves.weight_start[number] + output
    total = leaves.weight[w]
    for j in range(k):
        u = _u(Z[row, leaves.column[path + j]], leaves.scaling[path + j], clip)
        total += u * leaves.weight[w + (1 + j) * n_outputs]
        if degree == 2:
            total += u * u * leaves.weight[w + (1 + k + j) * n_outputs]
    return total


@inner
def _add_within(leaves, number, share, ZA, ZB, row, clip, degree, n_outputs, output, out):
    """Add `share` of the change within one leaf, column by column, to `out`, (columns,); returns its sum."""
    path = leaves.start[number]
    k = leaves.start[number + 1] - path
    w = leaves.weight_start[number] + output
    total = 0.0
    for j in range(k):
        column = leaves.column[path + j]
        a, b = ZA[row, column], ZB[row, column]
        if a == b:
            continue
        scaling = leaves.scaling[path + j]
        u_a, u_b = _u(a, scaling, clip), _u(b, scaling, clip)
        # w1 u + w2 u^2 changes by (w1 + w2 (u_a + u_b)) (u_b - u_a): a difference of two squares would lose digits
        slope = leaves.weight[w + (1 + j) * n_outputs]
        if degree == 2:
            slope += (u_a + u_b) * leaves.weight[w + (1 + k + j) * n_outputs]
        change = share * slope * (u_b - u_a)
        out[column] += change
        total += change
    return total


@exact(NODES, INT64S, LEAVES, BOOL, LEAF, LEAF, *[MATRIX] * 4, INT, INT, *[written("f8", 3)] * 2)
def changes(nodes, tree_split, leaves, clip, leaf_a, leaf_b, A, B, ZA, ZB, begin, end, smooth, jump):
    """Tell apart the change of a forest's output from rows `A` to rows `B`.

    Parameters
    ----------
    leaf_a, leaf_b : leaf numbers of (trees, rows)
        Their leaves.
    ZA, ZB : (rows, columns)
        The columns of the basis.
    smooth : (rows, outputs, columns) float64
        Added to: change along the leaf regressions. Of a tree with both rows in one leaf this is all. If they
        are in two leaves, the mean of what either leaf's regression would change.
    jump : (rows, outputs, features) float64
        Added to: what else a tree changes, at the feature of the split where the two rows part.
    """
    for tree in range(len(leaves.tree_degree)):
        first = leaves.tree_output[tree, 0]
        n_outputs = leaves.tree_output[tree, 1]
        degree = leaves.tree_degree[tree]
        for row in range(begin, end):
            a = leaves.tree_leaf[tree] + leaf_at(leaf_a, tree, row)
            b = leaves.tree_leaf[tree] + leaf_at(leaf_b, tree, row)
            if a != b:
                # The whole change is leaf b at B minus leaf a at A. Half of what each of the two regressions changes
                # between the rows goes to its columns: neither leaf is preferred, and to go back from B to A changes
                # nothing but the sign. The rest is the jump from one leaf to the other, at the split between them.
                feature = _where_parted(nodes, tree_split[tree], A[row], B[row])
                for output in range(n_outputs):
                    out = smooth[row, first + output]
                    rest = _value(leaves, b, ZB, row, clip, degree, n_outputs, output)
                    rest -= _value(leaves, a, ZA, row, clip, degree, n_outputs, output)
                    rest -= _add_within(leaves, a, 0.5, ZA, ZB, row, clip, degree, n_outputs, output, out)
                    rest -= _add_within(leaves, b, 0.5, ZA, ZB, row, clip, degree, n_outputs, output, out)
                    jump[row, first + output, feature] += rest
                continue
            for output in range(n_outputs):
                out = smooth[row, first + output]
                _add_within(leaves, a, 1.0, ZA, ZB, row, clip, degree, n_outputs, output, out)
