"""Sampling: a backend that grows tree structures on some of the rows, while leaves are fitted on all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Grower, Growth, Table, forks_of
from boostbp.learning.settings import Settings
from boostbp.trees.tree import Tree

__all__ = ["Sampled", "growing"]

Floats = NDArray[np.float64]


def growing(backend: Backend, settings: Settings) -> Backend:
    """The backend that grows the trees of all layers: on a sample, if the settings ask for one."""
    if settings.structure_samples is None:
        return backend
    return Sampled(backend, settings.structure_samples, settings.structure_sampling)


@dataclass(frozen=True, slots=True)
class Sampled:
    """Another backend on a sample of the rows.

    Binning and growing cost as much as the sample is large; the leaf regressions that make the
    model are sums over all rows and stay exact. The smallest leaf is scaled with the sample.

    Attributes
    ----------
    backend : Backend
    samples : int
        Rows to grow on; a table with no more rows is used whole.
    by : {"uniform", "gradient"}
        Uniformly, once for all fits on an input; or drawn for each fit: half of the sample are the rows with the
        largest gradients of the first round, and the others stand for all that are left (as in GOSS of LightGBM,
        Ke et al. 2017).
    """

    backend: Backend
    samples: int
    by: Literal["uniform", "gradient"] = "uniform"

    @property
    def vector_leaf(self) -> bool:
        """Whether one tree can be grown on several columns of a gradient."""
        return bool(getattr(self.backend, "vector_leaf", False))

    @property
    def sparse(self) -> bool:
        """Whether a table may be sparse."""
        return bool(getattr(self.backend, "sparse", False))

    @property
    def colsample_bytree(self) -> bool:
        """Whether each tree can be given its share of the features."""
        return bool(getattr(self.backend, "colsample_bytree", True))

    def bind(self, table: Table, growth: Growth) -> Grower:
        """Draw the rows and bin them; the seed is that of `growth`."""
        n_rows = len(table.X)
        if n_rows <= self.samples:
            return self.backend.bind(table, growth)
        smallest = max(1, round(growth.min_samples_leaf * self.samples / n_rows))
        growth = replace(growth, min_samples_leaf=smallest)
        if self.by == "gradient":
            return _DrawingGrower(self, table, growth)
        rows = np.sort(np.random.default_rng(growth.random_state).permutation(n_rows)[: self.samples])
        return self.on(table, growth, rows)

    def on(self, table: Table, growth: Growth, rows: NDArray[np.intp], factor: Floats | None = None) -> _SampledGrower:
        """Bin some of the rows; each stands for `factor` rows."""
        part = table.take(rows)
        return _SampledGrower(self.backend.bind(part, growth), rows, factor)


@dataclass
class _SampledGrower:
    grower: Grower
    rows: NDArray[np.intp]
    factor: Floats | None = None

    @property
    def pure(self) -> bool:
        """Whether outputs may be grown together: the sample is the same for all."""
        return bool(getattr(self.grower, "pure", False))

    def forks(self, n_outputs: int) -> int:
        """How many forks so many outputs best share."""
        return forks_of(self.grower, n_outputs)

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow a round on the gradients of the sample."""
        grad, hess = np.ascontiguousarray(grad[self.rows]), np.ascontiguousarray(hess[self.rows])
        return (
            self.grower.grow(grad, hess)
            if self.factor is None
            else self.grower.grow(grad * self.factor, hess * self.factor)
        )

    def fork(self, seed: int) -> _SampledGrower:
        """A sibling on the same rows and bins."""
        return _SampledGrower(self.grower.fork(seed), self.rows, self.factor)


@dataclass(frozen=True, slots=True)
class _DrawingGrower:
    sampled: Sampled
    table: Table
    growth: Growth

    def draw(self, grad: Floats, hess: Floats, seed: int) -> _SampledGrower:
        """Bin the rows that the gradients of a first round, (rows, outputs), call for."""
        n_rows, samples = len(grad), self.sampled.samples
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(hess > 0, np.square(grad) / hess, 0.0).sum(axis=1)
        largest = np.argpartition(-size, samples // 2)[: samples // 2]
        others = np.delete(np.arange(n_rows), largest)
        drawn = np.random.default_rng(seed).permutation(others)[: samples - len(largest)]
        rows = np.concatenate([largest, drawn])
        factor = np.repeat([1.0, len(others) / len(drawn)], [len(largest), len(drawn)])
        order = np.argsort(rows)
        return self.sampled.on(self.table, self.growth, rows[order], factor[order, None])

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Never called: `draw` comes first."""
        raise NotImplementedError

    def fork(self, seed: int) -> Grower:
        """Never called: `draw` comes first."""
        raise NotImplementedError
