"""Cheaper growth: backends around another one, of which the layer does not know.

`RowSampling` grows tree structures on some of the rows, while leaves are fitted on all. `FixedStructure` gives those of
an earlier fit again. `SharedStructure` grows one for the trees of a round, one per output, whose leaves differ: on the
gradients of all outputs along a random direction, drawn for each round. Inner products of the rows' gradients stay as
they are on average (Johnson and Lindenstrauss; for boosting: Iosipoi and Vakhrushev 2022). With many classes growth is
most of a round, and a structure that serves all classes fits the noise of none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Grower, SubsetGrower, Table, TreeParams
from boostbp.backends.capabilities import Capabilities, capabilities_of
from boostbp.floats import Floats
from boostbp.group import joined, workers
from boostbp.trees.forest import Forest
from boostbp.trees.tree import Tree, Trees, as_trees


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


@dataclass(frozen=True, slots=True)
class FixedStructure:
    """The trees of a fitted layer: there is nothing to bin, and growing looks at no gradient.

    Attributes
    ----------
    numbers : tuple of tuple of int
        For each output the numbers of its trees, in the order of the rounds; a single entry if the trees serve all
        outputs.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        missing=True, categories=True, sparse=True, vector_leaf=True, deterministic=True
    )
    trees: Trees
    numbers: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, forest: Forest, *, shared: bool) -> FixedStructure:
        """Take the trees of a forest but for its base."""
        by_output: list[list[int]] = [[] for _ in range(1 if shared else forest.n_outputs)]
        for number, output in enumerate(forest.leaves.tree_output[forest.n_base :, 0].tolist(), forest.n_base):
            by_output[output].append(number)
        return cls(forest.trees, tuple(map(tuple, by_output)))

    def bind(self, table: Table, growth: TreeParams) -> Structures:
        """The trees of all outputs, from the first round on."""
        return Structures(self.trees, self.numbers)


@dataclass
class Structures:
    """Trees that were grown, given again round by round."""

    trees: Trees
    numbers: Sequence[Sequence[int]]
    round: int = 0

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """The trees of the next round."""
        numbers = [of_output[self.round] for of_output in self.numbers]
        self.round += 1
        first, count = numbers[0], len(numbers)
        if numbers == list(range(first, first + count)):
            return self.trees[first : first + count]
        return [self.trees[number] for number in numbers]

    def fork(self, outputs: slice, seed: int) -> Structures:
        """The trees of some outputs, from the first round on."""
        return Structures(self.trees, self.numbers[outputs])


def random_direction(n_outputs: int, rng: np.random.Generator) -> Floats:
    """Return a direction of the outputs, (outputs,): N(0, 1 / outputs) in each."""
    return rng.standard_normal(n_outputs) / np.sqrt(n_outputs)


def projected(grad: Floats, rng: np.random.Generator) -> Floats:
    """Gradients of all outputs, (rows, outputs), along one random direction, (rows, 1): N(0, 1 / outputs) in each.

    Inner products of two rows stay as they are on average (Johnson and Lindenstrauss).
    """
    direction = random_direction(grad.shape[1], rng)[:, None]
    product: Floats = np.einsum("ni,ij->nj", grad, direction)  # not BLAS, whose sums may depend on its threads
    return product


@dataclass(frozen=True, slots=True)
class SharedStructure:
    """Another backend that grows one tree for the trees of a round; all outputs are columns of one call.

    Attributes
    ----------
    backend : Backend
    """

    backend: Backend

    @property
    def capabilities(self) -> Capabilities:
        """Those of the other; leaves of its own, or for several outputs, would be of the one tree."""
        able = capabilities_of(self.backend)
        return replace(able, native_leaves=False, vector_leaf=False, deterministic=False, streams=_one_stream)

    def bind(self, table: Table, growth: TreeParams) -> Grower:
        """Bind the other."""
        return _SharingGrower(self.backend.bind(table, growth), np.random.default_rng(growth.random_state))


def _one_stream(n_rows: int, n_outputs: int, growth: TreeParams) -> int:
    return 1


@dataclass
class _SharingGrower:
    grower: Grower
    rng: np.random.Generator

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow one tree, and give it to each output."""
        direction = random_direction(grad.shape[1], self.rng)
        along = [np.einsum("ni,i->n", part, by)[:, None] for part, by in ((grad, direction), (hess, direction**2))]
        return as_trees(self.grower.grow(*along)).take(np.zeros(grad.shape[1], np.int64))

    def fork(self, outputs: slice, seed: int) -> _SharingGrower:
        """A sibling that draws other directions for each seed."""
        return _SharingGrower(self.grower.fork(slice(0, 1), seed), np.random.default_rng(seed))
