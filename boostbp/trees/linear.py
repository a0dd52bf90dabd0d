"""Bases of a layer: ridge regressions on standardised numeric columns, or on smooth functions of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import minimize

from boostbp import core
from boostbp.core import Leaves
from boostbp.runtime import interrupts
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.additive import SplineTerms
from boostbp.trees.leaves import leaves_of_tree
from boostbp.trees.ridge import LeafRanges
from boostbp.trees.sparse import Matrix, Sparse, columns_of, row_blocks
from boostbp.trees.tree import Trees

# Limit on the shorter side of the decomposed matrix: time is proportional to its cube.
MAX_DECOMPOSED = 1000
# A few dozen steps reach the minimum of a ridge regression's loss.
LBFGS_STEPS = 50
# Smallest penalties that cross-validation may choose; see `RidgeBase.bind`.
# For one row in a thousand with a cell that is wrong by the size of its column.
LEAST_PER_ROW = 1e-3
# Limit on the penalty as a share of the mean sum of squares, for columns with long tails. Arbitrary.
MAX_LEAST = 0.03
# The same share for splines. Arbitrary, as rough splines are penalised most in any case.
LEAST_SPLINES = 1e-4
Kernel: TypeAlias = Callable[..., object]
LossOfFit: TypeAlias = Callable[[Floats], tuple[float, Floats]]


@dataclass(frozen=True, slots=True)
class Standardised:
    """``U``, some columns of an input scaled to mean 0 and largest size 1, which is never stored.

    Dense and sparse input give the same bits. One tree of one leaf reads all columns.
    """

    Z: Matrix  # (rows, all columns) float64, C-contiguous, or Sparse; a missing value has ``u = 0``
    column: NDArray[np.int32]  # (columns,): the columns of `Z` in use
    scaling: Floats  # (columns, 4): see `LeafRanges.scaling`
    zero: Floats  # (columns,): scaled value of a zero, ``-center * inv_scale``; 0 for a column without zeros
    variance: Floats  # (columns,): weighted mean of ``u^2``
    trees: ClassVar[Trees] = Trees.stumps(1)

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
        names = "column", "scaling", "zero", "variance"
        return replace(self, **{name: getattr(self, name)[columns] for name in names})

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
        columns = self.column, self.scaling, self.zero
        _call(self.Z, core.add_products, core.add_products_sparse, columns, np.ascontiguousarray(V), out)
        return out

    def moment(self, G: Floats) -> Floats:
        """Return ``U' @ G``, (columns, outputs)."""
        out = self.zero[:, None] * G.sum(axis=0)
        columns = self.column, self.scaling, self.zero
        _call(self.Z, core.add_moments, core.add_moments_sparse, columns, np.ascontiguousarray(G), out)
        return out

    def project(self, directions: Floats) -> Floats:
        """Return the columns, of standard deviation 1, times `directions`, (columns, units): (rows, units)."""
        return self.times(directions / self._std[:, None])

    def project_transposed(self, G: Floats) -> Floats:
        """Return the transpose of `project` times `G`: (rows, units) -> (columns, units)."""
        return self.moment(G) / self._std[:, None]

    @property
    def leaf(self) -> NDArray[np.integer]:
        """The leaf of each row under the tree, (1, rows)."""
        return np.zeros((1, len(self.Z)), np.uint8)

    def leaves_for(self, constant: Floats, V: Floats) -> Leaves:
        """Return the leaf whose value is ``constant + U @ V``."""
        weight = np.concatenate([constant[None], V]).ravel()
        return leaves_of_tree([0, len(self.column)], self.column, self.scaling, weight)

    @property
    def _std(self) -> Floats:
        """Return the standard deviation of each column, infinite if it is a rounding error, (columns,)."""
        # The rounding error of u is 1e-16 times the center in units of the scale.
        std = np.sqrt(self.variance)
        return np.where(std > 1e-14 * (1.0 + np.abs(self.scaling[:, 0]) * self.scaling[:, 1]), std, np.inf)


def _call(Z: Matrix, of_dense: Kernel, of_sparse: Kernel, *rest: object) -> None:
    """Call the loop for dense or for sparse input."""
    if isinstance(Z, Sparse):
        of_sparse(Z.arrays, *rest)
    else:
        of_dense(Z, *rest)


# Columns ``U`` of mean 0 for a ridge regression, and the trees that compute its values, with the leaf of each row.
BaseTerms: TypeAlias = Standardised | SplineTerms


