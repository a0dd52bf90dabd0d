"""Trees as nodes of a graph: a walk down all of them in step, and the terms of the leaves that it leads to.

The file has of a tree which of its nodes are splits, by what each splits, and the numbers of its leaves. A runtime
makes of these, once, the tables in which a node leads to its children, and a leaf to its terms. Of a block, first all
different splits are asked, a few thousand of which trees have each many times; then rows walk. All is flat, of things
times rows, and is read from tables of one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.export.onnx_inputs import Columns, Input
from boostbp.export.onnx_numbers import multiples
from boostbp.export.onnx_sums import Sums
from boostbp.export.onnx_tables import TOGETHER, LeafTerms, Nodes, not_above, units_of_leaves
from boostbp.export.tree_tables import TreeTables
from boostbp.trees.forest import Forest

PADDING = 0.2  # of the trees may have ended before a step that all take


def add_trees(graph: Graph, forest: Forest, tables: TreeTables, columns: Columns, inputs: Input, sums: Sums) -> None:
    """Add a walk down some trees, and note what it finds as parts of the outputs."""
    m, groups, n_terms = tables.n_outputs, tables.groups, int(tables.n_terms.sum())
    rows = _Rows() if inputs.single else _Rows.of(graph, columns.name, max(len(tables.tree), n_terms))
    nodes = Nodes.of(graph, tables, columns.number, not_above(graph, forest))
    node = _walk(graph, tables, nodes, columns.name, rows)
    units, output, order = units_of_leaves(graph, tables), forest.leaves.tree_output[tables.tree, 0], tables.tree << 32
    constant = multiples(graph, tables.constant, units)
    constant = _of_nodes(graph, constant, nodes.leaf, node, len(tables.tree), m)
    reached = rows.split(graph, node, [n for n, _ in groups])
    if not n_terms:
        sums.add(graph.op("Reshape", constant, int64(len(output) * m, -1)), _each(output, m), order.repeat(m))
        return
    leaves = LeafTerms.of(graph, tables, units, clip=forest.clip)
    with_terms = [part for part in zip(reached, leaves.begin, strict=True) if len(part[1])]
    term = _joined(graph, [_terms(graph, nodes.leaf, *part) for part in with_terms])
    begin = _looked_up(graph, rows.begins(graph, leaves.column), term)
    x = _looked_up(graph, graph.op("Reshape", columns.name, int64(-1)), rows.places(graph, begin, n_terms))
    bounds = tuple(_looked_up(graph, bound, term) for bound in leaves.bounds)
    v = inputs.clipped(graph, x, _looked_up(graph, leaves.center, term), bounds, many=True)
    if m > 1:
        parts = [constant, *_products(graph, leaves, term, v, n_terms, m)]
        if not sums.in_order and (output == output[0]).all():
            for part, count in zip(parts, (len(output), n_terms, n_terms), strict=False):
                total = graph.op("ReduceSum", graph.op("Reshape", part, int64(count, m, -1)), int64(0), keepdims=0)
                sums.add(total, _each(output[:1], m), order[:1].repeat(m))
            return
        tree, number = _entries(groups)
        sums.add(graph.op("Reshape", constant, int64(len(output) * m, -1)), _each(output, m), order.repeat(m))
        for power, part in enumerate(parts[1:]):
            flat = graph.op("Reshape", part, int64(n_terms * m, -1))
            sums.add(flat, _each(output[tree], m), (order[tree] + 1 + 2 * number + power).repeat(m))
        return
    slope = _looked_up(graph, leaves.slope, term)
    if leaves.square:
        slope = graph.op("Add", slope, graph.op("Mul", v, _looked_up(graph, leaves.square, term)))
    if not sums.in_order and sums.n_outputs == 1 and tables.if_missing is None:
        for part, count in ((constant, len(output)), (graph.op("Mul", v, slope), n_terms)):
            total = graph.op("ReduceSum", graph.op("Reshape", part, int64(count, -1)), int64(0))
            sums.add(total, np.zeros(1, np.int64), order[:1])
        return
    constants = rows.split(graph, constant, [n for n, _ in groups])
    products = iter(rows.split(graph, graph.op("Mul", v, slope), [n * k for n, k in groups if k]))
    totals = [
        _sum(graph, total, next(products), k) if k else total for total, (_, k) in zip(constants, groups, strict=True)
    ]
    total = _joined(graph, totals)
    if tables.if_missing is not None and inputs.any_missing:
        total = _or_instead(graph, tables, leaves.there, x, term, nodes.leaf, node, total, inputs.any_missing, rows)
    sums.add(graph.op("Reshape", total, int64(len(output), -1)), output, order)


def _each(output: NDArray[np.int64], m: int) -> NDArray[np.int64]:
    """Return the outputs of trees that serve `m` each."""
    return (output[:, None] + np.arange(m)).ravel()


def _entries(groups: Sequence[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tree of each of the terms that are read, and its number in the leaf."""
    begin, trees, numbers = 0, [], []
    for n, k in groups:
        trees.append(np.tile(np.arange(begin, begin + n), k))
        numbers.append(np.repeat(np.arange(k), n))
        begin += n
    return np.concatenate(trees), np.concatenate(numbers)


