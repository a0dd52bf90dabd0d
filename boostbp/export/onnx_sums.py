"""Sums in a graph, in the order of the kernels, so that they have the same bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from boostbp.export.onnx_graph import Graph, int64
from boostbp.export.onnx_numbers import whole_numbers


@dataclass(frozen=True, slots=True)
class Sums:
    """Parts of outputs that are to be added up.

    Attributes
    ----------
    n_outputs : int
    in_order : bool
        Whether the order matters: hidden units are to have the same bits, outputs may be rounded otherwise.
    single : bool
        Whether it is one row.
    zeros : function () -> str
        Adds a zero for each row, (1, rows).
    names : list of str
        Of some parts each, (parts, rows).
    output, order : list of (parts,) int64
        Which output each is a part of, -1 if of none, and a number by which parts are added one after the other.
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
        if not self.names:  # without trees
            self.add(self.zeros(), np.array([-1]), np.array([0]))
        if self.n_outputs == 1 and not self.in_order:
            parts = graph.op("Concat", *self.names, axis=0) if len(self.names) > 1 else self.names[0]
            return graph.op("ReduceSum", parts, int64(0))
        output, order = np.concatenate(self.output), np.concatenate(self.order)
        part = np.lexsort([order, output])[np.count_nonzero(output < 0) :]
        count = np.bincount(output[part], minlength=self.n_outputs)
        number = np.arange(len(part)) - np.repeat(np.cumsum(count) - count, count)  # of each part in its output
        place = np.full((count.max(initial=1), self.n_outputs), len(output))
        place[number, output[part]] = part
        names = [*self.names, self.zeros()] if (place == len(output)).any() else self.names
        parts = graph.op("Concat", *names, axis=0) if len(names) > 1 else names[0]
        if not np.array_equal(place.ravel(), np.arange(len(output))):
            parts = graph.op("Reshape", parts, int64(-1)) if self.single else parts
            kind = "GatherElements" if self.single else "Gather"
            parts = graph.op(kind, parts, whole_numbers(graph, place.ravel()), axis=0)
        if len(place) == 1:
            return graph.op("Reshape", parts, int64(self.n_outputs, -1))
        return graph.op("ReduceSum", graph.op("Reshape", parts, int64(*place.shape, -1)), int64(0), keepdims=0)
