"""Layers as nodes of a graph: inputs, then routing one step in all trees at a time, then the terms of leaves.

The graph uses basic operators on flat tables. Measured with onnxruntime on one core, routing a row through three splits
takes 20 ns with `TreeEnsemble`, and 9 ns with `GatherElements`.

Blocks of rows, which stay in the cache of a processor, pass through all layers, as in our core. Rows are the last axis:
all rows of a block read the tables of a tree in turn, and `ReduceSum` over the first axis adds terms and trees in the
order of the core. So all layers have its bits; hidden units need them, as steep leaves above amplify rounding errors.

A categorical split becomes a column that is 0 where it sends a row left, and 1 elsewhere. A table has these columns by
the category of a row, packed as bits, so that the columns of all splits of a feature are read together.

Many splits of different trees are equal. Each distinct comparison (is this column above this threshold?) is evaluated
once for all rows of a block, and routing looks up the results. Arrays are flat, (things * rows,), or (columns, rows).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from boostbp.core import Nodes
from boostbp.export.description import Description
from boostbp.export.onnx_graph import Graph, int64
from boostbp.export.onnx_leaves import BlockRows, Input, OutputParts, ReachedLeaves, looked_up, total_of
from boostbp.export.tree_tables import TreeTables, tables_of
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest

MAX_PLACES = 250_000  # limit on rows times terms of a block, whose numbers then stay in cache
MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 16, 512  # limits on the rows of a block
_BITS = np.uint8(1) << np.arange(8, dtype=np.uint8)


def compared_columns(
    graph: Graph, forest: Forest, inputs: Input, values: Mapping[int, Floats]
) -> tuple[str, NDArray[np.int64]]:
    """Add the columns that splits compare: the layer's input, and one for each distinct categorical split.

    Returns the name of (columns, rows), and the column of each split, (splits,). `values` is as in `layer_outputs`.
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

    The rows of a feature's categories are followed by those of unseen categories and of missing values. `x` has the
    cells, (features, rows); `begin`, (features, 1), is the first row of each feature. Several features must have codes.
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


