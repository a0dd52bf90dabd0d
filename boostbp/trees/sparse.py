"""Sparse inputs: only entries other than zero are stored."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from boostbp import core
from boostbp.runtime.arrays import Floats

R = TypeVar("R")
# Numbers in a dense block of rows, 8 MB: large enough for calls to cost little, and small compared to the input.
CELLS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """A sparse input, (rows, features). Entries that are not stored are 0, and a stored NaN is missing."""

    entries: sp.csc_matrix  # rows ascend within a column, without duplicates

    @classmethod
    def of(cls, X: sp.spmatrix | sp.sparray) -> Self:
        """Return the input in a sparse matrix of any format, which is not changed."""
        entries = sp.csc_matrix(X, dtype=np.float64)
        if not entries.has_canonical_format:
            entries = entries.copy()
            entries.sum_duplicates()
        return cls(entries)

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.entries.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.entries.shape

    @property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], Floats]:
        """Compressed columns for the core, ``indptr, indices, data``, with integers of any size."""
        return self.entries.indptr, self.entries.indices, self.entries.data

    def __getitem__(self, rows: slice | NDArray[Any]) -> Self:
        """Return some of the rows, by numbers or by a mask."""
        return type(self).of(self.entries[rows])

    def without(self, columns: list[int]) -> Self:
        """Return all but some of the columns."""
        return type(self).of(self.entries[:, np.delete(np.arange(self.shape[1]), columns)])

    def replaced(self, columns: Mapping[int, Floats]) -> Self:
        """Return the input with other values, (rows,), in some of the columns."""
        if not columns:
            return self
        # Append the new columns, then select all columns in their order.
        entries = sp.hstack([self.entries, *(sp.csc_matrix(values[:, None]) for values in columns.values())], "csc")
        source = np.arange(self.shape[1])
        source[list(columns)] = self.shape[1] + np.arange(len(columns))
        return type(self).of(entries[:, source])

    def behind(self, columns: Floats) -> Self:
        """Return a matrix of the dense columns followed by these."""
        return type(self).of(sp.hstack([sp.csc_matrix(columns), self.entries]))

    def dense(self, columns: NDArray[np.integer], rows: slice) -> Floats:
        """Return some columns of successive rows, (rows, columns), C-contiguous."""
        out = np.zeros((rows.stop - rows.start, len(columns)))
        core.fill(self.arrays, columns, rows.start, rows.stop, out)
        return out

    def toarray(self) -> Floats:
        """Return all of it, (rows, features), C-contiguous."""
        return self.entries.toarray(order="C")


# `Any` stands for `Sparse`, as most callers pass on either kind, and NumPy's types accept only arrays.
Matrix: TypeAlias = Floats | Any
"""(rows, features) float64, C-contiguous, or `Sparse`."""


def dense(X: Matrix) -> Floats:
    """Return the input as an array."""
    return X.toarray() if isinstance(X, Sparse) else X


def columns_of(X: Matrix, columns: NDArray[np.integer], rows: slice) -> Floats:
    """Return some columns of some rows as an array, (rows, columns)."""
    return X.dense(columns, rows) if isinstance(X, Sparse) else X[rows].take(columns, axis=1)


def column_of(X: Matrix, column: int, rows: slice = slice(None)) -> Floats:
    """Return some rows of one column, (rows,); of an array a view."""
    if isinstance(X, Sparse):
        return X.dense(np.array([column]), slice(*rows.indices(len(X))[:2]))[:, 0]
    return X[rows, column]


def vstack(top: Matrix, bottom: Matrix) -> Matrix:
    """Return one input with the rows of two of the same kind."""
    if isinstance(top, Sparse) and isinstance(bottom, Sparse):
        return Sparse.of(sp.vstack([top.entries, bottom.entries]))
    return np.vstack(cast(Any, [top, bottom]))


def row_blocks(begin: int, end: int, n_columns: int, cells: int | None = None) -> list[slice]:
    """Return rows ``begin .. end - 1`` in blocks of at most `cells` numbers, by default `CELLS`."""
    size = max(1, (cells or CELLS) // max(1, n_columns))
    return [slice(first, min(first + size, end)) for first in range(begin, end, size)]


@dataclass(frozen=True, slots=True)
class Table:
    """The input of a layer, with the columns that hold category codes.

    Attributes
    ----------
    X : (rows, features) float64, C-contiguous, or Sparse
        NaN is missing. No infinities.
    categorical : tuple of int
        Columns that hold category codes (0, 1, 2, ... or NaN).
    """

    X: Matrix
    categorical: tuple[int, ...] = ()
    _kept: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, name: Hashable, compute: Callable[[], R]) -> R:
        """Return what is computed from the table, such as bins: on the first call, then as kept under this name."""
        if name not in self._kept:
            self._kept[name] = compute()
        return cast(R, self._kept[name])

    @property
    def numeric(self) -> Matrix:
        """The input without its categorical columns."""
        columns = list(self.categorical)
        return self.X.without(columns) if isinstance(self.X, Sparse) else np.delete(self.X, columns, axis=1)

    @property
    def any_missing(self) -> bool:
        """Whether any value is missing."""
        return bool(np.isnan(self.X.entries.data if isinstance(self.X, Sparse) else self.X).any())

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Table:
        """Return some of the rows, by number or by mask."""
        return Table(self.X[rows], self.categorical)
