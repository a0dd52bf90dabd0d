"""Tables of trees, which a runtime makes once of what the file has of them: of nodes, of leaves and of their terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.export.onnx_numbers import Units, lowest_bits, multiples, owners, whole_numbers
from boostbp.export.tree_tables import TreeTables
from boostbp.floats import Floats
from boostbp.trees.forest import Forest
from boostbp.trees.rounding import RANGE_BITS

TOGETHER = 16  # splits of a column that are asked together


@dataclass(frozen=True, slots=True)
class Nodes:
    """Names of tables of nodes, (nodes,), and of splits.

    Attributes
    ----------
    root : str
        Nodes, (trees,).
    number, child : str
        What a node asks, as a number of a split, and its first child; a leaf is its own, and asks what no row says.
    leaf : str
        Number of a leaf among all.
    column, limit : str
        (columns,) and (columns, `TOGETHER`, 1): thresholds of different splits, some of a column at a time.
    """

    root: str
    number: str
    child: str
    leaf: str
    column: str
    limit: str

    @classmethod
    def of(cls, graph: Graph, tables: TreeTables, column: NDArray[np.int64], threshold: Floats) -> Nodes:
        """Add what makes them of the order of the nodes: child s of all, s from 0, of tree t is node 2 s + t + 1."""
        once, TP, n_nodes = graph.outermost, library().TensorProto, len(tables.is_split)
        is_split = whole_numbers(graph, tables.is_split)
        rank = once.op("CumSum", is_split, np.int64(0))
        node = once.op("Range", np.int32(0), np.int32(n_nodes), np.int32(1))
        size = once.op("Cast", whole_numbers(graph, tables.size), to=TP.INT64)
        tree = once.op("Cast", owners(graph, size, n_nodes), to=TP.INT32)
        below = once.op("Add", once.op("Add", rank, once.op("Sub", rank, np.int32(1))), tree)
        child = once.op("Add", node, once.op("Mul", is_split, once.op("Sub", below, node)))
        questions = np.stack([column[tables.split], threshold[tables.split]])
        (columns, limits), split = np.unique(questions, axis=1, return_inverse=True)
        columns, limits = np.append(columns, columns[-1:]), np.append(limits, np.inf)  # the last one is that of leaves
        distinct, size_of_column = np.unique(columns, return_counts=True)
        n_parts = -(-size_of_column // TOGETHER)
        begin = TOGETHER * (np.cumsum(n_parts) - n_parts) - (np.cumsum(size_of_column) - size_of_column)
        place = np.arange(len(limits)) + np.repeat(begin, size_of_column)
        of_column = once.op("Cast", whole_numbers(graph, size_of_column), to=TP.INT64)
        shift = once.op("Gather", whole_numbers(graph, begin), owners(graph, of_column, len(limits)))
        places = once.op("Add", shift, once.op("Range", np.int32(0), np.int32(len(limits)), np.int32(1)))
        none = once.op("Expand", np.array([np.inf]), int64(TOGETHER * n_parts.sum()))
        table = once.op("ScatterElements", none, places, limits, axis=0)
        number = whole_numbers(graph, place[[len(limits) - 1, *split.ravel()]])
        return cls(
            once.op("CumSum", size, np.int64(0), exclusive=1),
            once.op("Gather", number, once.op("Mul", is_split, rank)),
            child,
            once.op("Sub", node, rank),
            whole_numbers(graph, np.repeat(distinct.astype(np.int64), n_parts)),
            once.op("Reshape", table, int64(-1, TOGETHER, 1)),
        )


@dataclass(frozen=True, slots=True)
class LeafTerms:
    """Names of tables of terms, those of a leaf side by side: as many as are read of leaves of its tree.

    Attributes
    ----------
    begin : (leaves,) int32
        Place of the first term of each.
    there : (terms,) bool
        Whether it is a term of the leaf; the others are 0.
    column, center : (terms,)
    factor : (terms,)
        "" if all are 1.
    bounds : pair of (terms,), or () if cells are not clipped
    slope, square : (terms, outputs), or (terms,) if it is one
        "" if all are 0.
    """

    begin: str
    there: str
    column: str
    center: str
    factor: str
    bounds: tuple[str, ...]
    slope: str
    square: str

    @classmethod
    def of(cls, graph: Graph, tables: TreeTables, units: Units, *, clip: bool) -> LeafTerms:
        """Add what makes them of the terms of the leaves, one leaf after the other."""
        once, TP, terms, m = graph.outermost, library().TensorProto, tables.terms, tables.n_outputs
        count = once.op("Cast", whole_numbers(graph, tables.count), to=TP.INT64)
        first = once.op("CumSum", count, np.int64(0), exclusive=1)
        begin, parts, places = [], [], 0
        for (_, k), ends in zip(tables.groups, tables.leaves, strict=True):
            n_leaves, number = ends[1] - ends[0], np.arange(k)
            end = places + n_leaves * k
            begin.append(once.op("Range", *map(np.int32, (places, end, k) if k else (0, n_leaves, 1))))
            of_group = [
                once.op("Unsqueeze", once.op("Slice", table, *map(int64, ends)), int64(1)) for table in (count, first)
            ]
            held = once.op("Less", number, of_group[0])
            numbers = once.op("Mul", once.op("Cast", held, to=TP.INT64), once.op("Add", of_group[1], number))
            parts.append((held, numbers))
            places = end
        there, source = (
            once.op("Concat", *(once.op("Reshape", part, int64(-1)) for part in part_of), axis=0)
            for part_of in zip(*parts, strict=True)
        )
        real = once.op("Cast", there, to=graph.real)

        def placed(table: str) -> str:
            return once.op("Gather", table, source)

        def weights(values: Floats, unit: Units) -> str:
            made = once.op("Mul", placed(multiples(graph, values, unit)), once.op("Unsqueeze", real, int64(1)))
            return made if m > 1 else once.op("Reshape", made, int64(-1))

        scale, factors = (_nearby(graph, values) for values in (terms.scale, terms.factor))
        grid = scale.times(graph, 2.0**-RANGE_BITS)
        unit = units.at(
            graph,
            np.repeat(np.arange(len(tables.count)), tables.count),
            lambda: owners(graph, count, len(terms.column)),
        )
        slope = unit.over(graph, scale)
        real_ends = np.finfo(graph.dtype)  # no product of a missing value, which is infinite, and 0
        bounds = (
            multiples(graph, np.clip(bound, real_ends.min, real_ends.max), grid) for bound in (terms.lower, terms.upper)
        )
        plain = (terms.factor == 1.0).all()
        center = placed(multiples(graph, terms.center, grid if plain else grid.over(graph, factors)))
        factor = "" if plain else placed(multiples(graph, terms.factor, factors))
        if not clip:  # set absent terms to 0: 0 times a number beyond float64 is NaN
            center, factor = once.op("Mul", center, real), once.op("Mul", factor or real, real)
        return cls(
            once.op("Concat", *begin, axis=0),
            there,
            placed(whole_numbers(graph, terms.column)),
            center,
            factor,
            tuple(once.op("Mul", placed(bound), real) for bound in bounds) if clip else (),
            weights(terms.slope, slope),
            "" if terms.square is None else weights(terms.square, slope.over(graph, scale)),
        )


def _nearby(graph: Graph, values: Floats) -> Units:
    """Return numbers that are powers of two as they are, and 1 in place of others."""
    mantissa, exponent = np.frexp(values)
    return Units.of(graph, np.where(mantissa == 0.5, exponent - 1, 0))


def units_of_leaves(graph: Graph, tables: TreeTables) -> Units:
    """Return units, (leaves, outputs), of which a leaf's weights are multiples, in the kernels' units of cells."""
    terms, owner = tables.terms, np.repeat(np.arange(len(tables.count)), tables.count)
    lowest, scale = lowest_bits(tables.constant), terms.scale[:, None]
    with np.errstate(all="ignore"):
        np.minimum.at(lowest, owner, lowest_bits(terms.slope * scale))
        if terms.square is not None:
            np.minimum.at(lowest, owner, lowest_bits(terms.square * scale * scale))
    return Units.of(graph, np.clip(lowest, -1000, 0))


def side_by_side(graph: Graph, tables: TreeTables, weights: Sequence[str]) -> list[str]:
    """Add all weights of a leaf side by side, of the leaves of a group, (leaves, weights); returns their names.

    Parameters
    ----------
    weights : list of str
        Of constants, slopes and squares, (numbers, outputs).
    """
    once, made, place = graph.outermost, [], 0
    for (_, k), ends in zip(tables.groups, tables.leaves, strict=True):
        n_leaves = ends[1] - ends[0]
        parts = [once.op("Slice", weights[0], *map(int64, ends))]
        for table in weights[1:] if k else ():
            of_group = once.op("Slice", table, int64(place), int64(place + n_leaves * k))
            parts.append(once.op("Reshape", of_group, int64(n_leaves, -1)))
        made.append(once.op("Concat", *parts, axis=1))
        place += n_leaves * k
    return made


def not_above(graph: Graph, forest: Forest) -> Floats:
    """Return thresholds in the type of the graph, all finite but -inf; .5 of categorical splits.

    Of float32, the largest not above: rows in float32 then go where the same numbers in float64 would. Infinity, that
    of missing values, is above all of them.
    """
    threshold = np.where(forest.nodes.cat_start >= 0, 0.5, forest.nodes.threshold)
    with np.errstate(over="ignore"):
        nearest = threshold.astype(graph.dtype)
        below = np.where(nearest > threshold, np.nextafter(nearest, np.array(-np.inf, graph.dtype)), nearest)
    return np.minimum(below, np.finfo(graph.dtype).max).astype(np.float64)
