"""Leaves that rows have reached, as nodes of a graph: their predictions, as parts of a layer's outputs.

Numbers of one output are looked up one by one, 0.7 ns each, for all rows of a block. A leaf that serves several outputs
of the last layer has many weights: they are read side by side, and one product of matrices for each row multiplies them
by cells and squares of cells (2.4 times faster on ten classes than one by one).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.export.onnx_inputs import Input
from boostbp.export.onnx_rows import BlockRows, OutputSums, concatenated, looked_up
from boostbp.export.tree_tables import TreeTables
from boostbp.runtime.arrays import Floats


@dataclass(frozen=True, slots=True)
class LeafPart:
    """Constants, slopes or squares of leaves that serve several outputs.

    Attributes
    ----------
    weight : (numbers, outputs) float64
    place : str
        Name of the numbers that are read, (places * rows,).
    factor : str
        Name of what they are multiplied by; "" for constants.
    tree, number : (places,) int64
        Tree of each place, and its number among the parts of the tree.
    """

    weight: Floats
    place: str
    factor: str
    tree: NDArray[np.int64]
    number: NDArray[np.int64]

    def products(self, graph: Graph) -> str:
        """Add the numbers times their factors, (places * outputs, rows)."""
        product = graph.op("Gather", graph.table(self.weight), self.place, axis=0)
        if self.factor:
            product = graph.op("Mul", product, graph.op("Unsqueeze", self.factor, int64(1)))
        n_places, n_outputs = len(self.tree), self.weight.shape[1]
        product = graph.op("Reshape", product, int64(n_places, -1, n_outputs))
        return graph.op("Reshape", graph.op("Transpose", product, perm=[0, 2, 1]), int64(n_places * n_outputs, -1))


@dataclass(frozen=True, slots=True)
class ReachedLeaves:
    """Leaves of all trees that a walk has led rows to.

    Attributes
    ----------
    tables : TreeTables
    leaf : str
        Name of the leaves' numbers by their nodes.
    node : str
        Name of the nodes reached, (trees * rows,).
    cells : str
        Name of the layer's input, flat.
    inputs : Input
    rows : BlockRows
    clip : bool
        Whether cells are clipped to the range of the leaf's training rows.
    """

    tables: TreeTables
    leaf: str
    node: str
    cells: str
    inputs: Input
    rows: BlockRows
    clip: bool

    def add(self, graph: Graph, output: NDArray[np.int64], sums: OutputSums) -> None:
        """Add the predictions of the leaves, as parts of sums.

        Parameters
        ----------
        output : (trees,) int64
            The first output that each tree serves.
        """
        tables, order = self.tables, self.tables.tree << 32
        has_terms = bool(tables.n_terms.any())
        if tables.n_outputs > 1:
            self._add_several_outputs(graph, output, sums, has_terms=has_terms)
            return
        constant = graph.outermost.op("Gather", graph.table(tables.constant.ravel()), self.leaf)
        constant = looked_up(graph, constant, self.node)
        if not has_terms:
            sums.add(graph.op("Reshape", constant, int64(len(output), -1)), output, order)
        elif sums.in_order or sums.n_outputs > 1:
            sums.add(self._tree_by_tree(graph, constant), output, order)
        else:
            terms = self.rows.total(graph, sum(n * k for n, k in tables.groups), self._products(graph))
            both = concatenated(graph, [self.rows.total(graph, len(output), constant), terms])
            sums.add(both, output[:1].repeat(2), order[:1].repeat(2))

    def _cells(self, graph: Graph) -> tuple[str, str]:
        """Add the places of the terms that are read in the table of terms, and their standardised cells.

        Both are (terms read * rows,): in each group of trees the first terms of all trees, then the second ones.
        """
        once = graph.outermost
        first_term = once.op("CumSum", graph.table(self.tables.n_read), np.int64(0), exclusive=1)
        begin, places, groups = once.op("Gather", first_term, self.leaf), [], self.tables.groups
        for (_, k), node in zip(groups, self.rows.split(graph, self.node, [n for n, _ in groups]), strict=True):
            if k:
                first = graph.op("Reshape", looked_up(graph, begin, node), int64(1, -1))
                place = graph.op("Add", first, np.arange(k, dtype=np.int32)[:, None])
                places.append(graph.op("Reshape", place, int64(-1)))
        term, terms = concatenated(graph, places), self.tables.terms
        column = looked_up(graph, self.rows.begins(graph, graph.table(terms.column)), term)
        x = looked_up(graph, self.cells, self.rows.places(graph, column, sum(n * k for n, k in groups)))

        def of_term(values: Floats) -> str:
            return looked_up(graph, graph.table(values), term)

        center, factor = of_term(terms.center), "" if (terms.factor == 1.0).all() else of_term(terms.factor)
        bounds = tuple(map(of_term, terms.bounds(graph.dtype))) if self.clip else ()
        return term, self.inputs.clipped(graph, x, center, factor, bounds)

    def _products(self, graph: Graph) -> str:
        """Add the terms of leaves of one output, (terms read * rows,): cells times slopes, and their squares."""
        term, v = self._cells(graph)
        slope, square = self.tables.terms.slope, self.tables.terms.square
        factor = looked_up(graph, graph.table(slope.ravel()), term)
        if square is not None:
            curvature = looked_up(graph, graph.table(square.ravel()), term)
            factor = graph.op("Add", factor, graph.op("Mul", v, curvature))
        return graph.op("Mul", v, factor)

    def _tree_by_tree(self, graph: Graph, constant: str) -> str:
        """Add the prediction of each tree, its constant and then its terms, (trees, rows)."""
        groups, totals = self.tables.groups, []
        products = iter(self.rows.split(graph, self._products(graph), [n * k for n, k in groups if k]))
        constants = self.rows.split(graph, constant, [n for n, _ in groups])
        for total, (_, k) in zip(constants, groups, strict=True):
            if k:
                both = graph.op("Unsqueeze", total, int64(0)), graph.op("Reshape", next(products), int64(k, -1))
                total = graph.op("ReduceSum", graph.op("Concat", *both, axis=0), int64(0), keepdims=0)
            totals.append(total)
        return graph.op("Reshape", concatenated(graph, totals), int64(len(self.tables.tree), -1))

    def _add_several_outputs(
        self, graph: Graph, output: NDArray[np.int64], sums: OutputSums, *, has_terms: bool
    ) -> None:
        """Add the predictions of leaves that serve several outputs, as parts of sums."""
        tables, order = self.tables, self.tables.tree << 32
        leaf, trees = looked_up(graph, self.leaf, self.node), np.arange(len(output))
        outputs = np.arange(tables.n_outputs)
        parts = [LeafPart(tables.constant, leaf, "", trees, np.zeros_like(trees))]
        if has_terms:
            term, v = self._cells(graph)
            tree, number = _terms_in_order(tables.groups)
            parts.append(LeafPart(tables.terms.slope, term, v, tree, 2 * number + 1))
            if tables.terms.square is not None:
                parts.append(LeafPart(tables.terms.square, term, graph.op("Mul", v, v), tree, 2 * number + 2))
        if not sums.in_order and (output == output[0]).all():
            total = self._row_by_row(graph, [leaf, *(part.factor for part in parts[1:])])
            sums.add(total, output[0] + outputs, order[:1].repeat(len(outputs)))
            return
        for part in parts:
            key = (order[part.tree] + part.number).repeat(len(outputs))
            sums.add(part.products(graph), (output[part.tree, None] + outputs).ravel(), key)

    def _row_by_row(self, graph: Graph, flat: Sequence[str]) -> str:
        """Add the sums of trees that serve the same outputs, (outputs, rows), one row after the other.

        Parameters
        ----------
        flat : list of str
            Names of the leaves, (trees * rows,), and of the factors of slopes and squares, (terms read * rows,).
        """
        groups, n_outputs = self.tables.groups, self.tables.n_outputs
        weights = [graph.table(weight) for weight in _weights_of_leaves(self.tables)]

        def of_row(inner: Graph, leaf: str, *factors: str) -> str:
            totals = []
            leaves = BlockRows().split(inner, leaf, [n for n, _ in groups])
            cells = [iter(BlockRows().split(inner, name, [n * k for n, k in groups if k])) for name in factors]
            for (n, k), of_group, table, number in zip(groups, self.tables.leaves, weights, leaves, strict=True):
                weight = inner.op("Gather", table, inner.op("Sub", number, np.int32(of_group.start)), axis=0)
                if not k:
                    totals.append(inner.op("ReduceSum", weight, int64(0)))
                    continue
                ones = inner.outermost.op("Expand", np.ones((1, 1)), int64(1, n))
                by_term = [ones, *(inner.op("Reshape", next(part), int64(k, n)) for part in cells)]
                by_tree = inner.op("Transpose", inner.op("Concat", *by_term, axis=0), perm=[1, 0])
                weight = inner.op("Reshape", weight, int64(-1, n_outputs))
                totals.append(inner.op("MatMul", inner.op("Reshape", by_tree, int64(1, -1)), weight))
            return inner.op("Sum", *totals)

        if self.rows.single:
            return graph.op("Transpose", of_row(graph, *flat), perm=[1, 0])
        TP, body = library().TensorProto, graph.inner()
        values = [body.typed(body.name(), body.real if number else TP.INT32, [None]) for number in range(len(flat))]
        proto = body.proto(values, [body.typed(of_row(body, *(value.name for value in values)))])
        by_row = [self.rows.transposed(graph, name) for name in flat]
        totals = graph.op("Scan", *by_row, body=proto, num_scan_inputs=len(by_row))  # (rows, 1, outputs)
        return graph.op("Transpose", graph.op("Squeeze", totals, int64(1)), perm=[1, 0])


def _weights_of_leaves(tables: TreeTables) -> Iterator[Floats]:
    """Yield all weights of each leaf side by side, (leaves, weights), for each group of trees."""
    terms, place = tables.terms, 0
    for (_, k), leaves in zip(tables.groups, tables.leaves, strict=True):
        n_leaves = leaves.stop - leaves.start
        of_group = slice(place, place + n_leaves * k)
        of_terms = [weight[of_group] for weight in (terms.slope, terms.square) if k and weight is not None]
        yield np.concatenate([tables.constant[leaves], *(part.reshape(n_leaves, -1) for part in of_terms)], axis=1)
        place = of_group.stop


def _terms_in_order(groups: Sequence[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tree of each term that is read, and its number in the leaf, (terms,) each."""
    begin, trees, numbers = 0, [], []
    for n, k in groups:
        trees.append(np.tile(np.arange(begin, begin + n), k))
        numbers.append(np.repeat(np.arange(k), n))
        begin += n
    return np.concatenate(trees), np.concatenate(numbers)
