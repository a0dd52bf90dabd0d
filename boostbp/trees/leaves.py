"""What the leaves of a tree read and predict: their columns, the training rows grouped by leaf, their regressions.

A library's linear leaves may predict a constant where one of their features is NaN. In place of an exception in every
loop over leaves, such a leaf gets splits above it that ask whether a feature is missing, each with a constant leaf::

    leaf l reads x2, x5       =>      x2 is missing? -> leaf of the constant
                                      x5 is missing? -> leaf of the constant
                                      leaf l
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime import threads
from boostbp.runtime.arrays import Floats
from boostbp.trees import kernels
from boostbp.trees.basis import Basis
from boostbp.trees.sparse import Matrix, Sparse, row_blocks
from boostbp.trees.tree import Tree, concat, concat_offsets

# Rows per block, at most 2^16; fixed, so that sums do not depend on the number of threads. What is read out of order,
# leaf by leaf (gradients, running fit), stays in cache.
BLOCK_ROWS = 1 << 14


@dataclass(frozen=True, slots=True)
class LeafColumns:
    """Which columns the regression of each leaf of a tree reads.

    Attributes
    ----------
    start : (leaves + 1,) int32
    column : (start[-1],) int32
        Leaf ``l`` reads ``column[start[l]:start[l + 1]]``.
    degree : int
        1 or 2: the highest power of a column.
    """

    start: NDArray[np.int32]
    column: NDArray[np.int32]
    degree: int

    @classmethod
    def of(cls, tree: Tree, basis: Basis) -> LeafColumns:
        """Return the numeric path features of each leaf, expanded by the basis."""
        start, features = tree.path_features()
        per_feature = basis.columns_per_feature
        if per_feature != 1:
            start = start * np.int32(per_feature)
            features = (features[:, None] * per_feature + np.arange(per_feature)).ravel().astype(np.int32)
        return cls(start, features, basis.powers)

    @classmethod
    def everywhere(cls, columns: NDArray[np.int32]) -> LeafColumns:
        """Return the columns of one leaf that reads all of `columns`: a plain linear regression."""
        return cls(np.array([0, len(columns)], np.int32), np.ascontiguousarray(columns, np.int32), 1)

    @property
    def n_terms(self) -> NDArray[np.int64]:
        """Return the number of terms of each leaf, (leaves,)."""
        return 1 + self.degree * np.diff(self.start).astype(np.int64)


@dataclass(frozen=True, slots=True)
class LeafRows:
    """The rows of one block of the input, grouped by leaf, with their path columns side by side.

    Attributes
    ----------
    first : int
        First row of the block.
    start : (leaves + 1,) int64
    order : (rows of the block,) uint16
        Leaf ``l`` has rows ``first + order[start[l]:start[l + 1]]``.
    values : (at least rows of each leaf x its path columns,) float64
        See `kernels.group_paths`.
    """

    first: int
    start: NDArray[np.int64]
    order: NDArray[np.integer]
    values: Floats

    @staticmethod
    def lent(n_rows: int, paths: LeafColumns, space: Workspace) -> tuple[NDArray[np.uint16], Floats]:
        """Return room for `order` and `values` of so many rows, taken from the workspace."""
        most_columns = int(np.diff(paths.start).max())
        return space.take("order", n_rows, np.uint16), space.take("values", n_rows * most_columns)

    def give_back(self, space: Workspace) -> None:
        """Give the arrays back to the workspace; the rows must not be used any more."""
        space.give("order", self.order)
        space.give("values", self.values)


class Workspace:
    """Lends arrays for intermediate results and takes them back.

    The first touch of fresh memory can cost more than the arithmetic on it. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._free: dict[str, list[NDArray[Any]]] = {}

    def take(self, name: str, size: int, dtype: Any = np.float64) -> NDArray[Any]:
        """Return an array, (size,), of any content; `name` keeps arrays of one type and use together."""
        free = self._free.setdefault(name, [])
        try:
            array = free.pop()
        except IndexError:
            array = np.empty(0, dtype)
        return (array if len(array) >= size else np.empty(size, dtype))[:size]

    def give(self, name: str, *arrays: NDArray[Any]) -> None:
        """Take back what `take` lent under this name; the caller must not use it any more."""
        self._free[name] += [array.base for array in arrays if array.base is not None]


