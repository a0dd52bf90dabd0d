"""Cells that contradict the rest of their row, such as mistyped ones, and what is read in their place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Table
from boostbp.inputs.column_units import Units
from boostbp.inputs.contradictions import Normal
from boostbp.trees.sparse import Matrix, Sparse, row_blocks

__all__ = ["Repair"]

Floats = NDArray[np.float64]
MOST_ROWS = 10_000  # that columns are compared on
MOST_COLUMNS = 200  # that are compared: work grows with the cube
ROWS_PER_COLUMN = 10  # at least: of fewer, columns explain each other by chance
LEAST_ROWS = 100
VALUES = 10  # a column with fewer different ones is a code or a grade, and no measure that is mistyped by a factor


class Cell(NamedTuple):
    """A cell, and what is read there."""

    row: int
    column: int
    value: float


@dataclass(frozen=True, slots=True)
class Repair:
    """What columns of the training rows say of each other, and how far a cell may be from it.

    Attributes
    ----------
    units : Units
        Columns that take part, all numeric, and their units.
    normal : Normal
        How they vary together, in these units, and how far a cell may be from what the rest of its row says.
    """

    units: Units
    normal: Normal

    @classmethod
    def of(cls, table: Table, weight: Floats) -> Repair | None:
        """Compare the columns of training rows; None if no column is determined by the others, or rows are few.

        Parameters
        ----------
        table : Table
        weight : (rows,) float64
            Row weights: a weight of 2 is a row twice, a weight of 0 is none.
        """
        column = np.setdiff1d(np.arange(table.X.shape[1]), table.categorical)
        rows = np.flatnonzero(weight > 0)
        if not 2 <= len(column) <= MOST_COLUMNS or len(rows) < max(LEAST_ROWS, ROWS_PER_COLUMN * len(column)):
            return None
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(np.int64)]
        Z, weight = _block(table.take(rows).X, column, slice(0, len(rows))), weight[rows]
        units, U = Units.of(column, Z, weight)
        many = np.array([len(np.unique(u[~np.isnan(u)])) >= VALUES for u in U.T])
        normal = Normal.of(U, weight, many & units.varies)
        return cls(units, normal) if normal.determined.any() else None

    def read(self, table: Table) -> Table:
        """The table with what the rest of a row says in place of cells that contradict it; itself if there is none."""
        X, column = table.X, self.units.column
        blocks = row_blocks(0, len(X), len(column))
        cells = [cell for rows in blocks for cell in self._wrong(_block(X, column, rows), rows)]
        return Table(_replaced(X, cells), table.categorical) if cells else table

    def _wrong(self, Z: Floats, rows: slice) -> Iterator[Cell]:
        """The cells of some rows that contradict the rest of their row."""
        U = self.units.of_values(Z)
        for number in self.normal.suspects(U):
            for j, u in self.normal.replacements(U[number]):
                yield Cell(rows.start + int(number), int(self.units.column[j]), self.units.value(j, u))


def _block(X: Matrix, columns: NDArray[np.integer], rows: slice) -> Floats:
    return X.dense(columns, rows) if isinstance(X, Sparse) else X[rows].take(columns, axis=1)


def _replaced(X: Matrix, cells: list[Cell]) -> Matrix:
    """The input with other values in some cells."""
    if not isinstance(X, Sparse):
        X = X.copy()
        for row, column, value in cells:
            X[row, column] = value
        return X
    columns = {j: X.dense(np.array([j]), slice(0, len(X)))[:, 0] for j in {cell.column for cell in cells}}
    for row, column, value in cells:
        columns[column][row] = value
    return X.replaced(columns)
