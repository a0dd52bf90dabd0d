"""Cells that contradict the rest of their row, such as mistyped ones, and what is read in their place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Table
from boostbp.floats import Floats
from boostbp.group import workers
from boostbp.inputs.column_units import FAR, Units
from boostbp.inputs.contradictions import Cells, Normal
from boostbp.trees.forest import FEW_ROWS
from boostbp.trees.kernels import may_contradict
from boostbp.trees.sparse import Matrix, Sparse, row_blocks

MOST_ROWS = 10_000  # that columns are compared on
MOST_COLUMNS = 200  # that are compared: work grows with the cube
ROWS_PER_COLUMN = 10  # at least: of fewer, columns explain each other by chance
LEAST_ROWS = 100
SMALLER = 16  # times than usual are blocks of rows: they are passed over often, and stay in the cache of a core
VALUES = 10  # a column with fewer different ones is a code or a grade, and no measure that is mistyped by a factor


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
        rows, group = np.flatnonzero(weight > 0), workers()
        [n_rows] = group.sum(float(len(rows)))
        if not 2 <= len(column) <= MOST_COLUMNS or n_rows < max(LEAST_ROWS, ROWS_PER_COLUMN * len(column)):
            return None
        rows = rows[group.spaced(len(rows), MOST_ROWS)]
        Z, weight = group.together(_block(table.take(rows).X, column, slice(0, len(rows))), weight[rows])
        units, U = Units.of(column, Z, weight)
        many = np.array([len(np.unique(u[~np.isnan(u)])) >= VALUES for u in U.T])
        normal = Normal.of(U, weight, many & units.varies)
        return cls(units, normal) if normal.determined.any() else None

    def read(self, table: Table) -> Table:
        """The table with what the rest of a row says in place of cells that contradict it; itself if there is none."""
        X, column = table.X, self.units.column
        if len(X) <= FEW_ROWS and not isinstance(X, Sparse) and not self._may_contradict(X):
            return table
        blocks = row_blocks(0, len(X), SMALLER * len(column))
        suspects = [rows.start + self.normal.suspects(self._units_of(X, rows)) for rows in blocks]
        rows = np.concatenate([np.empty(0, dtype=np.intp), *suspects])
        if not len(rows):
            return table
        cells = [self._wrong(table, rows[block]) for block in row_blocks(0, len(rows), len(column))]
        return Table(_replaced(X, cells), table.categorical) if any(len(each.row) for each in cells) else table

    def _may_contradict(self, X: Floats) -> bool:
        """Whether a row may have a cell that contradicts its others: most of the time of a few rows is saved."""
        units, normal, found = self.units, self.normal, np.empty(len(X), np.bool_)
        of_normal = normal.precision, normal.lowest, normal.highest, normal.least, normal.most
        may_contradict(X, units.column, units.floor, units.center, units.scale, FAR, *of_normal, found)
        return bool(found.any())

    def _units_of(self, X: Matrix, rows: slice) -> Floats:
        return self.units.of_values(_block(X, self.units.column, rows))

    def _wrong(self, table: Table, rows: NDArray[np.intp]) -> Cells:
        """The cells of some rows that contradict the rest of their row, and what to read there."""
        row, column, u = self.normal.replacements(self._units_of(table.take(rows).X, slice(0, len(rows))))
        return Cells(rows[row], self.units.column[column], self.units.values(column, u))


def _block(X: Matrix, columns: NDArray[np.integer], rows: slice) -> Floats:
    return X.dense(columns, rows) if isinstance(X, Sparse) else X[rows].take(columns, axis=1)


def _replaced(X: Matrix, blocks: list[Cells]) -> Matrix:
    """The input with other values in some cells."""
    row, column, value = (np.concatenate(part) for part in zip(*blocks, strict=True))
    if not isinstance(X, Sparse):
        X = X.copy()
        X[row, column] = value
        return X
    columns = {}
    for j in np.unique(column):
        columns[int(j)] = x = X.dense(np.array([j]), slice(0, len(X)))[:, 0]
        x[row[column == j]] = value[column == j]
    return X.replaced(columns)
