"""Leaves that rows have reached, as nodes of a graph: what they predict, as parts of a layer's outputs.

Numbers of one output are looked up one by one, .7 ns each, for all rows of a block. A leaf of an output layer that
serves several outputs has many: its weights are read as they lie, side by side, and multiplied by cells and their
squares in one product of matrices for each row. What a walk leads to is anywhere in the tables, so those of a leaf
lie together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.export.onnx_inputs import Input
from boostbp.export.onnx_numbers import multiples
from boostbp.export.onnx_rows import Rows, joined, looked_up
from boostbp.export.onnx_sums import Sums
from boostbp.export.onnx_tables import LeafTerms, side_by_side, units_of_leaves
from boostbp.export.tree_tables import TreeTables

TERMS = 1000  # that are read together where their order does not matter, so that numbers of them stay in the cache


@dataclass(frozen=True, slots=True)
class Cells:
    """Names of what terms of leaves read, (terms read * rows,).

    Attributes
    ----------
    term : str
        Place of each term in the tables.
    x, v : str
        The cell, and what stands for it in the regression.
    """

    term: str
    x: str
    v: str

    def factor(self, graph: Graph, terms: LeafTerms) -> str:
        """Add what `v` is multiplied by."""
        slope = looked_up(graph, terms.slope, self.term)
        if not terms.square:
            return slope
        return graph.op("Add", slope, graph.op("Mul", self.v, looked_up(graph, terms.square, self.term)))


@dataclass(frozen=True, slots=True)
class Reached:
    """Leaves of all trees that a walk has led rows to.

    Attributes
    ----------
    tables : TreeTables
    leaf : str
        Numbers of leaves by their nodes.
    node : str
        (trees * rows,)
    columns : str
        Cells, flat.
    inputs : Input
    rows : Rows
    """

    tables: TreeTables
    leaf: str
    node: str
    columns: str
    inputs: Input
    rows: Rows

    def add(self, graph: Graph, output: NDArray[np.int64], sums: Sums, *, clip: bool) -> None:
        """Add what they predict, as parts of sums.

        Parameters
        ----------
        output : (trees,) int64
            The first of those that a tree serves.
        clip : bool
            Whether cells are clipped to the range of the leaf's rows.
        """
        tables, units = self.tables, units_of_leaves(graph, self.tables)
        constant, order = multiples(graph, tables.constant, units), tables.tree << 32
        terms = LeafTerms.of(graph, tables, units, clip=clip) if tables.n_terms.any() else None
        if tables.n_outputs > 1:
            self._add_several(graph, constant, terms, output, sums)
            return
        constant = graph.outermost.op("Gather", graph.outermost.op("Reshape", constant, int64(-1)), self.leaf)
        constant = looked_up(graph, constant, self.node)
        if terms is None:
            sums.add(graph.op("Reshape", constant, int64(len(output), -1)), output, order)
        elif sums.in_order or sums.n_outputs > 1 or tables.if_missing is not None:
            sums.add(self._in_order(graph, constant, terms), output, order)
        else:
            totals = [self.rows.total(graph, len(output), constant), *self._totals(graph, terms)]
            sums.add(joined(graph, totals), output[:1].repeat(len(totals)), order[:1].repeat(len(totals)))

    def _totals(self, graph: Graph, terms: LeafTerms) -> Iterator[str]:
        """Add the sums of terms, each (1, rows): of all of one row, of many rows of few terms at a time."""
        single = self.rows.single
        parts = self._groups(graph, self.tables.groups if single else _pieces(self.tables.groups))
        for together in [parts] if single else [[part] for part in parts]:
            cells = self._cells(graph, terms, together, by_tree=not single)
            products = graph.op("Mul", cells.v, cells.factor(graph, terms))
            yield self.rows.total(graph, sum(part.n * part.k for part in together), products)

    def _groups(self, graph: Graph, groups: Sequence[tuple[int, int]]) -> list[Group]:
        """Add the nodes of groups of trees that have terms."""
        nodes = self._split(graph, self.node, groups)
        return [Group(n, k, node) for (n, k), node in zip(groups, nodes, strict=True) if k]

    def _split(self, graph: Graph, flat: str, groups: Sequence[tuple[int, int]]) -> list[str]:
        """Add parts of a flat array of trees, those of groups."""
        return self.rows.split(graph, flat, [n for n, _ in groups])

    def _cells(self, graph: Graph, terms: LeafTerms, groups: Sequence[Group], *, by_tree: bool = False) -> Cells:
        """Add what the terms of groups read: the first ones of all trees of a group come first, or all of a tree."""
        begin, places = graph.outermost.op("Gather", terms.begin, self.leaf), []
        for group in groups:
            shape = int64(group.n, 1, -1) if by_tree else int64(1, -1)
            first = graph.op("Reshape", looked_up(graph, begin, group.node), shape)
            place = graph.op("Add", first, np.arange(group.k, dtype=np.int32)[:, None])
            places.append(graph.op("Reshape", place, int64(-1)))
        term = joined(graph, places)
        column = looked_up(graph, self.rows.begins(graph, terms.column), term)
        count = sum(group.n * group.k for group in groups)
        x = looked_up(graph, self.columns, self.rows.places(graph, column, count))
        bounds = tuple(looked_up(graph, bound, term) for bound in terms.bounds)
        center, factor = (name and looked_up(graph, name, term) for name in (terms.center, terms.factor))
        return Cells(term, x, self.inputs.clipped(graph, x, center, factor, bounds, many=True))

    def _in_order(self, graph: Graph, constant: str, terms: LeafTerms) -> str:
        """Add what each tree predicts, constants and terms in this order: (trees, rows)."""
        tables, groups, totals = self.tables, self.tables.groups, []
        cells = self._cells(graph, terms, self._groups(graph, groups))
        products = graph.op("Mul", cells.v, cells.factor(graph, terms))
        of_groups = iter(self.rows.split(graph, products, [n * k for n, k in groups if k]))
        for total, (_, k) in zip(self._split(graph, constant, groups), groups, strict=True):
            if k:
                both = graph.op("Unsqueeze", total, int64(0)), graph.op("Reshape", next(of_groups), int64(k, -1))
                total = graph.op("ReduceSum", graph.op("Concat", *both, axis=0), int64(0), keepdims=0)
            totals.append(total)
        total = joined(graph, totals)
        if tables.if_missing is not None and self.inputs.any_missing:
            total = self._or_instead(graph, terms, cells, total)
        return graph.op("Reshape", total, int64(len(tables.tree), -1))

    def _or_instead(self, graph: Graph, terms: LeafTerms, cells: Cells, total: str) -> str:
        """Add that leaves predict something else for rows that miss a column of their terms, (trees * rows,)."""
        of_node, groups = graph.outermost.op("Gather", self.tables.if_missing, self.leaf), self.tables.groups

        def of_missing(inner: Graph) -> str:
            TP = library().TensorProto
            gone = inner.op("And", inner.op("IsInf", cells.x), looked_up(inner, terms.there, cells.term))
            gone = inner.op("Cast", gone, to=TP.INT32)
            parts = iter(self.rows.split(inner, gone, [n * k for n, k in groups if k]))
            some = [
                inner.op("ReduceMax", inner.op("Reshape", next(parts), int64(k, -1)), int64(0), keepdims=0)
                if k
                else inner.op("Sub", of_group, of_group)
                for of_group, (_, k) in zip(self._split(inner, self.node, groups), groups, strict=True)
            ]
            instead = looked_up(inner, of_node, self.node)
            applies = inner.op("Cast", joined(inner, some), to=TP.BOOL)
            applies = inner.op("And", applies, inner.op("Not", inner.op("IsNaN", instead)))
            return inner.op("Where", applies, instead, total)

        return graph.either(self.inputs.any_missing, of_missing, lambda inner: inner.op("Identity", total))

    def _add_several(
        self, graph: Graph, constant: str, terms: LeafTerms | None, output: NDArray[np.int64], sums: Sums
    ) -> None:
        """Add what leaves of several outputs predict, as parts of sums."""
        tables, m, order = self.tables, self.tables.n_outputs, self.tables.tree << 32
        leaf, outputs, trees = looked_up(graph, self.leaf, self.node), np.arange(m), np.arange(len(output))
        parts = [Part(constant, leaf, "", trees, np.zeros_like(trees))]
        if terms is not None:
            cells = self._cells(graph, terms, self._groups(graph, tables.groups))
            tree, number = _entries(tables.groups)
            parts.append(Part(terms.slope, cells.term, cells.v, tree, 2 * number + 1))
            if terms.square:
                square = graph.op("Mul", cells.v, cells.v)
                parts.append(Part(terms.square, cells.term, square, tree, 2 * number + 2))
        if not sums.in_order and (output == output[0]).all():
            weights = side_by_side(graph, tables, [part.weight for part in parts])
            sums.add(
                self._by_row(graph, weights, [leaf, *(part.factor for part in parts[1:])]),
                output[0] + outputs,
                order[:1].repeat(m),
            )
            return
        for part in parts:
            sums.add(
                part.products(graph, m),
                (output[part.tree, None] + outputs).ravel(),
                (order[part.tree] + part.number).repeat(m),
            )

    def _by_row(self, graph: Graph, weights: Sequence[str], flat: Sequence[str]) -> str:
        """Add the sums of trees that serve the same outputs, (outputs, rows): those of one row after the other.

        Parameters
        ----------
        weights : list of str
            Of the leaves of a group, (leaves, weights).
        flat : list of str
            Leaves, (trees * rows,), and what their slopes and squares are multiplied by, (terms read * rows,).
        """
        tables, m, rows = self.tables, self.tables.n_outputs, self.rows

        def of_row(inner: Graph, leaf: str, *factors: str) -> str:
            totals = []
            numbers = Rows().split(inner, leaf, [n for n, _ in tables.groups])
            cells = [iter(Rows().split(inner, name, [n * k for n, k in tables.groups if k])) for name in factors]
            for (n, k), (begin, _), table, number in zip(tables.groups, tables.leaves, weights, numbers, strict=True):
                weight = inner.op("Gather", table, inner.op("Sub", number, np.int32(begin)), axis=0)
                if not k:
                    totals.append(inner.op("ReduceSum", weight, int64(0)))
                    continue
                ones = inner.outermost.op("Expand", np.ones((1, 1)), int64(1, n))
                of_leaf = inner.op(
                    "Concat", ones, *(inner.op("Reshape", next(part), int64(k, n)) for part in cells), axis=0
                )
                of_tree = inner.op("Reshape", inner.op("Transpose", of_leaf, perm=[1, 0]), int64(1, -1))
                totals.append(inner.op("MatMul", of_tree, inner.op("Reshape", weight, int64(-1, m))))
            return inner.op("Sum", *totals)

        if rows.single:
            return graph.op("Transpose", of_row(graph, *flat), perm=[1, 0])
        TP, body = library().TensorProto, graph.inner()
        values = [body.typed(body.name(), body.real if number else TP.INT32, [None]) for number in range(len(flat))]
        proto = body.proto(values, [body.typed(of_row(body, *(value.name for value in values)))])
        across = [rows.across(graph, name) for name in flat]
        totals = graph.op("Scan", *across, body=proto, num_scan_inputs=len(across))  # (rows, 1, outputs)
        return graph.op("Transpose", graph.op("Squeeze", totals, int64(1)), perm=[1, 0])


@dataclass(frozen=True, slots=True)
class Group:
    """Trees whose leaves have as many terms: how many, of how many terms, and the nodes reached, (trees * rows,)."""

    n: int
    k: int
    node: str


@dataclass(frozen=True, slots=True)
class Part:
    """What leaves of several outputs predict: constants, slopes or squares.

    Attributes
    ----------
    weight : str
        (numbers, outputs)
    place : str
        Those that are read, (places * rows,).
    factor : str
        What they are multiplied by; "" of constants.
    tree, number : (places,) int64
        Tree of each place, and its number among the parts of the tree.
    """

    weight: str
    place: str
    factor: str
    tree: NDArray[np.int64]
    number: NDArray[np.int64]

    def products(self, graph: Graph, m: int) -> str:
        """Add them times their factors, (places * outputs, rows)."""
        made, count = graph.op("Gather", self.weight, self.place, axis=0), len(self.tree)
        if self.factor:
            made = graph.op("Mul", made, graph.op("Unsqueeze", self.factor, int64(1)))
        across = graph.op("Transpose", graph.op("Reshape", made, int64(count, -1, m)), perm=[0, 2, 1])
        return graph.op("Reshape", across, int64(count * m, -1))


def _pieces(groups: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return groups in pieces of some `TERMS` terms."""
    return [(len(part), k) for n, k in groups for part in np.array_split(np.arange(n), min(n, n * k // TERMS + 1))]


def _entries(groups: Sequence[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tree of each of the terms that are read, and its number in the leaf."""
    begin, trees, numbers = 0, [], []
    for n, k in groups:
        trees.append(np.tile(np.arange(begin, begin + n), k))
        numbers.append(np.repeat(np.arange(k), n))
        begin += n
    return np.concatenate(trees), np.concatenate(numbers)
