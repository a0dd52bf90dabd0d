"""What layers of a graph see: cells with numbers in place of missing ones, and columns of categorical splits.

All lie across: (columns, rows).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from boostbp.export.onnx_categories import SplitColumns
from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.trees.forest import Forest


@dataclass(frozen=True, slots=True)
class Input:
    """Names of what a layer sees.

    Attributes
    ----------
    features : str
        (features, rows); NaN is missing.
    n_units : int
        Hidden units that stand before the features in what follows.
    any_missing : str
        bool: whether there is a missing value in the features; "" where the layer sees none of them.
    below : str
    above : function () -> str
        (columns, rows), with a number in the place of missing values that is below, or above, all thresholds.
    single : bool
        Whether it is one row.
    """

    features: str
    n_units: int
    any_missing: str
    below: str
    above: Callable[[], str]
    single: bool

    @classmethod
    def of(cls, graph: Graph, X: str, *, single: bool) -> Input:
        """Add what is asked of the features, (rows, features)."""
        TP = library().TensorProto
        X = graph.op("Transpose", X, perm=[1, 0])
        missing = graph.op("IsNaN", X)
        some = graph.op("ReduceMax", graph.op("Cast", missing, to=TP.INT32), keepdims=0)
        below, above = (partial(graph.op, "Where", missing, np.array(end), X) for end in (-np.inf, np.inf))
        return cls(X, 0, graph.op("Cast", some, to=TP.BOOL), below(), cache(above), single)

    def only(self, units: str, n_units: int) -> Input:
        """Return hidden units without the features."""
        return Input("", n_units, "", units, lambda: units, self.single)

    def behind(self, graph: Graph, units: str, n_units: int) -> Input:
        """Add these columns behind hidden units."""
        below = graph.op("Concat", units, self.below, axis=0)
        above = cache(lambda: graph.op("Concat", units, self.above(), axis=0))
        return Input(self.features, n_units, self.any_missing, below, above, self.single)

    def zeros(self, graph: Graph) -> str:
        """Add a zero for each row, (1, rows)."""
        return graph.op("Cast", graph.op("IsNaN", graph.op("Gather", self.below, int64(0), axis=0)), to=graph.real)

    def clipped(self, graph: Graph, x: str, center: str, factor: str, bounds: tuple[str, ...], *, many: bool) -> str:
        """Add centered cells times a factor, clipped if there are two bounds, 0 where missing: infinite in `x`.

        Parameters
        ----------
        many : bool
            Whether it takes longer to look for missing ones than to ask whether there are any.
        """
        v = graph.op("Sub", x, center)
        if factor:
            v = graph.op("Mul", v, factor)
        if bounds:
            v = graph.op("Max", v, bounds[0])

        def below_upper(inner: Graph) -> str:
            return inner.op("Min", v, bounds[1]) if bounds else inner.op("Identity", v)

        def without_missing(inner: Graph) -> str:
            missing = inner.op("IsInf", x)
            if not bounds:
                return inner.op("Where", missing, np.zeros(()), v)
            # a product takes a tenth of the time of `Where`, but infinity has none with 0
            return inner.op("Mul", below_upper(inner), inner.op("Cast", inner.op("Not", missing), to=graph.real))

        if not self.any_missing:
            return below_upper(graph)
        if not many:
            return without_missing(graph)
        return graph.either(self.any_missing, without_missing, below_upper)


@dataclass(frozen=True, slots=True)
class InputColumns:
    """What splits look at, (columns, rows): cells, and a column for each kind of categorical split.

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
        """Add the columns of a forest's splits; those of its terms come first."""
        nodes, width = forest.nodes, forest.n_features
        parts, number = [inputs.below], nodes.feature.astype(np.int64)
        right = ~nodes.missing_left & (splits.column < 0) & (number >= inputs.n_units)
        if inputs.any_missing and right.any():
            parts.append(inputs.above())
            number, width = number + np.where(right, width, 0), 2 * width
        if splits.count:
            parts.append(splits.add(graph, inputs.features, inputs.n_units))
            number = np.where(splits.column >= 0, width + splits.column, number)
        return cls(graph.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0], number)
