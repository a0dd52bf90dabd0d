"""Ridge regression in the leaves of a tree, from sums over rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from boostbp.trees import kernels
from boostbp.trees.basis import Basis
from boostbp.trees.tree import Tree

__all__ = ["LeafModel", "LeafRanges", "LeafSums", "Paths", "Ridge", "fit_leaves", "solve"]

Floats = NDArray[np.float64]
Additive = TypeVar("Additive", "LeafRanges", "LeafSums")
BLOCK_ROWS = 1 << 16  # rows per block; fixed, so that sums do not depend on the number of threads


@dataclass(frozen=True, slots=True)
class Ridge:
    """How a leaf regression is penalised.

    Attributes
    ----------
    reg_lambda : float
        Strength: ``w = (sum h phi phi' + reg_lambda I)^-1 sum h phi y``, the paper's printed solution.
    penalize_constant : bool
        Whether the constant term is penalised too, as in the paper.
    standardize : bool
        Penalise the weights of path features centred and scaled in their leaf (True), so that the
        model does not depend on the units of the input, or the weights in these units (False, the paper).
    """

    reg_lambda: float = 1.0
    penalize_constant: bool = True
    standardize: bool = True

    @property
    def flat_scale(self) -> float:
        """Inverse scale of a column that is constant in its leaf; see `LeafRanges.frame`.

        In the user's units such a column shares the weight of the constant term.
        """
        return 0.0 if self.standardize else 1.0

    def units(self, frame: Floats) -> tuple[Floats, Floats, Floats]:
        """Centre, scale and stand-in for missing values, in which sums are taken; see `LeafSums.of`.

        The paper's penalty needs sums in the user's units; the weights are then moved into the frame.
        """
        if self.standardize:
            return frame[:, 0].copy(), frame[:, 1].copy(), np.zeros(len(frame))
        return np.zeros(len(frame)), np.ones(len(frame)), frame[:, 0].copy()


@dataclass(frozen=True, slots=True)
class Paths:
    """Which columns the regression of each leaf of a tree reads.

    Attributes
    ----------
    start : (leaves + 1,) int32
    column : (start[-1],) int32
        Leaf ``l`` reads ``column[start[l]:start[l + 1]]``.
    degree : int
        1 or 2: the highest power of a column.
    """

    start: NDArray[np.int32]
    column: NDArray[np.int32]
    degree: int

    @classmethod
    def of(cls, tree: Tree, basis: Basis) -> Paths:
        """The numeric path features of each leaf, expanded by the basis."""
        start, features = tree.path_features()
        per_feature = basis.columns_per_feature
        if per_feature > 1:
            start = start * np.int32(per_feature)
            features = (features[:, None] * per_feature + np.arange(per_feature)).ravel().astype(np.int32)
        return cls(start, features, basis.degree)

    @classmethod
    def everywhere(cls, columns: NDArray[np.int32]) -> Paths:
        """One leaf that reads all of `columns`: a plain linear regression."""
        return cls(np.array([0, len(columns)], np.int32), np.ascontiguousarray(columns, np.int32), 1)

    @property
    def n_terms(self) -> NDArray[np.int64]:
        """Number of terms of each leaf, (leaves,)."""
        return 1 + self.degree * np.diff(self.start).astype(np.int64)


@dataclass(frozen=True, slots=True)
class LeafRows:
    """The rows of one block of the input, grouped by leaf."""

    first: int
    start: NDArray[np.int64]
    order: NDArray[np.int32]

    @classmethod
    def blocks(cls, leaf: NDArray[np.int32], n_leaves: int) -> list[LeafRows]:
        """Group all rows, in blocks of `BLOCK_ROWS`."""
        return [
            cls(first, *kernels.group_rows(leaf[first : first + BLOCK_ROWS], n_leaves))
            for first in range(0, len(leaf), BLOCK_ROWS)
        ]


@dataclass(frozen=True, slots=True)
class LeafRanges:
    """Range and weighted mean of each path column of each leaf; additive over rows.

    Attributes
    ----------
    values : (path columns, 4) float64
        Smallest value, largest value, sum of ``hess * z``, sum of `hess`; missing values left out.
    """

    values: Floats

    @classmethod
    def of(cls, rows: LeafRows, paths: Paths, Z: Floats, hess: Floats) -> LeafRanges:
        """Ranges over one block of rows."""
        return cls(kernels.leaf_ranges(rows.start, rows.order, rows.first, paths.start, paths.column, Z, hess))

    def __add__(self, other: LeafRanges) -> LeafRanges:
        a, b = self.values, other.values
        values = a + b
        np.minimum(a[:, 0], b[:, 0], out=values[:, 0])
        np.maximum(a[:, 1], b[:, 1], out=values[:, 1])
        return LeafRanges(values)

    def frame(self, *, flat_scale: float = 0.0) -> Floats:
        """Centre, inverse scale, lower and upper bound of each path column, (path columns, 4).

        ``u = (z - centre) * inverse scale`` has mean 0 and largest size 1. A column that is
        constant in its leaf or always missing there has inverse scale `flat_scale` (0: it is left
        out, ``u = 0``). A column too wide for float64 has ``u = 0``.
        """
        return kernels.frames(self.values, flat_scale)


@dataclass(frozen=True, slots=True)
class LeafSums:
    """Normal equations of each leaf; additive over rows, so blocks, threads and machines are one operation.

    Attributes
    ----------
    gram : (sum of terms^2,) float64
        ``sum h phi phi'`` of each leaf (lower triangle), one after the other.
    moment : (sum of terms * outputs,) float64
        ``-sum phi grad'`` of each leaf, (terms, outputs).
    n_outputs : int
    """

    gram: Floats
    moment: Floats
    n_outputs: int

    @classmethod
    def of(
        cls,
        rows: LeafRows,
        paths: Paths,
        Z: Floats,
        grad: Floats,
        hess: Floats,
        center: Floats,
        scale: Floats,
        fill: Floats,
    ) -> LeafSums:
        """Sums over one block of rows.

        Parameters
        ----------
        grad : (all rows, outputs), best in Fortran order; hess : (all rows,)
        center, scale, fill : (path columns,)
            ``u = (z - center) * scale``, or `fill` where z is missing.
        """
        gram, moment = kernels.leaf_sums(
            rows.start, rows.order, rows.first, paths.start, paths.column, Z, center, scale, fill, paths.degree,
            np.ascontiguousarray(grad.T), hess,
        )  # fmt: skip
        return cls(gram, moment, grad.shape[1])

    def __add__(self, other: LeafSums) -> LeafSums:
        return LeafSums(self.gram + other.gram, self.moment + other.moment, self.n_outputs)


@dataclass(frozen=True, slots=True)
class LeafModel:
    """The regressions of all leaves of one tree.

    Attributes
    ----------
    paths : Paths
    frame : (path columns, 4) float64
        See `LeafRanges.frame`.
    weight : (sum of terms * outputs,) float64
        Per leaf (terms, outputs), in units of ``u``; shrinkage included.
    n_outputs : int
    fallback : (leaves,) float64
        Value of a row that misses a path column; NaN where such a column counts as the leaf's mean.
    """

    paths: Paths
    frame: Floats
    weight: Floats
    n_outputs: int
    fallback: Floats

    def leaves(self, first_output: int = 0) -> kernels.Leaves:
        """The regressions as a forest of one tree, for the kernels."""
        n_leaves = len(self.paths.start) - 1
        weight_start = np.zeros(n_leaves + 1, np.int64)
        np.cumsum(self.paths.n_terms * self.n_outputs, out=weight_start[1:])
        return kernels.Leaves(
            np.array([0, n_leaves]), np.array([[first_output, self.n_outputs]]), np.array([self.paths.degree]),
            self.paths.start.astype(np.int64), self.paths.column, self.frame, weight_start, self.weight, self.fallback,
        )  # fmt: skip

    def add_to(self, out: Floats, leaf: NDArray[np.int32], Z: Floats) -> None:
        """Add the values of training rows, whose leaves are known, to `out`, (rows, outputs)."""
        kernels.evaluate(self.leaves(), leaf[None], Z, False, 0, len(Z), out)

    def coefficients(self, leaf: int) -> Floats:
        """Weights of one leaf in the user's units, (terms, outputs): constant, columns, squares of columns."""
        begin, end = self.paths.start[leaf], self.paths.start[leaf + 1]
        terms = self.paths.n_terms
        first = int((terms[:leaf] * self.n_outputs).sum())
        w = self.weight[first : first + terms[leaf] * self.n_outputs].reshape(-1, self.n_outputs)
        center, scale = self.frame[begin:end, 0][:, None], self.frame[begin:end, 1][:, None]
        k = end - begin
        shift = center * scale
        with np.errstate(over="ignore"):  # a weight may exceed float64 in the user's units
            linear, square = w[1 : 1 + k], w[1 + k :] if self.paths.degree == 2 else np.zeros((k, self.n_outputs))
            constant = w[0] - (linear * shift).sum(0) + (square * shift**2).sum(0)
            parts = [constant[None], (linear - 2 * square * shift) * scale, square * scale * scale]
        return np.concatenate(parts[: 1 + self.paths.degree])


def solve(sums: LeafSums, paths: Paths, ridge: Ridge, learning_rate: float = 1.0) -> Floats:
    """Ridge weights of each leaf from its sums, shape as ``sums.moment``, times `learning_rate`.

    A term that the others of its leaf determine gets weight 0 (a leaf with fewer rows than terms,
    a constant or repeated column, with ``reg_lambda=0``).
    """
    return kernels.solve_leaves(
        paths.start, paths.degree, sums.n_outputs, sums.gram, sums.moment,
        ridge.reg_lambda, ridge.penalize_constant, learning_rate,
    )  # fmt: skip


def fit_leaves(
    leaf: NDArray[np.int32],
    paths: Paths,
    Z: Floats,
    grad: Floats,
    hess: Floats,
    ridge: Ridge,
    learning_rate: float = 1.0,
) -> LeafModel:
    """Fit the regression of every leaf of a tree to ``-grad / hess`` with weights `hess`.

    Parameters
    ----------
    leaf : (rows,) int32
        Leaf of each row.
    Z : (rows, columns) float64
        The columns of the basis.
    grad : (rows, outputs) float64
    hess : (rows,) float64
    """
    grad = np.asfortranarray(grad)
    blocks = LeafRows.blocks(leaf, len(paths.start) - 1)
    ranges = _total(LeafRanges.of(rows, paths, Z, hess) for rows in blocks)
    frame = ranges.frame(flat_scale=ridge.flat_scale)
    units = ridge.units(frame)
    sums = _total(LeafSums.of(rows, paths, Z, grad, hess, *units) for rows in blocks)
    weight = solve(sums, paths, ridge, learning_rate)
    if not ridge.standardize:
        kernels.move_to_frame(paths.start, paths.degree, sums.n_outputs, frame, weight)
    return LeafModel(paths, frame, weight, sums.n_outputs, np.full(len(paths.start) - 1, np.nan))


def _total(parts: Iterator[Additive]) -> Additive:
    return reduce(add, parts)
