"""Rows of a block, in flat arrays of things times rows: all rows of a thing, then those of the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boostbp.export.onnx_graph import Graph, int64, library


@dataclass(frozen=True, slots=True)
class Rows:
    """Names of what is asked of the rows of a block.

    Attributes
    ----------
    count, count32 : str
        How many there are, (1,) int64 and int32; "" if it is one.
    number : str
        Their numbers, (rows,) int32.
    """

    count: str = ""
    count32: str = ""
    number: str = ""

    @classmethod
    def of(cls, graph: Graph, columns: str) -> Rows:
        """Add what is asked of (columns, rows)."""
        count = graph.op("Shape", columns, start=1, end=2)
        count32 = graph.op("Cast", count, to=library().TensorProto.INT32)
        return cls(count, count32, graph.op("Range", np.int32(0), graph.op("Squeeze", count32), np.int32(1)))

    @property
    def single(self) -> bool:
        """Return whether it is one row."""
        return not self.count

    def split(self, graph: Graph, flat: str, counts: Sequence[int]) -> list[str]:
        """Add parts of a flat array, of so many things each."""
        if len(counts) == 1:
            return [flat]
        names = [graph.name() for _ in counts]
        sizes = int64(*counts) if self.single else graph.op("Mul", self.count, int64(*counts))
        graph.op("Split", flat, sizes, axis=0, outputs=names)
        return names

    def begins(self, graph: Graph, number: str) -> str:
        """Add where things of some numbers begin in a flat array."""
        return number if self.single else graph.op("Mul", number, self.count32)

    def places(self, graph: Graph, begin: str, count: int) -> str:
        """Add the places of (count * rows,) in a flat array, by where their things begin."""
        if self.single:
            return begin
        places = graph.op("Add", graph.op("Reshape", begin, int64(count, -1)), self.number)
        return graph.op("Reshape", places, int64(-1))

    def total(self, graph: Graph, count: int, values: str) -> str:
        """Add the sum of (count * rows,) values for each row, (1, rows)."""
        if self.single:  # a sum along the last axis takes a tenth of the time
            return graph.op("ReduceSum", graph.op("Reshape", values, int64(1, -1)), int64(1))
        return graph.op("ReduceSum", graph.op("Reshape", values, int64(count, -1)), int64(0))

    def across(self, graph: Graph, flat: str) -> str:
        """Add a flat array as (rows, things)."""
        shape = graph.op("Concat", int64(-1), self.count, axis=0)
        return graph.op("Transpose", graph.op("Reshape", flat, shape), perm=[1, 0])


def looked_up(graph: Graph, table: str, place: str) -> str:
    """Add entries of a flat table."""
    return graph.op("GatherElements", table, place, axis=0)


def joined(graph: Graph, parts: Sequence[str]) -> str:
    """Add flat arrays as one."""
    return graph.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]
