"""Compiled changes of scaling: new scalings of leaf regressions, and one scaling for like trees that become one."""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import INT64S, LEAVES, VECTOR, entry_point, written
from boostbp.trees.kernels.records import CENTER, INV_SCALE, LOWER, UPPER

LEAST_SCALE = 1e-12  # relative to the center: with a smaller scale, rounding would change predictions


@entry_point(LEAVES, VECTOR, VECTOR, written("f8", 1))
def rescale(leaves, ratio, shift, weight):
    """Rewrite the weights of all leaves for new scalings, ``u = ratio v + shift`` in each path column."""
    for tree in range(len(leaves.tree_leaf) - 1):
        n_outputs, curved = leaves.tree_output[tree, 1], leaves.tree_degree[tree] == 2
        for leaf in range(leaves.tree_leaf[tree], leaves.tree_leaf[tree + 1]):
            first, last = leaves.start[leaf], leaves.start[leaf + 1]
            for output in range(n_outputs):
                constant, w2 = 0.0, 0.0
                linear = leaves.weight_start[leaf] + output
                for path in range(first, last):
                    linear += n_outputs
                    square = linear + (last - first) * n_outputs
                    w1 = weight[linear]
                    if curved:
                        w2 = weight[square]
                        weight[square] = ratio[path] * ratio[path] * w2
                    constant += shift[path] * (w1 + shift[path] * w2)
                    weight[linear] = ratio[path] * (w1 + 2.0 * shift[path] * w2)
                weight[leaves.weight_start[leaf] + output] += constant


@entry_point(LEAVES, INT64S, written("f8", 2), written("f8", 1), written("f8", 1))
def common_scalings(leaves, first_tree, scaling, ratio, shift):
    """Give like trees one scaling per path column, about the mean of their centers and with bounds that cover all.

    Parameters
    ----------
    first_tree : (runs + 1,) int64
        First of the trees of each run.
    scaling : (path columns, 4), ratio, shift : (path columns,) float64, written where a run has several trees
        See `rescale`; the ratio is 0 where a column does not vary.
    """
    for run in range(len(first_tree) - 1):
        first, last = first_tree[run], first_tree[run + 1]
        if last - first == 1:
            continue
        begin = leaves.start[leaves.tree_leaf[first]]
        for place in range(leaves.start[leaves.tree_leaf[first + 1]] - begin):
            count, total, low, high, steepest = 0, 0.0, np.inf, -np.inf, 0.0
            for tree in range(first, last):
                path = leaves.start[leaves.tree_leaf[tree]] + place
                center, inverse = leaves.scaling[path, CENTER], leaves.scaling[path, INV_SCALE]
                if inverse != 0.0:
                    count += 1
                    total += center
                    low = min(low, center + leaves.scaling[path, LOWER] / inverse)
                    high = max(high, center + leaves.scaling[path, UPPER] / inverse)
                    steepest = max(steepest, inverse)
            middle = total / max(count, 1)
            span = max(high - middle, middle - low)
            scale = 1.0 / span
            if span <= LEAST_SCALE * abs(middle) or scale == np.inf:  # clipped to one value: any scale does
                scale = steepest
            for tree in range(first, last):
                path = leaves.start[leaves.tree_leaf[tree]] + place
                center, inverse = leaves.scaling[path, CENTER], leaves.scaling[path, INV_SCALE]
                ratio[path] = shift[path] = 0.0
                if inverse != 0.0:
                    ratio[path] = inverse / scale
                    shift[path] = (middle - center) * inverse
                if count == 0:  # no tree varies: keep the scaling of the first
                    for k in range(4):
                        scaling[path, k] = leaves.scaling[begin + place, k]
                else:
                    scaling[path, CENTER] = middle
                    scaling[path, INV_SCALE] = scale
                    scaling[path, LOWER] = (low - middle) * scale
                    scaling[path, UPPER] = (high - middle) * scale
