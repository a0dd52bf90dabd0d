"""Inputs of the layers of a graph: cells with numbers for missing values, and columns of categorical splits.

All arrays are (columns, rows). A categorical split becomes a column that is 0 where it sends a row left, and 1
elsewhere. A table has these columns by the category of a row, packed as bits, so that the columns of all splits of a
feature are read together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from boostbp.core import Nodes
from boostbp.export.onnx_graph import Graph, int64
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest

_BITS = np.uint8(1) << np.arange(8, dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class Input:
    """Names of the input of a layer."""

    features: str  # (features, rows), NaN where missing; "" if the layer reads no features
    n_units: int  # number of hidden units, which come before the features in `below` and `above`
    below: str
    # (columns, rows), with missing values replaced by a number below, or above, all thresholds
    above: Callable[[], str]
    single: bool  # whether there is one row

    @classmethod
    def of(cls, graph: Graph, X: str, *, single: bool) -> Input:
        """Add the input of the first layer, from features of (rows, features)."""
        X = graph.op("Transpose", X, perm=[1, 0])
        missing = graph.op("IsNaN", X)
        below, above = (partial(graph.op, "Where", missing, np.array(end), X) for end in (-np.inf, np.inf))
        return cls(X, 0, below(), cache(above), single)

    def next(self, graph: Graph, units: str, n_units: int, *, skip: bool) -> Input:
        """Add the input of a layer on hidden units, followed by the features if `skip`."""
        if not skip:
            return Input("", n_units, units, lambda: units, self.single)
        below = graph.op("Concat", units, self.below, axis=0)
        above = cache(lambda: graph.op("Concat", units, self.above(), axis=0))
        return Input(self.features, n_units, below, above, self.single)

    def zeros(self, graph: Graph) -> str:
        """Add a zero for each row, (1, rows)."""
        return graph.cast(graph.op("IsNaN", graph.op("Gather", self.below, int64(0), axis=0)), graph.dtype)

    def clipped(self, graph: Graph, x: str, center: str, factor: str, bounds: Sequence[str]) -> str:
        """Add centered cells times a factor, clipped if there are two bounds, and 0 where `x` is infinite (missing)."""
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
        return graph.op("Mul", v, graph.cast(graph.op("Not", missing), graph.dtype))


def compared_columns(
    graph: Graph, forest: Forest, inputs: Input, values: Mapping[int, Floats]
) -> tuple[str, NDArray[np.int64]]:
    """Add the columns that splits compare: the layer's input, and a column for each distinct categorical split.

    `values` are the numbers, (categories,), that represent the categories in a column of the layer's input. Returns
    the name of the columns, (columns, rows), and the column of each of the forest's splits, (splits,).
    """
    nodes, width = forest.nodes, forest.n_features
    is_categorical = nodes.cat_start >= 0
    parts, number = [inputs.below], nodes.feature.astype(np.int64)
    right = ~nodes.missing_left & ~is_categorical & (number >= inputs.n_units)
    if inputs.features and right.any():
        parts.append(inputs.above())
        number, width = number + np.where(right, width, 0), 2 * width
    if is_categorical.any():
        name, column = _split_columns(graph, nodes, inputs, values)
        parts.append(name)
        number = np.where(is_categorical, width + column, number)
    return graph.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0], number


def _split_columns(
    graph: Graph, nodes: Nodes, inputs: Input, values: Mapping[int, Floats]
) -> tuple[str, NDArray[np.int64]]:
    """Add the columns of categorical splits; returns their name, and the column of each split, 0 for numeric ones."""
    # features with codes come first, as they are read together
    split = sorted(np.unique(nodes.feature[nodes.cat_start >= 0]).tolist(), key=lambda j: not _is_codes(values[j]))
    sets = [np.unique(_sent_left(nodes, j, values[j]), axis=1, return_inverse=True) for j in split]
    n_bytes = max(-(-left.shape[1] // 8) for left, _ in sets)
    column, tables = np.zeros(len(nodes.feature), np.int64), []
    for number, (j, (left, place)) in enumerate(zip(split, sets, strict=True)):
        column[(nodes.cat_start >= 0) & (nodes.feature == j)] = 8 * n_bytes * number + place.ravel()
        bits = np.pad(1 - left, [(0, 0), (0, 8 * n_bytes - left.shape[1])])
        tables.append(np.packbits(bits, axis=1, bitorder="little"))
    begin, n_coded = np.cumsum([0, *map(len, tables)])[:-1, None], sum(_is_codes(values[j]) for j in split)
    codes = []
    for part in (slice(0, n_coded), *(slice(place, place + 1) for place in range(n_coded, len(split)))):
        if part.start < part.stop:
            x = graph.op("Gather", inputs.features, np.array(split[part]) - inputs.n_units, axis=0)
            codes.append(_table_rows(graph, x, [values[j] for j in split[part]], begin[part]))
    code = codes[0] if len(codes) == 1 else graph.op("Concat", *codes, axis=0)
    packed = graph.op("Gather", np.concatenate(tables), code, axis=0)  # (features, rows, bytes)
    bit = graph.op("BitwiseAnd", graph.op("Unsqueeze", packed, int64(3)), _BITS)
    real = graph.cast(graph.cast(bit, bool), graph.dtype)
    across = graph.op("Transpose", real, perm=[0, 2, 3, 1])
    return graph.reshaped(across, 8 * n_bytes * len(split), -1), column


def _table_rows(graph: Graph, x: str, values: Sequence[Floats], begin: NDArray[np.int64]) -> str:
    """Add the row of the table for each cell; returns their name, (features, rows).

    The rows of a feature's categories are followed by those of unseen categories and of missing values. `x` is the name
    of the cells, (features, rows). `values` has (categories,) for each feature; there may be several only if all have
    codes. `begin`, (features, 1), is the first row of each feature in the table.
    """
    count = np.array([[len(part)] for part in values])
    if _is_codes(values[0]):
        above = graph.op("Greater", x, np.array(-1.0))
        inside = graph.op("And", above, graph.op("Less", x, count.astype(np.float64)))
        known = graph.op("And", inside, graph.op("Equal", x, graph.op("Floor", x)))
        code = graph.cast(graph.op("Where", known, x, np.zeros(())), np.int64)
    else:
        equal = graph.cast(graph.op("Equal", x, values[0][:, None]), np.int32)
        code = graph.op("ArgMax", equal, axis=0, keepdims=1)
        known = graph.cast(graph.op("ReduceMax", equal, int64(0)), bool)
    other = graph.op("Where", graph.op("IsNaN", x), begin + count + 1, begin + count)
    return graph.op("Where", known, graph.op("Add", code, begin), other)


def _is_codes(values: Floats) -> bool:
    return np.array_equal(values, np.arange(len(values)))


def _sent_left(nodes: Nodes, feature: int, values: Floats) -> NDArray[np.uint8]:
    """Return 1 where a split of a feature sends a row left, (categories + 2, splits); unseen and missing are last."""
    splits = np.flatnonzero((nodes.cat_start >= 0) & (nodes.feature == feature))
    left = np.zeros((len(values) + 2, len(splits)), np.uint8)
    for number, split in enumerate(splits.tolist()):
        start, words = int(nodes.cat_start[split]), int(nodes.cat_words[split])
        bits = np.unpackbits(nodes.categories[start : start + words].astype("<u4").view(np.uint8), bitorder="little")
        held = min(len(bits), len(values) + 1)
        left[:held, number] = bits[:held]
    left[-1] = nodes.missing_left[splits]
    return left