def _terms(graph: Graph, leaf: str, node: str, begin: NDArray[np.int32]) -> str:
    """Add the terms of a group's leaves by their nodes, (terms read * trees * rows,)."""
    first = graph.op("Unsqueeze", _looked_up(graph, leaf, node), int64(0))
    return graph.op("Reshape", graph.op("Add", first, begin), int64(-1))


def _sum(graph: Graph, constant: str, products: str, k: int) -> str:
    """Add the values of a group's leaves, (trees * rows,): constants and `k` terms, in this order."""
    parts = graph.op("Unsqueeze", constant, int64(0)), graph.op("Reshape", products, int64(k, -1))
    return graph.op("ReduceSum", graph.op("Concat", *parts, axis=0), int64(0), keepdims=0)


def _joined(graph: Graph, parts: Sequence[str]) -> str:
    return graph.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a block, in flat arrays of things times rows.

    Attributes
    ----------
    count, count32 : str
        How many there are, (1,) int64 and int32; "" if it is one.
    number : str
        Their numbers again and again, (most * rows,) int32.
    most : int
    """

    count: str = ""
    count32: str = ""
    number: str = ""
    most: int = 0

    @classmethod
    def of(cls, graph: Graph, columns: str, most: int) -> _Rows:
        """Add what is asked of (columns, rows)."""
        count = graph.op("Shape", columns, start=1, end=2)
        count32 = graph.op("Cast", count, to=library().TensorProto.INT32)
        rows = graph.op("Range", np.int32(0), graph.op("Squeeze", count32), np.int32(1))
        again = graph.op("Expand", rows, graph.op("Concat", int64(most), count, axis=0))
        return cls(count, count32, graph.op("Reshape", again, int64(-1)), most)

    def split(self, graph: Graph, flat: str, counts: Sequence[int]) -> list[str]:
        """Add parts of a flat array, of so many things each."""
        if len(counts) == 1:
            return [flat]
        names = [graph.name() for _ in counts]
        sizes = graph.op("Mul", self.count, int64(*counts)) if self.count else int64(*counts)
        graph.op("Split", flat, sizes, axis=0, outputs=names)
        return names

    def repeated(self, graph: Graph, values: str, count: int) -> str:
        """Add what is the same for all rows, (count,), for each of them, (count * rows,)."""
        if not self.count:
            return values
        shape = graph.op("Concat", int64(count), self.count, axis=0)
        return graph.op("Reshape", graph.op("Expand", graph.op("Unsqueeze", values, int64(1)), shape), int64(-1))

    def begins(self, graph: Graph, number: str) -> str:
        """Add where things of some numbers begin in a flat array."""
        return graph.op("Mul", number, self.count32) if self.count else number

    def places(self, graph: Graph, begin: str, count: int) -> str:
        """Add the places of (count * rows,) in a flat array, by where their things begin."""
        if not self.count:
            return begin
        again = self.number
        if count < self.most:
            again = graph.op("Slice", again, int64(0), graph.op("Mul", self.count, int64(count)))
        return graph.op("Add", begin, again)


def _walk(graph: Graph, tables: TreeTables, nodes: Nodes, columns: str, rows: _Rows) -> str:
    """Add the way down; returns the name of the leaves' nodes, (trees * rows,)."""
    once, TP, active = graph.outermost, library().TensorProto, len(tables.tree)
    if rows.count:
        x = graph.op("Unsqueeze", graph.op("Gather", columns, nodes.column, axis=0), int64(1))
        answer = graph.op("Reshape", graph.op("Cast", graph.op("Greater", x, nodes.limit), to=TP.INT32), int64(-1))
    else:
        column = once.op("Expand", once.op("Unsqueeze", nodes.column, int64(1)), int64(1, TOGETHER))
        x = _looked_up(graph, graph.op("Reshape", columns, int64(-1)), once.op("Reshape", column, int64(-1)))
        answer = graph.op("Greater", x, once.op("Reshape", nodes.limit, int64(-1)))
        answer = graph.op("Cast", answer, to=TP.INT32)
    number = rows.begins(graph, nodes.number)
    at_root = rows.begins(graph, once.op("Gather", nodes.number, nodes.root))
    right = _looked_up(graph, answer, rows.places(graph, rows.repeated(graph, at_root, active), active))
    node = graph.op("Add", rows.repeated(graph, once.op("Gather", nodes.child, nodes.root), active), right)
    ended: list[str] = []
    for step in range(1, int(tables.n_steps.max())):
        going_on = int((tables.n_steps > step).sum())
        if going_on < (1 - PADDING) * active:
            node, end = rows.split(graph, node, [going_on, active - going_on])
            active = going_on
            ended.insert(0, end)
        right = _looked_up(graph, answer, rows.places(graph, _looked_up(graph, number, node), active))
        node = graph.op("Add", _looked_up(graph, nodes.child, node), right)
    return _joined(graph, [node, *ended])


