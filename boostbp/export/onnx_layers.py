"""Layers as nodes of a graph: all rows walk down all trees in step, then the terms of their leaves are looked up.

The graph uses plain operators on flat tables. Measured with onnxruntime on one core, `TreeEnsemble` takes 20 ns to lead
a row through three splits, and a walk by `GatherElements` 9 ns; `GatherElements` reads a number in 0.8 ns, `Gather` one
or a few in 8 ns.

Rows pass all layers in blocks that stay in the cache of a core, as in the kernels. They lie along the last axis: all
rows of a block read the tables of a tree one after the other, and `ReduceSum` over the first axis adds terms and trees
in the order of the kernels, to the same bits. Hidden units need the same bits, because a leaf that is steep in them
multiplies their rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from boostbp.export.description import Description
from boostbp.export.onnx_categories import SplitColumns
from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.export.onnx_inputs import Input, InputColumns
from boostbp.export.onnx_rows import OutputSums
from boostbp.export.onnx_trees import add_trees
from boostbp.export.tree_tables import tables_of
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest

MAX_PLACES = 250_000  # rows times terms of a block, so that numbers of them stay in the cache of a core
MIN_ROWS, MAX_ROWS = 16, 512  # of a block


def in_blocks(graph: Graph, model: Description, X: str, n_rows: str, work: Callable[[Graph, str], str]) -> str:
    """Add a loop over blocks of rows; returns the name of the outputs, (rows, outputs).

    Blocks have one size; the last one is filled up with the last row.

    Parameters
    ----------
    work : function (Graph, str) -> str
        Adds the body of the loop: (rows of a block, features) -> (rows of a block, outputs).
    """
    TP = library().TensorProto
    *hidden, output = model.forests
    width = max([_width(output, by_row=True), *(_width(forest, by_row=False) for forest in hidden)])
    block = min(max(MAX_PLACES // width, MIN_ROWS), MAX_ROWS)
    blocks = graph.op("Div", graph.op("Add", n_rows, np.int64(block - 1)), np.int64(block))
    count = graph.op("Max", blocks, np.int64(1))  # without rows the loop runs no block, and sizes are those of one
    size = graph.op("Div", graph.op("Sub", graph.op("Add", n_rows, count), np.int64(1)), count)
    last = graph.op("Sub", n_rows, np.int64(1))
    numbers = graph.op("Range", np.int64(0), size, np.int64(1))
    body = graph.inner()
    number, condition = body.name(), body.name()
    rows = body.op("Min", body.op("Add", body.op("Mul", number, size), numbers), last)
    outputs = work(body, body.op("Gather", X, rows, axis=0))
    loop = body.proto(
        [body.typed(number, TP.INT64, []), body.typed(condition, TP.BOOL, [])],
        [body.typed(body.op("Identity", condition), TP.BOOL, []), body.typed(outputs)],
    )
    outputs = graph.op("Loop", blocks, np.array(True), body=loop)
    outputs = graph.op("Reshape", outputs, int64(-1, model.n_outputs))
    return graph.op("Slice", outputs, int64(0), graph.op("Unsqueeze", n_rows, int64(0)), int64(0))


def _width(forest: Forest, *, by_row: bool) -> int:
    """Return the largest number of terms of a row, or of constants if there are more; at least 1.

    Terms that several outputs share count once if `by_row`, otherwise once for each output.
    """
    leaves, n_outputs = forest.leaves, forest.leaves.tree_output[:, 1]
    n_outputs = np.ones_like(n_outputs) if by_row else n_outputs
    n_terms = np.maximum.reduceat(np.diff(leaves.start), leaves.tree_leaf[:-1]) if forest.n_trees else n_outputs
    return int(max(n_terms @ n_outputs, n_outputs.sum(), 1))


def add_raw_output(graph: Graph, model: Description, X: str, *, single: bool) -> str:
    """Add all layers; returns the name of the raw outputs, (rows, outputs).

    Parameters
    ----------
    X : str
        Name of the features, (rows, features).
    single : bool
        Whether there is one row, which needs fewer operations.
    """
    features = inputs = Input.of(graph, X, single=single)
    values, output = dict(model.categories), ""
    for number, forest in enumerate(model.forests):
        if number:
            units = model.forests[number - 1].n_outputs
            values = {units + column: known for column, known in model.categories.items()} if model.skip else {}
            inputs = features.behind(graph, output, units) if model.skip else features.only(output, units)
        output = layer_outputs(graph, forest, inputs, values, last=number == len(model.forests) - 1)
    if model.baseline.any():
        output = graph.op("Add", output, model.baseline[:, None])
    return graph.op("Transpose", output, perm=[1, 0])


def layer_outputs(graph: Graph, forest: Forest, inputs: Input, values: Mapping[int, Floats], *, last: bool) -> str:
    """Add a layer; returns the name of its outputs, (outputs, rows), which have the bits of ours if it is not the last.

    Parameters
    ----------
    values : dict of int to (categories,) float64
        Numbers that stand for the categories in a column of the layer's input.
    """
    sums = OutputSums(forest.n_outputs, not last, inputs.single, cache(lambda: inputs.zeros(graph)))
    columns = InputColumns.of(graph, forest, inputs, SplitColumns(forest, values))
    for tables in tables_of(forest):
        add_trees(graph, forest, tables, columns, inputs, sums)
    return sums.total(graph)
