"""Cheaper growth: backends that wrap another backend.

`RowSampling` grows tree structures on some of the rows, `FixedStructure` returns those of an earlier fit, and
`SharedStructure` grows one for all trees of a round. Leaves are fitted on all rows in each case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, CoreCalls, Grower, KnownTrees, SubsetGrower, TreeParams, core_calls_of
from boostbp.backends.capabilities import Capabilities, accepted_trees, capabilities_of
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import training_in, workers
from boostbp.trees.forest import Forest
from boostbp.trees.sparse import Table
from boostbp.trees.tree import Tree, Trees


def on_sample(backend: Backend, samples: int | None) -> Backend:
    """Return a backend that grows on a sample of this number of rows, or on all rows for None."""
    return backend if samples is None else RowSampling(backend, samples)


def drawn_rows(n_rows: int, samples: int, seed: int) -> NDArray[np.intp]:
    """Return the numbers of sampled rows, ascending; in a group, those of this worker in a sample of all rows."""
    rng = np.random.default_rng(seed)
    return workers().choose_rows(n_rows, lambda total: np.sort(rng.permutation(total)[:samples]))


@dataclass(frozen=True, slots=True)
class RowSampling:
    """A backend that grows trees on a sample of the rows with another backend, at a cost proportional to the sample."""

    backend: Backend
    samples: int  # number of rows to grow on; all rows of a table that has no more
    # Whether each fit draws its own rows; otherwise rows are drawn and binned once for all fits on an input. Many
    # pieces of one layer would fit the noise of a single sample. `min_samples_leaf` is scaled down for a single sample;
    # if each fit draws its own, it counts rows of the sample, which is then a small part of the table.
    anew: bool = False

    @property
    def capabilities(self) -> Capabilities:
        """Those of the other backend, except native leaves, which would be fitted on the sample alone."""
        able = capabilities_of(self.backend)
        return replace(
            able,
            native_leaves=False,
            deterministic=able.deterministic and not self.anew,
            streams=lambda n_rows, n_outputs, growth: able.streams(min(n_rows, self.samples), n_outputs, growth),
        )

    def bind(self, table: Table, growth: TreeParams) -> Grower:
        """Draw rows with the seed of `growth` and bin them, or bin all rows if each fit draws its own."""
        _, n_rows = workers().row_runs(len(table.X))
        if n_rows <= self.samples:
            return self.backend.bind(table, growth)
        if self.anew:
            binned = self.backend.bind(table, growth) if capabilities_of(self.backend).row_subsets else None
            return _DrawingGrower(self, table, growth, cast("SubsetGrower | None", binned))
        # On average, a leaf has this share of its rows in the sample.
        smallest = max(1, round(growth.min_samples_leaf * self.samples / n_rows))
        rows = drawn_rows(len(table.X), self.samples, growth.random_state)
        return _SampledGrower(self.bind_rows(table, replace(growth, min_samples_leaf=smallest), rows), rows)

    def bind_rows(self, table: Table, growth: TreeParams, rows: NDArray[np.intp]) -> Grower:
        """Bin some of the rows."""
        with training_in(workers().select_rows(rows)):
            return self.backend.bind(table.take(rows), growth)


@dataclass
class _DrawingGrower:
    """A grower whose forks draw rows. They are binned again if the library cannot select rows of binned data."""

    sampling: RowSampling
    table: Table
    growth: TreeParams
    binned: SubsetGrower | None

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow a round on a new sample."""
        return self.fork(slice(0, grad.shape[1]), self.growth.random_state).grow(grad, hess)

    def fork(self, outputs: slice, seed: int) -> Grower:
        """Return a grower on other rows for each seed."""
        rows = drawn_rows(len(self.table.X), self.sampling.samples, seed)
        some = self.binned.take(rows) if self.binned else self.sampling.bind_rows(self.table, self.growth, rows)
        return _SampledGrower(some.fork(outputs, seed), rows)