@dataclass(frozen=True, slots=True)
class RidgeBase:
    """A ridge regression bound to one input. The spectrum is computed once for any number of targets."""

    U: BaseTerms  # the columns
    weight: Floats  # (rows,): row weights
    # n_rows, total: number of all rows, and sum of their weights
    n_rows: float
    total: float
    # (columns, rank), or (rows, rank) if columns outnumber rows: singular vectors of ``sqrt(weight) U`` on its shorter
    # side
    vectors: Floats
    values: Floats  # (rank,): weighted sum of squares along each direction: the squared singular values
    least: float = 0.0  # smallest penalty that cross-validation may choose

    @classmethod
    def additive(
        cls, X: Matrix, features: NDArray[np.integer], weight: Floats, *, degree: int, least: float | None = 0.0
    ) -> RidgeBase:
        """Return a base that is a sum of smooth functions of one feature each; see `SplineTerms.of` and `bind`."""
        U = SplineTerms.of(X, features, weight, degree=degree, most=MAX_DECOMPOSED)
        return cls._on(U, weight, LEAST_SPLINES if least is None else least)

    @classmethod
    def bind(cls, Z: Matrix, columns: NDArray[np.int32], weight: Floats, *, least: float | None = 0.0) -> RidgeBase:
        """Return a base on the numeric columns of the input, standardised and decomposed.

        With more than `MAX_DECOMPOSED` rows and columns, the base uses the `MAX_DECOMPOSED` columns of largest
        variance, measured in units of their range. NaN counts as the column's mean.

        `least` is the smallest penalty that cross-validation may choose, as a share of the mean sum of squares of the
        columns: directions with a smaller sum of squares are shrunk most. None takes a penalty for typing errors in
        later rows: without it, nearly equal columns get large weights of opposite signs, which amplify one wrong cell.
        Errors of variance s^2 in every cell act like a penalty of s^2 per row (Bishop 1995). A cell that is wrong by 1,
        the size of its column, in one of a thousand rows gives s^2 = `LEAST_PER_ROW`.
        """
        U = Standardised.of(Z, weight).take(columns)
        if len(columns) > MAX_DECOMPOSED and workers().sum(float(len(Z)))[0] > MAX_DECOMPOSED:
            U = U.take(np.sort(np.argsort(-U.variance, kind="stable")[:MAX_DECOMPOSED]))
        if least is not None:
            return cls._on(U, weight, least)
        base = cls._on(U, weight, MAX_LEAST)
        return replace(base, least=min(base.least, LEAST_PER_ROW * base.total))

    @classmethod
    def _on(cls, U: BaseTerms, weight: Floats, least: float) -> RidgeBase:
        n_rows, total = map(float, workers().sum(float(len(weight)), weight.sum()))
        if U.n_columns > n_rows and not workers().is_single:
            fault = "a ridge base with more columns than rows is not supported on several workers"
            cure = "Use base='zero', or train on one machine"
            raise ValueError(f"{U.n_columns} numeric columns for {n_rows:.0f} rows: {fault}. {cure}.")
        vectors, values = _spectrum(U, weight, wide=U.n_columns > n_rows)
        return cls(U, weight, n_rows, total, vectors, values, least * float(values.sum()) / max(U.n_columns, 1))

    def fit(self, target: Floats, reg_lambda: float | None = None) -> Leaves:
        """Fit a target, (rows, outputs), for all outputs at once, and return the leaves of ``U.trees``.

        The penalty applies to the standardised weights, not to the constant; None chooses it by cross-validation.
        """
        # Columns of U have mean 0, so the constant is the mean of the target, and the weights are those of the centred
        # target: with W^(1/2) U = P S V', V (S^2 + lambda)^-1 V' U' W y (Linear Regression at Leaves, w*).
        mean = self._mean(target)
        along = self._along(target - mean)
        if reg_lambda is None:
            reg_lambda = self._penalty(target - mean, along)
        shrunk = _divided(np.ones_like(self.values), self.values + reg_lambda)
        return self.U.leaves_for(mean, self._slopes(shrunk[:, None] * along))

    def minimise(self, loss: LossOfFit, hess: Floats, reg_lambda: float | None = None) -> Leaves:
        """Fit all outputs to a loss other than the squared error, and return the leaves of ``U.trees``.

        ``loss(fit) -> (value, gradient)`` returns the weighted sum over the worker's rows and its derivative,
        (rows, outputs); `hess`, (rows, outputs), has the weighted second derivatives at a fit of 0. The penalty is that
        of `fit` in units of the mean second derivative. The constant has a light penalty, that of one row, so that it
        is finite if a class is absent.
        """
        # L-BFGS in the directions V, in which the penalty is diagonal, from a fit of 0.
        n_rows, n_outputs = hess.shape
        _, grad = loss(np.zeros((n_rows, n_outputs)))
        curvature = float(workers().sum(hess.mean(axis=1).sum())[0] / self.total)
        if reg_lambda is None:
            # Cross-validation needs squared errors: the negative gradient of each row is the target.
            target = _divided(-grad, self.weight[:, None])
            centred = target - self._mean(target)
            reg_lambda = self._penalty(centred, self._along(centred))
        sizes = np.concatenate([[self.total], self.values])
        penalty = curvature * np.concatenate([[1.0], np.full(len(self.values), reg_lambda)])
        # 1 / sqrt of the diagonal of the Hessian at 0: in these units all directions have about the same curvature.
        unit = 1.0 / np.sqrt(curvature * sizes + penalty)

        def objective(flat: Floats) -> tuple[float, Floats]:
            along = unit[:, None] * flat.reshape(-1, n_outputs)
            value, grad = loss(along[0] + self.U.times(self._slopes(along[1:])))
            value, constant = workers().sum(value, grad.sum(0))
            slope = np.concatenate([constant[None], self._moment(grad)]) + penalty[:, None] * along
            return value + float(penalty @ np.square(along).sum(1)) / 2, (unit[:, None] * slope).ravel()

        start = np.zeros(len(sizes) * n_outputs)
        best = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": LBFGS_STEPS}).x
        along = unit[:, None] * best.reshape(-1, n_outputs)
        return self.U.leaves_for(along[0], self._slopes(along[1:]))

    def _mean(self, target: Floats) -> Floats:
        """Return the weighted mean of each output."""
        [total] = workers().sum(self.weight @ target)
        return np.asarray(total / self.total)

    def _moment(self, grad: Floats) -> Floats:
        """Return the moments of weighted gradients along the directions, (rank, outputs).

        If columns outnumber rows, ``vectors`` are those of the rows: ``V' U' g = S Q' (g / sqrt(weight))``.
        """
        if self._wide:
            halves = _divided(grad, np.sqrt(self.weight)[:, None])
            return np.sqrt(self.values)[:, None] * (self.vectors.T @ halves)
        [moment] = workers().sum(self.U.moment(grad))
        return np.asarray(self.vectors.T @ moment)

    def _slopes(self, along: Floats) -> Floats:
        """Return the weights of the columns, (columns, outputs), from weights along the directions."""
        # V = U' W^(1/2) Q / S from the vectors Q of the rows.
        if self._wide:
            halves = self.vectors @ (along / np.sqrt(self.values)[:, None])
            return self.U.moment(np.sqrt(self.weight)[:, None] * halves)
        return self.vectors @ along

    @property
    def _wide(self) -> bool:
        """Return whether columns outnumber rows."""
        return self.U.n_columns > self.n_rows

    def _along(self, centred: Floats) -> Floats:
        """Return the weighted moments of centred targets along the directions, (rank, outputs)."""
        return self._moment(self.weight[:, None] * centred)

    def _penalty(self, centred: Floats, along: Floats) -> float:
        """Return the penalty for the centred targets by generalised cross-validation."""
        square, counted = workers().sum(self.weight @ np.square(centred).sum(1), float(np.count_nonzero(self.weight)))
        # a weight of 2 counts as two rows; if weights sum to less than their number, each row counts as one
        n_rows = max(self.total, float(counted))
        return max(self.least, _by_gcv(self.values, np.square(along).sum(1), float(square), n_rows))


