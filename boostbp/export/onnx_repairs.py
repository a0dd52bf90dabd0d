"""Mistyped cells in a graph: what the rest of a row says is read in place of a cell that contradicts it.

The steps of `boostbp.inputs.contradictions`, for a block of rows. Rows without suspects, nearly all, pass by a branch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.inputs.repair import FAR, Repair


def repaired(graph: Graph, repair: Repair, X: str, n_features: int) -> str:
    """Add the repair of a block of rows, (rows, features); returns the name of the rows as they are read."""
    units, normal = repair.units, repair.normal
    every = len(units.column) == n_features
    Z = X if every else graph.op("Gather", X, units.column, axis=1)
    missing, known = graph.op("IsNaN", Z), Z
    logarithm = units.floor > 0
    if logarithm.any():
        above = graph.op("Log", graph.op("Max", Z, np.where(logarithm, units.floor, 1.0)))
        known = graph.op("Where", logarithm, above, Z)
    u = graph.op("Div", graph.op("Sub", known, units.center), units.scale)
    u = graph.op("Clip", graph.op("Where", missing, np.zeros(()), u), np.array(-FAR), np.array(FAR))
    lowest, highest = (
        np.where(normal.determined, beyond, end) for beyond, end in ((-np.inf, normal.lowest), (np.inf, normal.highest))
    )
    u = graph.op("Min", graph.op("Max", u, lowest), highest)
    off = graph.op("Div", graph.op("MatMul", u, normal.precision), normal.precision.diagonal().copy())
    suspects = _beyond(graph, off, repair)
    some = graph.op("Cast", graph.op("ReduceMax", suspects, keepdims=0), to=library().TensorProto.BOOL)

    def with_replacements(inner: Graph) -> str:
        rows = inner.op("NonZero", inner.op("Cast", suspects, to=library().TensorProto.BOOL))
        return _replaced(inner, repair, X, inner.op("Reshape", rows, int64(-1)), u, missing)

    return graph.either(some, with_replacements, lambda inner: inner.op("Identity", X))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Names of suspect rows of which some cells are taken out: their precision, cells, 0 if out, and 1 if there."""

    precision: str
    u: str
    there: str

    def product(self, graph: Graph) -> str:
        """Add the product of the precision and the cells, (rows, columns)."""
        column = graph.op("MatMul", self.precision, graph.op("Unsqueeze", self.u, int64(2)))
        return graph.op("Squeeze", column, int64(2))

    def scores(self, graph: Graph, repair: Repair) -> str:
        """Add how far each cell is from what the others say, in conditional standard deviations, (rows, columns)."""
        identity = np.eye(len(repair.units.column))
        diagonal = graph.op("ReduceSum", graph.op("Mul", self.precision, identity), int64(2), keepdims=0)
        there = graph.op("Cast", self.there, to=library().TensorProto.BOOL)
        safe = graph.op("Where", there, diagonal, np.ones(()))
        return graph.op("Mul", self.there, graph.op("Div", self.product(graph), graph.op("Sqrt", safe)))

    def worst(self, graph: Graph, score: str, repair: Repair) -> str:
        """Add which of the determined columns has the largest score, (rows, columns): 1 there, 0 elsewhere."""
        size = graph.op("Where", repair.normal.determined, graph.op("Abs", score), np.array(-1.0))
        return _chosen(graph, size, len(repair.units.column))

    def without(self, graph: Graph, cell: str) -> _Rows:
        """Add that a cell of each row, 1 in (rows, columns), is taken out."""
        kept = graph.op("Sub", np.ones(()), cell)
        return _Rows(
            _taken_out(graph, self.precision, cell),
            graph.op("Mul", self.u, kept),
            graph.op("Mul", self.there, kept),
        )

    def mean(self, graph: Graph, u: str, cell: str) -> str:
        """Add the mean of a cell by the others of `u`, where it is 0: (rows, columns), 0 elsewhere."""
        across = graph.op("MatMul", graph.op("Unsqueeze", cell, int64(1)), self.precision)
        row = graph.op("Squeeze", across, int64(1))
        total = graph.op("ReduceSum", graph.op("Mul", row, u), int64(1))
        pivot = graph.op("ReduceSum", graph.op("Mul", row, cell), int64(1))
        return graph.op("Mul", cell, graph.op("Neg", graph.op("Div", total, pivot)))


