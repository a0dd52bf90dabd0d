"""Tree: one grown structure as flat arrays, the same record for every library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.trees import kernels
from boostbp.trees.sparse import Matrix, Sparse, tiles

__all__ = ["Tree", "joined"]


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
        """Make a tree from anything array-like; the last four may be left out."""
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
        """The tree of one leaf."""
        return cls.of((), (), (), (), ())

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.feature) + 1

    @property
    def nodes(self) -> kernels.Nodes:
        """The arrays that routing reads, for the kernels."""
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
        """Leaf number of each row.

        Parameters
        ----------
        X : (rows, features) float64, C-contiguous, or Sparse
            Categories as codes; NaN is missing.

        Returns
        -------
        (rows,) int32
        """
        leaf = np.empty(len(X), np.int32)
        if not isinstance(X, Sparse):
            kernels.route_tree(self.nodes, X, leaf)
            return leaf
        features, place = np.unique(self.feature, return_inverse=True)
        nodes = self.nodes._replace(feature=place.astype(np.int32))
        for rows in tiles(0, len(X), len(features)):
            kernels.route_tree(nodes, X.dense(features, rows), leaf[rows])
        return leaf

    def path_features(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Numeric features on the way from the root to each leaf, each once, ascending.

        Returns
        -------
        start : (leaves + 1,) int32
        features : (start[-1],) int32
            Leaf ``l`` has ``features[start[l]:start[l + 1]]``.
        """
        return kernels.path_features(self.nodes)


def joined(trees: Sequence[Tree]) -> tuple[kernels.Nodes, NDArray[np.int64]]:
    """Splits of all trees, one tree after the other, and the first split of each, (trees + 1,)."""
    split = np.zeros(len(trees) + 1, np.int64)
    np.cumsum([len(tree.feature) for tree in trees], out=split[1:])
    if len(trees) == 1:
        return trees[0].nodes, split
    parts = list(zip(*[tree.nodes for tree in trees], strict=True)) or [()] * len(kernels.Nodes._fields)
    nodes = kernels.Nodes(*[_join(part, kind) for part, kind in zip(parts, _KINDS, strict=True)])
    n_words = 0
    for k, tree in enumerate(trees):
        if len(tree.categories):
            own = nodes.cat_start[split[k] : split[k + 1]]
            own[own >= 0] += n_words
            n_words += len(tree.categories)
    return nodes, split


_KINDS = np.int32, np.float64, np.int32, np.int32, np.bool_, np.int32, np.int32, np.uint32


def _join(parts: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    return np.concatenate(parts).astype(kind, copy=False) if parts else np.empty(0, kind)
