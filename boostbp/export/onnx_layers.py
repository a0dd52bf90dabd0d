"""Layers as nodes of a graph: all rows walk down all trees in step, then the terms of their leaves are looked up.

Plain operators alone, on flat tables. Measured with onnxruntime on one core: `TreeEnsemble` takes 20 ns to lead a row
through three splits, a walk by `GatherElements` 9, which reads a number in .8 ns; `Gather` reads one or a few in 8.
Rows pass all layers in blocks that stay in the cache of a core, as in our own loops. They lie along the last axis: all
rows of a block read the tables of a tree one after the other, and `ReduceSum` over the first axis adds terms and trees
in the order of our own loops, to the same bits. Hidden units need those: a leaf that is steep in them shows their
rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from boostbp.export.description import Description
from boostbp.export.leaf_terms import Linear, linear_of
from boostbp.export.onnx_categories import SplitColumns
from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.export.onnx_inputs import Input, InputColumns
from boostbp.export.onnx_numbers import FEW, Units, lowest_bits, multiples, whole_numbers
from boostbp.export.onnx_sums import Sums
from boostbp.export.onnx_trees import add_trees
from boostbp.export.tree_tables import tables_of
from boostbp.floats import Floats
from boostbp.trees.forest import Forest

PLACES = 250_000  # rows times terms that a block has at most, so that numbers of them stay in the cache of a core
FEWEST, MOST = 16, 512  # rows of a block


def in_blocks(graph: Graph, model: Description, X: str, n_rows: str, work: Callable[[Graph, str], str]) -> str:
    """Add a loop over blocks of rows; `work` adds its body, (rows of a block, features) -> (rows of a block, outputs).

    Returns the name of the outputs of all rows. Blocks are of one size; the last one is filled up with its last row.
    """
    TP = library().TensorProto
    *hidden, output = model.forests
    width = max([_width(output, by_row=True), *(_width(forest, by_row=False) for forest in hidden)])
    block = min(max(PLACES // width, FEWEST), MOST)
    blocks = graph.op("Div", graph.op("Add", n_rows, np.int64(block - 1)), np.int64(block))
    count = graph.op("Max", blocks, np.int64(1))  # without rows the loop runs no block, and sizes are those of one
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
    made = graph.op("Loop", blocks, np.array(True), body=proto)
    rows = graph.op("Reshape", made, int64(-1, model.n_outputs))
    return graph.op("Slice", rows, int64(0), graph.op("Unsqueeze", n_rows, int64(0)), int64(0))


def _width(forest: Forest, *, by_row: bool) -> int:
    """Return how many terms a row has at most, or constants of trees, at least 1; once for all outputs if `by_row`."""
    leaves, m = forest.leaves, forest.leaves.tree_output[:, 1]
    m = np.ones_like(m) if by_row else m
    most = np.maximum.reduceat(np.diff(leaves.start), leaves.tree_leaf[:-1]) if forest.n_trees else m
    return int(max(most @ m, m.sum(), 1))


def raw_output(graph: Graph, model: Description, X: str, *, single: bool) -> str:
    """Add all layers, (rows, features) -> (rows, outputs); returns the name of the raw outputs.

    Parameters
    ----------
    single : bool
        Whether it is one row, which needs fewer operations.
    """
    features = inputs = Input.of(graph, X, single=single)
    values, output = dict(model.categories), ""
    for number, forest in enumerate(model.forests):
        if number:
            units = model.forests[number - 1].n_outputs
            values = {units + column: known for column, known in model.categories.items()} if model.skip else {}
            inputs = features.behind(graph, output, units) if model.skip else features.only(output, units)
        output = _layer(graph, forest, inputs, values, last=number == len(model.forests) - 1)
    if model.baseline.any():
        output = graph.op("Add", output, model.baseline[:, None])
    return graph.op("Transpose", output, perm=[1, 0])


def _layer(graph: Graph, forest: Forest, inputs: Input, values: Mapping[int, Floats], *, last: bool) -> str:
    """Add a layer; returns the name of its outputs, (outputs, rows)."""
    sums = Sums(forest.n_outputs, not last, inputs.single, cache(lambda: inputs.zeros(graph)))
    linear, tables = linear_of(forest), list(tables_of(forest))
    if len(linear.output):
        sums.add(_linear(graph, forest, linear, inputs, sums.zeros), linear.output, linear.tree << 32)
    if tables:
        columns = InputColumns.of(graph, forest, inputs, SplitColumns(forest, values))
        for part in tables:
            add_trees(graph, forest, part, columns, inputs, sums)
    return sums.total(graph)


def _linear(graph: Graph, forest: Forest, linear: Linear, inputs: Input, zeros: Callable[[], str]) -> str:
    """Add functions of standardised columns; returns the name of (functions, rows)."""
    terms, n_terms, n_functions = linear.terms, len(linear.terms.column), len(linear.output)
    if not n_terms:
        return graph.op("Add", zeros(), linear.constant[:, None])
    every = np.array_equal(terms.column, np.arange(forest.n_features))
    x = inputs.below if every else graph.op("Gather", inputs.below, terms.column, axis=0)
    ends = np.finfo(graph.dtype)  # no product of a missing value, which is infinite, and 0
    bounds = (graph.constant(np.clip(bound, ends.min, ends.max)[:, None]) for bound in (terms.lower, terms.upper))
    factor = "" if (terms.factor == 1.0).all() else graph.constant(terms.factor[:, None])
    center = graph.constant(terms.center[:, None])
    v = inputs.clipped(graph, x, center, factor, tuple(bounds) if forest.clip else (), many=False)
    v = graph.op("Unsqueeze", v, int64(1))
    slope = _weights(graph, terms.slope)
    if terms.square is None:
        products = graph.op("Mul", v, slope)
    elif linear.several:  # slopes and squares are added one by one
        square = graph.op("Mul", graph.op("Mul", v, v), _weights(graph, terms.square))
        both = (graph.op("Unsqueeze", part, int64(1)) for part in (graph.op("Mul", v, slope), square))
        products = graph.op("Reshape", graph.op("Concat", *both, axis=1), int64(2 * n_terms, n_functions, -1))
    else:
        products = graph.op("Mul", v, graph.op("Add", slope, graph.op("Mul", v, _weights(graph, terms.square))))
    apart = 2 if terms.square is not None and linear.several else 1
    if not (forest.clip or linear.held.all()):  # avoid 0 times a number beyond float64
        products = graph.op("Where", _flags(graph, linear.held.repeat(apart, axis=0)), products, np.zeros(()))
    constant = np.zeros((n_terms * apart, n_functions, 1))
    constant[0, :, 0] = linear.constant
    return graph.op("ReduceSum", graph.op("Add", products, constant), int64(0), keepdims=0)


def _flags(graph: Graph, flags: NDArray[np.bool_]) -> str:
    """Add what holds of (terms, functions); returns the name of (terms, functions, 1)."""
    once = graph.outermost
    made = once.op("Reshape", whole_numbers(graph, flags.ravel()), int64(*flags.shape, 1))
    return once.op("Cast", made, to=library().TensorProto.BOOL)


def _weights(graph: Graph, weights: Floats) -> str:
    """Add weights of (terms, functions); returns the name of (terms, functions, 1)."""
    if weights.size <= FEW:
        return graph.constant(weights[:, :, None])
    once, lowest = graph.outermost, np.clip(lowest_bits(weights).min(axis=0), -1000, 0)[:, None]
    name = once.op("Reshape", multiples(graph, weights.T, Units.of(graph, lowest)), int64(*weights.T.shape, 1))
    return once.op("Transpose", name, perm=[1, 0, 2])
