"""Flat: the forests of a network's layers, laid out in the order in which one row reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats
from boostbp.trees import kernels
from boostbp.trees.forest import Forest
from boostbp.trees.kernels.few_rows import LANES, NODE
from boostbp.trees.tree import offsets

OF_COLUMN = 5  # numbers of a path column before its weights


class Flat(NamedTuple):
    """The forests of successive layers in few arrays; each layer has a number of trees that `LANES` divides.

    Attributes
    ----------
    nodes : (nodes,) of `NODE`
        Splits and leaves of all trees; the two children of a split lie side by side. A split compares ``bound`` with a
        column of what `kernels.few_rows` makes of a layer's input. A leaf leads to itself, and its ``bound`` says where
        its record begins in `table`.
    trees : (trees, 4) int32
        Root, first output, number of outputs, degree.
    layers : (layers, 7) int64
        First tree, number of trees, first and last set of categories, columns that are read, outputs, whether inputs
        are clipped.
    steps : (trees / LANES,) int64
        Splits on the longest path of the trees that are walked together.
    table : float64
        The record of each leaf: number of path columns (int64) and constants of all outputs, then of each path column
        its number (int64), scaling, linear weights of all outputs and, for degree 2, quadratic ones.
    sets : (sets, 4) int64
        Of each split by a set of categories: feature, first word, number of words, whether missing values go left.
    categories : uint32
        Words of the sets.
    """

    nodes: NDArray[np.void]
    trees: NDArray[np.int32]
    layers: NDArray[np.int64]
    steps: NDArray[np.int64]
    table: Floats
    sets: NDArray[np.int64]
    categories: NDArray[np.uint32]

    @classmethod
    def of(cls, forests: Sequence[Forest]) -> Flat:
        """Lay out the forests of layers, from the input up; their bases must have no functions."""
        parts = [_Part.of(forest) for forest in forests]
        nodes, trees, steps, table, sets, categories = (list(field) for field in zip(*parts, strict=True))
        first_node, first_record = (offsets([len(array) for array in arrays]) for arrays in (nodes, table))
        first_tree, first_set, first_word = (
            offsets([len(array) for array in arrays]) for arrays in (trees, sets, categories)
        )
        layers = np.empty((len(forests), 7), np.int64)
        for number, forest in enumerate(forests):
            layers[number] = (
                first_tree[number], forest.n_trees, *first_set[number : number + 2], forest.n_features,
                forest.n_outputs, forest.clip,
            )  # fmt: skip
            trees[number][:, 0] += np.int32(first_node[number])
            nodes[number]["left"] += np.int32(first_node[number])
            nodes[number]["bound"][nodes[number]["column"] == 0] += first_record[number]
            sets[number][:, 1] += first_word[number]
        return cls(
            np.concatenate(nodes), np.concatenate(trees), layers, np.concatenate(steps),
            np.concatenate(table), np.concatenate(sets), np.concatenate(categories),
        )  # fmt: skip

    def loop(self, baseline: Floats, *, skip: bool) -> Callable[[Floats, Floats], None]:
        """Return what writes the outputs of rows, (rows, features), to an array, (rows, outputs).

        Parameters
        ----------
        baseline : (outputs,) float64
            Added to the outputs of the last layer.
        skip : bool
            As in `Network`.
        """
        return kernels.predict_flat.given(*self[:5], self.table.view(np.int64), *self[5:], baseline, skip)


class _Part(NamedTuple):
    """What `Flat` holds of one layer, which begins at 0 in each of its arrays."""

    nodes: NDArray[np.void]
    trees: NDArray[np.int32]
    steps: NDArray[np.int64]
    table: Floats
    sets: NDArray[np.int64]
    categories: NDArray[np.uint32]

    @classmethod
    def of(cls, forest: Forest) -> _Part:
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
        first, table = _records(leaves)
        has_set = nodes.cat_start >= 0
        flat = np.zeros(n_nodes + 1, NODE)  # the last one is where no tree is
        flat["left"] = np.arange(n_nodes + 1)
        flat["left"][of_split] = left
        flat["column"][of_split] = np.where(
            has_set, 1 + 2 * forest.n_features + np.cumsum(has_set) - 1, 1 + 2 * nodes.feature + ~nodes.missing_left
        )
        flat["bound"][of_split] = np.where(has_set, 0.0, nodes.threshold)
        flat["bound"][of_leaf] = first
        trees = np.zeros((-(-len(size) // LANES) * LANES, 4), np.int32)
        trees[:, 0] = n_nodes
        trees[: len(size)] = np.column_stack([root, leaves.tree_output, leaves.tree_degree])
        sets = np.column_stack([nodes.feature, nodes.cat_start, nodes.cat_words, nodes.missing_left])[has_set]
        steps = _depths(flat["left"], trees[:, 0]).reshape(-1, LANES).max(axis=1)
        return cls(flat, trees, steps, table, sets.astype(np.int64), nodes.categories)


def _records(leaves: kernels.Leaves) -> tuple[NDArray[np.int64], Floats]:
    """Return where the record of each leaf begins, (leaves,), and all records; see `Flat.table`."""
    n_columns, n_leaves = np.diff(leaves.start), np.diff(leaves.tree_leaf)
    n_outputs, degree = np.repeat(leaves.tree_output[:, 1], n_leaves), np.repeat(leaves.tree_degree, n_leaves)
    width = OF_COLUMN + degree * n_outputs
    first = offsets(1 + n_outputs + n_columns * width)
    table = np.zeros(int(first[-1]))
    whole = table.view(np.int64)
    whole[first[:-1]] = n_columns
    leaf = np.repeat(np.arange(len(n_columns)), n_columns)
    place = first[leaf] + 1 + n_outputs[leaf] + (np.arange(len(leaf)) - leaves.start[leaf]) * width[leaf]
    whole[place] = leaves.column
    table[place[:, None] + np.arange(1, OF_COLUMN)] = leaves.scaling
    leaf = np.repeat(np.arange(len(n_columns)), np.diff(leaves.weight_start))
    term, output = np.divmod(np.arange(len(leaf)) - leaves.weight_start[leaf], n_outputs[leaf])
    power, column = np.divmod(term - 1, np.maximum(n_columns[leaf], 1))
    of_column = n_outputs[leaf] + column * width[leaf] + OF_COLUMN + power * n_outputs[leaf]
    table[first[leaf] + 1 + np.where(term > 0, of_column, 0) + output] = leaves.weight
    return first[:-1], table


def _depths(left: NDArray[np.int32], root: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the number of splits on the longest path of each tree, (trees,)."""
    tree, node, depth = np.arange(len(root)), root, np.zeros(len(root), np.int64)
    while len(node):
        is_split = left[node] != node
        tree, node = tree[is_split], left[node[is_split]]
        depth[tree] += 1
        tree, node = np.concatenate([tree, tree]), np.concatenate([node, node + 1])
    return depth