@dataclass
class _SampledGrower:
    grower: Grower
    rows: NDArray[np.intp]

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow a round on the gradients of the sample."""
        return self.grower.grow(np.ascontiguousarray(grad[self.rows]), np.ascontiguousarray(hess[self.rows]))

    def fork(self, outputs: slice, seed: int) -> _SampledGrower:
        """Return a sibling on the same rows and bins."""
        return _SampledGrower(self.grower.fork(outputs, seed), self.rows)


@dataclass
class FixedStructure:
    """Backend and grower that return the trees of a fitted layer round by round, without bins or gradients."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        missing=True, categories=True, sparse=True, vector_leaf=True, deterministic=True
    )
    trees: Trees
    # for each output the numbers of its trees by round; a single entry if the trees serve all outputs
    numbers: Sequence[Sequence[int]]
    round: int = 0  # number of the next round

    @classmethod
    def of(cls, forest: Forest, *, shared: bool) -> FixedStructure:
        """Return the structures of a forest without its base."""
        by_output: list[list[int]] = [[] for _ in range(1 if shared else forest.n_outputs)]
        for number, output in enumerate(forest.leaves.tree_output[forest.n_base :, 0].tolist(), forest.n_base):
            by_output[output].append(number)
        return cls(forest.trees, by_output)

    def bind(self, table: Table, growth: TreeParams) -> FixedStructure:
        """Return the trees of all outputs, from the first round on."""
        return FixedStructure(self.trees, self.numbers)

    def fork(self, outputs: slice, seed: int) -> FixedStructure:
        """Return the trees of some outputs, from the first round on."""
        return FixedStructure(self.trees, self.numbers[outputs])

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Return the trees of the next round."""
        self.round += 1
        return self.of_rounds(self.round - 1, self.round)

    def core_calls(self, columns: int) -> AbstractContextManager[CoreCalls]:
        """Let the core fit the leaves of rounds; see `boostbp.backends.base.CoreGrower`."""
        return nullcontext(CoreCalls(KnownTrees(self.of_rounds)))

    def of_rounds(self, first: int, end: int) -> Trees:
        """Return the trees of some rounds, round by round."""
        numbers = [
            number for of_round in zip(*(of[first:end] for of in self.numbers), strict=True) for number in of_round
        ]
        # Consecutive trees are a slice, which is not copied.
        start, count = numbers[0], len(numbers)
        if numbers == list(range(start, start + count)):
            return self.trees[start : start + count]
        return self.trees.take(np.array(numbers))


def random_direction(n_outputs: int, rng: np.random.Generator) -> Floats:
    """Return a direction of the outputs, (outputs,): N(0, 1 / outputs) in each."""
    # With E[v v'] = I / outputs, E[(G v)(G v)'] = G G' / outputs: inner products of rows are kept on average.
    return rng.standard_normal(n_outputs) / np.sqrt(n_outputs)


def along(columns: Floats, direction: Floats) -> Floats:
    """Return the product of columns, (rows, outputs), and a direction, as (rows, 1)."""
    # not BLAS, whose sums depend on its threads
    return np.asarray(np.einsum("ni,i->n", columns, direction)[:, None])


@dataclass(frozen=True, slots=True)
class SharedStructure:
    """A backend that grows one structure for all trees of a round, which serve one output each, with another backend.

    It is grown on the gradients of all outputs along a direction that is drawn in each round. This projection keeps
    the inner products of the rows' gradients on average (Johnson and Lindenstrauss; for boosting: Iosipoi and
    Vakhrushev 2022). With many classes, growth is most of the work of a round, and a shared structure does not fit the
    noise of a single class.
    """

    backend: Backend

    @property
    def capabilities(self) -> Capabilities:
        """Those of the other backend, except native leaves and vector leaves, which belong to a single tree."""
        able, n_streams = capabilities_of(self.backend), 1  # all outputs are columns of one call
        return replace(able, native_leaves=False, vector_leaf=False, deterministic=False, streams=lambda *_: n_streams)

    def bind(self, table: Table, growth: TreeParams) -> Grower:
        """Bind the other backend."""
        rng = np.random.default_rng(growth.random_state)
        return _SharingGrower(self.backend.bind(table, growth), rng, table, growth)


@dataclass
class _SharingGrower:
    grower: Grower
    rng: np.random.Generator
    table: Table
    growth: TreeParams

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow one tree on the derivatives of the loss along a random direction, and give it to each output."""
        grown = self.grower.grow(*self._along(grad, hess))
        return accepted_trees(grown, 1, self.table, self.growth).take(np.zeros(grad.shape[1], np.int64))

    @contextmanager
    def core_calls(self, columns: int) -> Iterator[CoreCalls | None]:
        """Let the core grow rounds; see `boostbp.backends.base.CoreGrower`."""
        with core_calls_of(self.grower, 1) as calls:
            yield calls and replace(calls, along=self._along)

    def _along(self, grad: Floats, hess: Floats) -> tuple[Floats, Floats]:
        """Return the derivatives along a random direction, (rows, 1)."""
        # Along v, the loss has the derivatives v'g and v'Hv, with a diagonal H.
        direction = random_direction(grad.shape[1], self.rng)
        return along(grad, direction), along(hess, direction**2)

    def fork(self, outputs: slice, seed: int) -> _SharingGrower:
        """Return a sibling that draws other directions for each seed."""
        return replace(self, grower=self.grower.fork(slice(0, 1), seed), rng=np.random.default_rng(seed))
