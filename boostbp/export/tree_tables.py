"""Tree tables: trees as flat tables, for a walk that takes the same steps in every row, and what it finds in leaves.

Children of a split stand side by side, and a leaf leads to itself, so a step is
``node = child[node] + (x > threshold)`` with ``x`` of the node's column. In trees that are complete, or nearly,
``child`` is ``2 node``; and where most splits give the leaf a term, term k of a leaf reads the cell that step k has
looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.export.leaf_terms import Terms, constants_of, terms_of
from boostbp.floats import Floats
from boostbp.trees.forest import Forest

PADDING = 0.2  # of the steps may be spent in leaves: shallower trees then walk with the others
FILLED = 0.3  # of the leaves may be added to make trees complete
FILLED_TERMS = 0.6  # of the terms may be added where they are then read sooner
NONE = -1


@dataclass(frozen=True, slots=True)
class TreeTables:
    """Trees of one degree and one number of outputs, which walk together.

    Attributes
    ----------
    first_output : (trees,) int64
    n_outputs : int
        That each tree serves.
    split : tuple of (nodes,) int64
        For each step, the forest's number of each node's split; -1 for a leaf. The roots come first.
    child : (nodes,) int32 or None
        First of the two children, a leaf itself, in all steps. None: it is twice the node.
    constant : (nodes, outputs) float64
        Of the leaves that the last step leads to; 0 for splits.
    n_terms : int
        Largest number of terms that a leaf has.
    first_term, count : (nodes,) int32, or None
        Of leaves: the first of its terms, and how many there are. None: each has `n_terms`, of the columns of the first
        steps.
    terms : Terms
        Where counts are said, the first of all is 0, for places behind the last term of a leaf.
    if_missing : (nodes,) float64 or None
        What a leaf predicts for a row that misses a column of its terms; NaN of leaves that go on without these terms.
        None: all go on.
    """

    first_output: NDArray[np.int64]
    n_outputs: int
    split: tuple[NDArray[np.int64], ...]
    child: NDArray[np.int32] | None
    constant: Floats
    n_terms: int
    first_term: NDArray[np.int32] | None
    count: NDArray[np.int32] | None
    terms: Terms
    if_missing: Floats | None = None


@dataclass(frozen=True, slots=True)
class _Walk:
    """Nodes of some trees, and how they are reached.

    Attributes
    ----------
    split, leaf : (nodes,) int64
        The forest's numbers; -1 where a node is the other.
    child : (nodes,) int64
    depth : (nodes,) int64
    path : (nodes, steps) int64
        Numeric feature of each split on the way; -1 for categorical ones, and behind the end.
    """

    split: NDArray[np.int64]
    leaf: NDArray[np.int64]
    child: NDArray[np.int64]
    depth: NDArray[np.int64]
    path: NDArray[np.int64]

    @classmethod
    def of(cls, forest: Forest, trees: NDArray[np.int64], guards: _Guards) -> _Walk:
        nodes, first_leaf = forest.nodes, forest.leaves.tree_leaf
        sizes = np.diff(forest.tree_split)[trees]
        n_nodes = len(trees) + 2 * int(sizes.sum())
        begin = len(trees) + 2 * (np.cumsum(sizes) - sizes) - 2 * forest.tree_split[trees]  # of children of split 0
        split, leaf = np.full((2, n_nodes), -1)
        depth, child = np.zeros(n_nodes, np.int64), np.arange(n_nodes)
        path = np.full((n_nodes, 0), NONE)
        here, tree = np.arange(len(trees)), np.arange(len(trees))
        split[here] = forest.tree_split[trees]
        step = 0
        while len(here):
            at = split[here]
            child[here] = begin[tree] + 2 * at
            path = np.column_stack([path, np.full(n_nodes, NONE)])
            feature = np.where(nodes.cat_start[at] < 0, nodes.feature[at], NONE)
            for side, below in enumerate((nodes.left[at].astype(np.int64), nodes.right[at].astype(np.int64))):
                node = child[here] + side
                path[node] = path[here]
                path[node, step] = feature
                depth[node] = step + 1
                under = np.where(below >= 0, forest.tree_split[trees[tree]] + below, NONE)
                behind = np.where(below >= 0, guards.leaf[under], first_leaf[trees[tree]] + ~below)
                split[node], leaf[node] = np.where(behind >= 0, NONE, under), behind
            reached = np.concatenate([child[here], child[here] + 1])
            tree = np.tile(tree, 2)
            here, tree = reached[split[reached] >= 0], tree[split[reached] >= 0]
            step += 1
        reached = (split >= 0) | (leaf >= 0)  # what is under guards is not
        number = np.cumsum(reached) - 1
        return cls(split[reached], leaf[reached], number[child[reached]], depth[reached], path[reached])


@dataclass(frozen=True, slots=True)
class _Guards:
    """Splits that ask for missing values on the way to a leaf, as `boostbp.trees.missing` writes them.

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
    """Yield tables of the trees with splits: of each degree and number of outputs, and of a depth or nearly.

    Yields
    ------
    TreeTables
    """
    leaves = forest.leaves
    grown = np.flatnonzero(np.diff(forest.tree_split) > 0)
    if not len(grown):
        return
    guards = _Guards.of(forest)
    walk = _Walk.of(forest, grown, guards)
    tree = np.searchsorted(leaves.tree_leaf[grown], walk.leaf[walk.leaf >= 0], "right") - 1
    deepest = np.zeros(len(grown), np.int64)
    np.maximum.at(deepest, tree, walk.depth[walk.leaf >= 0])
    kinds = np.stack([leaves.tree_output[grown, 1], leaves.tree_degree[grown]], axis=1)
    n_leaves = np.bincount(tree, minlength=len(grown))
    for kind in np.unique(kinds, axis=0):
        trees = np.flatnonzero((kinds == kind).all(axis=1))
        trees, rest = trees[np.argsort(-deepest[trees], kind="stable")], trees[:0]
        while len(trees):
            depth = int(deepest[trees[0]])
            alike = int((deepest[trees] == depth).sum())
            count = _first(np.arange(1, len(trees) + 1) << depth, (1 + FILLED) * np.cumsum(n_leaves[trees]))
            if count >= alike:
                yield _tables(forest, grown[np.sort(trees[:count])], guards, *kind.tolist(), complete=True)
            else:
                count = alike
                rest = np.concatenate([rest, trees[:count]])
            trees = trees[count:]
        while len(rest):
            needed = np.cumsum(deepest[rest])
            count = _first(deepest[rest[0]] * np.arange(1, len(rest) + 1), (1 + PADDING) * needed)
            yield _tables(forest, grown[np.sort(rest[:count])], guards, *kind.tolist(), complete=False)
            rest = rest[count:]


