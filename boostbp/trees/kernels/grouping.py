"""Compiled grouping of rows by leaf: bins of the input, partition of rows, path columns side by side.

The values of a column lie in at most 255 bins, in order; bin `MISSING` is for NaN. `lower` and `upper`, (features,
256), are the smallest and the largest value in each bin. Most splits are decided by the bins, one byte each; the few
rows whose bin a threshold divides are asked for their value, so routing is exact.
"""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import (
    INT,
    INT32S,
    INT64S,
    LEAF,
    LEAF_OUT,
    MATRIX,
    NODES,
    ORDER,
    entry_point,
    read,
    written,
)
from boostbp.trees.kernels.records import internal, leaf_at, put_leaf
from boostbp.trees.kernels.routing import goes_left, sends_left

MISSING = 255
RIGHT, LEFT, ASK = 0, 1, 2
BINNED = 512  # rows that are binned at once, column by column


@entry_point(MATRIX, MATRIX, written("u1", 2), written("f8", 2), written("f8", 2))
def put_in_bins(X, cuts, bins, lower, upper):
    """Write the bins of the values of `X`, (features, rows), and the ends of each bin.

    Parameters
    ----------
    cuts : (features, 255) float64
        Ascending, the last one infinite: the bin of a value is the number of cuts below it.
    """
    lower[:] = np.inf
    upper[:] = -np.inf
    for top in range(0, len(X), BINNED):
        for j in range(len(cuts)):
            of_column = cuts[j]
            for row in range(top, min(top + BINNED, len(X))):
                value = X[row, j]
                if value != value:
                    bins[j, row] = MISSING
                    continue
                # binary search, without a jump that depends on the value
                number, step = np.uint32(0), np.uint32(128)
                while step > 0:
                    number += step if of_column[number + step - np.uint32(1)] < value else np.uint32(0)
                    step >>= np.uint32(1)
                bins[j, row] = number
                lower[j, number] = min(lower[j, number], value)
                upper[j, number] = max(upper[j, number], value)


@internal
def sides(nodes, first, last, lower, upper):
    """Return where splits ``first .. last - 1`` send each bin, (splits, 256): `RIGHT`, `LEFT`, or `ASK` the value."""
    out = np.empty((last - first, 256), np.uint8)
    for split in range(first, last):
        of_split, low, high = out[split - first], lower[nodes.feature[split]], upper[nodes.feature[split]]
        if nodes.cat_start[split] < 0:
            threshold = nodes.threshold[split]
            for number in range(MISSING):
                of_split[number] = LEFT if high[number] <= threshold else RIGHT if low[number] > threshold else ASK
        else:
            for number in range(MISSING):
                of_split[number] = sends_left(nodes, split, low[number]) if low[number] == high[number] else ASK
        of_split[MISSING] = nodes.missing_left[split]
    return out


@internal
def partition(nodes, first, to, bins, X, top, scratch, leaf, tree, order, row_start):
    """Group the rows from `top` on by leaf, split by split.

    Parameters
    ----------
    first : int
        First split of the tree in `nodes`.
    to : (splits, 256) uint8
        From `sides`.
    scratch : (2, at least rows) uint16
    leaf : leaf numbers of (trees, rows)
        Leaves of the rows under `tree` are written.
    order : (rows,) uint16, written
        Leaf ``l`` has rows ``top + order[row_start[l]:row_start[l + 1]]``, in their order.
    row_start : (leaves + 1,) int64, written
    """
    n_rows, n_splits = len(order), len(to)
    sorted_rows, right_rows = scratch[0, :n_rows], scratch[1, :n_rows]
    for i in range(n_rows):
        sorted_rows[i] = i
    begin_of = np.empty(n_splits + 1, np.int64)
    # A stack in place of a recursion: the sibling of each node on the way down, and the node itself.
    todo = np.empty((n_splits + 2, 3), np.int64)  # child, its first row, behind its last row
    todo[0, 0] = 0 if n_splits > 0 else ~0
    todo[0, 1] = 0
    todo[0, 2] = n_rows
    n_todo = 1
    while n_todo > 0:
        n_todo -= 1
        split, begin, end = todo[n_todo, 0], todo[n_todo, 1], todo[n_todo, 2]
        if split < 0:
            begin_of[~split] = begin
            row_start[~split + 1] = end - begin
            continue
        of_split, bin_of = to[split], bins[nodes.feature[first + split], top : top + n_rows]
        # Each row is written to both sides, and only the end of its own side moves on: a jump that depends on the
        # data would be guessed wrong for every second row. Rows keep their order, so sums over a leaf do, too.
        rows = sorted_rows[begin:end]
        n_left, n_right = np.uint64(0), np.uint64(0)
        for i in range(len(rows)):
            row = rows[i]
            side = np.uint64(of_split[bin_of[row]])
            if side == ASK:
                side = np.uint64(goes_left(nodes, first + split, X[top + np.int64(row)]))
            rows[n_left] = row
            right_rows[n_right] = row
            n_left += side
            n_right += np.uint64(1) - side
        middle = begin + np.int64(n_left)
        for i in range(end - middle):
            sorted_rows[middle + i] = right_rows[i]
        todo[n_todo, 0] = nodes.right[first + split]
        todo[n_todo, 1] = middle
        todo[n_todo, 2] = end
        todo[n_todo + 1, 0] = nodes.left[first + split]
        todo[n_todo + 1, 1] = begin
        todo[n_todo + 1, 2] = middle
        n_todo += 2
    row_start[0] = 0
    for number in range(n_splits + 1):
        n = row_start[number + 1]
        rows, to_leaf = sorted_rows[begin_of[number] : begin_of[number] + n], order[row_start[number] :]
        for i in range(n):
            to_leaf[i] = rows[i]
            put_leaf(leaf, tree, top + np.int64(rows[i]), number)
        row_start[number + 1] += row_start[number]


