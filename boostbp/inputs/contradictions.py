"""Contradictions: cells far from what the rest of their row says, by how columns vary together.

The idea is that of cellwise outliers (Rousseeuw and Van den Bossche 2018): it is cells that are wrong, not rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats
from boostbp.inputs.conditional import Conditional
from boostbp.trees.bounds import GAP, bounds_of
from boostbp.trees.sparse import row_blocks

Mask = NDArray[np.bool_]
SHARE = 0.5  # of its variance that the others must explain for a column to be determined by them
LEAST = 2.0  # standard deviations of its column that a cell may be off at least
PENALTY = 1e-3  # of the variance: columns may be the same, or sum to one
MOST_WRONG = 2  # cells of a row; one that has more is a row of another kind


class Cells(NamedTuple):
    """Cells, and what is read there; all (cells,)."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    value: Floats


@dataclass(frozen=True, slots=True)
class Normal:
    """How columns vary together, as if by a normal distribution with mean 0; all in their units.

    Attributes
    ----------
    precision : (columns, columns) float64
        Inverse covariance.
    lowest, highest : (columns,) float64
        Range in training.
    least, most : (columns,) float64
        Bounds of what a cell may be off; infinite if the others do not determine it.
    """

    precision: Floats
    lowest: Floats
    highest: Floats
    least: Floats
    most: Floats

    @classmethod
    def of(cls, U: Floats, weight: Floats, measures: Mask) -> Normal:
        """By training rows.

        Parameters
        ----------
        U : (rows, columns) float64
            NaN is missing.
        weight : (rows,) float64
        measures : (columns,) bool
            Columns whose cells may be replaced, if the others determine them.
        """
        known, count = ~np.isnan(U), U.shape[1]
        lowest = np.where(known, U, np.inf).min(0, initial=0.0)
        highest = np.where(known, U, -np.inf).max(0, initial=0.0)
        filled = np.where(known, U, 0.0)
        covariance = filled.T @ (weight[:, None] * filled) / weight.sum()
        precision = np.linalg.inv(covariance + PENALTY * np.eye(count))
        precision = (precision + precision.T) / 2  # but for rounding it is
        off = filled @ precision / precision.diagonal()
        bounds = [_bounds(off[k, j], weight[k]) if measures[j] else _FREE for j, k in enumerate(known.T)]
        least, most = np.array(bounds).T
        return cls(precision, lowest, highest, least, most)

    @property
    def determined(self) -> Mask:
        """Which columns are determined by the others, (columns,): cells of these alone are replaced."""
        return np.isfinite(self.most)

    def suspects(self, U: Floats) -> NDArray[np.intp]:
        """Rows, of (rows, columns), that may have a cell beyond its bounds."""
        return np.flatnonzero(self._beyond(self._held(U) @ self.precision / self.precision.diagonal()))

    def replacements(self, U: Floats) -> Cells:
        """Cells that contradict the rest of their row, and what that says; none of a row of another kind.

        While a cell of a row is beyond its bounds, the one that is least likely is taken out: a wrong cell makes others
        look wrong, but none as much as itself.

        Parameters
        ----------
        U : (rows, columns) float64
            Suspects. NaN is missing.
        """
        there, U = ~np.isnan(U), self._held(U)
        missing = np.count_nonzero(~there, axis=1)
        cells = [Cells(missing[:0], missing[:0], np.empty(0))]
        for count in np.unique(missing):  # rows with as many missing cells need as many numbers
            alike = np.flatnonzero(missing == count)
            for block in row_blocks(0, len(alike), (int(count) + 1 + MOST_WRONG) * U.shape[1]):
                rows = alike[block]
                cells += self._replaced(rows, Conditional.of(self.precision, U[rows], there[rows]))
        return Cells(*(np.concatenate(part) for part in zip(*cells, strict=True)))

    def _replaced(self, rows: NDArray[np.intp], left: Conditional) -> Iterator[Cells]:
        """What to replace in some rows; those that are done go, and a cell is taken out of the others."""
        for wrong in range(MOST_WRONG + 1):
            score = left.scores()
            beyond = self._beyond(score / np.sqrt(self.precision.diagonal()))
            if wrong:
                yield from self._cells(rows[~beyond], left.take(~beyond), wrong)
            if wrong == MOST_WRONG or not beyond.any():
                return
            worst = np.where(self.determined, np.abs(score[beyond]), -1.0).argmax(1)
            rows, left = rows[beyond], left.take(beyond).without(worst)

    def _cells(self, rows: NDArray[np.intp], left: Conditional, wrong: int) -> Iterator[Cells]:
        """The cells of rows that were taken out last, so many of each, and what the others say, if that can be right.

        Where it is further from the range of its column than any right cell may be off, the others are what is wrong:
        three lengths that are 0 say that a stone has no weight.
        """
        cells = list(left.said(wrong))
        right = np.ones(len(rows), dtype=bool)
        for j, u in cells:
            right &= (u >= self.lowest[j] - self.most[j]) & (u <= self.highest[j] - self.least[j])
        for j, u in cells:
            yield Cells(rows[right], j[right], np.clip(u, self.lowest[j], self.highest[j])[right])

    def _held(self, U: Floats) -> Floats:
        """Cells that are never replaced do not say more of the others than in training, however far off they are."""
        U = np.where(np.isnan(U), 0.0, U)
        return np.where(self.determined, U, np.clip(U, self.lowest, self.highest))

    def _beyond(self, off: Floats) -> Mask:
        """Rows with a cell beyond its bounds."""
        return np.asarray(((off < self.least) | (off > self.most)).any(axis=1))


_FREE = (-np.inf, np.inf)


def _bounds(off: Floats, weight: Floats) -> tuple[float, float]:
    """How far cells of a column may be off, by how far those of the training rows are."""
    if not weight.sum() > 0 or weight @ np.square(off) / weight.sum() > 1.0 - SHARE:
        return _FREE
    lower, upper = bounds_of(off, weight)
    return min((1.0 + GAP) * lower, -LEAST), max((1.0 + GAP) * upper, LEAST)
