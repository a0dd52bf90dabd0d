"""Trees as nodes of a graph: a walk down all of them in step, to the leaves.

The file has of a tree which of its nodes are splits, by what each splits, and the numbers of its leaves. A runtime
makes of these, once, the tables in which a node leads to its children, and a leaf to its terms. Of a block, first all
different splits are asked, a few thousand of which trees have each many times; then rows walk. All is flat, of things
times rows, and is read from tables of one axis.
"""

from __future__ import annotations

from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.export.onnx_inputs import Input, InputColumns
from boostbp.export.onnx_leaves import Reached
from boostbp.export.onnx_rows import Rows, joined, looked_up
from boostbp.export.onnx_sums import Sums
from boostbp.export.onnx_tables import TOGETHER, Nodes, not_above
from boostbp.export.tree_tables import TreeTables
from boostbp.trees.forest import Forest

PADDING = 0.2  # of the trees may have ended before a step that all take


def add_trees(
    graph: Graph, forest: Forest, tables: TreeTables, columns: InputColumns, inputs: Input, sums: Sums
) -> None:
    """Add a walk down some trees, and note what it finds as parts of the outputs."""
    rows = Rows() if inputs.single else Rows.of(graph, columns.name)
    nodes = Nodes.of(graph, tables, columns.number, not_above(graph, forest))
    node = _walk(graph, tables, nodes, columns.name, rows)
    reached = Reached(tables, nodes.leaf, node, graph.op("Reshape", columns.name, int64(-1)), inputs, rows)
    reached.add(graph, forest.leaves.tree_output[tables.tree, 0], sums, clip=forest.clip)


def _walk(graph: Graph, tables: TreeTables, nodes: Nodes, columns: str, rows: Rows) -> str:
    """Add the way down; returns the name of the leaves' nodes, (trees * rows,)."""
    once, TP, active = graph.outermost, library().TensorProto, len(tables.tree)
    root_number, root_child = (once.op("Gather", table, nodes.root) for table in (nodes.number, nodes.child))
    if not rows.single:
        x = graph.op("Unsqueeze", graph.op("Gather", columns, nodes.column, axis=0), int64(1))
        answer = graph.op("Cast", graph.op("Greater", x, nodes.limit), to=TP.INT32)
        across = graph.op("Reshape", answer, graph.op("Concat", int64(-1), rows.count, axis=0))
        right, root_child = graph.op("Gather", across, root_number, axis=0), once.op("Unsqueeze", root_child, int64(1))
        node = graph.op("Reshape", graph.op("Add", right, root_child), int64(-1))
        answer = graph.op("Reshape", answer, int64(-1))
    else:
        column = once.op("Expand", once.op("Unsqueeze", nodes.column, int64(1)), int64(1, TOGETHER))
        x = looked_up(graph, graph.op("Reshape", columns, int64(-1)), once.op("Reshape", column, int64(-1)))
        answer = graph.op("Greater", x, once.op("Reshape", nodes.limit, int64(-1)))
        answer = graph.op("Cast", answer, to=TP.INT32)
        node = graph.op("Add", looked_up(graph, answer, root_number), root_child)
    number = rows.begins(graph, nodes.number)
    ended: list[str] = []
    for step in range(1, int(tables.n_steps.max())):
        going_on = int((tables.n_steps > step).sum())
        if going_on < (1 - PADDING) * active:
            node, end = rows.split(graph, node, [going_on, active - going_on])
            active = going_on
            ended.insert(0, end)
        right = looked_up(graph, answer, rows.places(graph, looked_up(graph, number, node), active))
        node = graph.op("Add", looked_up(graph, nodes.child, node), right)
    return joined(graph, [node, *ended])
