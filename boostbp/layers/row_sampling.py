"""Row sampling: a backend that grows tree structures on some of the rows, while leaves are fitted on all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Grower, Table, TreeParams
from boostbp.backends.capabilities import Capabilities, capabilities_of
from boostbp.trees.tree import Tree

__all__ = ["RowSampling", "on_sample"]

Floats = NDArray[np.float64]


def on_sample(backend: Backend, samples: int | None) -> Backend:
    """The backend, which grows on so many rows; on all for None."""
    return backend if samples is None else RowSampling(backend, samples)


@dataclass(frozen=True, slots=True)
class RowSampling:
    """Another backend on a sample of the rows.

    Binning and growing cost as much as the sample is large; the leaf regressions that make the
    model are sums over all rows and stay exact. The smallest leaf is scaled with the sample.

    Attributes
    ----------
    backend : Backend
    samples : int
        Rows to grow on, drawn once for all fits on an input; a table with no more rows is used whole.
    """

    backend: Backend
    samples: int

    @property
    def capabilities(self) -> Capabilities:
        """Those of the other on the rows of the sample; leaves of its own would be fitted on these alone."""
        able = capabilities_of(self.backend)

        def streams(n_rows: int, n_outputs: int, growth: TreeParams) -> int:
            return able.streams(min(n_rows, self.samples), n_outputs, growth)

        return replace(able, native_leaves=False, streams=streams)

    def bind(self, table: Table, growth: TreeParams) -> Grower:
        """Draw the rows and bin them; the seed is that of `growth`."""
        n_rows = len(table.X)
        if n_rows <= self.samples:
            return self.backend.bind(table, growth)
        smallest = max(1, round(growth.min_samples_leaf * self.samples / n_rows))
        growth = replace(growth, min_samples_leaf=smallest)
        rows = np.sort(np.random.default_rng(growth.random_state).permutation(n_rows)[: self.samples])
        return _SampledGrower(self.backend.bind(table.take(rows), growth), rows)


@dataclass
class _SampledGrower:
    grower: Grower
    rows: NDArray[np.intp]

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow a round on the gradients of the sample."""
        return self.grower.grow(np.ascontiguousarray(grad[self.rows]), np.ascontiguousarray(hess[self.rows]))

    def fork(self, outputs: slice, seed: int) -> _SampledGrower:
        """A sibling on the same rows and bins."""
        return _SampledGrower(self.grower.fork(outputs, seed), self.rows)
