"""Trees: the structures of one or several trees as flat arrays, the same record for every library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from boostbp import core
from boostbp.runtime import threads
from boostbp.runtime.arrays import Floats
from boostbp.trees.sparse import Matrix, Sparse, row_blocks

# Minimum rows of a thread: fewer rows take less time than starting it. Arbitrary.
ROWS_OF_A_THREAD = 256
Parts = slice | NDArray[np.integer]  # some trees, leaves or entries of an array: a range, or numbers


@dataclass(frozen=True, slots=True)
class Trees(Sequence["Tree"]):
    """The structures of several trees, as in `Tree`. Children are numbered within a tree, words of sets over all."""

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    cat_start: NDArray[np.int32]
    cat_words: NDArray[np.int32]
    categories: NDArray[np.uint32]
    gain: NDArray[np.float64]
    tree_split: NDArray[np.int64]  # (trees + 1,): first split of each tree, and the number of all splits

    @staticmethod
    def stumps(count: int) -> Trees:
        """Return trees of one leaf."""
        return Tree.stump().take(np.zeros(count, np.int64))

    @staticmethod
    def concat(parts: Sequence[Trees]) -> Trees:
        """Return a copy of the trees of all parts, in order."""
        arrays = {name: concat([getattr(part, name) for part in parts], dtype) for name, dtype in ARRAYS.items()}
        if len(arrays["categories"]):
            # The words of a part come after those of the parts before it.
            first_word = offsets([len(part.categories) for part in parts])[:-1]
            of_split = np.repeat(first_word, [len(part.feature) for part in parts]).astype(np.int32)
            start = arrays["cat_start"]
            arrays["cat_start"] = np.where(start >= 0, start + of_split, start)
        return Trees(**arrays, tree_split=concat_offsets([part.tree_split for part in parts]))

    def take(self, trees: Parts) -> Trees:
        """Return some of the trees, with the words of their category sets; a slice gives views of the arrays."""
        return Trees(*self._arrays_of(trees))

    def _arrays_of(self, trees: Parts) -> list[NDArray[Any]]:
        tree_split, at = cut(self.tree_split, trees)
        *of_split, categories = self.nodes
        *of_split, start, n_words = [array[at] for array in of_split]
        if len(categories):
            # Words of successive trees are adjacent: keep those from the first to the last used one.
            has_set = start >= 0
            first, last = start[has_set], (start + n_words)[has_set]
            words = slice(first.min(initial=len(categories)), last.max(initial=0))
            start = np.where(has_set, start - words.start, np.int32(-1)).astype(np.int32)
            categories = categories[words]
        return [*of_split, start, n_words, categories, self.gain[at], tree_split]

    def __len__(self) -> int:
        return len(self.tree_split) - 1

    @overload
    def __getitem__(self, number: int) -> Tree: ...
    @overload
    def __getitem__(self, number: slice) -> Trees: ...
    def __getitem__(self, number: int | slice) -> Tree | Trees:
        if isinstance(number, slice):
            return self.take(number)
        number = range(len(self))[number]
        return Tree(*self._arrays_of(slice(number, number + 1)))

    @property
    def nodes(self) -> core.Nodes:
        """The arrays that routing reads, for the core."""
        return core.Nodes(*[getattr(self, name) for name in core.Nodes._fields])

    @property
    def leaf_dtype(self) -> np.dtype[Any]:
        """The smallest integer type that holds the leaf numbers of a tree."""
        return leaf_type(int(np.diff(self.tree_split).max(initial=0)))

    def route(self, X: Matrix, n_threads: int = 1) -> NDArray[Any]:
        """Return the leaf number of each row under each tree, (trees, rows)."""
        leaf = np.empty((len(self), len(X)), self.leaf_dtype)
        nodes, split = self.nodes, self.tree_split
        if not isinstance(X, Sparse):
            share_rows(lambda rows: core.route(nodes, split, X, *rows, leaf), len(X), n_threads)
            return leaf
        # In a sparse input, only features that trees split on become dense, block by block.
        features, place = np.unique(self.feature, return_inverse=True)
        nodes = nodes._replace(feature=place.astype(np.int32))

        def block(rows: slice) -> None:
            part = X.dense(features, rows)
            of_block = np.empty((len(self), len(part)), leaf.dtype)  # the core writes to contiguous arrays only
            core.route(nodes, split, part, 0, len(part), of_block)
            leaf[:, rows] = of_block

        threads.parallel_map(block, row_blocks(0, len(X), len(features)), n_threads)
        return leaf

    def paths(self, per_feature: int = 1) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the distinct columns of the numeric features on the path to each leaf of each tree, ascending.

        Feature ``j`` has the columns ``j * per_feature .. (j + 1) * per_feature - 1``. Leaf ``l``, counted over all
        trees, has ``column[start[l]:start[l + 1]]`` of the returned ``start``, (leaves + 1,), and ``column``.
        """
        # A tree has one leaf more than splits. The core counts all columns, but writes only those that fit.
        n_leaves = len(self.feature) + len(self)
        if not per_feature:
            return np.zeros(n_leaves + 1, np.int64), np.empty(0, np.int32)
        start, column = np.empty(n_leaves + 1, np.int64), np.empty(8 * n_leaves * per_feature, np.int32)
        core.paths_of(self.nodes, self.tree_split, per_feature, start, column)
        # More than 8 features per leaf on average is rare: repeat with a larger array.
        if start[-1] > len(column):
            column = np.empty(start[-1], np.int32)
            core.paths_of(self.nodes, self.tree_split, per_feature, start, column)
        return start, column[: start[-1]].copy()


