"""Categorical splits in a graph: each becomes a column that is 0 where it sends a row left, and 1 elsewhere.

A table holds the columns by the category of a row, packed as bits; the columns of all splits of a feature are read at
once.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest

BITS = np.uint8(1) << np.arange(8, dtype=np.uint8)


class SplitColumns:
    """Columns of the categorical splits of a layer.

    Attributes
    ----------
    column : (splits,) int64
        Column of each of the forest's splits among those that `add` adds; -1 for numeric splits.
    count : int
        Number of columns.
    """

    def __init__(self, forest: Forest, values: Mapping[int, Floats]) -> None:
        """Number the columns.

        Parameters
        ----------
        values : dict of int to (categories,) float64
            Numbers that stand for the categories in a column of the layer's input.
        """
        nodes = forest.nodes
        split = np.unique(nodes.feature[nodes.cat_start >= 0]).tolist()
        # codes come first, because they are read together
        self.values = {feature: values[feature] for feature in sorted(split, key=lambda j: not _is_codes(values[j]))}
        self.column = np.full(len(nodes.feature), -1)
        words = [
            np.unique(_left(forest, feature, self.values[feature]), axis=1, return_inverse=True)
            for feature in self.values
        ]
        width = max((-(-sets.shape[1] // 8) for sets, _ in words), default=0)
        self.count = 8 * width * len(words)
        self.tables = []
        for number, (feature, (sets, place)) in enumerate(zip(self.values, words, strict=True)):
            splits = np.flatnonzero((nodes.cat_start >= 0) & (nodes.feature == feature))
            self.column[splits] = 8 * width * number + place.ravel()
            wide = np.zeros((len(sets), 8 * width), np.uint8)
            wide[:, : sets.shape[1]] = 1 - sets
            self.tables.append(np.packbits(wide, axis=1, bitorder="little"))

    def add(self, graph: Graph, features: str, n_units: int) -> str:
        """Add the columns; returns their name, (columns, rows).

        Parameters
        ----------
        features : str
            Name of the features, (features, rows).
        n_units : int
            Number of columns before the features in the layer's input.
        """
        begin = np.cumsum([0, *(len(table) for table in self.tables)])[:-1]
        n_codes = sum(map(_is_codes, self.values.values()))
        column = np.array(list(self.values))
        parts = [slice(0, n_codes), *(slice(j, j + 1) for j in range(n_codes, len(column)))]
        codes = [
            self._code(graph, graph.op("Gather", features, column[part] - n_units, axis=0), column[part], begin[part])
            for part in parts
            if part.start < part.stop
        ]
        code = codes[0] if len(codes) == 1 else graph.op("Concat", *codes, axis=0)
        packed = graph.op("Gather", np.concatenate(self.tables), code, axis=0)  # (features, rows, bytes)
        bits = graph.op("BitwiseAnd", graph.op("Unsqueeze", packed, int64(3)), BITS)
        real = graph.op("Cast", graph.op("Cast", bits, to=library().TensorProto.BOOL), to=graph.real)
        across = graph.op("Transpose", real, perm=[0, 2, 3, 1])
        return graph.op("Reshape", across, int64(self.count, -1))

    def _code(self, graph: Graph, x: str, column: NDArray[np.int64], begin: NDArray[np.int64]) -> str:
        """Add the row of the table for each cell; returns their name, (features, rows).

        Behind the rows of a feature's categories come the row of unseen categories and that of missing values.

        Parameters
        ----------
        x : str
            Name of the cells, (features, rows).
        column : (features,) int64
            Columns of the layer's input; more than one only if all hold codes.
        begin : (features,) int64
            First row of each feature in the table.
        """
        TP = library().TensorProto
        values = self.values[int(column[0])]
        count, begin = np.array([len(self.values[j]) for j in column.tolist()])[:, None], begin[:, None]
        if _is_codes(values):
            above = graph.op("Greater", x, np.array(-1.0))
            inside = graph.op("And", above, graph.op("Less", x, count.astype(np.float64)))
            known = graph.op("And", inside, graph.op("Equal", x, graph.op("Floor", x)))
            code = graph.op("Cast", graph.op("Where", known, x, np.zeros(())), to=TP.INT64)
        else:
            equal = graph.op("Cast", graph.op("Equal", x, values[:, None]), to=TP.INT32)
            code = graph.op("ArgMax", equal, axis=0, keepdims=1)
            known = graph.op("Cast", graph.op("ReduceMax", equal, int64(0)), to=TP.BOOL)
        other = graph.op("Where", graph.op("IsNaN", x), begin + count + 1, begin + count)
        return graph.op("Where", known, graph.op("Add", code, begin), other)


def _is_codes(values: Floats) -> bool:
    return np.array_equal(values, np.arange(len(values)))


def _left(forest: Forest, feature: int, values: Floats) -> NDArray[np.uint8]:
    """Return 1 where a split of a feature sends a row left, (categories + 2, splits): unseen and missing come last."""
    nodes = forest.nodes
    splits = np.flatnonzero((nodes.cat_start >= 0) & (nodes.feature == feature))
    left = np.zeros((len(values) + 2, len(splits)), np.uint8)
    for number, split in enumerate(splits.tolist()):
        start, words = int(nodes.cat_start[split]), int(nodes.cat_words[split])
        bits = np.unpackbits(nodes.categories[start : start + words].astype("<u4").view(np.uint8), bitorder="little")
        held = min(len(bits), len(values) + 1)
        left[:held, number] = bits[:held]
    left[-1] = nodes.missing_left[splits]
    return left
