"""Ridge regression on all numeric columns: the one-leaf tree that a layer may start with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from boostbp.trees.ridge import BLOCK_ROWS, LeafModel, LeafRanges, LeafRows, Paths

__all__ = ["RidgeBase"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RidgeBase:
    """A ridge regression bound to one input: its spectrum is computed once, targets come and go.

    Attributes
    ----------
    paths : Paths
        One leaf over all columns.
    frame : (columns, 4) float64
    weight : (rows,) float64
        Row weights.
    vectors : (columns, rank) float64
        Directions of the standardised input.
    values : (rank,) float64
        Weighted sum of squares along each direction.
    """

    Z: Floats
    paths: Paths
    frame: Floats
    weight: Floats
    vectors: Floats
    values: Floats

    @classmethod
    def bind(cls, Z: Floats, columns: NDArray[np.int32], weight: Floats) -> RidgeBase:
        """Standardise the columns of the input and decompose it.

        Parameters
        ----------
        Z : (rows, all columns) float64, C-contiguous
            NaN counts as the column's mean.
        columns : (columns,) int32
            The numeric ones.
        weight : (rows,) float64
        """
        paths = Paths.everywhere(columns)
        everyone = LeafRows.blocks(np.zeros(len(Z), np.int32), 1)
        frame = reduce(add, (LeafRanges.of(rows, paths, Z, weight) for rows in everyone)).frame()
        vectors, values = _spectrum(Z, paths, frame, weight)
        return cls(Z, paths, frame, weight, vectors, values)

    def fit(self, target: Floats, reg_lambda: float | None = None) -> LeafModel:
        """Fit all outputs at once.

        Parameters
        ----------
        target : (rows, outputs) float64
        reg_lambda : float or None
            Penalty on the standardised weights; None chooses it by generalised cross-validation,
            one for all outputs. The constant is not penalised.
        """
        total = self.weight.sum()
        mean = self.weight @ target / total
        centred = target - mean
        moment = np.zeros((len(self.paths.column), target.shape[1]))
        for block, U in _standardised(self.Z, self.paths, self.frame):
            moment += U.T @ (self.weight[block, None] * centred[block])
        along = self.vectors.T @ moment
        if reg_lambda is None:
            square = float(self.weight @ np.square(centred).sum(1))
            # a weight counts as so many rows, unless all weights together say less than one row each
            n_rows = max(float(total), float(np.count_nonzero(self.weight)))
            reg_lambda = _by_gcv(self.values, np.square(along).sum(1), square, n_rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            shrunk = np.where(self.values + reg_lambda > 0, 1.0 / (self.values + reg_lambda), 0.0)
        weight = np.concatenate([mean[None], self.vectors @ (shrunk[:, None] * along)])
        return LeafModel(self.paths, self.frame, weight.ravel(), target.shape[1], np.array([np.nan]))


def _standardised(Z: Floats, paths: Paths, frame: Floats) -> Iterator[tuple[slice, Floats]]:
    for first in range(0, len(Z), BLOCK_ROWS):
        block = slice(first, first + BLOCK_ROWS)
        U = (Z[block, paths.column] - frame[:, 0]) * frame[:, 1]
        yield block, np.where(np.isnan(U), 0.0, U)


def _spectrum(Z: Floats, paths: Paths, frame: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Directions (columns, rank) and sums of squares (rank,) of the weighted, standardised input."""
    if len(paths.column) == 0:
        return np.empty((0, 0)), np.empty(0)
    if len(paths.column) <= len(Z):
        gram = np.zeros((len(paths.column),) * 2)
        for block, U in _standardised(Z, paths, frame):
            gram += U.T @ (weight[block, None] * U)
        values, vectors = eigh(gram)
        keep = values > 1e-12 * max(values[-1], 0.0)
        return vectors[:, keep], values[keep]
    U = np.concatenate([U for _, U in _standardised(Z, paths, frame)]) * np.sqrt(weight)[:, None]
    values, left = eigh(U @ U.T)
    keep = values > 1e-12 * max(values[-1], 0.0)
    return U.T @ (left[:, keep] / np.sqrt(values[keep])), values[keep]


def _by_gcv(values: Floats, along: Floats, square: float, n_rows: float) -> float:
    """The penalty with the least generalised cross-validation score (Golub, Heath and Wahba 1979).

    Parameters
    ----------
    values : (rank,) sums of squares along the directions
    along : (rank,) squared moments, summed over outputs
    square : weighted sum of squares of the centred targets
    n_rows : number of rows
    """
    if len(values) == 0:
        return 1.0
    grid = values.max() * np.logspace(-9, 2, 45)
    left = grid[:, None] / (values + grid[:, None])  # share of each direction that the penalty takes away
    explained = along / values
    spare = max(n_rows - 1 - len(values), 0)
    # With no dimension to spare (more columns than rows) both residual and freedom vanish with the
    # penalty, and only their ratio counts: neither may be a difference of large numbers.
    outside = max(square - explained.sum(), 0.0) if spare else 0.0
    residual = outside + (explained * left**2).sum(1)
    freedom = (spare + left.sum(1)) / n_rows
    return float(grid[np.argmin(residual / freedom**2)])