@dataclass(frozen=True, slots=True)
class LeafModel:
    """The regressions of all leaves of one tree.

    Attributes
    ----------
    scaling : (path columns, 4) float64
        See `LeafRanges.scaling`.
    weight : (sum of terms * outputs,) float64
        Per leaf (terms, outputs), in units of ``u``; shrinkage included.
        A row that misses a path column has ``u = 0`` there, the leaf's mean.
    """

    paths: LeafColumns
    scaling: Floats
    weight: Floats
    n_outputs: int

    @classmethod
    def zero(cls) -> LeafModel:
        """Return one leaf that reads nothing, and predicts 0 for one output."""
        return cls(LeafColumns.everywhere(np.empty(0, np.int32)), np.empty((0, 4)), np.zeros(1), 1)

    def leaves(self, first_output: int = 0) -> kernels.Leaves:
        """Return the regressions as those of a forest of one tree, for the kernels."""
        n_leaves = len(self.paths.start) - 1
        weight_start = np.zeros(n_leaves + 1, np.int64)
        np.cumsum(self.paths.n_terms * self.n_outputs, out=weight_start[1:])
        return kernels.Leaves(
            np.array([0, n_leaves]), np.array([[first_output, self.n_outputs]]), np.array([self.paths.degree]),
            self.paths.start.astype(np.int64), self.paths.column, self.scaling, weight_start, self.weight,
        )  # fmt: skip

    def add_rows(self, blocks: Sequence[LeafRows], out: Floats, n_threads: int = 1) -> None:
        """Add the values of training rows, grouped by leaf, to `out`, (outputs, rows)."""

        def add_block(rows: LeafRows) -> None:
            kernels.add_values(
                rows.start, rows.order, rows.first, self.paths.start, rows.values, self.paths.degree, self.scaling,
                self.weight, out,
            )  # fmt: skip

        threads.parallel_map(add_block, blocks, n_threads)

    def coefficients(self, leaf: int) -> Floats:
        """Return the weights of one leaf in the user's units, (terms, outputs): constant, columns, squares of columns.

        With ``u = (z - c) s``, ``w0 + w1 u + w2 u^2`` is
        ``(w0 - w1 c s + w2 c^2 s^2) + (w1 s - 2 w2 c s^2) z + w2 s^2 z^2``.
        """
        begin, end = self.paths.start[leaf], self.paths.start[leaf + 1]
        terms = self.paths.n_terms
        first = int((terms[:leaf] * self.n_outputs).sum())
        w = self.weight[first : first + terms[leaf] * self.n_outputs].reshape(-1, self.n_outputs)
        center, scale = self.scaling[begin:end, 0][:, None], self.scaling[begin:end, 1][:, None]
        k = end - begin
        shift = center * scale
        with np.errstate(over="ignore"):  # a weight may exceed float64 in the user's units
            linear, square = w[1 : 1 + k], w[1 + k :] if self.paths.degree == 2 else np.zeros((k, self.n_outputs))
            constant = w[0] - (linear * shift).sum(0) + (square * shift**2).sum(0)
            parts = [constant[None], (linear - 2 * square * shift) * scale, square * scale * scale]
        return np.concatenate(parts[: 1 + self.paths.degree])


def add_to(out: Floats, leaves: kernels.Leaves, leaf: NDArray[np.integer], Z: Matrix) -> None:
    """Add the values of training rows, whose leaves, (trees, rows), are known, to `out`, (rows, outputs)."""
    if not isinstance(Z, Sparse):
        kernels.evaluate(leaves, leaf, Z, False, 0, len(Z), out)
        return
    columns, place = np.unique(leaves.column, return_inverse=True)
    leaves = leaves._replace(column=place.astype(np.int32))
    for rows in row_blocks(0, len(Z), len(columns)):
        part = Z.dense(columns, rows)
        kernels.evaluate(leaves, leaf[:, rows], part, False, 0, len(part), out[rows])


