"""Shared structure: a backend whose trees of a round, one per output, have one structure; leaves differ.

It is grown on the gradients of all outputs along a random direction, drawn for each round: inner products of the rows'
gradients stay as they are on average (Johnson and Lindenstrauss; for boosting: Iosipoi and Vakhrushev 2022). With many
classes growth is most of a round, and a structure that serves all classes fits the noise of none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from boostbp.backends.base import Backend, Grower, Table, TreeParams
from boostbp.backends.capabilities import Capabilities, capabilities_of
from boostbp.floats import Floats
from boostbp.trees.tree import Tree, Trees


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
        grown = Trees.of(self.grower.grow(*along))
        return grown.repeated(grad.shape[1])

    def fork(self, outputs: slice, seed: int) -> _SharingGrower:
        """A sibling that draws other directions for each seed."""
        return _SharingGrower(self.grower.fork(slice(0, 1), seed), np.random.default_rng(seed))
