"""Inputs of the layers of a graph: cells with numbers in place of missing ones, and columns of categorical splits.

All arrays are (columns, rows).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from boostbp.export.onnx_categories import SplitColumns
from boostbp.export.onnx_graph import Graph, int64
from boostbp.trees.forest import Forest


@dataclass(frozen=True, slots=True)
class Input:
    """Names of the input of a layer.

    Attributes
    ----------
    features : str
        (features, rows), NaN where missing; "" if the layer sees no features.
    n_units : int
        Number of hidden units, which come before the features in `below` and `above`.
    below : str
    above : function () -> str
        (columns, rows), with a number below, or above, all thresholds in place of missing values.
    single : bool
        Whether there is one row.
    """

    features: str
    n_units: int
    below: str
    above: Callable[[], str]
    single: bool

    @classmethod
    def of(cls, graph: Graph, X: str, *, single: bool) -> Input:
        """Add the input of the first layer, from features of (rows, features)."""
        X = graph.op("Transpose", X, perm=[1, 0])
        missing = graph.op("IsNaN", X)
        below, above = (partial(graph.op, "Where", missing, np.array(end), X) for end in (-np.inf, np.inf))
        return cls(X, 0, below(), cache(above), single)

    def only(self, units: str, n_units: int) -> Input:
        """Return an input of hidden units alone."""
        return Input("", n_units, units, lambda: units, self.single)

    def behind(self, graph: Graph, units: str, n_units: int) -> Input:
        """Add an input of hidden units and these features."""
        below = graph.op("Concat", units, self.below, axis=0)
        above = cache(lambda: graph.op("Concat", units, self.above(), axis=0))
        return Input(self.features, n_units, below, above, self.single)

    def zeros(self, graph: Graph) -> str:
        """Add a zero for each row, (1, rows)."""
        return graph.op("Cast", graph.op("IsNaN", graph.op("Gather", self.below, int64(0), axis=0)), to=graph.real)

    def clipped(self, graph: Graph, x: str, center: str, factor: str, bounds: tuple[str, ...]) -> str:
        """Add centered cells times a factor, clipped if there are two bounds, and 0 where `x` is infinite: missing."""
        v = graph.op("Sub", x, center)
        if factor:
            v = graph.op("Mul", v, factor)
        if bounds:
            v = graph.op("Min", graph.op("Max", v, bounds[0]), bounds[1])
        if not self.features:
            return v
        missing = graph.op("IsInf", x)
        if not bounds:
            return graph.op("Where", missing, np.zeros(()), v)
        # a product takes a tenth of the time of `Where`, but infinity times 0 is NaN
        return graph.op("Mul", v, graph.op("Cast", graph.op("Not", missing), to=graph.real))


@dataclass(frozen=True, slots=True)
class InputColumns:
    """What splits compare, (columns, rows): cells, and a column for each different categorical split.

    Attributes
    ----------
    name : str
    number : (splits,) int64
        Column of each of the forest's splits.
    """

    name: str
    number: NDArray[np.int64]

    @classmethod
    def of(cls, graph: Graph, forest: Forest, inputs: Input, splits: SplitColumns) -> InputColumns:
        """Add the columns of a forest's splits; the layer's input comes first."""
        nodes, width = forest.nodes, forest.n_features
        parts, number = [inputs.below], nodes.feature.astype(np.int64)
        right = ~nodes.missing_left & (splits.column < 0) & (number >= inputs.n_units)
        if inputs.features and right.any():
            parts.append(inputs.above())
            number, width = number + np.where(right, width, 0), 2 * width
        if splits.count:
            parts.append(splits.add(graph, inputs.features, inputs.n_units))
            number = np.where(splits.column >= 0, width + splits.column, number)
        return cls(graph.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0], number)