@entry_point(LEAF, INT, INT, INT, written("u2", 1), written("i8", 1))
def group_rows(leaf, tree, top, n_rows, order, start):
    """Write `n_rows` rows from `top` on, sorted by leaf, to `order`; the first place of each leaf to `start`."""
    n_leaves = len(start) - 1
    for i in range(n_leaves + 1):
        start[i] = 0
    for row in range(n_rows):
        start[leaf_at(leaf, tree, top + row) + 1] += 1
    for i in range(n_leaves):
        start[i + 1] += start[i]
    at = start[:-1].copy()
    for row in range(n_rows):
        number = leaf_at(leaf, tree, top + row)
        order[at[number]] = row
        at[number] += 1  # a counting sort: rows of a leaf keep their order


@entry_point(ORDER, INT64S, INT32S, INT32S, MATRIX, INT, INT, written("i8", 1), written("f8", 1))
def group_paths(order, row_start, path_start, column, Z, begin, end, at, values):
    """Copy path columns of rows sorted by leaf: of each leaf its columns one after the other, each (rows of the leaf,).

    Parameters
    ----------
    order, row_start : from `partition` or `group_rows`
    Z : (end - begin, columns)
        Rows ``begin .. end - 1`` of the block; the parts of a block come in order.
    at : (leaves,) int64
        The place in `order` that each leaf has reached, at first ``row_start[:-1]``; moved.
    values : (at least rows x path columns of each leaf,) float64, written
    """
    place = 0
    for leaf in range(len(at)):
        first, last = at[leaf], row_start[leaf + 1]
        if end < len(order):
            while at[leaf] < last and order[at[leaf]] < end:
                at[leaf] += 1
        else:
            at[leaf] = last
        rows = order[first : at[leaf]]
        to, n = place + first - row_start[leaf], last - row_start[leaf]
        for j in range(path_start[leaf], path_start[leaf + 1]):
            near, c = values[to : to + len(rows)], np.uint64(column[j])
            for i in range(len(rows)):
                near[i] = Z[np.uint64(rows[i]) - np.uint64(begin), c]
            to += n
        place += n * (path_start[leaf + 1] - path_start[leaf])


@internal
def group(nodes, first, to, bins, X, Z, top, path_start, column, scratch, leaf, tree, order, values, row_start):
    """`partition` and `group_paths` of one block."""
    partition(nodes, first, to, bins, X, top, scratch, leaf, tree, order, row_start)
    at = row_start[:-1].copy()
    begin = np.int64(0)  # a bare 0 is a type of its own, for which what is called would be compiled once more
    group_paths(order, row_start, path_start, column, Z[top : top + len(order)], begin, len(order), at, values)


@entry_point(
    NODES, read("u1", 2), *[MATRIX] * 4, INT, INT32S, INT32S, LEAF_OUT, written("u2", 1), written("f8", 1),
    written("i8", 1),
)  # fmt: skip
def group_block(nodes, bins, lower, upper, X, Z, top, path_start, column, leaf, order, values, row_start):
    """Group one block of rows by the leaves of one tree; see `group`."""
    first = tree = np.int64(0)  # as in `group`
    to = sides(nodes, first, len(nodes.feature), lower, upper)
    scratch = np.empty((2, len(order)), np.uint16)
    group(nodes, first, to, bins, X, Z, top, path_start, column, scratch, leaf, tree, order, values, row_start)
