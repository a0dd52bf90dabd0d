"""Tree tables: trees as flat tables, for a walk that takes the same steps in every row, and what it finds in leaves.

The nodes of a tree stand breadth first, so that the two children of a split stand side by side, and which they are
follows from which nodes are splits. A leaf leads to itself, so a step is ``node = child[node] + (x > threshold)`` with
``x`` of the node's column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.export.leaf_terms import Terms, constants_of, terms_of
from boostbp.floats import Floats
from boostbp.trees.forest import Forest

NONE = -1
PADDING = 0.15  # of the terms that are read may be none: trees with fewer terms are then read with others


@dataclass(frozen=True, slots=True)
class TreeTables:
    """Trees of one number of outputs, which walk together; leaves in the order of their nodes.

    Attributes
    ----------
    n_outputs : int
        That each tree serves.
    tree : (trees,) int64
        The forest's numbers.
    n_steps : (trees,) int64
        Splits on the longest path of a tree or of one behind it.
    n_terms : (trees,) int64
        How many terms are read of a tree's leaves, at least as many as any has; trees of one number stand together.
    size : (trees,) int64
        Nodes of each.
    is_split : (nodes,) bool
        Of all nodes of a tree, then of those of the next one.
    split : (splits,) int64
        The forest's number of each split.
    constant : (leaves, outputs) float64
    count : (leaves,) int64
        How many terms each has.
    terms : Terms
        One leaf after the other.
    if_missing : (leaves,) float64 or None
        What a leaf predicts for a row that misses a column of its terms; NaN of leaves that go on without these terms.
        None: all go on.
    """

    n_outputs: int
    tree: NDArray[np.int64]
    n_steps: NDArray[np.int64]
    n_terms: NDArray[np.int64]
    size: NDArray[np.int64]
    is_split: NDArray[np.bool_]
    split: NDArray[np.int64]
    constant: Floats
    count: NDArray[np.int64]
    terms: Terms
    if_missing: Floats | None = None

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Return how many trees stand together, and how many terms of each are read."""
        begin = np.flatnonzero(np.diff(self.n_terms, prepend=NONE))
        return list(zip(np.diff([*begin, len(self.tree)]).tolist(), self.n_terms[begin].tolist(), strict=True))

    @property
    def leaves(self) -> list[tuple[int, int]]:
        """Return where the leaves of each group of trees begin and end."""
        ends = np.cumsum(self.size + 1)[np.cumsum([n for n, _ in self.groups]) - 1] // 2
        return list(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _Guards:
    """Splits that ask for missing values on the way to a leaf, as `boostbp.trees.leaves` writes them.

    Attributes
    ----------
    leaf : (splits,) int64
        The leaf that a row without missing values gets to from a guard; -1 of other splits.
    constant : (leaves,) float64
        What a guarded leaf predicts for other rows; NaN of other leaves.
    """

    leaf: NDArray[np.int64]
    constant: Floats

    @classmethod
    def of(cls, forest: Forest) -> _Guards:
        nodes, leaves = forest.nodes, forest.leaves
        tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_split))
        first_split, first_leaf = forest.tree_split[tree], leaves.tree_leaf[tree]
        left, right = nodes.left.astype(np.int64), nodes.right.astype(np.int64)
        n_terms = np.diff(leaves.start)
        other, under = np.where(right < 0, first_leaf + ~right, 0), np.where(left >= 0, first_split + left, 0)
        asks = np.isposinf(nodes.threshold) & ~nodes.missing_left & (right < 0) & (n_terms[other] == 0)
        asks &= leaves.tree_output[tree, 1] == 1
        leaf = np.where(asks & (left < 0), first_leaf + ~left, NONE)
        instead = leaves.weight[leaves.weight_start[other]]
        leaf = np.where(_reads(forest, leaf, nodes.feature), leaf, NONE)
        alike = asks & (left >= 0) & (instead == instead[under])
        while (more := alike & (leaf < 0) & (leaf[under] >= 0) & _reads(forest, leaf[under], nodes.feature)).any():
            leaf = np.where(more, leaf[under], leaf)
        leaf[forest.tree_split[:-1][np.diff(forest.tree_split) > 0]] = NONE  # a tree has a split
        constant = np.full(len(n_terms), np.nan)
        constant[leaf[leaf >= 0]] = instead[leaf >= 0]
        return cls(leaf, constant)