def stacked(parts: Sequence[kernels.Leaves]) -> kernels.Leaves:
    """Return the leaf regressions of several forests, one after the other."""
    fields = list(zip(*parts, strict=True)) or [()] * len(kernels.Leaves._fields)
    tree_leaf, tree_output, tree_degree, start, column, scaling, weight_start, weight = fields
    return kernels.Leaves(
        concat_offsets(tree_leaf), concat(tree_output, np.int64).reshape(-1, 2), concat(tree_degree, np.int64),
        concat_offsets(start), concat(column, np.int32), concat(scaling, np.float64).reshape(-1, 4),
        concat_offsets(weight_start), concat(weight, np.float64),
    )  # fmt: skip


def with_missing_leaves(tree: Tree, model: LeafModel, constant: Floats) -> tuple[Tree, LeafModel]:
    """Return the tree and its leaves with splits and constant leaves for rows that miss a column of their leaf.

    Leaves keep their numbers; the new ones come after them. The new splits have a gain of 0.

    Parameters
    ----------
    model : LeafModel
        Of one output, whose columns are the features.
    constant : (leaves,) float64
        What a leaf predicts for a row that misses one of its columns.
    """
    pairs = list(_possibly_missing(tree, model.paths))
    leaf, feature = np.array(pairs, np.int64).reshape(-1, 2).T
    first, count = len(tree.feature), len(leaf)
    split, new_leaf = first + np.arange(count), tree.n_leaves + np.arange(count)
    follows = np.diff(leaf, prepend=-1) == 0  # another split of the same leaf stands above
    below = np.where(np.append(follows, False)[1:], split + 1, ~leaf)
    left, right = _redirected(tree, leaf[~follows], split[~follows])
    none, numeric = np.zeros(count, bool), np.full(count, -1)
    rewritten = Tree.of(
        np.concatenate([tree.feature, feature]),
        np.concatenate([tree.threshold, np.full(count, np.inf)]),  # all that is known goes left
        np.concatenate([left, below]),
        np.concatenate([right, ~new_leaf]),
        np.concatenate([tree.missing_left, none]),
        cat_start=np.concatenate([tree.cat_start, numeric]),
        cat_words=np.concatenate([tree.cat_words, none]),
        categories=tree.categories,
        gain=np.concatenate([tree.gain, none]),
    )
    start = np.append(model.paths.start, np.full(count, model.paths.start[-1], np.int32))
    weight = np.append(model.weight, constant[leaf])  # one term, the constant
    return rewritten, LeafModel(LeafColumns(start, model.paths.column, model.paths.degree), model.scaling, weight, 1)


def _possibly_missing(tree: Tree, paths: LeafColumns) -> Iterator[tuple[int, int]]:
    """Yield each leaf and each of its columns that its rows may miss: no split above sends NaN another way."""
    to_leaf = tree.parents()
    for leaf in range(tree.n_leaves):
        elsewhere, child = set(), ~leaf
        while (split := to_leaf.get(child, -1)) >= 0:
            if tree.missing_left[split] != (tree.left[split] == child):
                elsewhere.add(int(tree.feature[split]))
            child = split
        for column in paths.column[paths.start[leaf] : paths.start[leaf + 1]].tolist():
            if column not in elsewhere:
                yield leaf, column


def _redirected(
    tree: Tree, leaf: NDArray[np.int64], split: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the children of the tree's splits, with splits in the place of some leaves."""
    to = ~np.arange(tree.n_leaves)
    to[leaf] = split
    left, right = (np.where(child < 0, to[~child], child) for child in (tree.left, tree.right))
    return left, right
