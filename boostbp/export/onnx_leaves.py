"""Predictions of reached leaves as nodes of a graph, parts of a layer's outputs, and the input that leaves read.

Arrays of a block of rows are flat, (things * rows,), with the rows of a thing next to each other. Numbers of one output
are looked up one by one, those of several outputs together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.export.onnx_graph import Graph, int64
from boostbp.export.tree_tables import TreeTables
from boostbp.runtime.arrays import Floats


def looked_up(graph: Graph, table: str, place: str) -> str:
    """Add entries of a flat table."""
    return graph.op("GatherElements", table, place, axis=0)


def concatenated(graph: Graph, parts: Sequence[str]) -> str:
    """Add arrays as one, along the first axis."""
    return graph.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]


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


@dataclass(frozen=True, slots=True)
class BlockRows:
    """The rows of a block, or a single row."""

    # count, count32: names of the number of rows, (1,) int64 and int32; "" for a single row
    count: str = ""
    count32: str = ""
    number: str = ""  # name of the numbers of the rows, (rows,) int32

    @classmethod
    def of(cls, graph: Graph, columns: str) -> BlockRows:
        """Add the number of rows of (columns, rows)."""
        count = graph.op("Shape", columns, start=1, end=2)
        count32 = graph.cast(count, np.int32)
        return cls(count, count32, graph.op("Range", np.int32(0), graph.op("Squeeze", count32), np.int32(1)))

    def split(self, graph: Graph, flat: str, counts: Sequence[int]) -> list[str]:
        """Add parts of a flat array, with the numbers of things in `counts`."""
        if len(counts) == 1:
            return [flat]
        names = [graph.name() for _ in counts]
        sizes = graph.op("Mul", self.count, int64(*counts)) if self.count else int64(*counts)
        graph.op("Split", flat, sizes, axis=0, outputs=names)
        return names

    def begins(self, graph: Graph, number: str) -> str:
        """Add the first places of things in a flat array, by their numbers."""
        return graph.op("Mul", number, self.count32) if self.count else number

    def places(self, graph: Graph, begin: str, count: int) -> str:
        """Add the places of (count * rows,) entries in a flat array, from the first places of their things."""
        if not self.count:
            return begin
        return graph.reshaped(graph.op("Add", graph.reshaped(begin, count, -1), self.number), -1)


class OutputParts(NamedTuple):
    """Summands of a layer's outputs."""

    name: str  # array of (parts, rows)
    # output, order: (parts,) each: the output of each part, and the key that sorts the parts of an output before they
    # are added in order
    output: NDArray[np.int64]
    order: NDArray[np.int64]


def total_of(graph: Graph, parts: Sequence[OutputParts], n_outputs: int, inputs: Input) -> str:
    """Add the sums of parts, (outputs, rows), in the order of the core, and so with its bits."""
    names = [part.name for part in parts]
    output, order = (np.concatenate([np.empty(0, np.int64), *(part[k] for part in parts)]) for k in (1, 2))
    part = np.lexsort([order, output])
    count = np.bincount(output, minlength=n_outputs)
    number = np.arange(len(part)) - np.repeat(np.cumsum(count) - count, count)  # number of each part in its output
    # parts by number and output; outputs with fewer parts are filled up with zeros
    place = np.full((max(count.max(initial=0), 1), n_outputs), len(output))
    place[number, output[part]] = part
    if (place == len(output)).any():
        names.append(inputs.zeros(graph))
    summands = concatenated(graph, names)
    if not np.array_equal(place.ravel(), np.arange(len(output))):
        kind, summands = ("GatherElements", graph.reshaped(summands, -1)) if inputs.single else ("Gather", summands)
        summands = graph.op(kind, summands, graph.table(place.ravel()), axis=0)
    if len(place) == 1:
        return graph.reshaped(summands, n_outputs, -1)
    return graph.op("ReduceSum", graph.reshaped(summands, *place.shape, -1), int64(0), keepdims=0)