_ROOM = 64  # splits and words of a tree that the first reading has room for: few trees have more


class SplitRoom(NamedTuple):
    """Memory for the splits of some trees, which the core writes."""

    numbers: Floats  # (2, room): thresholds, gains
    integers: NDArray[np.int32]  # (5, room): features, left and right children, `cat_start`, `cat_words`
    missing_left: NDArray[np.bool_]  # (room,)
    categories: NDArray[np.uint32]  # (room for words,)
    tree_split: NDArray[np.int64]  # (trees + 1,)

    @classmethod
    def of(cls, n_trees: int, room: int, word_room: int) -> SplitRoom:
        """Return room for so many splits and words."""
        # Called once per round: few arrays.
        numbers, integers = np.empty((2, room)), np.empty((5, room), np.int32)
        missing_left, categories = np.empty(room, np.bool_), np.empty(word_room, np.uint32)
        return cls(numbers, integers, missing_left, categories, np.empty(n_trees + 1, np.int64))

    @classmethod
    def filled(cls, read: Callable[..., int], model: NDArray[np.uint8], n_trees: int, fault: str) -> Trees:
        """Return the first trees of a model, by a function of the core; raise ValueError if it cannot read them."""
        room, word_room, n_words = _ROOM * n_trees, _ROOM * n_trees, np.empty(1, np.int64)
        while True:
            arrays = cls.of(n_trees, room, word_room)
            if read(model, arrays, n_words):
                raise ValueError(fault)
            n_splits, n_found = int(arrays.tree_split[-1]), int(n_words[0])
            if n_splits <= room and n_found <= word_room:
                return arrays.trees(n_trees, n_found)
            room, word_room = n_splits, n_found

    @classmethod
    def holding(cls, trees: Trees) -> SplitRoom:
        """Return a copy of trees."""
        copy = cls.of(len(trees), len(trees.feature), len(trees.categories))
        copy.write(trees, 0, 0)
        copy.tree_split[:] = trees.tree_split
        return copy

    def write(self, trees: Trees, split: int, word: int) -> None:
        """Write trees from a split and a word on; words of their sets count from 0."""
        at = slice(split, split + len(trees.feature))
        self.numbers[0, at], self.numbers[1, at] = trees.threshold, trees.gain
        integers = trees.feature, trees.left, trees.right, trees.cat_start, trees.cat_words
        for row, array in enumerate(integers):
            self.integers[row, at] = array
        self.missing_left[at] = trees.missing_left
        self.categories[word : word + len(trees.categories)] = trees.categories

    def trees(self, n_trees: int, n_words: int) -> Trees:
        """Return the first trees, whose sets have `n_words` words in all, as views."""
        tree_split = self.tree_split[: n_trees + 1]
        n_splits = int(tree_split[-1])
        threshold, gain = self.numbers[:, :n_splits]
        feature, left, right, start, count = self.integers[:, :n_splits]
        missing_left, categories = self.missing_left[:n_splits], self.categories[:n_words]
        return Trees(feature, threshold, left, right, missing_left, start, count, categories, gain, tree_split)


# The arrays of splits, and the words of all category sets, with their types.
ARRAYS = dict(zip((*core.Nodes._fields, "gain"), ("i4", "f8", "i4", "i4", "?", "i4", "i4", "u4", "f8"), strict=True))


