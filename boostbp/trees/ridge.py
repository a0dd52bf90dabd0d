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
from boostbp.trees.kernels import Leaves
from boostbp.trees.kernels.records import CENTER, INV_SCALE
from boostbp.trees.leaf_rows import LeafRows

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
        Whether to penalise the weights of path features that are centred and scaled in their leaf. The model then does
        not depend on the units of the input. False penalises the weights in these units, as in the paper.
    """

    reg_lambda: float = 1.0
    penalize_constant: bool = True
    standardize: bool = True

    @property
    def flat_scale(self) -> float:
        """Return the inverse scale of a column that is constant in its leaf; see `LeafRanges.scaling`.

        Without standardisation such a column shares the weight of the constant term.
        """
        return 0.0 if self.standardize else 1.0

    def units(self, scaling: Floats) -> tuple[Floats, Floats, Floats]:
        """Return centre, scale and value of missing cells for `LeafSums.of`, (path columns,) each.

        The paper penalises weights in the user's units: then sums are taken in these (centre 0, scale 1), and
        `kernels.scale_weights` rewrites the solution. In both cases a missing value counts as the leaf's mean.
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
    def of(cls, rows: LeafRows, leaves: Leaves, hess: Floats) -> LeafRanges:
        """Return the ranges over one block of the rows of a tree."""
        values = np.empty((len(leaves.column), 4))
        kernels.leaf_ranges(rows.start, rows.order, rows.first, leaves.start, rows.values, hess, values)
        return cls(values)

    def __add__(self, other: LeafRanges) -> LeafRanges:
        a, b = self.values, other.values
        values = a + b
        np.minimum(a[:, 0], b[:, 0], out=values[:, 0])
        np.maximum(a[:, 1], b[:, 1], out=values[:, 1])
        return LeafRanges(values)

    @staticmethod
    def over_workers(ranges: Sequence[LeafRanges]) -> list[LeafRanges]:
        """Return the ranges of some trees over the rows of all workers; one message for ends, one for sums."""
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

        ``u = (z - centre) * inverse scale`` has mean 0 and largest size 1, so that one penalty suits all columns, and
        all terms have sums of squares of similar size. A column that is constant in its leaf, or always missing there,
        gets the inverse scale `flat_scale`; with 0 it is left out, ``u = 0``, as is a column too wide for float64.
        """
        scaling = np.empty_like(self.values)
        kernels.scalings(self.values, flat_scale, scaling)
        return scaling


@dataclass(frozen=True, slots=True)
class LeafSums:
    """Normal equations of each leaf; additive over rows, so that blocks, threads and workers are one operation.

    Attributes
    ----------
    gram : (sum of terms^2,) float64
        ``sum h phi phi'`` of each leaf (lower triangle), one leaf after the other.
    moment : (sum of terms * outputs,) float64
        ``-sum phi grad'`` of each leaf, (terms, outputs).
    """

    gram: Floats
    moment: Floats
    n_outputs: int

    @classmethod
    def of(
        cls, rows: LeafRows, leaves: Leaves, grad: Floats, hess: Floats, center: Floats, scale: Floats, fill: Floats
    ) -> LeafSums:
        """Return the sums over one block of the rows of a tree.

        Parameters
        ----------
        grad : (outputs, all rows) float64, C-contiguous; hess : (all rows,)
        center, scale, fill : (path columns,)
            ``u = (z - center) * scale``, or `fill` where z is missing.
        """
        [degree] = leaves.tree_degree.tolist()
        terms = 1 + degree * np.diff(leaves.start)
        gram, moment = np.zeros(terms @ terms), np.zeros(terms.sum() * len(grad))
        kernels.leaf_sums(
            rows.start, rows.order, rows.first, leaves.start, rows.values, center, scale, fill, degree, grad, hess,
            gram, moment,
        )  # fmt: skip
        return cls(gram, moment, len(grad))

    def __add__(self, other: LeafSums) -> LeafSums:
        return LeafSums(self.gram + other.gram, self.moment + other.moment, self.n_outputs)

    @staticmethod
    def over_workers(sums: Sequence[LeafSums]) -> list[LeafSums]:
        """Return the sums of some trees over the rows of all workers, in one message."""
        totals = iter(workers().sum(*(array for part in sums for array in (part.gram, part.moment))))
        return [LeafSums(next(totals), next(totals), part.n_outputs) for part in sums]


def solve(sums: LeafSums, leaves: Leaves, ridge: Ridge, learning_rate: float = 1.0) -> Floats:
    """Return the ridge weights of each leaf of a tree, shape as ``sums.moment``, times `learning_rate`.

    ``w = (sum h phi phi' + reg_lambda I)^-1 (-sum phi grad')``, the paper's solution for the target ``-grad / h``.

    With ``reg_lambda=0``, a term that the others of its leaf determine gets weight 0: a constant or repeated column, or
    a term too many for the rows of the leaf.
    """
    weight, [degree] = sums.moment.copy(), leaves.tree_degree.tolist()
    kernels.solve_leaves(
        leaves.start, degree, sums.n_outputs, sums.gram, weight, ridge.reg_lambda, ridge.penalize_constant,
        learning_rate,
    )  # fmt: skip
    return weight


@dataclass(frozen=True, slots=True)
class TreeRows:
    """The rows of a tree and the gradients that its regressions are fitted to.

    Attributes
    ----------
    blocks : sequence of LeafRows
        All rows, grouped by leaf.
    leaves : Leaves
        Of the tree; their scalings and weights are not read.
    grad : (outputs, rows) float64, C-contiguous
    hess : (rows,) float64
    nodes : kernels.Nodes or None
        Splits of the tree, if it must be monotone.
    """

    blocks: Sequence[LeafRows]
    leaves: Leaves
    grad: Floats
    hess: Floats
    nodes: kernels.Nodes | None = None


def fit_together(
    trees: Sequence[TreeRows],
    ridge: Ridge,
    learning_rate: float = 1.0,
    n_threads: int = 1,
    sign: NDArray[np.int64] = NOT_MONOTONE,
) -> list[Leaves]:
    """Return the fitted leaves of some trees; their sums over the workers of a group share one message.

    Sums over blocks of rows are added in the order of the blocks, for any number of threads, and then over the workers.

    Parameters
    ----------
    n_threads : int
        Threads over blocks.
    sign : (features,) int64
        Of monotone trees; see `kernels.solve_monotone`.
    """
    weights = [drop_unit_weights(tree.hess) for tree in trees]

    def ranges_of(tree: TreeRows, hess: Floats) -> LeafRanges:
        parts = threads.parallel_map(lambda rows: LeafRanges.of(rows, tree.leaves, hess), tree.blocks, n_threads)
        return reduce(add, parts)

    ranges = LeafRanges.over_workers([ranges_of(tree, hess) for tree, hess in zip(trees, weights, strict=True)])
    scalings = [part.scaling(flat_scale=ridge.flat_scale) for part in ranges]

    def sums_of(tree: TreeRows, hess: Floats, scaling: Floats) -> LeafSums:
        units = ridge.units(scaling)
        parts = threads.parallel_map(
            lambda rows: LeafSums.of(rows, tree.leaves, tree.grad, hess, *units), tree.blocks, n_threads
        )
        return reduce(add, parts)

    sums = LeafSums.over_workers([sums_of(*parts) for parts in zip(trees, weights, scalings, strict=True)])
    return [
        tree.leaves._replace(scaling=scaling, weight=_weight(tree, scaling, part, ridge, learning_rate, sign))
        for tree, scaling, part in zip(trees, scalings, sums, strict=True)
    ]


def _weight(
    tree: TreeRows, scaling: Floats, sums: LeafSums, ridge: Ridge, learning_rate: float, sign: NDArray[np.int64]
) -> Floats:
    """Return the weights of the leaves of a tree, which is monotone if `sign` has a number for each feature."""
    leaves, [degree] = tree.leaves, tree.leaves.tree_degree.tolist()
    if len(sign):
        weight = sums.moment.copy()
        kernels.solve_monotone(
            tree.nodes, 0, sign, leaves.start, leaves.column, degree, scaling, sums.gram, weight, ridge.reg_lambda,
            ridge.penalize_constant, learning_rate,
        )  # fmt: skip
        return weight
    weight = solve(sums, leaves, ridge, learning_rate)
    if not ridge.standardize:
        kernels.scale_weights(leaves.start, degree, sums.n_outputs, scaling, weight)
    return weight


def drop_unit_weights(hess: Floats) -> Floats:
    """Return an empty array in place of ones: the kernels then leave the products out."""
    return hess[:0] if (hess == 1.0).all() else hess
