"""The compiled core: loops in C over plain arrays, one file for each stage, and their prototypes.

Every function releases the interpreter lock, so callers run row blocks or outputs in threads of their own. None
allocates per row, draws random numbers, starts threads or keeps a state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from boostbp.core.binding import Loop

CENTER, INV_SCALE, LOWER, UPPER = 0, 1, 2, 3  # columns of `scaling`


class Nodes(NamedTuple):
    """Splits of one or more trees; see `boostbp.trees.tree.Tree`."""

    feature: Any
    threshold: Any
    left: Any
    right: Any
    missing_left: Any
    cat_start: Any
    cat_words: Any
    categories: Any


class Leaves(NamedTuple):
    """Leaf regressions of one or more trees; see `boostbp.trees.leaves`.

    tree_leaf : (trees + 1,) int64, first leaf of each tree
    tree_output : (trees, 2) int64, first output and number of outputs that a tree serves
    tree_degree : (trees,) int64, 1 or 2
    start : (leaves + 1,) int64, first path column of each leaf
    column : (path columns,) int32
    scaling : (path columns, 4) float64
    weight_start : (leaves + 1,) int64
    weight : float64, per leaf a block (terms, outputs)
    """

    tree_leaf: Any
    tree_output: Any
    tree_degree: Any
    start: Any
    column: Any
    scaling: Any
    weight_start: Any
    weight: Any


NODES = (
    "splits", "feature: i4[splits]", "threshold: f8[splits]", "left: i4[splits]", "right: i4[splits]",
    "missing_left: bool[splits]", "cat_start: i4[splits]", "cat_words: i4[splits]", "categories: u4[_]",
)  # fmt: skip
LEAVES = (
    "trees", "tree_leaf: i8[trees+1]", "tree_output: i8[trees, _]", "tree_degree: i8[trees]", "start: i8[leaves+1]",
    "column: i4[paths]", "scaling: f8[paths, _]", "weight_start: i8[leaves+1]", "weight: f8[_]",
)  # fmt: skip

# scalings.c
scalings = Loop("scalings", "ranges: f8[paths, _]", "flat_scale: float", "out: f8[paths, _] out")

# routing.c
route = Loop(
    "route", NODES, "tree_split: i8[trees+1]", "X: f8[rows, columns]", "begin: int", "end: int",
    "leaf: leaf[trees, rows] out",
)  # fmt: skip
paths_of = Loop(
    "paths_of", NODES, "tree_split: i8[trees+1]", "per_feature: int", "start: i8[leaves+1] out", "column: i4[room] out"
)

# evaluation.c
add_values = Loop(
    "add_values", "row_start: i8[leaves+1]", "order: u2[_]", "first_row: int", "path_start: i8[leaves+1]",
    "grouped: f8[_]", "degree: int", "scaling: f8[_, _]", "weight: f8[_]", "out: f8[outputs, rows] out",
)  # fmt: skip
evaluate = Loop(
    "evaluate", LEAVES, "leaf: leaf[trees, rows]", "Z: f8[rows, columns]", "clip: bool", "begin: int", "end: int",
    "out: f8[rows, outputs] out",
)  # fmt: skip
jacobian = Loop(
    "jacobian", LEAVES, "leaf: leaf[trees, rows]", "Z: f8[rows, columns]", "clip: bool", "unit: f8[columns]",
    "begin: int", "end: int", "out: f8[rows, outputs, columns] out",
)  # fmt: skip
changes = Loop(
    "changes", NODES, "tree_split: i8[trees+1]", LEAVES, "clip: bool", "leaf_a: leaf[trees, rows]",
    "leaf_b: leaf[trees, rows]", "A: f8[rows, features]", "B: f8[rows, features]", "ZA: f8[rows, columns]",
    "ZB: f8[rows, columns]", "begin: int", "end: int", "smooth: f8[rows, outputs, columns] out",
    "jump: f8[rows, outputs, features] out",
)  # fmt: skip

# backward.c
vjp = Loop(
    "vjp", LEAVES, "leaf: leaf[trees, rows]", "Z: f8[rows, columns]", "clip: bool", "G: f8[rows, outputs]",
    "unit: f8[columns]", "begin: int", "end: int", "out: f8[rows, columns] out",
)  # fmt: skip

# rows.c
LOCKSTEP = 16  # trees that are walked together
AT_ONCE = 512  # trees that are walked before their leaves are read
FLAT = (
    "layers", "nodes: u8[_]", "trees: i4[_, _]", "layers: i8[layers, _]", "steps: i8[_]", "bounds: f8[_]",
    "first_bound: i8[_]", "table: u1[_]", "sets: i8[_, _]", "categories: u4[_]", "baseline: f8[outputs]",
)  # fmt: skip
predict_rows = Loop(
    "predict_rows", FLAT, "bytes: int", "skip: bool", "X: f8[rows, columns]", "out: f8[rows, outputs] out"
)

# solving.c
solve_leaves = Loop(
    "solve_leaves", "path_start: i8[leaves+1]", "degree: int", "n_outputs: int", "gram: f8[_]", "weight: f8[_] out",
    "penalty: float", "penalize_constant: bool", "scale: float",
)  # fmt: skip
scale_weights = Loop(
    "scale_weights", "path_start: i8[leaves+1]", "degree: int", "n_outputs: int", "scaling: f8[paths, _]",
    "weight: f8[_] out",
)  # fmt: skip

# joining.c
LEAST_SCALE = 1e-12  # relative to the center: with a smaller scale, rounding would change predictions
rescale = Loop("rescale", LEAVES, "ratio: f8[paths]", "shift: f8[paths]", "weight: f8[_] out")
common_scalings = Loop(
    "common_scalings", LEAVES, "first_tree: i8[runs+1]", "scaling: f8[paths, _] out", "ratio: f8[paths] out",
    "shift: f8[paths] out",
)  # fmt: skip

# monotone.c
solve_monotone = Loop(
    "solve_monotone", NODES, "first: int", "sign: i8[_]", "path_start: i8[leaves+1]", "column: i4[paths]",
    "degree: int", "scaling: f8[paths, _]", "gram: f8[_]", "weight: f8[terms] out", "penalty: float",
    "penalize_constant: bool", "scale: float",
)  # fmt: skip
