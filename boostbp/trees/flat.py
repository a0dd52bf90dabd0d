"""Flat: the forests of a network's layers, laid out for single rows, 60 times faster than `Forest` there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.core import INV_SCALE, LOCKSTEP, LOWER, UPPER, predict_rows
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest
from boostbp.trees.tree import levels, offsets

Table = NDArray[np.float32] | Floats
NODE = [("bound", "u4"), ("step", "i2"), ("column", "u2")]
WIDE = [("bound", "u4"), ("step", "i4"), ("column", "u4")]
OF_COLUMN = 5  # number of values of a path column before its weights
LEAF_BOUND = int(np.iinfo(np.uint32).max)  # ``bound`` of a leaf whose record begins at 0


class Flat(NamedTuple):
    """The forests of successive layers in few arrays; the number of trees of each layer is a multiple of `LOCKSTEP`.

    Integers and floats have the shortest types that hold them exactly, as single rows wait for memory.
    """

    # (nodes,) of `NODE` or `WIDE`: splits and leaves of all trees. The two children of a split are adjacent. In a
    # split, ``step`` is the distance to the left child, ``bound`` the rank of the threshold among those of its column,
    # and ``column`` the index of one of the numbers that `boostbp/core/rows.c` computes from a layer's input. In a
    # leaf, ``step`` is 0, ``column`` is the number of path columns, and ``bound`` is the complement of the place of its
    # record in `table`. That is larger than all ranks that it is compared with, so that a row stays in the leaf.
    nodes: NDArray[np.void]
    trees: NDArray[np.int32]  # (trees, 4) int32: root, first output, number of outputs, degree
    # (layers, 7): first tree, number of trees, first and last set of categories, number of input columns, number of
    # outputs, and place of the layer's columns in `first_bound`
    layers: NDArray[np.int64]
    steps: NDArray[np.int64]  # (trees / LOCKSTEP,): length of the longest path of trees that are walked together
    bounds: Floats  # (bounds,): the distinct thresholds of each input column of each layer, ascending
    # (columns of all layers + 1 each,): first threshold of each column, and the end after the last column of a layer
    first_bound: NDArray[np.int64]
    # The record of each leaf: constants of all outputs, then for each path column its number, scaling, linear weights
    # of all outputs and, for degree 2, quadratic weights. Constant columns are left out. Bounds are infinite if inputs
    # are not clipped.
    table: Table
    # (sets, 4): for each split by a set of categories: feature, first word, number of words, whether missing values go
    # left
    sets: NDArray[np.int64]
    categories: NDArray[np.uint32]  # words of the sets

    @classmethod
    def of(cls, forests: Sequence[Forest], node: list[tuple[str, str]] = NODE) -> Flat | None:
        """Lay out the forests of layers, from the input up; their bases must have no functions.

        Returns None if a `node`, `NODE` or `WIDE`, has too few bits, or if a leaf reads a column more than once.
        """
        parts = [_arrays_of(forest) for forest in forests]
        begins = {name: offsets([len(part[name]) for part in parts]) for name in parts[0]}
        layers = np.empty((len(forests), 7), np.int64)
        for number, (forest, part) in enumerate(zip(forests, parts, strict=True)):
            first = {name: int(array[number]) for name, array in begins.items()}
            layers[number] = (
                first["trees"], forest.n_trees, first["sets"], first["sets"] + len(part["sets"]), forest.n_features,
                forest.n_outputs, first["first_bound"],
            )  # fmt: skip
            part["trees"][:, 0] += first["step"]
            part["first_bound"] += first["bounds"]
            part["sets"][:, 1] += first["categories"]
            leaf = part["step"] == 0
            part["bound"][leaf] -= first["table"]
            if part["column"][leaf].max() >= 2 * forest.n_features:  # the core makes so many numbers of a row
                return None
        whole: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in begins}
        if whole["bound"][whole["step"] == 0].min() <= len(whole["bounds"]):
            return None
        nodes = np.empty(len(whole["step"]), node)
        for name in nodes.dtype.names or ():
            values, limits = whole.pop(name), np.iinfo(nodes.dtype[name])
            if values.min() < limits.min or values.max() > limits.max:
                return None
            nodes[name] = values
        with np.errstate(over="ignore", under="ignore"):
            short = whole["table"].astype(np.float32)
        if np.array_equal(short, whole["table"]):  # float32 represents each number exactly
            whole["table"] = short
        return cls(nodes=nodes, layers=layers, **whole)

    def loop(self, baseline: Floats, *, skip: bool) -> Callable[[Floats, Floats], None]:
        """Return a function that writes the outputs of rows, (rows, features), to an array, (rows, outputs).

        `baseline`, (outputs,), is added to the output of the last layer; `skip` is as in `Network`.
        """
        arrays = self._asdict() | {"nodes": self.nodes.view(np.uint64), "table": self.table.view(np.uint8)}
        return predict_rows.bind_first((*arrays.values(), baseline), self.table.itemsize, skip)


def _arrays_of(forest: Forest) -> dict[str, NDArray[Any]]:
    """Return the arrays of `Flat` for one layer, with places that count from 0, and the nodes as three arrays."""
    split, nodes, leaves = forest.tree_split, forest.nodes, forest.leaves
    size = np.diff(split)
    tree, n_splits, n_nodes = np.repeat(np.arange(len(size)), size), int(split[-1]), 2 * int(split[-1]) + len(size)
    root = 2 * split[:-1] + np.arange(len(size))
    # the children of the i-th split of a tree are its nodes 2 i + 1 and 2 i + 2
    left = root[tree] + 1 + 2 * (np.arange(n_splits) - split[tree])
    of_split, of_leaf = np.empty(n_splits, np.int64), np.empty(n_splits + len(size), np.int64)
    of_split[split[:-1][size > 0]], of_leaf[leaves.tree_leaf[:-1][size == 0]] = root[size > 0], root[size == 0]
    for side, child in enumerate((nodes.left.astype(np.int64), nodes.right.astype(np.int64))):
        is_split = child >= 0
        of_split[(child + split[tree])[is_split]] = (left + side)[is_split]
        of_leaf[(~child + leaves.tree_leaf[tree])[~is_split]] = (left + side)[~is_split]
    first, n_columns, table = _records(leaves, clip=forest.clip)
    has_set = nodes.cat_start >= 0
    number, bounds, first_bound = _numbered_thresholds(nodes, forest.n_features)
    bound, step, column = np.zeros((3, n_nodes + 1), np.int64)
    bound[-1] = LEAF_BOUND  # leaf that fills up the groups of `LOCKSTEP` trees
    bound[of_split], bound[of_leaf] = np.where(has_set, 0, number), LEAF_BOUND - first
    step[of_split] = left - of_split
    column[of_leaf] = n_columns
    of_set = 2 * forest.n_features + np.cumsum(has_set) - 1
    column[of_split] = np.where(has_set, of_set, 2 * nodes.feature + ~nodes.missing_left)
    trees = np.zeros((-(-max(len(size), 1) // LOCKSTEP) * LOCKSTEP, 4), np.int32)
    trees[:, 0] = n_nodes
    trees[: len(size)] = np.column_stack([root, leaves.tree_output, leaves.tree_degree])
    sets = np.column_stack([nodes.feature, nodes.cat_start, nodes.cat_words, nodes.missing_left])[has_set]
    longest, grown = np.zeros(len(trees), np.int64), np.flatnonzero(size)
    depth, _ = levels(np.stack([nodes.left, nodes.right]), split)
    longest[grown] = np.maximum.reduceat(depth, split[grown]) + 1
    return {
        "bound": bound, "step": step, "column": column, "trees": trees,
        "steps": longest.reshape(-1, LOCKSTEP).max(axis=1), "bounds": bounds, "first_bound": first_bound,
        "table": table, "sets": sets.astype(np.int64), "categories": nodes.categories,
    }  # fmt: skip


def _numbered_thresholds(nodes: core.Nodes, n_features: int) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64]]:
    """Return the rank of each split's threshold among those of its feature, the thresholds, and their offsets.

    The rank is -1 for a set of categories. The offsets, (features + 1,), are those of each feature's sorted thresholds.
    """
    number = np.full(len(nodes.feature), -1)
    numeric = np.flatnonzero(~np.isnan(nodes.threshold))
    order = numeric[np.lexsort((nodes.threshold[numeric], nodes.feature[numeric]))]
    feature, threshold = nodes.feature[order], nodes.threshold[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (feature[1:] != feature[:-1]) | (threshold[1:] != threshold[:-1])
    first_bound = offsets(np.bincount(feature[is_new], minlength=n_features))
    number[order] = np.cumsum(is_new) - 1 - first_bound[feature]
    return number, threshold[is_new], first_bound


def _records(leaves: core.Leaves, *, clip: bool) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return the place of each leaf's record, its number of path columns, and all records."""
    n_leaves = np.diff(leaves.tree_leaf)
    n_outputs, degree = np.repeat(leaves.tree_output[:, 1], n_leaves), np.repeat(leaves.tree_degree, n_leaves)
    varies = leaves.scaling[:, INV_SCALE] != 0.0
    before = offsets(varies)  # number of non-constant path columns before each one
    n_columns = np.diff(before[leaves.start])
    width = OF_COLUMN + degree * n_outputs
    first = offsets(n_outputs + n_columns * width)
    table = np.zeros(int(first[-1]))
    leaf = np.repeat(np.arange(len(n_columns)), np.diff(leaves.start))
    place = first[leaf] + n_outputs[leaf] + (before[:-1] - before[leaves.start[leaf]]) * width[leaf]
    scaling = leaves.scaling.copy()
    if not clip:
        scaling[:, LOWER], scaling[:, UPPER] = -np.inf, np.inf
    table[place[varies]] = leaves.column[varies]
    table[place[varies][:, None] + np.arange(1, OF_COLUMN)] = scaling[varies]
    # term of each weight: 0 for the constant, then the columns, then their squares
    leaf = np.repeat(np.arange(len(n_columns)), np.diff(leaves.weight_start))
    term, output = np.divmod(np.arange(len(leaf)) - leaves.weight_start[leaf], n_outputs[leaf])
    power, column = np.divmod(term - 1, np.maximum(np.diff(leaves.start), 1)[leaf])
    path = (leaves.start[leaf] + column)[term > 0]
    at = first[leaf] + output
    at[term > 0] = place[path] + OF_COLUMN + (power * n_outputs[leaf] + output)[term > 0]
    kept = np.ones(len(at), bool)
    kept[term > 0] = varies[path]
    table[at[kept]] = leaves.weight[kept]
    return first[:-1], n_columns, table
