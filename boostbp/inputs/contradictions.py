"""Contradictions: cells far from what the rest of their row says, by how columns vary together.

The idea is that of cellwise outliers (Rousseeuw and Van den Bossche 2018): it is cells that are wrong, not rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats
from boostbp.trees.bounds import GAP, bounds_of
from boostbp.trees.sparse import row_blocks

Mask = NDArray[np.bool_]
SHARE = 0.5  # of its variance that the others must explain for a column to be determined by them
LEAST = 2.0  # standard deviations of its column that a cell may be off at least
PENALTY = 1e-3  # of the variance: columns may be the same, or sum to one
MOST_WRONG = 2  # cells of a row; one that has more is a row of another kind


@dataclass(frozen=True, slots=True)
class Conditional:
    """Rows of a normal distribution with mean 0, of each of which as many cells are taken out, such as missing ones.

    Taking column j out of a precision P, an inverse covariance, leaves P - v v' with v = P_j / sqrt(P_jj), whose row
    and column j are 0: a step of a Cholesky factorisation. So a row needs these vectors, and of the precision that is
    left only the diagonal and the product with its cells.
    """

    precision: Floats  # (columns, columns) float64: of all columns
    U: Floats  # (rows, columns) float64: cells; 0 where they are taken out
    there: Mask  # (rows, columns) bool: cells that are not taken out
    order: NDArray[np.intp]  # (rows, taken out) int64: the others, in the order in which they were taken out
    vectors: Floats  # (rows, taken out, columns) float64: the v of each
    # (rows, columns) float64: of the precision that is left: its product with `U`, its diagonal. Neither means anything
    # where cells are taken out.
    product: Floats
    diagonal: Floats

    @classmethod
    def of(cls, precision: Floats, U: Floats, there: Mask) -> Conditional:
        """Rows without their missing cells, as many in each; these are 0 in `U`."""
        pattern, number = _patterns(~there)
        order = np.nonzero(pattern)[1].reshape(len(pattern), -1)
        vectors = np.empty((*order.shape, len(precision)))
        for k, column in enumerate(order.T):
            vectors[:, k] = _vector(precision, vectors[:, :k], column)
        diagonal = precision.diagonal() - np.square(vectors).sum(1)
        order, vectors, diagonal = order[number], vectors[number], diagonal[number]
        product = U @ precision - _times(_times(U, vectors.transpose(0, 2, 1)), vectors)
        return cls(precision, U, there, order, vectors, product, diagonal)

    def take(self, rows: Mask) -> Conditional:
        """Some of the rows."""
        return replace(
            self,
            U=self.U[rows],
            there=self.there[rows],
            order=self.order[rows],
            vectors=self.vectors[rows],
            product=self.product[rows],
            diagonal=self.diagonal[rows],
        )

    def without(self, column: NDArray[np.intp]) -> Conditional:
        """The rows with a cell more taken out of each."""
        at = np.arange(len(column)), column
        v = _vector(self.precision, self.vectors, column)
        U, there = self.U.copy(), self.there.copy()
        U[at], there[at] = 0.0, False
        return replace(
            self,
            U=U,
            there=there,
            order=np.concatenate([self.order, column[:, None]], axis=1),
            vectors=np.concatenate([self.vectors, v[:, None]], axis=1),
            product=self.product - v * (self.product[at] / v[at])[:, None],
            diagonal=self.diagonal - np.square(v),
        )

    def scores(self) -> Floats:
        """How far each cell is from what the others say, in conditional standard deviations; 0 if it is taken out."""
        scores: Floats = np.where(self.there, self.product / np.sqrt(np.where(self.there, self.diagonal, 1.0)), 0.0)
        return scores

    def said(self, count: int) -> Iterator[tuple[NDArray[np.intp], Floats]]:
        """Columns that were taken out last, so many of each row, and the means of these cells given those there.

        The precision of what is taken out is V' V with V triangular, so the means are found from the last one on.
        """
        U = self.U.copy()
        for k in range(1, count + 1):
            v, column = self.vectors[:, -k], self.order[:, -k]
            at = np.arange(len(column)), column
            U[at] = -_times(U, v[:, :, None])[:, 0] / v[at]
            yield column, U[at]


def _patterns(missing: Mask) -> tuple[Mask, NDArray[np.intp]]:
    """Different rows of a mask, and the number of that of each row; `np.unique` of rows compares column by column."""
    bits = np.packbits(missing, axis=1)
    _, first, number = np.unique(bits.view(f"V{bits.shape[1]}")[:, 0], return_index=True, return_inverse=True)
    return missing[first], number


def _vector(precision: Floats, vectors: Floats, column: NDArray[np.intp]) -> Floats:
    """What to take out of the precision that the vectors of each row leave, (rows, columns), for a column of each."""
    rows = np.arange(len(column))
    left = precision[column] - _times(vectors[rows, :, column], vectors)
    return left / np.sqrt(left[rows, column])[:, None]


def _times(a: Floats, B: Floats) -> Floats:
    """Products of rows, (rows, inner), and a matrix of each, (rows, inner, outer); the same alone as among others."""
    product: Floats = (a[:, None, :] @ B)[:, 0]
    return product


class Cells(NamedTuple):
    """Cells, and what is read there; all (cells,)."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    value: Floats


@dataclass(frozen=True, slots=True)
class Normal:
    """How columns vary together, as if by a normal distribution with mean 0; all in their units."""

    precision: Floats  # (columns, columns) float64: inverse covariance
    # (columns,) float64: range in training
    lowest: Floats
    highest: Floats
    # (columns,) float64: bounds of what a cell may be off; infinite if the others do not determine it
    least: Floats
    most: Floats

    @classmethod
    def of(cls, U: Floats, weight: Floats, measures: Mask) -> Normal:
        """By training rows, (rows, columns), in which NaN is missing, and their weights.

        Cells of the columns that are `measures`, (columns,), may be replaced, if the others determine them.
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
        """Cells of suspects, (rows, columns), that contradict the rest of their row, and what that says.

        While a cell of a row is beyond its bounds, the one that is least likely is taken out: a wrong cell makes others
        look wrong, but none as much as itself. NaN is missing. A row of another kind has none.
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