def _looked_up(graph: Graph, table: str, place: str) -> str:
    return graph.op("GatherElements", table, place, axis=0)


def _of_nodes(graph: Graph, table: str, number: str, node: str, count: int, m: int) -> str:
    """Add entries of a table, (numbers * outputs,), by the numbers of nodes, (count * rows,), flat."""
    if m == 1:
        return _looked_up(graph, graph.outermost.op("Gather", table, number), node)
    return _by_output(graph, table, _looked_up(graph, number, node), count, m)


def _by_output(graph: Graph, table: str, number: str, count: int, m: int) -> str:
    """Add entries of a table, (numbers * outputs,), by numbers, (count * rows,), flat: (count * outputs * rows,)."""
    first = graph.op("Reshape", graph.op("Mul", number, np.int32(m)), int64(count, 1, -1))
    place = graph.op("Add", first, np.arange(m, dtype=np.int32)[:, None])
    return _looked_up(graph, table, graph.op("Reshape", place, int64(-1)))


def _products(graph: Graph, leaves: LeafTerms, term: str, v: str, count: int, m: int) -> list[str]:
    """Add terms of several outputs; returns the names of linear and quadratic ones, (count, outputs, rows)."""
    made = []
    for power, table in enumerate((leaves.slope, leaves.square)):
        if table:
            weight = graph.op("Reshape", _by_output(graph, table, term, count, m), int64(count, m, -1))
            u = graph.op("Mul", v, v) if power else v
            product = graph.op("Mul", graph.op("Reshape", u, int64(count, 1, -1)), weight)
            made.append(product)
    return made


def _or_instead(
    graph: Graph, tables: TreeTables, there: str, x: str, term: str, leaf: str, node: str, total: str, missing: str,
    rows: _Rows,
) -> str:  # fmt: skip
    """Add that leaves predict something else for rows that miss a column of their terms, (trees * rows,)."""
    of_node = graph.outermost.op("Gather", tables.if_missing, leaf)

    def of_missing(inner: Graph) -> str:
        TP = library().TensorProto
        gone = inner.op("And", inner.op("IsInf", x), _looked_up(inner, there, term))
        gone = inner.op("Cast", gone, to=TP.INT32)
        parts = iter(rows.split(inner, gone, [n * k for n, k in tables.groups if k]))
        nodes = rows.split(inner, node, [n for n, _ in tables.groups])
        some = [
            inner.op("ReduceMax", inner.op("Reshape", next(parts), int64(k, -1)), int64(0), keepdims=0)
            if k
            else inner.op("Sub", of_group, of_group)
            for of_group, (_, k) in zip(nodes, tables.groups, strict=True)
        ]
        instead = _looked_up(inner, of_node, node)
        applies = inner.op("Cast", _joined(inner, some), to=TP.BOOL)
        applies = inner.op("And", applies, inner.op("Not", inner.op("IsNaN", instead)))
        return inner.op("Where", applies, instead, total)

    return graph.either(missing, of_missing, lambda inner: inner.op("Identity", total))
