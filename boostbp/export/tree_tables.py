"""Tables of trees for a walk that takes the same steps in every row.

The nodes of a tree stand breadth first, so the two children of a split are neighbours. A leaf is its own child. A step
is therefore ``node = child[node] + (x > threshold)``, where ``x`` is the cell that the node compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.export.leaf_terms import Terms, constants_of, terms_of
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest

NONE = -1
PADDING = 0.15  # largest share of zero terms that are read so that trees with fewer terms can be read with others


@dataclass(frozen=True, slots=True)
class TreeTables:
    """Trees that walk together; each serves the same number of outputs.

    Attributes
    ----------
    n_outputs : int
        Outputs that each tree serves.
    tree : (trees,) int64
        Numbers of the trees in the forest.
    n_steps : (trees,) int64
        Splits on the longest path of a tree, or of a later tree if that has a longer one.
    n_terms : (trees,) int64
        How many terms are read of each leaf of a tree. Trees with the same number are neighbours.
    root : (trees,) int64
        Node of each root.
    split : (nodes,) int64
        Number of each split in the forest, -1 for leaves.
    child : (nodes,) int64
        First child of each split; a leaf is its own.
    constant : (leaves, outputs) float64
        Leaves are numbered in the order of their nodes.
    n_read : (leaves,) int64
        How many terms are read of each leaf.
    terms : Terms
        Those that are read, one leaf after the other; terms that a leaf does not have are 0.
    """

    n_outputs: int
    tree: NDArray[np.int64]
    n_steps: NDArray[np.int64]
    n_terms: NDArray[np.int64]
    root: NDArray[np.int64]
    split: NDArray[np.int64]
    child: NDArray[np.int64]
    constant: Floats
    n_read: NDArray[np.int64]
    terms: Terms

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Return the number of trees and the terms of a leaf, for each group of trees with as many terms."""
        begin = np.flatnonzero(np.diff(self.n_terms, prepend=NONE))
        return list(zip(np.diff([*begin, len(self.tree)]).tolist(), self.n_terms[begin].tolist(), strict=True))

    @property
    def leaves(self) -> list[slice]:
        """Return the leaves of each group of trees."""
        ends = np.append(self.root, len(self.child))[np.cumsum([0, *(n for n, _ in self.groups)])]
        n_leaves = (ends + np.cumsum([0, *(n for n, _ in self.groups)])) // 2  # a tree has one leaf more than splits
        return [slice(begin, end) for begin, end in zip(n_leaves[:-1].tolist(), n_leaves[1:].tolist(), strict=True)]


def tables_of(forest: Forest) -> Iterator[TreeTables]:
    """Yield tables of the trees, one for each number of outputs that a tree serves.

    Trees that serve several outputs have separate tables for linear and for quadratic leaves.
    """
    n_outputs = forest.leaves.tree_output[:, 1]
    kinds = np.stack([n_outputs, np.where(n_outputs > 1, forest.leaves.tree_degree, 0)], axis=1)
    for kind in np.unique(kinds, axis=0):
        yield _tables(forest, np.flatnonzero((kinds == kind).all(axis=1)), int(kind[0]))


def _tables(forest: Forest, trees: NDArray[np.int64], n_outputs: int) -> TreeTables:
    tree, step, split, leaf = _nodes(forest, trees)
    count = np.diff(forest.leaves.start).astype(np.int64)
    depth, most_terms = np.zeros((2, len(trees)), np.int64)
    np.maximum.at(depth, tree, step)
    np.maximum.at(most_terms, tree, np.where(leaf >= 0, count[leaf], 0))
    n_terms = _terms_read(most_terms)
    deepest = np.zeros(n_terms.max() + 1, np.int64)
    np.maximum.at(deepest, n_terms, depth)
    # groups by their deepest tree, so that trees whose rows have all reached a leaf are the last ones
    order = np.lexsort([-depth, n_terms, -deepest[n_terms]])
    place = np.argsort(order)[tree]
    of_node = np.lexsort([step, place])  # stable: nodes of a step keep their order
    place, split, leaf = place[of_node], split[of_node], leaf[of_node]
    is_split, node = split >= 0, np.arange(len(split))
    n_splits = np.cumsum(is_split)
    leaf, n_read = leaf[~is_split], n_terms[order][place[~is_split]]
    return TreeTables(
        n_outputs,
        trees[order],
        np.maximum.accumulate(depth[order][::-1])[::-1],
        n_terms[order],
        np.flatnonzero(np.diff(place, prepend=NONE)),
        split,
        # all nodes but the roots are children: those of the s-th split of all, in tree t, are 2 s + t + 1 and the next
        np.where(is_split, 2 * n_splits - 1 + place, node),
        constants_of(forest, leaf, n_outputs),
        n_read,
        terms_of(forest, leaf, n_outputs).padded(count[leaf], n_read, clip=forest.clip),
    )


def _terms_read(most_terms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many terms are read of each tree's leaves: few different numbers, none smaller than `most_terms`."""
    n_terms = most_terms.copy()
    left = most_terms > 0
    while left.any():
        highest = most_terms[left].max()
        for lowest in range(1, highest + 1):
            together = left & (most_terms >= lowest)
            if (highest - most_terms[together]).sum() <= PADDING * most_terms[together].sum():
                break
        n_terms[together] = highest
        left &= ~together
    return n_terms


def _nodes(forest: Forest, trees: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return the nodes of some trees breadth first.

    Returns
    -------
    tree, step, split, leaf : (nodes,) int64
        Place of the node's tree in `trees`, steps from the root, and the forest's number of the split and of the leaf,
        -1 where the node is the other.
    """
    nodes, first_leaf = forest.nodes, forest.leaves.tree_leaf
    tree, is_grown = np.arange(len(trees)), np.diff(forest.tree_split)[trees] > 0
    split = np.where(is_grown, forest.tree_split[trees], NONE)
    levels = [(tree, np.zeros_like(tree), split, np.where(is_grown, NONE, first_leaf[trees]))]
    while len(tree := tree[split >= 0]):
        parent = split[split >= 0]
        child = np.stack([nodes.left[parent], nodes.right[parent]], axis=1).ravel().astype(np.int64)
        tree = np.repeat(tree, 2)
        split = np.where(child >= 0, forest.tree_split[trees[tree]] + child, NONE)
        leaf = np.where(child >= 0, NONE, first_leaf[trees[tree]] + ~child)
        levels.append((tree, np.full_like(tree, len(levels)), split, leaf))
    return tuple(map(np.concatenate, zip(*levels, strict=True)))