def _divided(values: Floats, by: Floats) -> Floats:
    """Return the quotients, 0 where `by` is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(by > 0, values / by, 0.0)


def _spectrum(U: BaseTerms, weight: Floats, *, wide: bool) -> tuple[Floats, Floats]:
    """Return singular vectors, (shorter side, rank), and squared singular values, (rank,), of ``sqrt(weight) U``.

    They are the eigenvectors and eigenvalues of the smaller of ``U' W U`` and, if `wide`, ``sqrt(W) U U' sqrt(W)``.
    """
    n_rows, n_columns = len(weight), U.n_columns
    if n_columns == 0:
        return np.empty((0, 0)), np.empty(0)
    # Sum of products of blocks, as U itself is too large to store.
    gram = np.zeros((n_rows if wide else n_columns,) * 2)
    if wide:
        for columns in row_blocks(0, n_columns, n_rows):
            part = U.block(slice(0, n_rows), columns) * np.sqrt(weight)[:, None]
            gram += part @ part.T
    else:
        for rows in row_blocks(0, n_rows, n_columns):
            part = U.block(rows)
            gram += part.T @ (weight[rows, None] * part)
        [gram] = workers().sum(gram)
    values, vectors = eigh(gram)
    keep = values > 1e-12 * max(values[-1], 0.0)  # the others are rounding errors of the products
    return vectors[:, keep], values[keep]


def _by_gcv(values: Floats, along: Floats, square: float, n_rows: float) -> float:
    """Return the penalty with the least generalised cross-validation score (Golub, Heath and Wahba 1979).

    The score is ``residual(lambda) / (1 - df(lambda) / n)^2``. Of moments a_i and sums of squares v_i, the residual is
    ``|y|^2 - sum a_i^2 / v_i + sum (a_i^2 / v_i) (lambda / (v_i + lambda))^2``, and the degrees of freedom are
    ``df = 1 + sum v_i / (v_i + lambda)``, with 1 for the constant. `values` are the v_i, (rank,), `along` the a_i^2
    summed over outputs, (rank,), and `square` is |y|^2 of the centred targets.
    """
    if len(values) == 0:
        return 1.0
    grid = values.max() * np.logspace(-9, 2, 45)
    shrunk = grid[:, None] / (values + grid[:, None])  # share of each direction that the penalty removes
    explained = along / values
    spare = max(n_rows - 1 - len(values), 0)
    # Without spare dimensions (more columns than rows), residual and degrees of freedom vanish with the penalty, and
    # only their ratio matters, so neither may be computed as a difference of large numbers.
    outside = max(square - explained.sum(), 0.0) if spare else 0.0
    residual = outside + (explained * shrunk**2).sum(1)
    freedom = (spare + shrunk.sum(1)) / n_rows
    return float(grid[np.argmin(residual / freedom**2)])
