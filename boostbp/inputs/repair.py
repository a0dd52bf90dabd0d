"""Cells that contradict the rest of their row, such as mistyped ones, and what is read in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Table
from boostbp.floats import Floats
from boostbp.group import workers
from boostbp.inputs.contradictions import Cells, Normal
from boostbp.trees.bounds import ROWS, bounds_of
from boostbp.trees.forest import FEW_ROWS
from boostbp.trees.kernels import may_contradict
from boostbp.trees.sparse import Matrix, Sparse, column_of, columns_of, row_blocks

Mask = NDArray[np.bool_]
TENTH = 0.1  # quantiles on both sides of the median tell whether a column is symmetric
FLOOR = 1e-3  # of the least value that counts: in logarithms, 0 and less is so far below it
NEXT_FLOOR = 0.5  # of counts, whose 0 is next to 1
FAR = 1e6  # standard deviations: numbers stay representable
MOST_ROWS = 10_000  # that columns are compared on
MOST_COLUMNS = 200  # that are compared: work grows with the cube
ROWS_PER_COLUMN = 10  # at least: of fewer, columns explain each other by chance
LEAST_ROWS = 100
SMALLER = 16  # times than usual are blocks of rows: they are passed over often, and stay in the cache of a core
VALUES = 10  # a column with fewer different ones is a code or a grade, and no measure that is mistyped by a factor


@dataclass(frozen=True, slots=True)
class Units:
    """Units of some columns."""

    column: NDArray[np.int64]  # (columns,) int64: of the input
    # (columns,) float64: of columns that are compared by their logarithm, the least value that it is taken of; 0 for
    # the others
    floor: Floats
    # (columns,) float64: mean and standard deviation; the latter is infinite of a column that hardly varies, whose
    # ``u`` is 0
    center: Floats
    scale: Floats

    @classmethod
    def of(cls, column: NDArray[np.integer], Z: Floats, weight: Floats) -> tuple[Units, Floats]:
        """Units of columns by their values, (rows, columns), and the values in them: isolated ones are missing."""
        floor = np.array([_floor(z, weight) for z in Z.T])
        T = _by_floor(Z, floor)
        for j, t in enumerate(T.T):
            lower, upper = bounds_of(t, weight)
            T[:, j] = np.where((t < lower) | (t > upper), np.nan, t)
        present = np.where(np.isnan(T), 0.0, weight[:, None])
        with np.errstate(all="ignore"):  # columns too wide for float64 do not take part
            total = present.sum(0)
            center = np.where(present > 0, present * T, 0.0).sum(0) / total
            scale = np.sqrt(np.where(present > 0, present * np.square(T - center), 0.0).sum(0) / total)
            varies = np.isfinite(scale) & (scale > 1e-12 * (1.0 + np.abs(center)))
        units = cls(column.astype(np.int64), floor, np.where(varies, center, 0.0), np.where(varies, scale, np.inf))
        return units, units._scaled(T)

    @property
    def varies(self) -> NDArray[np.bool_]:
        """Which columns vary, (columns,)."""
        return np.isfinite(self.scale)

    def of_values(self, Z: Floats) -> Floats:
        """Values, (rows, columns), in these units; NaN is missing."""
        return self._scaled(_by_floor(Z, self.floor))

    def values(self, j: NDArray[np.intp], u: Floats) -> Floats:
        """The values that are `u` in the units of the j-th columns; the mean, where these do not vary."""
        t = self.center[j] + u * np.where(self.varies, self.scale, 0.0)[j]
        logarithm = self.floor[j] > 0
        t[logarithm] = np.exp(t[logarithm])
        return t

    def _scaled(self, T: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.clip((T - self.center) / self.scale, -FAR, FAR)


def _by_floor(Z: Floats, floor: Floats) -> Floats:
    """Logarithms of the columns that have a floor, the others as they are; a new array."""
    T = np.array(Z)
    logarithm = floor > 0
    T[:, logarithm] = np.log(np.maximum(Z[:, logarithm], floor[logarithm]))
    return T


def _floor(z: Floats, weight: Floats) -> float:
    """The least value that a logarithm is taken of; 0 where the logarithm is less symmetric, or values are not above 0.

    Up to one in `ROWS` may be no more than 0: they may be what is mistyped, but in a column of counts.
    """
    known = ~np.isnan(z) & (weight > 0)
    z, weight = z[known], weight[known]
    if weight[z <= 0].sum() * ROWS > weight.sum() or not (z > 0).any():
        return 0.0
    a, m, b = np.quantile(z, [TENTH, 0.5, 1 - TENTH], weights=weight, method="inverted_cdf")
    if not 0 < a < m < b:
        return 0.0
    plain, logarithmic = np.log((b - m) / (m - a)), np.log(np.log(b / m) / np.log(m / a))
    if abs(logarithmic) >= abs(plain):
        return 0.0
    above = np.unique(z[z > 0])
    if above[0] <= np.diff(above).min():  # 0 is no further from the least value than values are from each other
        return float(NEXT_FLOOR * above[0])
    return float(FLOOR * max(bounds_of(z, weight)[0], above[0]))


@dataclass(frozen=True, slots=True)
class Repair:
    """What columns of the training rows say of each other, and how far a cell may be from it."""

    units: Units  # columns that take part, all numeric, and their units
    # how they vary together, in these units, and how far a cell may be from what the rest of its row says
    normal: Normal
    _look: Callable[[Floats, Mask], None] = field(default=None, init=False, repr=False, compare=False)  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """What copies hold: not the loop that looks at a few rows, which is made for the first of them."""
        return type(self), (self.units, self.normal)

    @classmethod
    def of(cls, table: Table, weight: Floats) -> Repair | None:
        """Compare the columns of training rows; None if no column is determined by the others, or rows are few.

        A weight of 2 is a row twice, a weight of 0 is none.
        """
        column = np.setdiff1d(np.arange(table.X.shape[1]), table.categorical)
        rows, group = np.flatnonzero(weight > 0), workers()
        [n_rows] = group.sum(float(len(rows)))
        if not 2 <= len(column) <= MOST_COLUMNS or n_rows < max(LEAST_ROWS, ROWS_PER_COLUMN * len(column)):
            return None
        rows = rows[group.of(rows).spaced(len(rows), MOST_ROWS)]
        Z, weight = group.of(rows).together(columns_of(table.take(rows).X, column, slice(0, len(rows))), weight[rows])
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
        return Table(_replaced(X, cells), table.categorical) if any(len(part.row) for part in cells) else table

    def _may_contradict(self, X: Floats) -> bool:
        """Whether a row may have a cell that contradicts its others: most of the time of a few rows is saved."""
        if self._look is None:
            units, normal = self.units, self.normal
            of_normal = normal.precision, normal.lowest, normal.highest, normal.least, normal.most
            look = may_contradict.given(units.column, units.floor, units.center, units.scale, FAR, *of_normal)
            object.__setattr__(self, "_look", look)
        found = np.empty(len(X), np.bool_)
        self._look(X, found)
        return True in found.tobytes()

    def _units_of(self, X: Matrix, rows: slice) -> Floats:
        return self.units.of_values(columns_of(X, self.units.column, rows))

    def _wrong(self, table: Table, rows: NDArray[np.intp]) -> Cells:
        """The cells of some rows that contradict the rest of their row, and what to read there."""
        row, column, u = self.normal.replacements(self._units_of(table.take(rows).X, slice(0, len(rows))))
        return Cells(rows[row], self.units.column[column], self.units.values(column, u))


def _replaced(X: Matrix, blocks: list[Cells]) -> Matrix:
    """The input with other values in some cells."""
    row, column, value = (np.concatenate(part) for part in zip(*blocks, strict=True))
    if not isinstance(X, Sparse):
        X = X.copy()
        X[row, column] = value
        return X
    columns = {}
    for j in np.unique(column):
        columns[int(j)] = x = column_of(X, j)
        x[row[column == j]] = value[column == j]
    return X.replaced(columns)
