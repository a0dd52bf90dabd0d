"""Compiled comparison of two leaves of a tree: the least step from one to the other between rows that reach both."""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.records import CENTER, INV_SCALE, LOWER, UPPER, internal

NO_COLUMN = np.int64(2**62)  # comes after all columns


@internal
def reach_of(path, k, degree, scaling, w):
    """Return bounds of the values of a leaf, whatever the row."""
    low = high = w[0]
    for j in range(k):
        part = (scaling[path + j], w[1 + j], w[1 + k + j] if degree == 2 else 0.0)
        lower, upper = _value(-np.inf, part), _value(np.inf, part)
        least, most = min(lower, upper, 0.0), max(lower, upper, 0.0)
        flat = _value(_flat_at(part), part)
        if flat == flat:
            least, most = min(least, flat), max(most, flat)
        low += least
        high += most
    return low, high


@internal
def _value(z, part):
    """A column's part of a leaf, ``w_j u + w_jj u^2``; NaN for NaN."""
    scaling, linear, square = part
    if scaling[INV_SCALE] == 0.0:
        return 0.0
    u = (z - scaling[CENTER]) * scaling[INV_SCALE]
    u = scaling[LOWER] if u < scaling[LOWER] else scaling[UPPER] if u > scaling[UPPER] else u
    return u * (linear + u * square)


@internal
def _flat_at(part):
    """The place of the top of a column's parabola; NaN if it has none."""
    scaling, linear, square = part
    if square == 0.0 or scaling[INV_SCALE] == 0.0:
        return np.nan
    return scaling[CENTER] - 0.5 * linear / square / scaling[INV_SCALE]


@internal
def _valley_between(a, b):
    """The place of the valley of part `b` less part `a`, where neither is clipped; NaN if there is none."""
    scaling_a, linear_a, square_a = a
    scaling_b, linear_b, square_b = b
    per_a, per_b = scaling_a[INV_SCALE], scaling_b[INV_SCALE]
    square = square_b * per_b * per_b - square_a * per_a * per_a
    if not square > 0.0:
        return np.nan
    linear = (linear_b - 2.0 * square_b * scaling_b[CENTER] * per_b) * per_b
    linear -= (linear_a - 2.0 * square_a * scaling_a[CENTER] * per_a) * per_a
    return -0.5 * linear / square


@internal
def _least_between(low, high, a, b, at):
    """Least of part `b` less part `a` from `low` to `high`: there, where one begins to be clipped, or is flat."""
    at[0], at[1], at[2], n = low, high, _valley_between(a, b), 3
    for part in (a, b):
        scaling = part[0]
        if scaling[INV_SCALE] != 0.0:
            at[n] = scaling[CENTER] + scaling[LOWER] / scaling[INV_SCALE]
            at[n + 1] = scaling[CENTER] + scaling[UPPER] / scaling[INV_SCALE]
            at[n + 2] = _flat_at(part)
            n += 3
    least = np.inf
    for i in range(n):
        z = at[i]
        if low <= z <= high:
            least = min(least, _value(z, b) - _value(z, a))
    return least


@internal
def boxes(nodes, first, parent, path_start, column, box, may_miss):
    """Write between which thresholds each path column of each leaf lies, and whether its rows may miss it.

    parent : (leaves + splits,), the split above each leaf, then above each split; -1 above the root
    box : (path columns, 2); may_miss : (path columns,)
    """
    n_leaves = len(path_start) - 1
    for leaf in range(n_leaves):
        begin, end = path_start[leaf], path_start[leaf + 1]
        for j in range(begin, end):
            box[j, 0], box[j, 1], may_miss[j] = -np.inf, np.inf, True
        child, split = ~leaf, parent[leaf]
        while split >= 0:
            i = first + split
            left = nodes.left[i] == child
            for j in range(begin, end):
                if column[j] == nodes.feature[i]:  # a column is numeric, and so is the split
                    end_of_box = 1 if left else 0
                    threshold = nodes.threshold[i]
                    box[j, end_of_box] = min(box[j, 1], threshold) if left else max(box[j, 0], threshold)
                    may_miss[j] &= nodes.missing_left[i] == left
            child, split = split, parent[n_leaves + split]


@internal
def least_step(feature, rising, a, b, path_start, column, weight_start, degree, scaling, weight, box, may_miss, at):
    """Return the least of leaf b less leaf a where rows that differ in `feature` alone reach both; infinity if none do.

    They are on two sides of a split of the feature, a on the left one if the tree is to be `rising`, else b, and both
    rise in it, or both fall. Of the other columns the rows have the same values, each of which counts for itself.
    `at`, (9,), is scratch.
    """
    first_a, first_b = path_start[a], path_start[b]
    k_a, k_b = path_start[a + 1] - first_a, path_start[b + 1] - first_b
    w_a, w_b = weight_start[a], weight_start[b]
    total = weight[w_b] - weight[w_a]
    i = j = 0
    while i < k_a or j < k_b:  # the columns of both ascend
        column_a = np.int64(column[first_a + i]) if i < k_a else NO_COLUMN
        column_b = np.int64(column[first_b + j]) if j < k_b else NO_COLUMN
        in_a, in_b = column_a <= column_b, column_b <= column_a
        # a leaf that does not read the column has weights of 0 for it, beside some scaling
        at_a, at_b = first_a + (i if in_a else 0), first_b + (j if in_b else 0)
        part_a = (
            scaling[at_a],
            weight[w_a + 1 + i] if in_a else 0.0,
            weight[w_a + 1 + k_a + i] if in_a and degree == 2 else 0.0,
        )
        part_b = (
            scaling[at_b],
            weight[w_b + 1 + j] if in_b else 0.0,
            weight[w_b + 1 + k_b + j] if in_b and degree == 2 else 0.0,
        )
        if min(column_a, column_b) == feature:  # where a is highest and b lowest: at the ends that face each other
            total += _value(box[at_b, 0 if rising else 1], part_b) - _value(box[at_a, 1 if rising else 0], part_a)
        else:
            low = max(box[at_a, 0] if in_a else -np.inf, box[at_b, 0] if in_b else -np.inf)
            high = min(box[at_a, 1] if in_a else np.inf, box[at_b, 1] if in_b else np.inf)
            both_miss = (may_miss[at_a] or not in_a) and (may_miss[at_b] or not in_b)
            if low < high:
                least = _least_between(low, high, part_a, part_b, at)
                total += min(least, 0.0) if both_miss else least
            elif not both_miss:
                return np.inf
        i += in_a
        j += in_b
    return total
