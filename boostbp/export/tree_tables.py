"""Tables of trees for routing with the same steps for every row.

The nodes of a tree are in breadth-first order, so the two children of a split are adjacent. A leaf is its own child. A
step is therefore ``node = child[node] + (x > threshold)``, where ``x`` is the cell that the node compares.

A leaf's value is ``constant + sum_j v_j (slope_j + v_j square_j)`` over its path columns, with
``v = min(max((x - center) factor, lower), upper)``, and 0 for a missing value. The core computes it in units of
``u = (x - center) inverse``. If the scale is a moderate power of two, as in rounded layers, this product can be saved:
the factor is 1, and slopes are per unit of the column, with the same bits.

Other columns keep the units of the core (``factor = inverse``): products with other scales would round differently, and
slopes per unit of very large or small columns overflow float64. So do all columns without clipping, as the square of a
large cell may overflow where that of ``u`` does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest

NONE = -1
PADDING = 0.15  # largest share of zero terms, with which trees of fewer terms are filled up to be read with others
ORDINARY = 2.0**40  # limit on scales and their inverses with which slopes and squares per unit fit float32


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms of leaves, one for each column of a leaf."""

    column: NDArray[np.int64]  # (terms,): column of the layer's input
    # center, lower, upper: (terms,) each
    center: Floats
    lower: Floats
    upper: Floats
    slope: Floats  # (terms, outputs)
    square: Floats | None  # (terms, outputs); None if all are 0
    factor: Floats  # (terms,): factor of centered cells


@dataclass(frozen=True, slots=True)
class TreeTables:
    """Trees through which rows are routed together, with the same number of outputs."""

    tree: NDArray[np.int64]  # (trees,): numbers of the trees in the forest
    n_steps: int  # splits on the longest path of all trees
    # (trees,): number of terms that are read for each leaf of a tree; trees with the same number are adjacent
    n_terms: NDArray[np.int64]
    root: NDArray[np.int64]  # (trees,): node of each root
    split: NDArray[np.int64]  # (nodes,): number of each split in the forest, -1 for leaves
    child: NDArray[np.int64]  # (nodes,): first child of each split; a leaf is its own
    constant: Floats  # (leaves, outputs): leaves are numbered in the order of their nodes
    n_read: NDArray[np.int64]  # (leaves,): number of terms that are read for each leaf
    terms: Terms  # terms that are read, leaf by leaf, filled up with zeros

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Return the number of trees and of terms of a leaf, for each group of trees with the same number of terms."""
        begin = np.flatnonzero(np.diff(self.n_terms, prepend=NONE))
        return list(zip(np.diff(begin, append=len(self.tree)).tolist(), self.n_terms[begin].tolist(), strict=True))


def tables_of(forest: Forest) -> Iterator[TreeTables]:
    """Yield tables by the number of outputs that a tree serves; if several, by the degree of its leaves, too."""
    n_outputs = forest.leaves.tree_output[:, 1]
    kinds = np.stack([n_outputs, np.where(n_outputs > 1, forest.leaves.tree_degree, 0)], axis=1)
    for kind in np.unique(kinds, axis=0):
        yield _tables(forest, np.flatnonzero((kinds == kind).all(axis=1)), int(kind[0]))


def _tables(forest: Forest, trees: NDArray[np.int64], n_outputs: int) -> TreeTables:
    tree, step, split, leaf = _nodes(forest, trees)
    leaves = forest.leaves
    count = np.diff(leaves.start).astype(np.int64)
    most_terms = np.zeros(len(trees), np.int64)
    np.maximum.at(most_terms, tree, np.where(leaf >= 0, count[leaf], 0))
    n_terms = _terms_read(most_terms)
    order = np.argsort(n_terms, kind="stable")
    place = np.argsort(order)[tree]
    of_node = np.lexsort([step, place])  # stable: nodes of a step keep their order
    place, split, leaf = place[of_node], split[of_node], leaf[of_node]
    is_split = split >= 0
    leaf, n_read = leaf[~is_split], n_terms[order][place[~is_split]]
    return TreeTables(
        tree=trees[order],
        n_steps=int(step.max()),
        n_terms=n_terms[order],
        root=np.flatnonzero(np.diff(place, prepend=NONE)),
        split=split,
        # all nodes but the roots are children: those of the s-th split of all, in tree t, are 2 s + t + 1 and the next
        child=np.where(is_split, 2 * np.cumsum(is_split) - 1 + place, np.arange(len(split))),
        constant=leaves.weight[leaves.weight_start[leaf, None] + np.arange(n_outputs)],
        n_read=n_read,
        terms=_terms(forest, leaf, n_read, n_outputs),
    )


def _terms_read(most_terms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of terms to read for each tree's leaves: few distinct numbers, at least `most_terms`."""
    n_terms = most_terms.copy()
    left = most_terms > 0
    while left.any():
        highest, together = most_terms[left].max(), left
        for lowest in range(1, highest + 1):
            together = left & (most_terms >= lowest)
            if (highest - most_terms[together]).sum() <= PADDING * most_terms[together].sum():
                break
        n_terms[together] = highest
        left &= ~together
    return n_terms


def _nodes(forest: Forest, trees: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return (nodes,) arrays, breadth first: place in `trees`, steps from the root, split or -1, and leaf or -1."""
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


def _terms(forest: Forest, leaf: NDArray[np.int64], n_read: NDArray[np.int64], m: int) -> Terms:
    """Return the first `n_read` terms of some leaves, of trees that serve `m` outputs each.

    Missing terms are 0; without clipping, their factor, too, as 0 times the infinite square of a large cell is NaN.
    """
    leaves = forest.leaves
    j = np.arange(n_read.sum()) - np.repeat(np.cumsum(n_read) - n_read, n_read)  # number of each term in its leaf
    leaf = np.repeat(leaf, n_read)
    count = np.diff(leaves.start)[leaf]
    exists = j < count
    at = np.where(exists, leaves.start[leaf] + j, 0)
    center, inverse, lower, upper = leaves.scaling[at].T
    inverse = np.where(exists, inverse, 0.0)
    is_zero = inverse == 0.0  # u is 0 for any cell
    ordinary = is_zero | ((inverse >= 1.0 / ORDINARY) & (inverse <= ORDINARY) & (np.frexp(inverse)[0] == 0.5))
    ordinary &= forest.clip
    factor = np.where(ordinary, 1.0, inverse)
    unit = np.where(ordinary & ~is_zero, inverse, 1.0)  # v is u / unit
    lower, upper = (np.where(is_zero, 0.0, bound / unit) for bound in (lower, upper))
    w = np.where(exists, leaves.weight_start[leaf] + (1 + j) * m, 0)[:, None] + np.arange(m)
    slope = np.where(is_zero[:, None], 0.0, leaves.weight[w]) * unit[:, None]
    is_curved = leaves.tree_degree[np.searchsorted(leaves.tree_leaf, leaf, "right") - 1] == 2
    square = None
    if is_curved.any():
        w = np.where(is_curved & exists, w.T + m * count, 0).T
        square = np.where((is_curved & ~is_zero)[:, None], leaves.weight[w], 0.0) * np.square(unit)[:, None]
    column = np.where(exists, leaves.column[at], 0)
    return Terms(column.astype(np.int64), np.where(is_zero, 0.0, center), lower, upper, slope, square, factor)