def in_blocks(graph: Graph, model: Description, X: str, n_rows: str, work: Callable[[Graph, str], str]) -> str:
    """Add a loop over blocks of rows, whose body `work` adds; returns the name of the outputs, (rows, outputs).

    Blocks have equal size; the last one is filled up with copies of the last row.
    """
    width = max(_width(forest) for forest in model.forests)
    block = min(max(MAX_PLACES // width, MIN_BLOCK_ROWS), MAX_BLOCK_ROWS)
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
        [body.typed(number, np.int64, []), body.typed(condition, bool, [])],
        [body.typed(body.op("Identity", condition), bool, []), body.typed(outputs)],
    )
    outputs = graph.op("Loop", blocks, np.array(True), body=loop)
    outputs = graph.reshaped(outputs, -1, model.n_outputs)
    return graph.op("Slice", outputs, int64(0), graph.op("Unsqueeze", n_rows, int64(0)), int64(0))


def _width(forest: Forest) -> int:
    """Return the number of terms of a row, at least 1, where shared terms count once for each output."""
    leaves, n_outputs = forest.leaves, forest.leaves.tree_output[:, 1]
    n_terms = np.maximum.reduceat(np.diff(leaves.start), leaves.tree_leaf[:-1]) if forest.n_trees else n_outputs
    return int(max(n_terms @ n_outputs, n_outputs.sum(), 1))


def add_raw_output(graph: Graph, model: Description, X: str, *, single: bool) -> str:
    """Add all layers on the features named X, with fewer operations for a single row; returns (rows, outputs)."""
    features = inputs = Input.of(graph, X, single=single)
    values, output = dict(model.categories), ""
    for number, forest in enumerate(model.forests):
        if number:
            units = model.forests[number - 1].n_outputs
            values = {units + column: known for column, known in model.categories.items()} if model.skip else {}
            inputs = features.next(graph, output, units, skip=model.skip)
        output = layer_outputs(graph, forest, inputs, values)
    if model.baseline.any():
        output = graph.op("Add", output, model.baseline[:, None])
    return graph.op("Transpose", output, perm=[1, 0])


def layer_outputs(graph: Graph, forest: Forest, inputs: Input, values: Mapping[int, Floats]) -> str:
    """Add a layer; returns the name of its outputs, (outputs, rows), with the bits of the core.

    `values` are the numbers, (categories,), that represent the categories in a column of the layer's input.
    """
    columns, number = compared_columns(graph, forest, inputs, values)
    rows, once = BlockRows() if inputs.single else BlockRows.of(graph, columns), graph.outermost
    parts: list[OutputParts] = []
    compared = np.stack([number.astype(np.float64), _thresholds(graph, forest)])
    cells = graph.reshaped(columns, -1)
    for tables in tables_of(forest):
        n_nodes = len(tables.child)
        to_child = graph.table(tables.child - np.arange(n_nodes))
        child = once.op("Add", to_child, once.op("Range", np.int32(0), np.int32(n_nodes), np.int32(1)))
        is_leaf = once.cast(once.op("Equal", to_child, np.int32(0)), np.int32)
        leaf = once.op("CumSum", is_leaf, np.int64(0), exclusive=1)
        node = _walk(graph, tables, child, columns, compared, rows)
        leaves = ReachedLeaves(graph, tables, leaf, node, cells, inputs, rows, clip=forest.clip)
        parts += leaves.parts(forest.leaves.tree_output[tables.tree, 0])
    return total_of(graph, parts, forest.n_outputs, inputs)


def _walk(graph: Graph, tables: TreeTables, child: str, columns: str, compared: Floats, rows: BlockRows) -> str:
    """Add the routing through some trees, which compare (column, threshold); returns (trees * rows,) leaf nodes."""
    once = graph.outermost
    is_split = tables.split >= 0
    questions, number = np.unique(compared[:, tables.split[is_split]], axis=1, return_inverse=True)
    # the last comparison is that of leaves, which is False for every row
    column = graph.table(np.append(questions[0], 0).astype(np.int64))
    limit = graph.table(np.append(questions[1], np.inf))
    number_of_node = np.full(len(is_split), questions.shape[1])
    number_of_node[is_split] = number.ravel()
    question = graph.table(number_of_node)
    root_question, root_child = (once.op("Gather", table, tables.root) for table in (question, child))
    if not rows.count:
        x = looked_up(graph, graph.reshaped(columns, -1), column)
        answer = graph.cast(graph.op("Greater", x, limit), np.int32)
        node = graph.op("Add", looked_up(graph, answer, root_question), root_child)
    else:
        x = graph.op("Gather", columns, column, axis=0)
        above = graph.op("Greater", x, once.op("Unsqueeze", limit, int64(1)))
        answer = graph.cast(above, np.int32)
        right = graph.op("Gather", answer, root_question, axis=0)
        node = graph.reshaped(graph.op("Add", right, once.op("Unsqueeze", root_child, int64(1))), -1)
        answer = graph.reshaped(answer, -1)
    first_answer = rows.begins(graph, question)
    for _ in range(1, tables.n_steps):
        right = looked_up(graph, answer, rows.places(graph, looked_up(graph, first_answer, node), len(tables.tree)))
        node = graph.op("Add", looked_up(graph, child, node), right)
    return node


def _thresholds(graph: Graph, forest: Forest) -> Floats:
    """Return thresholds in the type of the graph, all below infinity (a missing value); 0.5 for categorical splits.

    A threshold becomes the largest float32 that is not above it, so that float32 cells go to the same side.
    """
    threshold = np.where(forest.nodes.cat_start >= 0, 0.5, forest.nodes.threshold)
    with np.errstate(over="ignore"):
        nearest = threshold.astype(graph.dtype)
        below = np.where(nearest > threshold, np.nextafter(nearest, np.array(-np.inf, graph.dtype)), nearest)
    return np.minimum(below, np.finfo(graph.dtype).max).astype(np.float64)