def _first(spent: NDArray[np.int64], allowed: NDArray[Any]) -> int:
    """Return how many trees, of those that are more and more unlike the first, may go together."""
    return int(np.flatnonzero(spent <= allowed)[-1:].sum() + 1) if (spent <= allowed).any() else 0


def _tables(
    forest: Forest, trees: NDArray[np.int64], guards: _Guards, m: int, degree: int, *, complete: bool
) -> TreeTables:
    walk = _Walk.of(forest, trees, guards)
    n_steps, child = walk.path.shape[1], None if complete else walk.child.astype(np.int32)
    split, last = _levels(walk, len(trees)) if complete else ((walk.split,) * n_steps, np.arange(len(walk.leaf)))
    node = np.flatnonzero(np.where(last >= 0, walk.leaf[last], NONE) >= 0)
    leaf = walk.leaf[last[node]]
    constant = np.zeros((len(last), m))
    constant[node] = constants_of(forest, leaf, m)
    terms = terms_of(forest, leaf, degree, m)
    count = np.diff(forest.leaves.start)[leaf]
    owner = np.repeat(np.arange(len(leaf)), count)
    first_output = forest.leaves.tree_output[trees, 0]
    on_path = walk.path[last[node]][owner] == terms.column[:, None]
    step = on_path.argmax(axis=1)
    n_terms = int(step.max(initial=-1)) + 1
    guarded = not np.isnan(guards.constant[leaf]).all()
    aligned = (
        complete
        and not guarded
        and on_path.any(axis=1).all()
        and n_terms * len(last) <= (1 + FILLED_TERMS) * len(owner)
    )
    if aligned:
        terms = _placed(terms, node[owner] * n_terms + step, len(last) * n_terms)
        return TreeTables(first_output, m, split, child, constant, n_terms, None, None, terms)
    first_term, counts = np.zeros((2, len(last)), np.int32)
    first_term[node], counts[node] = 1 + np.cumsum(count) - count, count
    terms = _placed(terms, 1 + np.arange(len(owner)), 1 + len(owner))
    if_missing = np.full(len(last), np.nan)
    if_missing[node] = guards.constant[leaf]
    return TreeTables(
        first_output,
        m,
        split,
        child,
        constant,
        int(count.max()),
        first_term,
        counts,
        terms,
        if_missing if guarded else None,
    )


def _levels(walk: _Walk, n_trees: int) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.int64]]:
    """Return the splits of each level of complete trees, and the nodes behind the last one; -1 where there is none.

    From a leaf that is not deep enough, rows go on to the left.
    """
    node, splits = np.arange(n_trees), []
    for _ in range(walk.path.shape[1]):
        split = np.where(node >= 0, walk.split[node], NONE)
        splits.append(split)
        goes_on = np.where(split >= 0, walk.child[node], node)
        node = np.stack([goes_on, np.where(split >= 0, goes_on + 1, NONE)], axis=1).ravel()
    return tuple(splits), node


def _placed(terms: Terms, place: NDArray[np.int64], count: int) -> Terms:
    """Return `count` terms, which are these in some places, and 0 in the others."""

    def placed_in(values: NDArray[Any]) -> NDArray[Any]:
        placed = np.zeros((count, *values.shape[1:]), values.dtype)
        placed[place] = values
        return placed

    square = None if terms.square is None else placed_in(terms.square)
    return Terms(
        placed_in(terms.column),
        placed_in(terms.center),
        placed_in(terms.lower),
        placed_in(terms.upper),
        placed_in(terms.slope),
        square,
    )
