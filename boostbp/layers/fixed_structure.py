"""FixedStructure: a backend that gives the tree structures of an earlier fit again, so that only leaves are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from boostbp.backends.base import Table, TreeParams
from boostbp.backends.capabilities import Capabilities
from boostbp.floats import Floats
from boostbp.trees.forest import Forest
from boostbp.trees.tree import Tree, Trees


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
