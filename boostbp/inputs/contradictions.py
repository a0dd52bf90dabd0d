"""Contradictions: cells far from what the rest of their row says, by how columns vary together.

The idea is that of cellwise outliers (Rousseeuw and Van den Bossche 2018): it is cells that are wrong, not rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.trees.bounds import GAP, bounds_of

__all__ = ["Normal"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
SHARE = 0.5  # of its variance that the others must explain for a column to be determined by them
LEAST = 2.0  # standard deviations of its column that a cell may be off at least
PENALTY = 1e-3  # of the variance: columns may be the same, or sum to one
MOST_WRONG = 2  # cells of a row; one that has more is a row of another kind


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
        off = self._held(np.where(np.isnan(U), 0.0, U)) @ self.precision / self.precision.diagonal()
        return np.flatnonzero(((off < self.least) | (off > self.most)).any(1))

    def replacements(self, u: Floats) -> list[tuple[int, float]]:
        """Columns of one row, (columns,), whose cells contradict the others, and what these say; none if they are many.

        While a cell is beyond its bounds, the one that is least likely is taken out: a wrong cell makes others look
        wrong, but none as much as itself.
        """
        there, P = ~np.isnan(u), self.precision
        u = self._held(np.where(there, u, 0.0))
        for missing in np.flatnonzero(~there):
            P = _without(P, missing)
        wrong: list[int] = []
        while len(wrong) <= MOST_WRONG and (j := self._worst(u, P, there)) is not None:
            wrong.append(j)
            there[j] = False
            P = _without(P, j)
        if not wrong or len(wrong) > MOST_WRONG:
            return []
        said = self._said(u, ~there)
        return [(j, float(np.clip(said[j], self.lowest[j], self.highest[j]))) for j in wrong]

    def _held(self, U: Floats) -> Floats:
        """Cells that are never replaced do not say more of the others than in training, however far off they are."""
        return np.where(self.determined, U, np.clip(U, self.lowest, self.highest))

    def _worst(self, u: Floats, P: Floats, there: Mask) -> int | None:
        """The least likely of the cells that are there, of inverse covariance `P`, if any is beyond its bounds."""
        score = np.where(there, P @ u / np.sqrt(np.where(there, P.diagonal(), 1.0)), 0.0)
        off = score / np.sqrt(self.precision.diagonal())
        if not ((off < self.least) | (off > self.most)).any():
            return None
        return int(np.where(self.determined, np.abs(score), -1.0).argmax())

    def _said(self, u: Floats, missing: Mask) -> Floats:
        """The means of missing cells given the others."""
        said = np.zeros_like(u)
        cross = self.precision[np.ix_(missing, ~missing)]
        said[missing] = -np.linalg.solve(self.precision[np.ix_(missing, missing)], cross @ u[~missing])
        return said


def _without(P: Floats, j: int | np.integer) -> Floats:
    """Inverse covariance of the columns but one, whose row and column are 0."""
    left: Floats = P - np.outer(P[:, j], P[j]) / P[j, j]
    left[j], left[:, j] = 0.0, 0.0
    return left


_FREE = (-np.inf, np.inf)


def _bounds(off: Floats, weight: Floats) -> tuple[float, float]:
    """How far cells of a column may be off, by how far those of the training rows are."""
    if not weight.sum() > 0 or weight @ np.square(off) / weight.sum() > 1.0 - SHARE:
        return _FREE
    lower, upper = bounds_of(off, weight)
    return min((1.0 + GAP) * lower, -LEAST), max((1.0 + GAP) * upper, LEAST)
