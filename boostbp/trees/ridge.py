"""Ridge regressions in the leaves of the trees of a round, from sums over rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from boostbp import core
from boostbp.core import CENTER, INV_SCALE, LeafRows, Leaves
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.leaves import (
    take_leaves,
)
from boostbp.trees.tree import Parts


@dataclass(frozen=True, slots=True)
class Ridge:
    """Penalty of a leaf regression."""

    # strength: ``w = (sum h phi phi' + reg_lambda I)^-1 sum h phi y``, the paper's printed solution
    reg_lambda: float = 1.0
    penalize_constant: bool = True  # whether the constant term is penalised too, as in the paper
    # Whether to penalise the weights of path features that are centred and scaled in their leaf, so that the model does
    # not depend on the units of the input. False penalises the weights in the user's units, as in the paper.
    standardize: bool = True

    def units(self, scaling: Floats) -> Floats:
        """Return centre, inverse scale and ``u`` of missing values of each path column, (3, path columns).

        Without `standardize`, sums are in the user's units (centre 0, scale 1), and `core.scale_weights` converts the
        solution. In both cases a missing value counts as the leaf's mean.
        """
        zeros, ones = np.zeros(len(scaling)), np.ones(len(scaling))
        if self.standardize:
            return np.stack([scaling[:, CENTER], scaling[:, INV_SCALE], zeros])
        return np.stack([zeros, ones, scaling[:, CENTER]])


@dataclass(frozen=True, slots=True)
class LeafRanges:
    """Range and weighted mean of each path column of each leaf; additive over rows."""

    # (path columns, 4): smallest value, largest value, sum of ``hess * z``, sum of `hess`; missing values left out
    values: Floats

    @classmethod
    def of(cls, rows: LeafRows, leaves: Leaves, hess: Floats) -> LeafRanges:
        """Return the ranges over one block of the rows of a tree."""
        values = np.empty((len(leaves.column), 4))
        core.leaf_ranges(rows, hess, values)
        return cls(values)

    def __add__(self, other: LeafRanges) -> LeafRanges:
        # Two columns are a minimum and a maximum, the other two are sums.
        a, b = self.values, other.values
        values = a + b
        np.minimum(a[:, 0], b[:, 0], out=values[:, 0])
        np.maximum(a[:, 1], b[:, 1], out=values[:, 1])
        return LeafRanges(values)

    @staticmethod
    def over_workers(ranges: Sequence[LeafRanges]) -> list[LeafRanges]:
        """Return the ranges of some trees over the rows of all workers, with one message for ends and one for sums."""
        group = workers()
        if group.is_single:
            return list(ranges)
        # The minimum is the negative of the largest negative value.
        ends = group.max(*(part.values[:, :2] * [-1.0, 1.0] for part in ranges))
        sums = group.sum(*(part.values[:, 2:] for part in ranges))
        return [LeafRanges(np.hstack([end * [-1.0, 1.0], total])) for end, total in zip(ends, sums, strict=True)]

    def scaling(self, *, flat_scale: float = 0.0) -> Floats:
        """Return centre, inverse scale, lower and upper bound of each path column, (path columns, 4).

        ``u = (z - centre) * inverse scale`` has mean 0 and largest size 1, so that one penalty suits all columns, and
        the sums of squares of all terms are similar. A column that is constant or always missing in its leaf has the
        inverse scale `flat_scale`; with 0 it has no effect, ``u = 0``. Nor has a column whose range exceeds float64.
        """
        scaling = np.empty_like(self.values)
        core.scalings(self.values, flat_scale, scaling)
        return scaling


@dataclass(frozen=True, slots=True)
class LeafSums:
    """Normal equations of each leaf. They add up over rows, so blocks, threads and workers need a single operation."""

    gram: Floats  # (sum of terms^2,): ``sum h phi phi'`` of each leaf (lower triangle), one leaf after the other
    moment: Floats  # (sum of terms * outputs,): ``-sum phi grad'`` of each leaf, (terms, outputs)
    n_outputs: int

    @classmethod
    def of(cls, rows: LeafRows, leaves: Leaves, grad: Floats, hess: Floats, units: Floats) -> LeafSums:
        """Return the sums over a block of the rows of a tree, in the units of `Ridge.units`.

        `grad` is (outputs, all rows) float64, C-contiguous, and `hess` (all rows,).
        """
        [degree] = leaves.tree_degree.tolist()
        # A leaf with t terms has t^2 products, and t moments for each output.
        terms = 1 + degree * np.diff(leaves.start)
        gram, moment = np.zeros(terms @ terms), np.zeros(terms.sum() * len(grad))
        core.leaf_sums(rows, units, degree, grad, hess, gram, moment)
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

    With ``reg_lambda=0``, a term that is a linear combination of others in its leaf gets weight 0: a constant or
    repeated column, or any further term if the leaf has too few rows.
    """
    weight, [degree] = sums.moment.copy(), leaves.tree_degree.tolist()
    penalty = ridge.reg_lambda, ridge.penalize_constant
    core.solve_leaves(leaves.start, degree, sums.n_outputs, sums.gram, weight, *penalty, learning_rate)
    return weight


class Prior(NamedTuple):
    """Old leaves with which new ones of the same trees are blended.

    A new regression has the units of the old one, and inputs that are clipped to its range, so their weighted mean is
    the regression with the weighted mean of the weights.
    """

    leaves: Leaves
    share: float  # of the old leaves; the new ones have the rest
    clip: bool

    def of(self, trees: Parts) -> Prior:
        """Return the part for some of the trees."""
        return self._replace(leaves=take_leaves(self.leaves, trees))

    def clip_inputs(self, blocks: Sequence[LeafRows]) -> None:
        """Clip the path columns of rows of one tree to the ranges of their leaves, in place, if the forest clips."""
        center, inverse, *bounds = self.leaves.scaling.T
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = (center + bound / inverse for bound in bounds)
        # A column with the scale 0 does not vary in its leaf, and has no effect.
        ends = np.where(inverse == 0, -np.inf, low), np.where(inverse == 0, np.inf, high)
        for rows in blocks if self.clip else ():
            sizes = np.diff(rows.start).repeat(np.diff(rows.path_start))
            values = rows.values[: sizes.sum()]
            np.clip(values, *(end.repeat(sizes) for end in ends), out=values)

    def blended(self, leaves: Leaves) -> Leaves:
        """Return the blend of the old leaves and new ones."""
        return leaves._replace(weight=self.share * self.leaves.weight + (1.0 - self.share) * leaves.weight)
