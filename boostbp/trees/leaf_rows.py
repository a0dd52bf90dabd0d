"""What the leaves of a tree read: the columns of each, and the training rows grouped by leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats
from boostbp.trees.basis import Basis
from boostbp.trees.tree import Tree

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
