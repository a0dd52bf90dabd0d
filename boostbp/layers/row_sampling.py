"""Row sampling: a backend that grows tree structures on some of the rows, while leaves are fitted on all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Grower, SubsetGrower, Table, TreeParams
from boostbp.backends.capabilities import Capabilities, capabilities_of
from boostbp.floats import Floats
from boostbp.group import joined, workers
from boostbp.trees.tree import Tree


def on_sample(backend: Backend, samples: int | None) -> Backend:
    """The backend, which grows on so many rows; on all for None."""
    return backend if samples is None else RowSampling(backend, samples)


def drawn_rows(n_rows: int, samples: int, seed: int) -> NDArray[np.intp]:
    """Numbers of the rows of a sample, ascending; of a group of workers, those of one worker in the sample of all."""
    return workers().chosen(n_rows, lambda total: np.sort(np.random.default_rng(seed).permutation(total)[:samples]))


@dataclass(frozen=True, slots=True)
class RowSampling:
    """Another backend on a sample of the rows.

    Growing costs as much as the sample is large; the leaf regressions that make the model are sums over all rows and
    stay exact.

    Attributes
    ----------
    samples : int
        Rows to grow on; a table with no more rows is used whole.
    anew : bool
        Whether each fit draws rows of its own, or all fits on an input share those that are drawn, and binned, once.
        Many fits on top of one another would fit the noise of one sample. The smallest leaf is scaled with the one
        sample, and counts rows of the sample where each fit has its own: then it is a small part of the table.
    """

    backend: Backend
    samples: int
    anew: bool = False

    @property
    def capabilities(self) -> Capabilities:
        """Those of the other on the rows of the sample; leaves of its own would be fitted on these alone."""
        able = capabilities_of(self.backend)

        def streams(n_rows: int, n_outputs: int, growth: TreeParams) -> int:
            return able.streams(min(n_rows, self.samples), n_outputs, growth)

        deterministic = able.deterministic and not self.anew
        return replace(able, native_leaves=False, streams=streams, deterministic=deterministic)

    def bind(self, table: Table, growth: TreeParams) -> Grower:
        """Draw the rows and bin them, with the seed of `growth`; or bin all rows, if each fit draws its own."""
        _, n_rows = workers().runs(len(table.X))
        if n_rows <= self.samples:
            return self.backend.bind(table, growth)
        if self.anew:
            whole = self.backend.bind(table, growth) if capabilities_of(self.backend).row_subsets else None
            return _DrawingGrower(self, table, growth, cast("SubsetGrower | None", whole))
        smallest = max(1, round(growth.min_samples_leaf * self.samples / n_rows))
        growth = replace(growth, min_samples_leaf=smallest)
        rows = drawn_rows(len(table.X), self.samples, growth.random_state)
        with joined(workers().of(rows)):
            return _SampledGrower(self.backend.bind(table.take(rows), growth), rows)


@dataclass
class _DrawingGrower:
    """Each fork draws rows; they are binned anew where the library cannot take some rows of what is binned."""

    sampling: RowSampling
    table: Table
    growth: TreeParams
    whole: SubsetGrower | None

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow a round on a sample of its own."""
        return self.fork(slice(0, grad.shape[1]), self.growth.random_state).grow(grad, hess)

    def fork(self, outputs: slice, seed: int) -> Grower:
        """A grower on other rows for each seed."""
        rows = drawn_rows(len(self.table.X), self.sampling.samples, seed)
        if self.whole is not None:
            some: Grower = self.whole.take(rows)
        else:
            with joined(workers().of(rows)):
                some = self.sampling.backend.bind(self.table.take(rows), self.growth)
        return _SampledGrower(some.fork(outputs, seed), rows)


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