@dataclass(frozen=True, slots=True)
class Tree(Trees):
    """The structure of one tree: where each row goes, without leaf values.

    Split 0 is the root. A child is the index of another split, or ``~leaf``. A tree without
    splits is one leaf, number 0.

    A **numeric** split sends a row left if ``x <= threshold`` in float64, and a missing value (NaN) left if
    ``missing_left``. A **categorical** split has ``threshold = NaN``. It sends a row left if the category code is in
    its set, right if it is not (such as unseen or negative codes), and a missing value left if ``missing_left``. The
    trees of libraries with other rules are converted when they are read.

    Attributes
    ----------
    feature : (splits,) int32
        The column of a split.
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
        Gain of the split that the library reports; NaN if it reports none.
    """

    @classmethod
    def of(
        cls,
        feature: ArrayLike,
        threshold: ArrayLike,
        left: ArrayLike,
        right: ArrayLike,
        missing_left: ArrayLike,
        *,
        cat_start: ArrayLike | None = None,
        cat_words: ArrayLike | None = None,
        categories: ArrayLike = (),
        gain: ArrayLike | None = None,
    ) -> Tree:
        """Return a tree from array-like arguments; the last four are optional."""
        n_splits = len(np.asarray(feature))
        cat_start = np.full(n_splits, -1) if cat_start is None else cat_start
        cat_words = np.zeros(n_splits) if cat_words is None else cat_words
        gain = np.full(n_splits, np.nan) if gain is None else gain
        arrays = feature, threshold, left, right, missing_left, cat_start, cat_words, categories, gain
        contiguous: list[Any] = [np.ascontiguousarray(*pair) for pair in zip(arrays, ARRAYS.values(), strict=True)]
        return cls(*[*contiguous, np.array([0, n_splits])])

    @classmethod
    def stump(cls) -> Tree:
        """Return the tree of one leaf."""
        return cls.of((), (), (), (), ())

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.feature) + 1

    def leaf_of(self, X: Matrix) -> NDArray[np.int32]:
        """Return the leaf number of each row, (rows,), of a `Table.X`."""
        return self.route(X)[0].astype(np.int32)

    def parents(self) -> dict[int, int]:
        """Return the split above each child, which is a split's index or ``~leaf``."""
        return {child: split for children in (self.left, self.right) for split, child in enumerate(children.tolist())}


def as_trees(trees: Sequence[Tree]) -> Trees:
    """Return the trees in flat arrays, without a copy if they already are, or if there is only one."""
    if isinstance(trees, Trees):
        return trees
    return trees[0].take(slice(None)) if len(trees) == 1 else Trees.concat(trees)


def leaf_type(n_splits: int) -> np.dtype[Any]:
    """Return the smallest integer type that holds the leaf numbers of a tree with at most `n_splits` splits."""
    return np.dtype(np.uint8 if n_splits < 1 << 8 else np.uint16 if n_splits < 1 << 16 else np.int32)


def share_rows(work: Callable[[tuple[int, int]], object], n_rows: int, n_threads: int) -> None:
    """Call `work` on a range of rows in each thread. Results of rows must not depend on the ranges."""
    size = max(ROWS_OF_A_THREAD, -(-n_rows // n_threads))
    ranges = [(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]
    threads.parallel_map(work, ranges, n_threads)


def levels(children: NDArray[np.integer], tree_split: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of splits above each split, and the topmost of them, which is the root of its tree.

    `children`, (2, splits), are left and right children. If a split is its own ancestor, its topmost one is no root.
    """
    size, split = np.diff(tree_split), np.arange(tree_split[-1])
    above, is_split = split.copy(), children >= 0
    below = children + np.repeat(tree_split[:-1], size)
    above[below[is_split]] = np.broadcast_to(split, children.shape)[is_split]
    depth = (above != split).astype(np.int64)
    for _ in range(int(size.max(initial=0)).bit_length()):  # each step doubles the distance, as trees may be chains
        depth += depth[above]
        above = above[above]
    return depth, above


# Trees, leaves and columns are parts of different sizes in flat arrays. Offsets, (parts + 1,), have the first entry of
# each part and the end of the last one.


def concat(parts: Sequence[NDArray[Any]], kind: DTypeLike) -> NDArray[Any]:
    """Return the concatenated arrays as a copy; an empty array if there are none."""
    return np.concatenate(parts).astype(kind, copy=False) if parts else np.empty(0, kind)


def offsets(sizes: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    """Return the offsets of parts of these sizes."""
    first = np.zeros(len(sizes) + 1, np.int64)
    np.asarray(sizes, np.int64).cumsum(out=first[1:])
    return first


def concat_offsets(parts: Sequence[NDArray[np.integer]]) -> NDArray[np.int64]:
    """Return the offsets of the concatenation of several arrays of parts."""
    ends = offsets([int(part[-1]) for part in parts])
    return np.concatenate([ends[:1], *[part[1:] + end for part, end in zip(parts, ends, strict=False)]])


def cut(start: NDArray[np.int64], parts: Parts) -> tuple[NDArray[np.int64], Parts]:
    """Return the offsets of some parts on their own, and the places of their entries in the whole array."""
    if isinstance(parts, slice):
        first, last, step = parts.indices(len(start) - 1)
        if step == 1:
            ends = start[first : max(first, last) + 1]
            return ends - ends[0], slice(ends[0], ends[-1])
        parts = np.arange(first, last, step)
    # Entry k of the result is k - (its part's first place in the result) + (its part's first place in the whole).
    first_entry = start[parts]
    ends = offsets(start[1:][parts] - first_entry)
    return ends, np.repeat(first_entry - ends[:-1], np.diff(ends)) + np.arange(ends[-1])
