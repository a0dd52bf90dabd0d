"""Compiled prediction of a few rows: each is routed through a tree and evaluated at once."""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import BOOL, INT64S, LEAVES, MATRIX, NODES, exact, written
from boostbp.trees.kernels.records import CENTER, INV_SCALE, LOWER, UPPER


@exact(NODES, INT64S, LEAVES, MATRIX, MATRIX, BOOL, written("f8", 2))
def predict_few(nodes, tree_split, leaves, X, Z, clip, out):
    """Add the forest's values to `out`, (rows, outputs): those of `route` and `evaluate`, to the bit.

    `goes_left` and `_standardised` are written out, and arrays taken out of their records once: to hand arrays on
    counts their users, atomically, which lets no load of the next tree begin before the last one of this has come.
    """
    feature, threshold, left, right, missing_left, cat_start, cat_words, categories = nodes
    tree_leaf, tree_output, tree_degree, start, column, scaling, weight_start, weight = leaves
    for row in range(len(X)):
        x, z_of_row = X[row], Z[row]
        for tree in range(len(tree_degree)):
            first_split = tree_split[tree]
            node = np.int64(0 if tree_split[tree + 1] > first_split else ~0)
            while node >= 0:
                split = np.uint64(first_split + node)  # an index without a sign is not asked whether it has one
                value, bound = x[np.uint32(feature[split])], threshold[split]
                goes_left = value <= bound
                if value != value:
                    goes_left = missing_left[split]
                elif (
                    bound != bound and cat_start[split] >= 0 and value > -1.0 and value < 32.0 * cat_words[split]
                ):  # a set of categories
                    code = np.int64(value)
                    word = categories[cat_start[split] + (code >> 5)]
                    goes_left = (word >> np.uint32(code & 31)) & np.uint32(1) == 1
                node = np.int64(left[split] if goes_left else right[split])
            leaf = np.uint64(tree_leaf[tree] + ~node)
            path, w = start[leaf], weight_start[leaf]
            k, degree = start[leaf + np.uint64(1)] - path, tree_degree[tree]
            first, n_outputs = tree_output[tree, 0], tree_output[tree, 1]
            total = weight[w]
            if n_outputs > 1:
                for output in range(n_outputs):
                    out[row, first + output] += weight[w + output]
            for j in range(k):
                z = z_of_row[np.uint32(column[path + j])]
                if z != z:
                    continue
                u = 0.0
                if scaling[path + j, INV_SCALE] != 0.0:
                    u = (z - scaling[path + j, CENTER]) * scaling[path + j, INV_SCALE]
                    if clip:
                        if u < scaling[path + j, LOWER]:
                            u = scaling[path + j, LOWER]
                        elif u > scaling[path + j, UPPER]:
                            u = scaling[path + j, UPPER]
                if n_outputs == 1:
                    if degree == 2:
                        total += u * (weight[w + 1 + j] + u * weight[w + 1 + k + j])
                    else:
                        total += u * weight[w + 1 + j]
                    continue
                linear = w + (1 + j) * n_outputs
                for output in range(n_outputs):
                    out[row, first + output] += u * weight[linear + output]
                if degree == 2:
                    for output in range(n_outputs):
                        square = linear + k * n_outputs + output
                        out[row, first + output] += u * u * weight[square]
            if n_outputs == 1:
                out[row, first] += total
