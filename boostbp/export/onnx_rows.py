"""Flat arrays of a block of rows, (things * rows,), and the sums of parts over things.

All rows of a thing stand side by side, then those of the next thing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from boostbp.export.onnx_graph import Graph, int64, library


@dataclass(frozen=True, slots=True)
class BlockRows:
    """The rows of a block, or a single row.

    Attributes
    ----------
    count, count32 : str
        Names of the number of rows, (1,) int64 and int32; "" for a single row.
    number : str
        Name of the numbers of the rows, (rows,) int32.
    """

    count: str = ""
    count32: str = ""
    number: str = ""

    @classmethod
    def of(cls, graph: Graph, columns: str) -> BlockRows:
        """Add the number of rows of (columns, rows)."""
        count = graph.op("Shape", columns, start=1, end=2)
        count32 = graph.op("Cast", count, to=library().TensorProto.INT32)
        return cls(count, count32, graph.op("Range", np.int32(0), graph.op("Squeeze", count32), np.int32(1)))

    @property
    def single(self) -> bool:
        """Return whether there is one row."""
        return not self.count

    def split(self, graph: Graph, flat: str, counts: Sequence[int]) -> list[str]:
        """Add parts of a flat array with so many things each."""
        if len(counts) == 1:
            return [flat]
        names = [graph.name() for _ in counts]
        sizes = int64(*counts) if self.single else graph.op("Mul", self.count, int64(*counts))
        graph.op("Split", flat, sizes, axis=0, outputs=names)
        return names

    def begins(self, graph: Graph, number: str) -> str:
        """Add the places where things with these numbers begin in a flat array."""
        return number if self.single else graph.op("Mul", number, self.count32)

    def places(self, graph: Graph, begin: str, count: int) -> str:
        """Add the places in a flat array of (count * rows,) entries, given where their things begin."""
        if self.single:
            return begin
        places = graph.op("Add", graph.op("Reshape", begin, int64(count, -1)), self.number)
        return graph.op("Reshape", places, int64(-1))

    def total(self, graph: Graph, count: int, values: str) -> str:
        """Add the sum of (count * rows,) values for each row, (1, rows)."""
        if self.single:  # a sum along the last axis takes a tenth of the time
            return graph.op("ReduceSum", graph.op("Reshape", values, int64(1, -1)), int64(1))
        return graph.op("ReduceSum", graph.op("Reshape", values, int64(count, -1)), int64(0))

    def transposed(self, graph: Graph, flat: str) -> str:
        """Add a flat array as (rows, things)."""
        shape = graph.op("Concat", int64(-1), self.count, axis=0)
        return graph.op("Transpose", graph.op("Reshape", flat, shape), perm=[1, 0])


def looked_up(graph: Graph, table: str, place: str) -> str:
    """Add entries of a flat table."""
    return graph.op("GatherElements", table, place, axis=0)


def concatenated(graph: Graph, parts: Sequence[str]) -> str:
    """Add arrays as one, along the first axis."""
    return graph.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]


@dataclass(frozen=True, slots=True)
class OutputSums:
    """Parts of a layer's outputs, which are added up in the order of the kernels.

    Attributes
    ----------
    n_outputs : int
    in_order : bool
        Whether sums must have the bits of the kernels: those of hidden units must, outputs may round otherwise.
    single : bool
        Whether there is one row.
    zeros : function () -> str
        Adds a zero for each row, (1, rows).
    names : list of str
        Arrays of (parts, rows).
    output, order : list of (parts,) int64
        The output that each part belongs to, and a key by which the parts of an output are sorted before they are
        added one after the other.
    """

    n_outputs: int
    in_order: bool
    single: bool
    zeros: Callable[[], str]
    names: list[str] = field(default_factory=list)
    output: list[NDArray[np.int64]] = field(default_factory=list)
    order: list[NDArray[np.int64]] = field(default_factory=list)

    def add(self, name: str, output: NDArray[np.int64], order: NDArray[np.int64]) -> None:
        """Note some parts."""
        self.names.append(name)
        self.output.append(output)
        self.order.append(order)

    def total(self, graph: Graph) -> str:
        """Add the sums; returns the name of (outputs, rows)."""
        if self.n_outputs == 1 and self.names and not self.in_order:
            return graph.op("ReduceSum", concatenated(graph, self.names), int64(0))
        output, order = (np.concatenate([np.empty(0, np.int64), *parts]) for parts in (self.output, self.order))
        part = np.lexsort([order, output])
        count = np.bincount(output, minlength=self.n_outputs)
        number = np.arange(len(part)) - np.repeat(np.cumsum(count) - count, count)  # of each part in its output
        # parts by their number and output; an output with fewer parts than others gets zeros, which stand last
        place = np.full((max(count.max(initial=0), 1), self.n_outputs), len(output))
        place[number, output[part]] = part
        names = [*self.names, self.zeros()] if (place == len(output)).any() else self.names
        parts = concatenated(graph, names)
        if not np.array_equal(place.ravel(), np.arange(len(output))):
            parts = graph.op("Reshape", parts, int64(-1)) if self.single else parts
            kind = "GatherElements" if self.single else "Gather"
            parts = graph.op(kind, parts, graph.table(place.ravel()), axis=0)
        if len(place) == 1:
            return graph.op("Reshape", parts, int64(self.n_outputs, -1))
        return graph.op("ReduceSum", graph.op("Reshape", parts, int64(*place.shape, -1)), int64(0), keepdims=0)
