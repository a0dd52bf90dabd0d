"""What the cells of a row say of each other once some are taken out, by a normal distribution; many rows at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Conditional:
    """Rows of a normal distribution with mean 0, of each of which as many cells are taken out, such as missing ones.

    Taking column j out of a precision P, an inverse covariance, leaves P - v v' with v = P_j / sqrt(P_jj), whose row
    and column j are 0: a step of a Cholesky factorisation. So a row needs these vectors, and of the precision that is
    left only the diagonal and the product with its cells.

    Attributes
    ----------
    precision : (columns, columns) float64
        Of all columns.
    U : (rows, columns) float64
        Cells; 0 where they are taken out.
    there : (rows, columns) bool
        Those that are not.
    order : (rows, taken out) int64
        The others, in the order in which they were taken out.
    vectors : (rows, taken out, columns) float64
        The v of each.
    product, diagonal : (rows, columns) float64
        Of the precision that is left: its product with `U`, its diagonal. Neither means anything where cells are taken
        out.
    """

    precision: Floats
    U: Floats
    there: Mask
    order: NDArray[np.intp]
    vectors: Floats
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
