"""Trees as nodes of a graph: a walk down all trees in step, to the leaves.

Trees ask many of the same questions: each different one (is this column above this threshold?) is answered once for all
rows of a block, and the walk looks up the answers. Arrays are flat, (things * rows,), and tables have one axis.
"""

from __future__ import annotations

import numpy as np

from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.export.onnx_inputs import Input, InputColumns
from boostbp.export.onnx_leaves import ReachedLeaves
from boostbp.export.onnx_rows import BlockRows, OutputSums, concatenated, looked_up
from boostbp.export.tree_tables import TreeTables
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest

PADDING = 0.2  # share of trees that may already be at their leaves before they are left out of the next steps


def add_trees(
    graph: Graph, forest: Forest, tables: TreeTables, columns: InputColumns, inputs: Input, sums: OutputSums
) -> None:
    """Add a walk down some trees, and note the predictions of the leaves as parts of the outputs."""
    rows, once = BlockRows() if inputs.single else BlockRows.of(graph, columns.name), graph.outermost
    n_nodes = len(tables.child)
    to_child = graph.table(tables.child - np.arange(n_nodes))
    child = once.op("Add", to_child, once.op("Range", np.int32(0), np.int32(n_nodes), np.int32(1)))
    is_leaf = once.op("Cast", once.op("Equal", to_child, np.int32(0)), to=library().TensorProto.INT32)
    leaf = once.op("CumSum", is_leaf, np.int64(0), exclusive=1)
    node = _walk(graph, tables, child, columns, _thresholds(graph, forest), rows)
    cells = graph.op("Reshape", columns.name, int64(-1))
    leaves = ReachedLeaves(tables, leaf, node, cells, inputs, rows, clip=forest.clip)
    leaves.add(graph, forest.leaves.tree_output[tables.tree, 0], sums)


def _walk(
    graph: Graph, tables: TreeTables, child: str, columns: InputColumns, threshold: Floats, rows: BlockRows
) -> str:
    """Add the walk; returns the name of the nodes of the leaves, (trees * rows,)."""
    once, TP, active = graph.outermost, library().TensorProto, len(tables.tree)
    is_split = tables.split >= 0
    split = tables.split[is_split]
    questions, number = np.unique(np.stack([columns.number[split], threshold[split]]), axis=1, return_inverse=True)
    # behind all others, the question of leaves, whose answer is no for every row
    column = graph.table(np.append(questions[0], 0).astype(np.int64))
    limit = graph.table(np.append(questions[1], np.inf))
    number_of_node = np.full(len(is_split), questions.shape[1])
    number_of_node[is_split] = number.ravel()
    question = graph.table(number_of_node)
    root_question, root_child = (once.op("Gather", table, tables.root) for table in (question, child))
    if rows.single:
        x = looked_up(graph, graph.op("Reshape", columns.name, int64(-1)), column)
        answer = graph.op("Cast", graph.op("Greater", x, limit), to=TP.INT32)
        node = graph.op("Add", looked_up(graph, answer, root_question), root_child)
    else:
        x = graph.op("Gather", columns.name, column, axis=0)
        above = graph.op("Greater", x, once.op("Unsqueeze", limit, int64(1)))
        answer = graph.op("Cast", above, to=TP.INT32)
        right = graph.op("Gather", answer, root_question, axis=0)
        node = graph.op("Reshape", graph.op("Add", right, once.op("Unsqueeze", root_child, int64(1))), int64(-1))
        answer = graph.op("Reshape", answer, int64(-1))
    first_answer = rows.begins(graph, question)
    ended: list[str] = []
    for step in range(1, int(tables.n_steps.max())):
        going_on = int((tables.n_steps > step).sum())
        if going_on < (1 - PADDING) * active:
            node, end = rows.split(graph, node, [going_on, active - going_on])
            active = going_on
            ended.insert(0, end)
        right = looked_up(graph, answer, rows.places(graph, looked_up(graph, first_answer, node), active))
        node = graph.op("Add", looked_up(graph, child, node), right)
    return concatenated(graph, [node, *ended])


def _thresholds(graph: Graph, forest: Forest) -> Floats:
    """Return thresholds in the type of the graph, all below infinity; 0.5 for categorical splits.

    In float32, the largest number that is not above the threshold: rows in float32 then go where the same numbers in
    float64 would. Infinity, which stands for missing values, is above all thresholds.
    """
    threshold = np.where(forest.nodes.cat_start >= 0, 0.5, forest.nodes.threshold)
    with np.errstate(over="ignore"):
        nearest = threshold.astype(graph.dtype)
        below = np.where(nearest > threshold, np.nextafter(nearest, np.array(-np.inf, graph.dtype)), nearest)
    return np.minimum(below, np.finfo(graph.dtype).max).astype(np.float64)
