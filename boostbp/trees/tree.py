"""Tree: one grown structure as flat arrays, the same record for every library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from boostbp.trees import kernels
from boostbp.trees.sparse import Matrix, Sparse, row_blocks


@dataclass(frozen=True, slots=True)
class Tree:
    """The structure of one tree: where each row goes, without leaf values.

    Split 0 is the root. A child is the index of another split, or ``~leaf``. A tree without
    splits is one leaf, number 0.

    A **numeric** split sends a row left if ``x <= threshold`` in float64, and a missing value
    (NaN) left if ``missing_left``. A **categorical** split has ``threshold = NaN``; it sends a row
    left if the category code is in its set, right if it is not (codes never seen, negative
    codes), and a missing value left if ``missing_left``. Libraries that decide otherwise are
    healed where their trees are read.

    Attributes
    ----------
    feature : (splits,) int32
        The column that a split looks at.
    threshold : (splits,) float64
        Numeric: the largest value that goes left. Categorical: NaN.
    left, right : (splits,) int32
        Children: a split's index, or ``~leaf``.
    missing_left : (splits,) bool
        Where NaN goes.
    cat_start : (splits,) int32
        First word of the split's category set in `categories`; -1 for a numeric split.
    cat_words : (splits,) int32
        Length of the set, in words.
    categories : (words,) uint32
        The category sets: code ``c`` is in a set if bit ``c % 32`` of word ``c // 32`` is set.
    gain : (splits,) float64
        What the library says the split gained; NaN where it does not say.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    cat_start: NDArray[np.int32]
    cat_words: NDArray[np.int32]
    categories: NDArray[np.uint32]
    gain: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        feature: Any,
        threshold: Any,
        left: Any,
        right: Any,
        missing_left: Any,
        *,
        cat_start: Any = None,
        cat_words: Any = None,
        categories: Any = (),
        gain: Any = None,
    ) -> Tree:
        """Return a tree made of anything array-like; the last four may be left out."""
        n_splits = len(feature)
        return cls(
            np.ascontiguousarray(feature, np.int32),
            np.ascontiguousarray(threshold, np.float64),
            np.ascontiguousarray(left, np.int32),
            np.ascontiguousarray(right, np.int32),
            np.ascontiguousarray(missing_left, np.bool_),
            np.full(n_splits, -1, np.int32) if cat_start is None else np.ascontiguousarray(cat_start, np.int32),
            np.zeros(n_splits, np.int32) if cat_words is None else np.ascontiguousarray(cat_words, np.int32),
            np.ascontiguousarray(categories, np.uint32),
            np.full(n_splits, np.nan) if gain is None else np.ascontiguousarray(gain, np.float64),
        )

    @classmethod
    def stump(cls) -> Tree:
        """Return the tree of one leaf."""
        return cls.of((), (), (), (), ())

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.feature) + 1

    @property
    def nodes(self) -> kernels.Nodes:
        """Return the arrays that routing reads, for the kernels."""
        return kernels.Nodes(
            self.feature,
            self.threshold,
            self.left,
            self.right,
            self.missing_left,
            self.cat_start,
            self.cat_words,
            self.categories,
        )

    def leaf_of(self, X: Matrix) -> NDArray[np.int32]:
        """Return the leaf number of each row.

        Parameters
        ----------
        X : (rows, features) float64, C-contiguous, or Sparse
            Categories as codes; NaN is missing.

        Returns
        -------
        (rows,) int32
        """
        leaf = np.empty((1, len(X)), np.int32)
        split = offsets([len(self.feature)])
        if not isinstance(X, Sparse):
            kernels.route(self.nodes, split, X, 0, len(X), leaf)
            return leaf[0]
        features, place = np.unique(self.feature, return_inverse=True)
        nodes = self.nodes._replace(feature=place.astype(np.int32))
        for rows in row_blocks(0, len(X), len(features)):
            part = X.dense(features, rows)
            kernels.route(nodes, split, part, 0, len(part), leaf[:, rows])
        return leaf[0]

    def parents(self) -> dict[int, int]:
        """Return the split above each child, which is a split's index or ``~leaf``."""
        return {child: split for children in (self.left, self.right) for split, child in enumerate(children.tolist())}

    def path_features(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the numeric features on the path from the root to each leaf, each once, ascending.

        Returns
        -------
        start : (leaves + 1,) int32
        features : (start[-1],) int32
            Leaf ``l`` has ``features[start[l]:start[l + 1]]``.
        """
        return paths_of(self.nodes, np.array([0, len(self.feature)]), 1)


@dataclass(frozen=True, slots=True)
class Trees(Sequence[Tree]):
    """Several trees, one after the other in flat arrays; `trees[k]` makes a `Tree` of one of them.

    Attributes
    ----------
    nodes : kernels.Nodes
        Children are counted within their tree, words of category sets through all trees.
    split : (trees + 1,) int64
        First split of each tree.
    gain : (splits,) float64
    """

    nodes: kernels.Nodes
    split: NDArray[np.int64]
    gain: NDArray[np.float64]

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> Trees:
        """Return the trees in flat arrays; without a copy if they are so already, or if there is one."""
        if isinstance(trees, Trees):
            return trees
        split = offsets([len(tree.feature) for tree in trees])
        if len(trees) == 1:
            return cls(trees[0].nodes, split, trees[0].gain)
        return cls(stacked([tree.nodes for tree in trees]), split, concat([tree.gain for tree in trees], np.float64))

    @classmethod
    def stumps(cls, count: int) -> Trees:
        """Return trees of one leaf."""
        stump = Tree.stump()
        return cls(stump.nodes, np.zeros(count + 1, np.int64), stump.gain)

    def repeated(self, count: int) -> Trees:
        """Return a single tree as often as said; their category sets are the same words."""
        [n_splits] = np.diff(self.split)
        # once per round: `tile` takes three times as long
        *fields, gain = [np.concatenate([of_split] * count) for of_split in (*self.nodes[:-1], self.gain)]
        nodes = kernels.Nodes._make([*fields, self.nodes.categories])
        return Trees(nodes, n_splits * np.arange(count + 1), gain)

    def __len__(self) -> int:
        return len(self.split) - 1

    @overload
    def __getitem__(self, number: int) -> Tree: ...
    @overload
    def __getitem__(self, number: slice) -> Trees: ...
    def __getitem__(self, number: int | slice) -> Tree | Trees:
        if isinstance(number, slice):
            first, last, step = number.indices(len(self))
            if step != 1:
                raise ValueError(f"trees {number} do not follow on each other.")
            split = self.split[first : max(first, last) + 1]
            at = slice(split[0], split[-1])
            return Trees(_some(self.nodes, at), split - split[0], self.gain[at])
        number = range(len(self))[number]
        at = slice(self.split[number], self.split[number + 1])
        return Tree(*_some(self.nodes, at), self.gain[at])


def _some(nodes: kernels.Nodes, at: slice) -> kernels.Nodes:
    """Return some of the splits, and of the category sets their own alone."""
    part = kernels.Nodes._make([*[of_split[at] for of_split in nodes[:-1]], nodes.categories])
    if not len(nodes.categories):
        return part
    has_set = part.cat_start >= 0
    first, last = part.cat_start[has_set], (part.cat_start + part.cat_words)[has_set]
    words = slice(first.min(initial=len(nodes.categories)), last.max(initial=0))
    start = np.where(has_set, part.cat_start - words.start, np.int32(-1)).astype(np.int32)
    return part._replace(cat_start=start, categories=nodes.categories[words])


def stacked(parts: Sequence[kernels.Nodes]) -> kernels.Nodes:
    """Return the splits of several trees or forests, one after the other."""
    fields = list(zip(*parts, strict=True)) or [()] * len(kernels.Nodes._fields)
    nodes = kernels.Nodes(*[concat(field, kind) for field, kind in zip(fields, _KINDS, strict=True)])
    if len(nodes.categories):
        words = offsets([len(part.categories) for part in parts])
        of_split = np.repeat(words[:-1], [len(part.feature) for part in parts]).astype(np.int32)
        nodes.cat_start[:] = np.where(nodes.cat_start >= 0, nodes.cat_start + of_split, nodes.cat_start)
    return nodes


_KINDS = np.int32, np.float64, np.int32, np.int32, np.bool_, np.int32, np.int32, np.uint32


def paths_of(
    nodes: kernels.Nodes, split: NDArray[np.int64], per_feature: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the columns on the path to each leaf of each tree, as `Tree.path_features`; see `kernels.paths_of`."""
    n_leaves = int(split[-1] - split[0]) + len(split) - 1
    start, column = np.empty(n_leaves + 1, np.int32), np.empty(8 * n_leaves * per_feature, np.int32)
    kernels.paths_of(nodes, split, per_feature, start, column)
    if start[-1] > len(column):  # more than 8 features for a leaf on average
        column = np.empty(start[-1], np.int32)
        kernels.paths_of(nodes, split, per_feature, start, column)
    return start, column[: start[-1]].copy()


def concat(parts: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    """Return a copy of the arrays one after the other; an empty array if there are none."""
    return np.concatenate(parts).astype(kind, copy=False) if parts else np.empty(0, kind)


def offsets(sizes: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    """Return the first place of each of parts of these sizes that follow on one another, and the end of the last."""
    first = np.zeros(len(sizes) + 1, np.int64)
    np.asarray(sizes, np.int64).cumsum(out=first[1:])
    return first


def concat_offsets(parts: Sequence[NDArray[np.integer]]) -> NDArray[np.int64]:
    """Return the offsets of all parts that follow on one another, from those of each part, which begin at 0."""
    ends = offsets([int(part[-1]) for part in parts])
    return np.concatenate([ends[:1], *[part[1:] + end for part, end in zip(parts, ends, strict=False)]])
