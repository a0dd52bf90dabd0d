"""Ridge regression on all numeric columns: the one-leaf tree that a layer may start with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import minimize

from boostbp.trees.ridge import BLOCK_ROWS, LeafModel, LeafRanges, LeafRows, Paths

__all__ = ["RidgeBase"]

Floats = NDArray[np.float64]
STEPS = 50  # of the minimiser; a few dozen bring the loss of a ridge regression to its minimum


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
        mean = self.weight @ target / self.weight.sum()
        along = self._along(target - mean)
        if reg_lambda is None:
            reg_lambda = self._penalty(target - mean, along)
        with np.errstate(divide="ignore", invalid="ignore"):
            shrunk = np.where(self.values + reg_lambda > 0, 1.0 / (self.values + reg_lambda), 0.0)
        return self._model(mean, shrunk[:, None] * along)

    def minimise(
        self, loss: Callable[[Floats], tuple[float, Floats]], hess: Floats, reg_lambda: float | None = None
    ) -> LeafModel:
        """Fit all outputs to a loss that is no square, such as that of a logistic regression.

        The constant is penalised lightly, as if by one row: it is finite where a class is absent.

        Parameters
        ----------
        loss : callable
            ``loss(fit) -> (value, gradient)``: the weighted sum over rows and its derivative, (rows, outputs).
        hess : (rows, outputs) float64
            Weighted second derivatives at a fit of 0.
        reg_lambda : float or None
            As in `fit`, in units of the mean second derivative.
        """
        n_rows, n_outputs = hess.shape
        _, grad = loss(np.zeros((n_rows, n_outputs)))
        curvature = float(hess.mean(axis=1).sum() / self.weight.sum())
        if reg_lambda is None:
            with np.errstate(divide="ignore", invalid="ignore"):
                target = np.where(self.weight[:, None] > 0, -grad / self.weight[:, None], 0.0)
            centred = target - self.weight @ target / self.weight.sum()
            reg_lambda = self._penalty(centred, self._along(centred))
        sizes = np.concatenate([[self.weight.sum()], self.values])
        penalty = curvature * np.concatenate([[1.0], np.full(len(self.values), reg_lambda)])
        unit = 1.0 / np.sqrt(
            curvature * sizes + penalty
        )  # in these units the loss is about as steep in every direction

        def objective(flat: Floats) -> tuple[float, Floats]:
            along = unit[:, None] * flat.reshape(-1, n_outputs)
            fit = np.empty((n_rows, n_outputs))
            for block, U in _standardised(self.Z, self.paths, self.frame):
                fit[block] = along[0] + U @ (self.vectors @ along[1:])
            value, grad = loss(fit)
            slope = np.concatenate([grad.sum(0)[None], self._moment(grad)]) + penalty[:, None] * along
            return value + float(penalty @ np.square(along).sum(1)) / 2, (unit[:, None] * slope).ravel()

        start = np.zeros(len(sizes) * n_outputs)
        best = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
        along = unit[:, None] * best.reshape(-1, n_outputs)
        return self._model(along[0], along[1:])

    def _moment(self, grad: Floats) -> Floats:
        """Moments of what is weighted already, along the directions, (rank, outputs)."""
        moment = np.zeros((len(self.paths.column), grad.shape[1]))
        for block, U in _standardised(self.Z, self.paths, self.frame):
            moment += U.T @ grad[block]
        return self.vectors.T @ moment

    def _along(self, centred: Floats) -> Floats:
        """Weighted moments of centred targets along the directions, (rank, outputs)."""
        return self._moment(self.weight[:, None] * centred)

    def _penalty(self, centred: Floats, along: Floats) -> float:
        """Penalty of the centred targets by generalised cross-validation."""
        square = float(self.weight @ np.square(centred).sum(1))
        # a weight counts as so many rows, unless all weights together say less than one row each
        n_rows = max(float(self.weight.sum()), float(np.count_nonzero(self.weight)))
        return _by_gcv(self.values, np.square(along).sum(1), square, n_rows)

    def _model(self, constant: Floats, along: Floats) -> LeafModel:
        weight = np.concatenate([constant[None], self.vectors @ along])
        return LeafModel(self.paths, self.frame, weight.ravel(), len(constant), np.array([np.nan]))


def _standardised(Z: Floats, paths: Paths, frame: Floats) -> Iterator[tuple[slice, Floats]]:
    for first in range(0, len(Z), BLOCK_ROWS):
        block = slice(first, first + BLOCK_ROWS)
        with np.errstate(over="ignore", invalid="ignore"):  # a column too wide for float64 has scale 0, and counts as 0
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
