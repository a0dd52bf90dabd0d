"""Ridge regression in the leaves of a tree, from sums over rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime import threads
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees import kernels
from boostbp.trees.kernels.records import CENTER, INV_SCALE
from boostbp.trees.leaves import LeafColumns, LeafModel, LeafRows

NOT_MONOTONE = np.empty(0, np.int64)


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
        """Return the inverse scale of a column that is constant in its leaf; see `LeafRanges.scaling`.

        In the user's units such a column shares the weight of the constant term.
        """
        return 0.0 if self.standardize else 1.0

    def units(self, scaling: Floats) -> tuple[Floats, Floats, Floats]:
        """Return centre, scale and value for missing ones, (path columns,) each, for the sums; see `LeafSums.of`.

        The paper penalises weights in the user's units, so its sums are taken in them (centre 0, scale 1), and
        `kernels.scale_weights` rewrites the solution. A missing value is the leaf's mean in either.
        """
        if self.standardize:
            return scaling[:, CENTER].copy(), scaling[:, INV_SCALE].copy(), np.zeros(len(scaling))
        return np.zeros(len(scaling)), np.ones(len(scaling)), scaling[:, CENTER].copy()


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
    def of(cls, rows: LeafRows, paths: LeafColumns, hess: Floats) -> LeafRanges:
        """Return the ranges over one block of rows."""
        values = np.empty((len(paths.column), 4))
        kernels.leaf_ranges(rows.start, rows.order, rows.first, paths.start, rows.values, hess, values)
        return cls(values)

    def __add__(self, other: LeafRanges) -> LeafRanges:
        a, b = self.values, other.values
        values = a + b
        np.minimum(a[:, 0], b[:, 0], out=values[:, 0])
        np.maximum(a[:, 1], b[:, 1], out=values[:, 1])
        return LeafRanges(values)

    @staticmethod
    def over_workers(ranges: Sequence[LeafRanges]) -> list[LeafRanges]:
        """Return the ranges of some trees over the rows of all workers, in one message each for ends and sums."""
        group = workers()
        if group.is_single:
            return list(ranges)
        ends = group.max(*(np.stack([-part.values[:, 0], part.values[:, 1]], axis=1) for part in ranges))
        sums = group.sum(*(part.values[:, 2:] for part in ranges))
        return [
            LeafRanges(np.column_stack([-end[:, 0], end[:, 1], total])) for end, total in zip(ends, sums, strict=True)
        ]

    def scaling(self, *, flat_scale: float = 0.0) -> Floats:
        """Return centre, inverse scale, lower and upper bound of each path column, (path columns, 4).

        ``u = (z - centre) * inverse scale`` has mean 0 and largest size 1, so that one penalty suits all columns
        and the sums of squares of all terms are of one size. A column that is
        constant in its leaf or always missing there has inverse scale `flat_scale` (0: it is left
        out, ``u = 0``). A column too wide for float64 has ``u = 0``.
        """
        scaling = np.empty_like(self.values)
        kernels.scalings(self.values, flat_scale, scaling)
        return scaling


@dataclass(frozen=True, slots=True)
class LeafSums:
    """Normal equations of each leaf; additive over rows, so blocks, threads and machines are one operation.

    Attributes
    ----------
    gram : (sum of terms^2,) float64
        ``sum h phi phi'`` of each leaf (lower triangle), one after the other.
    moment : (sum of terms * outputs,) float64
        ``-sum phi grad'`` of each leaf, (terms, outputs).
    """

    gram: Floats
    moment: Floats
    n_outputs: int

    @classmethod
    def of(
        cls, rows: LeafRows, paths: LeafColumns, grad: Floats, hess: Floats, center: Floats, scale: Floats, fill: Floats
    ) -> LeafSums:
        """Return the sums over one block of rows.

        Parameters
        ----------
        grad : (outputs, all rows) float64, C-contiguous; hess : (all rows,)
        center, scale, fill : (path columns,)
            ``u = (z - center) * scale``, or `fill` where z is missing.
        """
        terms = paths.n_terms
        gram, moment = np.zeros(terms @ terms), np.zeros(terms.sum() * len(grad))
        kernels.leaf_sums(
            rows.start, rows.order, rows.first, paths.start, rows.values, center, scale, fill, paths.degree,
            grad, hess, gram, moment,
        )  # fmt: skip
        return cls(gram, moment, len(grad))

    def __add__(self, other: LeafSums) -> LeafSums:
        return LeafSums(self.gram + other.gram, self.moment + other.moment, self.n_outputs)

    @staticmethod
    def over_workers(sums: Sequence[LeafSums]) -> list[LeafSums]:
        """Return the sums of some trees over the rows of all workers, in one message."""
        totals = iter(workers().sum(*(array for part in sums for array in (part.gram, part.moment))))
        return [LeafSums(next(totals), next(totals), part.n_outputs) for part in sums]


def solve(sums: LeafSums, paths: LeafColumns, ridge: Ridge, learning_rate: float = 1.0) -> Floats:
    """Return the ridge weights of each leaf, shape as ``sums.moment``, times `learning_rate`.

    ``w = (sum h phi phi' + reg_lambda I)^-1 (-sum phi grad')``, the paper's solution for the target ``-grad / h``.

    A term that the others of its leaf determine gets weight 0 (a leaf with fewer rows than terms,
    a constant or repeated column, with ``reg_lambda=0``).
    """
    weight = sums.moment.copy()
    kernels.solve_leaves(
        paths.start, paths.degree, sums.n_outputs, sums.gram, weight, ridge.reg_lambda, ridge.penalize_constant,
        learning_rate,
    )  # fmt: skip
    return weight


@dataclass(frozen=True, slots=True)
class TreeRows:
    """The rows of a tree, and what its regressions are fitted to.

    Attributes
    ----------
    blocks : sequence of LeafRows
        All rows, grouped by leaf.
    grad : (outputs, rows) float64, C-contiguous
    hess : (rows,) float64
    nodes : kernels.Nodes or None
        Splits of the tree, if it must be monotone.
    """

    blocks: Sequence[LeafRows]
    paths: LeafColumns
    grad: Floats
    hess: Floats
    nodes: kernels.Nodes | None = None


def fit_rows(
    blocks: Sequence[LeafRows],
    paths: LeafColumns,
    grad: Floats,
    hess: Floats,
    ridge: Ridge,
    learning_rate: float = 1.0,
    n_threads: int = 1,
) -> LeafModel:
    """Fit the regression of every leaf of a tree to ``-grad / hess`` with weights `hess`; see `fit_together`."""
    [model] = fit_together([TreeRows(blocks, paths, grad, hess)], ridge, learning_rate, n_threads)
    return model


def fit_together(
    trees: Sequence[TreeRows],
    ridge: Ridge,
    learning_rate: float = 1.0,
    n_threads: int = 1,
    sign: NDArray[np.int64] = NOT_MONOTONE,
) -> list[LeafModel]:
    """Fit the regressions of some trees, whose sums over the workers of a group travel together.

    Sums over blocks of rows are added in their order, whatever the number of threads, and then over the workers.

    Parameters
    ----------
    n_threads : int
        Threads over blocks.
    sign : (features,) int64
        Of monotone trees; see `kernels.solve_monotone`.
    """
    weights = [drop_unit_weights(tree.hess) for tree in trees]

    def ranges_of(tree: TreeRows, hess: Floats) -> LeafRanges:
        parts = threads.parallel_map(lambda rows: LeafRanges.of(rows, tree.paths, hess), tree.blocks, n_threads)
        return reduce(add, parts)

    ranges = LeafRanges.over_workers([ranges_of(tree, hess) for tree, hess in zip(trees, weights, strict=True)])
    scalings = [part.scaling(flat_scale=ridge.flat_scale) for part in ranges]

    def sums_of(tree: TreeRows, hess: Floats, scaling: Floats) -> LeafSums:
        units = ridge.units(scaling)
        parts = threads.parallel_map(
            lambda rows: LeafSums.of(rows, tree.paths, tree.grad, hess, *units), tree.blocks, n_threads
        )
        return reduce(add, parts)

    sums = LeafSums.over_workers([sums_of(*parts) for parts in zip(trees, weights, scalings, strict=True)])
    return [
        _solved(tree, scaling, part, ridge, learning_rate, sign)
        for tree, scaling, part in zip(trees, scalings, sums, strict=True)
    ]


def _solved(
    tree: TreeRows, scaling: Floats, sums: LeafSums, ridge: Ridge, learning_rate: float, sign: NDArray[np.int64]
) -> LeafModel:
    paths = tree.paths
    if len(sign):
        weight = sums.moment.copy()
        kernels.solve_monotone(
            tree.nodes, 0, sign, paths.start, paths.column, paths.degree, scaling, sums.gram, weight, ridge.reg_lambda,
            ridge.penalize_constant, learning_rate,
        )  # fmt: skip
        return LeafModel(paths, scaling, weight, sums.n_outputs)
    weight = solve(sums, paths, ridge, learning_rate)
    if not ridge.standardize:
        kernels.scale_weights(paths.start, paths.degree, sums.n_outputs, scaling, weight)
    return LeafModel(paths, scaling, weight, sums.n_outputs)


def drop_unit_weights(hess: Floats) -> Floats:
    """Return an empty array in place of ones, as the kernels expect it: they then leave the products out."""
    return hess[:0] if (hess == 1.0).all() else hess
