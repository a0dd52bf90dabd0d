"""Replay: a backend that gives the tree structures of an earlier fit again, so that only leaves are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Growth, Table
from boostbp.trees.forest import Forest
from boostbp.trees.tree import Tree, Trees

__all__ = ["Replay"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Replay:
    """The trees of a fitted layer, by the first output they serve, in the order of the rounds.

    It is a `Backend` and a `Grower` at once: there is nothing to bin, and growing looks at no gradient.

    Attributes
    ----------
    trees : Trees
    numbers : tuple of tuple of int
        For each output the numbers of its trees; a single entry if the trees serve all outputs.
    vector_leaf : bool
    seed : int
        The seed that the fit is called with: `fork` tells outputs apart by what is added to it.
    pure : bool
        Nothing is drawn: outputs may go together.
    """

    trees: Trees
    numbers: tuple[tuple[int, ...], ...]
    vector_leaf: bool
    seed: int
    pure: bool = True

    @classmethod
    def of(cls, forest: Forest, *, shared: bool, vector_leaf: bool, seed: int) -> Replay:
        """Take the trees of a forest but for its base."""
        by_output: list[list[int]] = [[] for _ in range(1 if shared else forest.n_outputs)]
        for number, output in enumerate(forest.leaves.tree_output[forest.n_base :, 0].tolist(), forest.n_base):
            by_output[output].append(number)
        return cls(forest.trees, tuple(map(tuple, by_output)), vector_leaf, seed)

    def bind(self, table: Table, growth: Growth) -> Replay:
        """Nothing to bin."""
        return self

    def fork(self, seed: int) -> _Replaying:
        """The trees of an output and those behind it, from the first round on."""
        return _Replaying(self.trees, self.numbers[seed - self.seed :])

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Never called: rounds are grown by forks."""
        raise NotImplementedError


@dataclass
class _Replaying:
    trees: Trees
    numbers: Sequence[Sequence[int]]
    round: int = field(default=0)

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """The trees of the next round, one for each column, or one that serves all."""
        self.round += 1
        numbers = [its[self.round - 1] for its in self.numbers[: grad.shape[1]]]
        first, count = numbers[0], len(numbers)
        if numbers == list(range(first, first + count)):
            return self.trees[first : first + count]
        return [self.trees[number] for number in numbers]

    def fork(self, seed: int) -> _Replaying:
        """The same trees again."""
        return _Replaying(self.trees, self.numbers)