def _reads(forest: Forest, leaf: NDArray[np.int64], column: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return whether each leaf has a term of a column; False where there is no leaf."""
    leaves = forest.leaves
    owner = np.repeat(np.arange(len(leaves.start) - 1), np.diff(leaves.start))
    pairs = owner * np.int64(forest.n_features) + leaves.column
    return np.isin(leaf * np.int64(forest.n_features) + column, pairs) & (leaf >= 0)


def tables_of(forest: Forest) -> Iterator[TreeTables]:
    """Yield tables of the trees with splits: of each number of outputs; of several, linear and curved ones apart."""
    grown = np.flatnonzero(np.diff(forest.tree_split) > 0)
    if not len(grown):
        return
    guards = _Guards.of(forest)
    n_outputs = forest.leaves.tree_output[grown, 1]
    kinds = np.stack([n_outputs, np.where(n_outputs > 1, forest.leaves.tree_degree[grown], 0)], axis=1)
    for kind in np.unique(kinds, axis=0):
        yield _tables(forest, grown[(kinds == kind).all(axis=1)], guards, int(kind[0]))


def _tables(forest: Forest, trees: NDArray[np.int64], guards: _Guards, m: int) -> TreeTables:
    tree, step, split, leaf = _nodes(forest, trees, guards)
    depth, most = np.zeros((2, len(trees)), np.int64)
    np.maximum.at(depth, tree, step)
    count = np.diff(forest.leaves.start).astype(np.int64)
    np.maximum.at(most, tree, np.where(leaf >= 0, count[leaf], 0))
    n_terms = _read_together(most)
    deepest = np.zeros(n_terms.max() + 1, np.int64)
    np.maximum.at(deepest, n_terms, depth)
    standing = np.lexsort([-depth, n_terms, -deepest[n_terms]])
    order = np.lexsort([step, np.argsort(standing)[tree]])  # nodes of a step keep their order
    split, leaf = split[order], leaf[order]
    is_split = split >= 0
    split, leaf = split[is_split], leaf[~is_split]
    constant = guards.constant[leaf]
    return TreeTables(
        m,
        trees[standing],
        np.maximum.accumulate(depth[standing][::-1])[::-1],
        n_terms[standing],
        np.bincount(tree)[standing],
        is_split,
        split,
        constants_of(forest, leaf, m),
        count[leaf],
        terms_of(forest, leaf, m),
        None if np.isnan(constant).all() else constant,
    )


def _read_together(most: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many terms are read of each tree: few different numbers, none smaller than `most`."""
    n_terms = most.copy()
    left = most > 0
    while left.any():
        highest = most[left].max()
        for lowest in range(1, highest + 1):
            together = left & (most >= lowest)
            if (highest - most[together]).sum() <= PADDING * most[together].sum():
                break
        n_terms[together] = highest
        left &= ~together
    return n_terms


def _nodes(forest: Forest, trees: NDArray[np.int64], guards: _Guards) -> tuple[NDArray[np.int64], ...]:
    """Return the nodes of trees breadth first: their trees, steps from the root, and splits and leaves of the forest.

    -1 where a node is no split, or no leaf.
    """
    nodes, first_leaf = forest.nodes, forest.leaves.tree_leaf
    tree, split = np.arange(len(trees)), forest.tree_split[trees]
    levels = [(tree, np.zeros_like(tree), split, np.full_like(split, NONE))]
    while len(tree := tree[split >= 0]):
        at = split[split >= 0]
        below = np.stack([nodes.left[at], nodes.right[at]], axis=1).ravel().astype(np.int64)
        tree = np.repeat(tree, 2)
        under = np.where(below >= 0, forest.tree_split[trees[tree]] + below, NONE)
        leaf = np.where(below >= 0, guards.leaf[under], first_leaf[trees[tree]] + ~below)
        split = np.where(leaf >= 0, NONE, under)
        levels.append((tree, np.full_like(tree, len(levels)), split, leaf))
    return tuple(map(np.concatenate, zip(*levels, strict=True)))