def _replaced(graph: Graph, repair: Repair, X: str, rows: str, u: str, missing: str) -> str:
    """Add what is read in the suspect rows; returns the name of all rows of the block."""
    units, normal = repair.units, repair.normal
    given = _without_missing(graph, repair, graph.op("Gather", u, rows), graph.op("Gather", missing, rows))
    first_score = given.scores(graph, repair)
    first = given.worst(graph, first_score, repair)
    fewer = given.without(graph, first)
    second_score = fewer.scores(graph, repair)
    second = fewer.worst(graph, second_score, repair)
    fewest = fewer.without(graph, second)
    per_score = np.sqrt(normal.precision.diagonal())
    beyond = [
        _beyond(graph, graph.op("Div", score, per_score), repair)
        for score in (first_score, second_score, fewest.scores(graph, repair))
    ]
    # one cell is wrong, or two, of which the last is told first; a row that needs more is of another kind
    means = [given.mean(graph, fewer.u, first)]
    last = fewer.mean(graph, fewest.u, second)
    means.append(graph.op("Add", last, given.mean(graph, graph.op("Add", fewest.u, last), first)))
    cells = [first, graph.op("Add", first, second)]
    ends = [beyond[1], graph.op("Max", beyond[1], beyond[2])]
    applies = [
        graph.op("Sub", beyond[0], graph.op("Min", beyond[0], ends[0])),
        graph.op("Sub", graph.op("Min", beyond[0], beyond[1]), graph.op("Min", beyond[0], beyond[2])),
    ]
    Xs = graph.op("Gather", X, rows)
    for value, cell, applied in zip(means, cells, applies, strict=True):
        right = _right(graph, value, cell, repair)
        chosen = graph.op("Mul", cell, graph.op("Unsqueeze", graph.op("Mul", right, applied), int64(1)))
        inside = graph.op("Min", graph.op("Max", value, normal.lowest), normal.highest)
        t = graph.op("Add", units.center, graph.op("Mul", inside, np.where(units.varies, units.scale, 0.0)))
        if (units.floor > 0).any():
            t = graph.op("Where", units.floor > 0, graph.op("Exp", t), t)
        replace = graph.op("Cast", chosen, to=library().TensorProto.BOOL)
        Xs = graph.op("Where", *_in_features(graph, repair, replace, t, Xs), Xs)
    return graph.op("ScatterND", X, graph.op("Unsqueeze", rows, int64(1)), Xs)


def _in_features(graph: Graph, repair: Repair, replace: str, t: str, X: str) -> tuple[str, str]:
    """Add which features of rows are replaced, and by what, from columns that take part in the comparison."""
    column = repair.units.column
    shape = graph.op("Shape", X)
    nobody = graph.op("Expand", np.zeros((1, 1), bool), shape)
    nothing = graph.op("Expand", np.zeros((1, 1)), shape)
    place = graph.op("Expand", column[None], graph.op("Shape", t))
    return tuple(
        graph.op("ScatterElements", empty, place, part, axis=1) for empty, part in ((nobody, replace), (nothing, t))
    )  # type: ignore[return-value]


def _without_missing(graph: Graph, repair: Repair, u: str, missing: str) -> _Rows:
    """Add a loop that takes the missing cells of suspect rows out of their precision, one of each row at a time."""
    TP = library().TensorProto
    out = graph.op("Cast", missing, to=graph.real)
    shape = graph.op("Concat", graph.op("Shape", u, start=0, end=1), int64(1, 1), axis=0)
    precision = graph.op("Expand", repair.normal.precision[None], shape)
    most = graph.op("ReduceMax", graph.op("ReduceSum", out, int64(1), keepdims=0), keepdims=0)
    body = graph.inner()
    number, condition, left, waiting = (body.name() for _ in range(4))
    some = body.op("ReduceMax", waiting, int64(1))
    cell = body.op("Mul", some, _chosen(body, waiting, len(repair.units.column)))
    proto = body.proto(
        [
            body.typed(number, TP.INT64, []),
            body.typed(condition, TP.BOOL, []),
            body.typed(left, shape=[None] * 3),
            body.typed(waiting, shape=[None] * 2),
        ],
        [
            body.typed(body.op("Identity", condition), TP.BOOL, []),
            body.typed(_taken_out(body, left, cell)),
            body.typed(body.op("Sub", waiting, cell)),
        ],
    )
    made = [graph.name(), graph.name()]
    count = graph.op("Cast", most, to=TP.INT64)
    graph.op("Loop", count, np.array(True), precision, out, outputs=made, body=proto)
    return _Rows(made[0], u, graph.op("Sub", np.ones(()), out))


def _taken_out(graph: Graph, precision: str, cell: str) -> str:
    """Add P - v v' with v = P_j / sqrt(P_jj), for a cell of each row; P itself where a row has no cell."""
    row = graph.op("MatMul", graph.op("Unsqueeze", cell, int64(1)), precision)  # (rows, 1, columns)
    pivot = graph.op("MatMul", row, graph.op("Unsqueeze", cell, int64(2)))  # (rows, 1, 1)
    nobody = graph.op("Cast", graph.op("Equal", pivot, np.zeros(())), to=graph.real)
    share = graph.op("Div", row, graph.op("Add", pivot, nobody))
    column = graph.op("Unsqueeze", graph.op("Squeeze", row, int64(1)), int64(2))
    return graph.op("Sub", precision, graph.op("Mul", column, share))


def _chosen(graph: Graph, size: str, n_columns: int) -> str:
    """Add 1 in the first column of each row that has the largest size, 0 elsewhere."""
    best = graph.op("ArgMax", size, axis=1, keepdims=1)
    return graph.op("Cast", graph.op("Equal", best, np.arange(n_columns)), to=graph.real)


def _beyond(graph: Graph, off: str, repair: Repair) -> str:
    """Add 1 for each row, (rows,), that has a cell beyond its bounds, 0 for the others."""
    either = graph.op("Or", graph.op("Less", off, repair.normal.least), graph.op("Greater", off, repair.normal.most))
    return graph.op("ReduceMax", graph.op("Cast", either, to=graph.real), int64(1), keepdims=0)


def _right(graph: Graph, u: str, cell: str, repair: Repair) -> str:
    """Add 1 for each row, (rows,), whose cells can be what the others say, 0 for the others."""
    normal = repair.normal
    wrong = graph.op(
        "Or",
        graph.op("Less", u, normal.lowest - normal.most),
        graph.op("Greater", u, normal.highest - normal.least),
    )
    found = graph.op("Mul", cell, graph.op("Cast", wrong, to=graph.real))
    return graph.op("Sub", np.ones(()), graph.op("ReduceMax", found, int64(1), keepdims=0))
