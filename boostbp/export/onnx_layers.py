"""Layers as nodes of a graph: all rows walk down all trees in step, then the terms of their leaves are looked up.

Plain operators alone, on flat tables. Measured with onnxruntime on one core: `TreeEnsemble` takes 20 ns to lead a row
through three splits, a walk by `GatherElements` 9, which reads a number in .7 ns; `Gather` reads one or a few in 8.
Rows pass all layers in blocks that stay in the cache of a core, as in our own loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.export.description import Description
from boostbp.export.leaf_terms import Terms, linear_of
from boostbp.export.onnx_categories import SplitColumns
from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.export.tree_tables import TreeTables, tables_of
from boostbp.floats import Floats
from boostbp.trees.forest import Forest

PLACES = 20_000  # rows times trees that a block has at most, so that numbers of them stay in the cache of a core
FEWEST, MOST = 16, 96  # rows of a block


@dataclass(frozen=True, slots=True)
class _Input:
    """Names of what a layer sees.

    Attributes
    ----------
    X : str
        (rows, columns); NaN is missing.
    any_missing : str
        bool: whether there is a missing value in the features; "" where the layer sees none of them.
    below, above : str
        `X` with a number in the place of missing values that is below, or above, all thresholds.
    """

    X: str
    any_missing: str
    below: str
    above: str

    @classmethod
    def of(cls, graph: Graph, X: str) -> _Input:
        """Add what is asked of the features."""
        missing = graph.op("IsNaN", X)
        number = graph.op("Cast", missing, to=library().TensorProto.INT32)
        some = graph.op("Cast", graph.op("ReduceMax", number, keepdims=0), to=library().TensorProto.BOOL)
        ends = (graph.op("Where", missing, np.array(end), X) for end in (-np.inf, np.inf))
        return cls(X, some, *ends)

    def behind(self, graph: Graph, units: str) -> _Input:
        """Add these columns behind hidden units."""
        X, below, above = (graph.op("Concat", units, part, axis=1) for part in (self.X, self.below, self.above))
        return replace(self, X=X, below=below, above=above)


def in_blocks(graph: Graph, model: Description, X: str, work: Callable[[Graph, str], str]) -> str:
    """Add a loop over blocks of rows; `work` adds its body, (rows of a block, features) -> (rows of a block, outputs).

    Returns the name of the outputs of all rows. Blocks are of one size; the last one is filled up with its last row.
    """
    TP = library().TensorProto
    most = max(max(forest.n_trees for forest in model.forests), 1)
    block = min(max(PLACES // most, FEWEST), MOST)
    n_rows = graph.op("Squeeze", graph.op("Shape", X, start=0, end=1))
    count = graph.op("Div", graph.op("Add", n_rows, np.int64(block - 1)), np.int64(block))
    count = graph.op("Max", count, np.int64(1))
    size = graph.op("Div", graph.op("Sub", graph.op("Add", n_rows, count), np.int64(1)), count)
    last = graph.op("Sub", n_rows, np.int64(1))
    numbers = graph.op("Range", np.int64(0), size, np.int64(1))
    body = graph.inner()
    number, condition = body.name(), body.name()
    rows = body.op("Min", body.op("Add", body.op("Mul", number, size), numbers), last)
    made = work(body, body.op("Gather", X, rows, axis=0))
    proto = body.proto(
        [body.typed(number, TP.INT64, []), body.typed(condition, TP.BOOL, [])],
        [body.typed(body.op("Identity", condition), TP.BOOL, []), body.typed(made)],
    )
    blocks = graph.op("Loop", count, np.array(True), body=proto)
    rows = graph.op("Reshape", blocks, int64(-1, model.n_outputs))
    return graph.op("Slice", rows, int64(0), graph.op("Unsqueeze", n_rows, int64(0)), int64(0))


def raw_output(graph: Graph, model: Description, X: str) -> str:
    """Add all layers to the body of a loop; returns the name of the raw outputs, (rows, outputs)."""
    features = inputs = _Input.of(graph, X)
    values, output = dict(model.categories), ""
    for number, forest in enumerate(model.forests):
        if number:
            units = model.forests[number - 1].n_outputs
            values = {units + column: known for column, known in model.categories.items()} if model.skip else {}
            inputs = features.behind(graph, output) if model.skip else _Input(output, "", output, output)
        baseline = model.baseline if number == len(model.forests) - 1 else np.zeros(forest.n_outputs)
        output = _layer(graph, forest, inputs, values, baseline)
    return output


def _layer(graph: Graph, forest: Forest, inputs: _Input, values: Mapping[int, Floats], baseline: Floats) -> str:
    """Add a layer and a baseline; returns the name of its outputs, (rows, outputs)."""
    linear, tables = linear_of(forest), list(tables_of(forest))
    parts = [_linear(graph, forest, linear.terms, inputs)] if len(linear.terms.column) or not tables else []
    if tables:
        columns = _Columns.of(graph, forest, inputs, SplitColumns(forest, values))
        parts += [_trees(graph, forest, part, columns, inputs) for part in tables]
    total = parts[0]
    for part in parts[1:]:
        total = graph.op("Add", total, part)
    constant = linear.constant + baseline
    return graph.op("Add", total, constant[None]) if constant.any() else total


def _linear(graph: Graph, forest: Forest, terms: Terms, inputs: _Input) -> str:
    """Add a function of standardised columns; returns the name of (rows, outputs)."""
    every = np.array_equal(terms.column, np.arange(forest.n_features))
    x = inputs.below if every else graph.op("Gather", inputs.below, terms.column, axis=1)
    v = _clipped(graph, x, terms, inputs, clip=forest.clip, looked_up=lambda table: graph.constant(table))
    total = graph.op("MatMul", v, terms.slope)
    if terms.square is not None:
        total = graph.op("Add", total, graph.op("MatMul", graph.op("Mul", v, v), terms.square))
    return total


@dataclass(frozen=True, slots=True)
class _Columns:
    """What splits look at, (rows, columns): cells, and a column for each kind of categorical split.

    Attributes
    ----------
    name : str
    number : (splits,) int64
        Column of each split.
    always_left : int
        The column of leaves.
    """

    name: str
    number: NDArray[np.int64]
    always_left: int

    @classmethod
    def of(cls, graph: Graph, forest: Forest, inputs: _Input, splits: SplitColumns) -> _Columns:
        nodes, n_features = forest.nodes, forest.n_features
        may_miss = inputs.below != inputs.above
        number = nodes.feature + np.where(nodes.missing_left, 0, n_features) if may_miss else nodes.feature
        parts, width = ([inputs.below, inputs.above], 2 * n_features) if may_miss else ([inputs.below], n_features)
        number = np.where(splits.column >= 0, width + splits.column, number)
        if splits.count:
            parts.append(splits.add(graph, inputs.X))
        lowest = np.array(np.finfo(graph.dtype).min, graph.dtype)
        filled = graph.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
        name = graph.op("Pad", filled, int64(0, 0, 0, 1), lowest)
        return cls(name, number.astype(np.int64), width + splits.count)


def _trees(graph: Graph, forest: Forest, tables: TreeTables, columns: _Columns, inputs: _Input) -> str:
    """Add a walk down some trees, and what it finds; returns the name of (rows, outputs)."""
    m, n_trees = tables.n_outputs, len(tables.first_output)
    threshold = np.where(forest.nodes.cat_start >= 0, 0.5, _not_above(graph, forest.nodes.threshold))
    node, cells = "", []
    for split in tables.split:
        is_leaf = split < 0
        column = np.where(is_leaf, columns.always_left, columns.number[split]).astype(np.int32)
        limit = np.where(is_leaf, 0.0, threshold[split])
        if not node:  # at the roots, which are the same for all rows
            shape = graph.op("Concat", graph.op("Shape", inputs.X, start=0, end=1), int64(1), axis=0)
            place = graph.op("Expand", column[None, :n_trees], shape)
            x = graph.op("GatherElements", columns.name, place, axis=1)
            cells.append(graph.op("Reshape", x, int64(-1)))
            child = 2 * np.arange(n_trees, dtype=np.int32) if tables.child is None else tables.child[:n_trees]
            node = graph.op("Reshape", _step(graph, child[None], x, limit[None, :n_trees]), int64(-1))
            continue
        place = graph.op("Reshape", _looked_up(graph, column, node), int64(-1, n_trees))
        x = graph.op("GatherElements", columns.name, place, axis=1)
        cells.append(graph.op("Reshape", x, int64(-1)))
        children = graph.op("Add", node, node) if tables.child is None else _looked_up(graph, tables.child, node)
        node = _step(graph, children, cells[-1], _looked_up(graph, limit, node))
    total = _looked_up(graph, tables.constant, node) if m == 1 else graph.op("Gather", tables.constant, node, axis=0)
    if tables.n_terms:
        total = _with_terms(graph, forest, tables, node, cells, inputs, total)
    return _summed(graph, tables, total, forest.n_outputs)


def _step(graph: Graph, child: Any, x: str, limit: Any) -> str:
    """Add which child a row goes to: the second one if its cell is above the limit."""
    right = graph.op("Cast", graph.op("Greater", x, limit), to=_int32())
    return graph.op("Add", child, right)


def _with_terms(
    graph: Graph, forest: Forest, tables: TreeTables, node: str, cells: list[str], inputs: _Input, constant: str
) -> str:
    """Add the terms of leaves to their constants, rows * trees, or (rows * trees, outputs of a tree)."""
    steps = np.arange(tables.n_terms, dtype=np.int32)[:, None]
    if tables.first_term is None or tables.count is None:
        place = graph.op("Add", graph.op("Mul", node, np.int32(tables.n_terms)), steps)
        flat, there = graph.op("Reshape", place, int64(-1)), ""
        x = graph.op("Concat", *cells[: tables.n_terms], axis=0)
    else:
        place = graph.op("Add", _looked_up(graph, tables.first_term, node), steps)
        there = graph.op("Less", steps, _looked_up(graph, tables.count, node))
        flat = graph.op("Reshape", graph.op("Mul", place, graph.op("Cast", there, to=_int32())), int64(-1))
        x = _cells(graph, forest, tables, inputs, _looked_up(graph, tables.terms.column.astype(np.int32), flat))
    terms = _terms(graph, forest, tables, flat, x, inputs)
    m = tables.n_outputs
    total = graph.op("Add", constant, graph.op("Reshape", terms, int64(-1) if m == 1 else int64(-1, m)))
    if tables.if_missing is None or not inputs.any_missing:
        return total
    other = tables.if_missing

    def of_missing(inner: Graph) -> str:
        gone = inner.op("And", inner.op("Reshape", inner.op("IsInf", x), int64(tables.n_terms, -1)), there)
        some = inner.op("ReduceMax", inner.op("Cast", gone, to=_int32()), int64(0), keepdims=0)
        instead = _looked_up(inner, other, node)
        some = inner.op("Cast", some, to=library().TensorProto.BOOL)
        return inner.op("Where", inner.op("And", some, inner.op("Not", inner.op("IsNaN", instead))), instead, total)

    return graph.either(inputs.any_missing, of_missing, lambda inner: inner.op("Identity", total))


def _terms(graph: Graph, forest: Forest, tables: TreeTables, flat: str, x: str, inputs: _Input) -> str:
    """Add the terms in some places, of some cells; returns the name of their sums over the terms of a leaf."""
    m, terms = tables.n_outputs, tables.terms
    v = _clipped(graph, x, terms, inputs, clip=forest.clip, looked_up=lambda table: _looked_up(graph, table, flat))
    if m == 1:
        slope = _looked_up(graph, terms.slope, flat)
        if terms.square is not None:
            slope = graph.op("Add", slope, graph.op("Mul", v, _looked_up(graph, terms.square, flat)))
        return _sum_of(graph, graph.op("Mul", v, slope), tables.n_terms)
    v = graph.op("Unsqueeze", v, int64(1))
    slope = graph.op("Gather", terms.slope, flat, axis=0)
    if terms.square is not None:
        slope = graph.op("Add", slope, graph.op("Mul", v, graph.op("Gather", terms.square, flat, axis=0)))
    return _sum_of(graph, graph.op("Mul", v, slope), tables.n_terms)


def _cells(graph: Graph, forest: Forest, tables: TreeTables, inputs: _Input, column: str) -> str:
    """Add the cells of the input in columns of (terms * rows * trees,), by their places in the flat input."""
    n_rows = graph.op("Cast", graph.op("Squeeze", graph.op("Shape", inputs.X, start=0, end=1)), to=_int32())
    first = graph.op("Mul", graph.op("Range", np.int32(0), n_rows, np.int32(1)), np.int32(forest.n_features))
    shape = int64(tables.n_terms, -1, len(tables.first_output))
    place = graph.op("Add", graph.op("Reshape", column, shape), graph.op("Unsqueeze", first, int64(1)))
    flat = graph.op("Reshape", inputs.below, int64(-1))
    return graph.op("GatherElements", flat, graph.op("Reshape", place, int64(-1)), axis=0)


def _int32() -> int:
    return int(library().TensorProto.INT32)


def _sum_of(graph: Graph, terms: str, count: int) -> str:
    """Add the sum over the first of two axes, of which `count` is the size; `ReduceSum` takes four times as long."""
    return graph.op("MatMul", np.ones((1, count)), graph.op("Reshape", terms, int64(count, -1)))


def _clipped(
    graph: Graph, x: str, terms: Terms, inputs: _Input, *, clip: bool, looked_up: Callable[[Floats], str]
) -> str:
    """Add standardised and clipped cells, 0 where missing, which is infinite in `x`."""
    v = graph.op("Sub", x, looked_up(terms.center))
    if clip:
        ends = np.finfo(graph.dtype)  # no product of a missing value, which is infinite, and 0
        lower, upper = (looked_up(np.clip(bound, ends.min, ends.max)) for bound in (terms.lower, terms.upper))
        v = graph.op("Min", graph.op("Max", v, lower), upper)
    if not inputs.any_missing:
        return v

    def without_missing(inner: Graph) -> str:
        missing = inner.op("IsInf", x)
        if clip:  # a product takes a tenth of the time of `Where`, but infinity has none with 0
            return inner.op("Mul", v, inner.op("Cast", inner.op("Not", missing), to=graph.real))
        return inner.op("Where", missing, np.zeros(()), v)

    return graph.either(inputs.any_missing, without_missing, lambda inner: inner.op("Identity", v))


def _summed(graph: Graph, tables: TreeTables, total: str, n_outputs: int) -> str:
    """Add up the trees of each output: (rows * trees,) or (rows * trees, outputs of a tree) -> (rows, outputs)."""
    m, n_trees = tables.n_outputs, len(tables.first_output)
    if n_outputs == m:
        return graph.op("ReduceSum", graph.op("Reshape", total, int64(-1, n_trees, m)), int64(1), keepdims=0)
    served = (tables.first_output[:, None] + np.arange(m)).ravel()
    # numbers of outputs take less room in a file than ones and zeros, which a runtime makes of them once
    once = graph.outermost
    same = once.op("Equal", served[:, None], np.arange(n_outputs))
    total = graph.op("Reshape", total, int64(-1, n_trees * m))
    return graph.op("MatMul", total, once.op("Cast", same, to=graph.real))


def _looked_up(graph: Graph, table: NDArray[np.generic], place: str) -> str:
    return graph.op("GatherElements", table.ravel(), place, axis=0)


def _not_above(graph: Graph, threshold: Floats) -> Floats:
    """Return thresholds in the type of the graph, all finite but -inf.

    Of float32, the largest not above: rows in float32 then go where the same numbers in float64 would. Infinity, that
    of missing values, is above all of them.
    """
    with np.errstate(over="ignore"):
        nearest = threshold.astype(graph.dtype)
        below = np.where(nearest > threshold, np.nextafter(nearest, np.array(-np.inf, graph.dtype)), nearest)
    return np.minimum(below, np.finfo(graph.dtype).max).astype(np.float64)
