"""Leaf regressions as flat arrays, `core.Leaves`: make them, take some, join them, read their weights.

A library's linear leaves may predict a constant where one of their features is NaN. In place of an exception in every
loop over leaves, such a leaf gets splits above it that ask whether a feature is missing, each with a constant leaf::

    leaf l reads x2, x5       =>      x2 is missing? -> leaf of the constant
                                      x5 is missing? -> leaf of the constant
                                      leaf l
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp import core
from boostbp.core import Leaves
from boostbp.runtime.arrays import Floats
from boostbp.trees.basis import BASES, Basis
from boostbp.trees.sparse import Matrix, Sparse, row_blocks
from boostbp.trees.tree import ARRAYS, Parts, Tree, Trees, concat, concat_offsets, cut


def leaves_on_paths(trees: Trees, basis: Basis, n_outputs: int = 1) -> Leaves:
    """Return leaves that read the numeric features on their paths, with room for scalings and weights.

    Tree ``k`` serves outputs ``k * n_outputs .. (k + 1) * n_outputs - 1``.
    """
    # Called once per round, often of a few hundred rows: numpy's plainest functions, in half the time of the others.
    n_trees, (start, column) = len(trees), trees.paths(basis.columns_per_feature)
    number = np.arange(n_trees + 1)
    output, degree = np.empty((n_trees, 2), np.int64), np.empty(n_trees, np.int64)
    output[:, 0] = n_outputs * number[:-1]
    output[:, 1] = n_outputs
    degree.fill(basis.powers)
    # phi of Implementation Details: a leaf with k columns has the terms [1, u, u^2], which are 1 + degree * k, with a
    # weight each for each output.
    weight_start = basis.powers * start
    weight_start += np.arange(len(start))
    weight_start *= n_outputs
    scaling, weight = np.empty((len(column), 4)), np.empty(weight_start[-1])
    # a tree has one leaf more than splits
    return Leaves(trees.tree_split + number, output, degree, start, column, scaling, weight_start, weight)


def leaves_of_tree(start: ArrayLike, column: ArrayLike, scaling: Floats, weight: Floats, *, degree: int = 1) -> Leaves:
    """Return the leaves of one tree, which serves as many outputs from 0 on as `weight` has numbers for.

    Leaf ``l`` reads ``column[start[l]:start[l + 1]]``, by `LeafRanges.scaling` of each path column. Weights are, per
    leaf, (terms, outputs) in units of ``u``, for terms ``1, u, u^2`` up to the `degree`.
    """
    # One tree: its terms are those of the columns, and a constant for each leaf.
    start = np.asarray(start, np.int64)
    n_leaves = len(start) - 1
    first_term = degree * start + np.arange(n_leaves + 1)
    n_outputs = len(weight) // int(first_term[-1])
    return Leaves(
        np.array([0, n_leaves]), np.array([[0, n_outputs]]), np.array([degree]), start,
        np.ascontiguousarray(column, np.int32), scaling, n_outputs * first_term, weight,
    )  # fmt: skip


def zero_leaves(outputs: Sequence[int]) -> Leaves:
    """Return the leaves of stumps that predict 0, one for each of some outputs."""
    leaves = leaves_on_paths(Trees.stumps(len(outputs)), BASES["constant"])
    leaves.tree_output[:, 0] = outputs
    leaves.weight.fill(0.0)
    return leaves


def concat_leaves(parts: Sequence[Leaves]) -> Leaves:
    """Return a copy of the leaves of all parts, one after the other."""
    fields = list(zip(*parts, strict=True)) or [()] * len(Leaves._fields)
    tree_leaf, tree_output, tree_degree, start, column, scaling, weight_start, weight = fields
    return Leaves(
        concat_offsets(tree_leaf), concat(tree_output, np.int64).reshape(-1, 2), concat(tree_degree, np.int64),
        concat_offsets(start), concat(column, np.int32), concat(scaling, np.float64).reshape(-1, 4),
        concat_offsets(weight_start), concat(weight, np.float64),
    )  # fmt: skip


def take_leaves(leaves: Leaves, trees: Parts) -> Leaves:
    """Return the leaves of some of the trees; a slice gives views of the arrays."""
    tree_leaf, leaf = cut(leaves.tree_leaf, trees)
    start, path = cut(leaves.start, leaf)
    weight_start, at = cut(leaves.weight_start, leaf)
    return Leaves(
        tree_leaf, leaves.tree_output[trees], leaves.tree_degree[trees], start, leaves.column[path],
        leaves.scaling[path], weight_start, leaves.weight[at],
    )  # fmt: skip


def coefficients(leaves: Leaves, leaf: int) -> Floats:
    """Return the weights of a leaf of one tree in the user's units, (terms, outputs): constant, columns, their squares.

    With ``u = (z - c) s``, ``w0 + w1 u + w2 u^2`` is
    ``(w0 - w1 c s + w2 c^2 s^2) + (w1 s - 2 w2 c s^2) z + w2 s^2 z^2``.
    """
    [degree], [[_, n_outputs]] = leaves.tree_degree.tolist(), leaves.tree_output.tolist()
    # Terms lie as in the leaf: the constant, all u, then all u^2; outputs of a term side by side.
    begin, end = leaves.start[leaf], leaves.start[leaf + 1]
    w = leaves.weight[leaves.weight_start[leaf] : leaves.weight_start[leaf + 1]].reshape(-1, n_outputs)
    center, scale = leaves.scaling[begin:end, 0][:, None], leaves.scaling[begin:end, 1][:, None]
    k = end - begin
    shift = center * scale
    with np.errstate(over="ignore"):  # a weight may exceed float64 in the user's units
        linear, square = w[1 : 1 + k], w[1 + k :] if degree == 2 else np.zeros((k, n_outputs))
        constant = w[0] - (linear * shift).sum(0) + (square * shift**2).sum(0)
        parts = [constant[None], (linear - 2 * square * shift) * scale, square * scale * scale]
    return np.concatenate(parts[: 1 + degree])


def add_to(out: Floats, leaves: Leaves, leaf: NDArray[np.integer], Z: Matrix) -> None:
    """Add the values of training rows, whose leaves, (trees, rows), are known, to `out`, (rows, outputs)."""
    if not isinstance(Z, Sparse):
        core.evaluate(leaves, leaf, Z, False, 0, len(Z), out)
        return
    # Only the columns that leaves read are made dense. Training rows lie within the bounds, so nothing is clipped.
    columns, place = np.unique(leaves.column, return_inverse=True)
    leaves = leaves._replace(column=place.astype(np.int32))
    for rows in row_blocks(0, len(Z), len(columns)):
        part = Z.dense(columns, rows)
        core.evaluate(leaves, leaf[:, rows], part, False, 0, len(part), out[rows])


def with_missing_leaves(tree: Tree, leaves: Leaves, constant: Floats) -> tuple[Tree, Leaves]:
    """Return the tree and its leaves with splits and constant leaves for rows that miss a column of their leaf.

    The leaves are of degree 1 and one output, and read features; `constant`, (leaves,), is what each predicts for a row
    that misses one of its columns. Leaves keep their numbers; the new ones come after them. The new splits have a gain
    of 0.
    """
    # A chain of splits stands in place of each leaf that reads columns: each split asks for one column, sends a missing
    # value right to a new leaf, and all else left to the next split, at last to the leaf itself.
    pairs = list(_possibly_missing(tree, leaves))
    leaf, feature = np.array(pairs, np.int64).reshape(-1, 2).T
    first, count = len(tree.feature), len(leaf)
    split, new_leaf = first + np.arange(count), tree.n_leaves + np.arange(count)
    follows = np.diff(leaf, prepend=-1) == 0  # another split of the same leaf stands above
    below = np.where(np.append(follows, False)[1:], split + 1, ~leaf)
    instead = ~np.arange(tree.n_leaves)  # what stands in place of each leaf
    instead[leaf[~follows]] = split[~follows]
    left, right = (np.where(child < 0, instead[~child], child) for child in (tree.left, tree.right))
    # All that is known is at most infinity, and goes left.
    none, numeric, known = np.zeros(count, bool), np.full(count, -1), np.full(count, np.inf)
    before = *tree.nodes._replace(left=left, right=right), tree.gain
    added = feature, known, below, ~new_leaf, none, numeric, none, tree.categories[:0], none
    rewritten = Tree.of(**{name: np.concatenate(both) for name, *both in zip(ARRAYS, before, added, strict=True)})
    start = np.append(leaves.start, np.full(count, leaves.start[-1]))
    weight = np.append(leaves.weight, constant[leaf])  # one term, the constant
    return rewritten, leaves_of_tree(start, leaves.column, leaves.scaling, weight)


def _possibly_missing(tree: Tree, leaves: Leaves) -> Iterator[tuple[int, int]]:
    """Yield each leaf and each of its columns that its rows may miss: no split above sends NaN another way."""
    to_leaf = tree.parents()
    for leaf in range(tree.n_leaves):
        # Columns whose missing values a split above sends away from this leaf.
        elsewhere, child = set(), ~leaf
        while (split := to_leaf.get(child, -1)) >= 0:
            if tree.missing_left[split] != (tree.left[split] == child):
                elsewhere.add(int(tree.feature[split]))
            child = split
        for column in leaves.column[leaves.start[leaf] : leaves.start[leaf + 1]].tolist():
            if column not in elsewhere:
                yield leaf, column
