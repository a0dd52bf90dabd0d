"""Standardised: columns of an input with mean 0 and largest size 1; dense and sparse input give the same bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.runtime import interrupts
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.ridge import LeafRanges
from boostbp.trees.sparse import Matrix, Sparse, columns_of

Kernel: TypeAlias = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Standardised:
    """``U``, some columns of an input scaled to mean 0 and largest size 1, which is never stored."""

    Z: Matrix  # (rows, all columns) float64, C-contiguous, or Sparse; a missing value has ``u = 0``
    column: NDArray[np.int32]  # (columns,): the columns of `Z` in use
    scaling: Floats  # (columns, 4): see `LeafRanges.scaling`
    zero: Floats  # (columns,): scaled value of a zero, ``-center * inv_scale``; 0 for a column without zeros
    variance: Floats  # (columns,): weighted mean of ``u^2``

    @classmethod
    @interrupts.deferred()
    def of(cls, Z: Matrix, weight: Floats) -> Self:
        """Return all columns, standardised with row weights."""
        # For each column: minimum, maximum, weighted sum, weight of missing cells, weight and number of nonzero cells.
        n_columns = Z.shape[1]
        sums = np.tile([np.inf, -np.inf, 0.0, 0.0, 0.0, 0.0], (n_columns, 1))
        square = np.zeros(n_columns)
        _call(Z, core.column_sums, core.column_sums_sparse, weight, sums)
        below, upper = workers().max(-sums[:, 0], sums[:, 1])
        everything = weight.cumsum()[-1:].sum()  # added row by row, as the core does
        rest, everything, n_rows = workers().sum(sums[:, 2:], everything, float(len(Z)))
        lower, (total, missing, nonzero, number) = -below, rest.T
        # The sums skip zeros, so that dense and sparse inputs give the same bits. Zeros are added here.
        some_zero = number < n_rows
        lower = np.where(some_zero, np.minimum(lower, 0.0), lower)
        upper = np.where(some_zero, np.maximum(upper, 0.0), upper)
        scaling = LeafRanges(np.column_stack([lower, upper, total, everything - missing])).scaling()
        zero = np.where(some_zero, -scaling[:, 0] * scaling[:, 1], 0.0)
        _call(Z, core.column_squares, core.column_squares_sparse, weight, scaling, square)
        [square] = workers().sum(square)
        # Each zero contributes the square of its scaled value; missing values have u = 0.
        variance = (square + (everything - nonzero) * np.square(zero)) / everything
        return cls(Z, np.arange(n_columns, dtype=np.int32), scaling, zero, variance)

    def take(self, columns: NDArray[np.integer]) -> Self:
        """Return some of the columns."""
        return replace(
            self, **{name: getattr(self, name)[columns] for name in ("column", "scaling", "zero", "variance")}
        )

    @property
    def n_columns(self) -> int:
        """Number of columns in use."""
        return len(self.column)

    def block(self, rows: slice, columns: slice = slice(None)) -> Floats:
        """Return some rows and columns of ``U``, (rows, columns)."""
        Z, column, scaling = self.Z, self.column[columns], self.scaling[columns]
        part = columns_of(Z, column, rows)
        with np.errstate(over="ignore", invalid="ignore"):  # a column whose range exceeds float64 has scale 0, so u = 0
            U = (part - scaling[:, 0]) * scaling[:, 1]
        return np.where(np.isnan(U), 0.0, U)

    def times(self, V: Floats) -> Floats:
        """Return ``U @ V``, (rows, outputs): the product of a row of zeros, plus the effects of nonzero values."""
        out = np.tile(self.zero @ V, (len(self.Z), 1))
        rest = self.column, self.scaling, self.zero, np.ascontiguousarray(V), out
        _call(self.Z, core.add_products, core.add_products_sparse, *rest)
        return out

    def moment(self, G: Floats) -> Floats:
        """Return ``U' @ G``, (columns, outputs)."""
        out = self.zero[:, None] * G.sum(axis=0)
        rest = self.column, self.scaling, self.zero, np.ascontiguousarray(G), out
        _call(self.Z, core.add_moments, core.add_moments_sparse, *rest)
        return out

    def project(self, directions: Floats) -> Floats:
        """Return the columns, of standard deviation 1, times `directions`, (columns, units): (rows, units)."""
        return self.times(directions / self._std[:, None])

    def project_transposed(self, G: Floats) -> Floats:
        """Return the transpose of `project` times `G`: (rows, units) -> (columns, units)."""
        return self.moment(G) / self._std[:, None]

    @property
    def _std(self) -> Floats:
        """Return the standard deviation of each column, infinite if it is a rounding error, (columns,)."""
        # The rounding error of u is 1e-16 times the center in units of the scale.
        std = np.sqrt(self.variance)
        return np.where(std > 1e-14 * (1.0 + np.abs(self.scaling[:, 0]) * self.scaling[:, 1]), std, np.inf)


def _call(Z: Matrix, of_dense: Kernel, of_sparse: Kernel, *rest: NDArray[np.generic]) -> None:
    """Call the loop for dense or for sparse input."""
    if isinstance(Z, Sparse):
        of_sparse(*Z.arrays, *rest)
    else:
        of_dense(Z, *rest)
