"""Sampling: a backend that grows tree structures on some of the rows, while leaves are fitted on all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Grower, Growth, Table
from boostbp.trees.tree import Tree

__all__ = ["Sampled"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sampled:
    """Another backend on a uniform sample of the rows.

    Binning and growing cost as much as the sample is large; the leaf regressions that make the
    model are sums over all rows and stay exact. The smallest leaf is scaled with the sample.

    Attributes
    ----------
    backend : Backend
    samples : int
        Rows to grow on; a table with no more rows is used whole.
    """

    backend: Backend
    samples: int

    @property
    def vector_leaf(self) -> bool:
        """Whether one tree can be grown on several columns of a gradient."""
        return bool(getattr(self.backend, "vector_leaf", False))

    def bind(self, table: Table, growth: Growth) -> Grower:
        """Draw the rows and bin them; the seed is that of `growth`."""
        n_rows = len(table.X)
        if n_rows <= self.samples:
            return self.backend.bind(table, growth)
        rows = np.sort(np.random.default_rng(growth.random_state).permutation(n_rows)[: self.samples])
        smallest = max(1, round(growth.min_samples_leaf * self.samples / n_rows))
        part = Table(np.ascontiguousarray(table.X[rows]), table.categorical)
        return _SampledGrower(self.backend.bind(part, replace(growth, min_samples_leaf=smallest)), rows)


@dataclass(slots=True)
class _SampledGrower:
    grower: Grower
    rows: NDArray[np.intp]

    @property
    def pure(self) -> bool:
        """Whether outputs may be grown together: the sample is the same for all."""
        return bool(getattr(self.grower, "pure", False))

    def grow(self, grad: Floats, hess: Floats) -> list[Tree]:
        """Grow a round on the gradients of the sample."""
        return self.grower.grow(np.ascontiguousarray(grad[self.rows]), np.ascontiguousarray(hess[self.rows]))

    def fork(self, seed: int) -> _SampledGrower:
        """A sibling on the same rows and bins."""
        return _SampledGrower(self.grower.fork(seed), self.rows)