@dataclass(frozen=True, slots=True)
class ReachedLeaves:
    """Leaves of all trees that rows have reached."""

    graph: Graph
    tables: TreeTables
    leaf: str  # name of the leaves' numbers by their nodes
    node: str  # name of the nodes reached, (trees * rows,)
    cells: str  # name of the layer's input, flat
    inputs: Input
    rows: BlockRows
    clip: bool  # whether cells are clipped to the range of the leaf's training rows

    def parts(self, output: NDArray[np.int64]) -> Iterator[OutputParts]:
        """Add the predictions of the leaves; `output`, (trees,), is the first output that each tree serves."""
        graph, tables, order = self.graph, self.tables, self.tables.tree << 32
        if tables.constant.shape[1] > 1:
            yield from self._several_outputs(output, order)
            return
        constant = graph.outermost.op("Gather", graph.table(tables.constant.ravel()), self.leaf)
        constant = looked_up(graph, constant, self.node)
        has_terms = tables.n_terms.any()
        total = self._tree_by_tree(constant) if has_terms else graph.reshaped(constant, len(output), -1)
        yield OutputParts(total, output, order)

    def _standardised_cells(self) -> tuple[str, str]:
        """Add the places of the terms that are read, and their standardised cells, (terms read * rows,) each."""
        graph, once, groups, places = self.graph, self.graph.outermost, self.tables.groups, []
        first_term = once.op("CumSum", graph.table(self.tables.n_read), np.int64(0), exclusive=1)
        begin = once.op("Gather", first_term, self.leaf)
        for (_, k), node in zip(groups, self.rows.split(graph, self.node, [n for n, _ in groups]), strict=True):
            if k:  # the first terms of all trees, then the second ones
                first = graph.reshaped(looked_up(graph, begin, node), 1, -1)
                place = graph.op("Add", first, np.arange(k, dtype=np.int32)[:, None])
                places.append(graph.reshaped(place, -1))
        term, terms = concatenated(graph, places), self.tables.terms
        column = looked_up(graph, self.rows.begins(graph, graph.table(terms.column)), term)
        x = looked_up(graph, self.cells, self.rows.places(graph, column, sum(n * k for n, k in groups)))

        def of_term(values: Floats) -> str:
            return looked_up(graph, graph.table(values), term)

        center, factor = of_term(terms.center), "" if (terms.factor == 1.0).all() else of_term(terms.factor)
        ends = np.finfo(graph.dtype)  # bounds are finite: infinity times 0 would be NaN
        bounds = [of_term(np.clip(bound, ends.min, ends.max)) for bound in (terms.lower, terms.upper) if self.clip]
        return term, self.inputs.clipped(graph, x, center, factor, bounds)

    def _products(self) -> str:
        """Add the terms of leaves of one output, (terms read * rows,): cells times slopes, and their squares."""
        graph, (term, v) = self.graph, self._standardised_cells()
        slope, square = self.tables.terms.slope, self.tables.terms.square
        factor = looked_up(graph, graph.table(slope.ravel()), term)
        if square is not None:
            curvature = looked_up(graph, graph.table(square.ravel()), term)
            factor = graph.op("Add", factor, graph.op("Mul", v, curvature))
        return graph.op("Mul", v, factor)

    def _tree_by_tree(self, constant: str) -> str:
        """Add the prediction of each tree, its constant and then its terms, (trees, rows)."""
        graph, groups, totals = self.graph, self.tables.groups, []
        products = iter(self.rows.split(graph, self._products(), [n * k for n, k in groups if k]))
        for total, (_, k) in zip(self.rows.split(graph, constant, [n for n, _ in groups]), groups, strict=True):
            if k:
                both = graph.op("Unsqueeze", total, int64(0)), graph.reshaped(next(products), k, -1)
                total = graph.op("ReduceSum", graph.op("Concat", *both, axis=0), int64(0), keepdims=0)
            totals.append(total)
        return graph.reshaped(concatenated(graph, totals), len(self.tables.tree), -1)

    def _several_outputs(self, output: NDArray[np.int64], order: NDArray[np.int64]) -> Iterator[OutputParts]:
        """Add the predictions of leaves that serve several outputs."""
        graph, tables, m = self.graph, self.tables, self.tables.constant.shape[1]
        leaf, trees = looked_up(graph, self.leaf, self.node), np.arange(len(output))
        # weights, the places of those that are read, what they are multiplied by, and of each place the tree, and its
        # number among the parts of the tree
        read = [(tables.constant, leaf, "", trees, np.zeros_like(trees))]
        if tables.n_terms.any():
            term, v = self._standardised_cells()
            tree, number = _terms_in_order(tables.groups)
            read.append((tables.terms.slope, term, v, tree, 2 * number + 1))
            if tables.terms.square is not None:
                read.append((tables.terms.square, term, graph.op("Mul", v, v), tree, 2 * number + 2))
        for weight, place, factor, tree, number in read:
            product = graph.op("Gather", graph.table(weight), place, axis=0)
            if factor:
                product = graph.op("Mul", product, graph.op("Unsqueeze", factor, int64(1)))
            product = graph.op("Transpose", graph.reshaped(product, len(tree), -1, m), perm=[0, 2, 1])
            name = graph.reshaped(product, len(tree) * m, -1)
            yield OutputParts(name, (output[tree, None] + np.arange(m)).ravel(), (order[tree] + number).repeat(m))


def _terms_in_order(groups: Sequence[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tree of each term that is read, and its number in the leaf, (terms,) each."""
    begin = np.cumsum([0, *(n for n, _ in groups)])
    trees = [np.tile(np.arange(first, first + n), k) for first, (n, k) in zip(begin[:-1], groups, strict=True)]
    return np.concatenate(trees), np.concatenate([np.repeat(np.arange(k), n) for n, k in groups])
