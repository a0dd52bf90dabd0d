"""The compiled core: loops in C over plain arrays, one file for each stage, and their prototypes.

Every function releases the interpreter lock, so callers run blocks of rows or outputs in threads. No function allocates
per row, draws random numbers, starts threads or keeps state.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, get_type_hints

from boostbp.core.binding import LACKS_MEMORY as LACKS_MEMORY
from boostbp.core.binding import Loop

CENTER, INV_SCALE, LOWER, UPPER = 0, 1, 2, 3  # columns of `scaling`
STOPPED, REFUSED, NOT_READ = 1, 2, 3  # faults of `boost_rounds`; of them, functions that read trees have the last one


class Nodes(NamedTuple):
    """Splits of one or more trees; see `boostbp.trees.tree.Tree`."""

    feature: Annotated[Any, "i4[splits]"]
    threshold: Annotated[Any, "f8[splits]"]
    left: Annotated[Any, "i4[splits]"]
    right: Annotated[Any, "i4[splits]"]
    missing_left: Annotated[Any, "bool[splits]"]
    cat_start: Annotated[Any, "i4[splits]"]
    cat_words: Annotated[Any, "i4[splits]"]
    categories: Annotated[Any, "u4[_]"]


class Leaves(NamedTuple):
    """Leaf regressions of one or more trees; see `boostbp.trees.leaves`."""

    tree_leaf: Annotated[Any, "i8[trees+1]"]  # first leaf of each tree
    tree_output: Annotated[Any, "i8[trees, 2]"]  # first output and number of outputs that a tree serves
    tree_degree: Annotated[Any, "i8[trees]"]  # 1 or 2
    start: Annotated[Any, "i8[leaves+1]"]  # first path column of each leaf
    column: Annotated[Any, "i4[paths]"]
    scaling: Annotated[Any, "f8[paths, 4]"]
    weight_start: Annotated[Any, "i8[leaves+1]"]
    weight: Annotated[Any, "f8[_]"]  # per leaf a block (terms, outputs)


class LeafRows(NamedTuple):
    """The rows of one block of the input, grouped by leaf, with the columns that their leaves read."""

    first: Annotated[int, "int"]  # first row of the block
    start: Annotated[Any, "i8[leaves+1]"]
    order: Annotated[Any, "u2[grouped]"]  # leaf ``l`` has rows ``first + order[start[l]:start[l + 1]]``, ascending
    path_start: Annotated[Any, "i8[leaves+1]"]  # first path column of each leaf
    values: Annotated[Any, "f8[_]"]  # leaf by leaf, its path columns in turn, (rows of the leaf,) each


def _fields_of(record: type, *written: str) -> tuple[str, ...]:
    """Return the fields of a record for a loop that writes some of them."""
    hints = get_type_hints(record, include_extras=True)
    return tuple(f"{name}: {hint.__metadata__[0]}{' out' * (name in written)}" for name, hint in hints.items())


NODES, LEAVES, LEAF_ROWS = _fields_of(Nodes), _fields_of(Leaves), _fields_of(LeafRows)
FITTED = _fields_of(Leaves, "scaling", "weight")
BINNED = (
    "X: f8[rows, features]", "Z: f8[rows, columns]", "bins: u1[features, rows]", "lower: f8[features, ends]",
    "upper: f8[features, ends]",
)  # fmt: skip

# scaling.c
scalings = Loop("scalings", "ranges: f8[paths, 4]", "flat_scale: float", "out: f8[paths, 4] out")
# relative to the center, as in C, which tests compare: with a smaller scale, rounding would change predictions
LEAST_SCALE = 1e-12
rescale = Loop("rescale", LEAVES, "ratio: f8[paths]", "shift: f8[paths]", "weight: f8[_] out")
common_scalings = Loop(
    "common_scalings", LEAVES, "first_tree: i8[runs+1]", "scaling: f8[paths, 4] out", "ratio: f8[paths] out",
    "shift: f8[paths] out",
)  # fmt: skip

# solving.c
PATHS = "path_start: i8[leaves+1]", "degree: int", "n_outputs: int"
PENALTY = "penalty: float", "penalize_constant: bool"
solve_leaves = Loop("solve_leaves", *PATHS, "gram: f8[_]", "weight: f8[_] out", *PENALTY, "scale: float")
scale_weights = Loop("scale_weights", *PATHS, "scaling: f8[paths, 4]", "weight: f8[_] out")

# monotone.c
solve_monotone = Loop("solve_monotone", NODES, FITTED, "sign: i8[_]", "gram: f8[_]", *PENALTY, "scale: float")

# routing.c
TREES = NODES, "tree_split: i8[trees+1]"
SPAN = "begin: int", "end: int"
route = Loop("route", *TREES, "X: f8[rows, columns]", *SPAN, "leaf: leaf[trees, rows] out")
paths_of = Loop("paths_of", *TREES, "per_feature: int", "start: i8[leaves+1] out", "column: i4[room] out")

# evaluation.c
AT_LEAVES = LEAVES, ("leaf: leaf[trees, rows]", "Z: f8[rows, columns]")
POINTS = "leaf: leaf[trees, rows]", "X: f8[rows, features]", "Z: f8[rows, columns]"
add_values = Loop(
    "add_values", LEAF_ROWS, "degree: int", "scaling: f8[_, 4]", "weight: f8[_]", "out: f8[outputs, rows] out"
)
evaluate = Loop("evaluate", *AT_LEAVES, "clip: bool", *SPAN, "out: f8[rows, outputs] out")
jacobian = Loop("jacobian", *AT_LEAVES, "clip: bool", "unit: f8[columns]", *SPAN, "out: f8[rows, outputs, columns] out")
changes = Loop(
    "changes", *TREES, LEAVES, "clip: bool", POINTS, POINTS, *SPAN, "smooth: f8[rows, outputs, columns] out",
    "jump: f8[rows, outputs, features] out",
)  # fmt: skip

# backward.c
vjp = Loop(
    "vjp", *AT_LEAVES, "clip: bool", "G: f8[rows, outputs]", "unit: f8[columns]", *SPAN, "out: f8[rows, columns] out"
)

# sums.c
leaf_ranges = Loop("leaf_ranges", LEAF_ROWS, "hess: f8[weights]", "out: f8[paths, 4] out")
leaf_sums = Loop(
    "leaf_sums", LEAF_ROWS, "units: f8[3, paths]", "degree: int", "grad: f8[outputs, rows]", "hess: f8[weights]",
    "gram: f8[_] out", "moment: f8[_] out",
)  # fmt: skip
term_moments = Loop("term_moments", *AT_LEAVES, "G: f8[rows, outputs]", "out: f8[_] out")

# moments.c
ENTRIES = "indptr: leaf[all_columns+1]", "indices: leaf[entries]", "data: f8[entries]"
STANDARDISED = "column: i4[columns]", "scaling: f8[columns, 4]", "zero: f8[columns]"
column_sums = Loop("column_sums", "Z: f8[rows, columns]", "weight: f8[rows]", "sums: f8[columns, 6] out")
column_sums_sparse = Loop("column_sums_sparse", ENTRIES, "weight: f8[_]", "sums: f8[all_columns, 6] out")
column_squares = Loop(
    "column_squares", "Z: f8[rows, columns]", "weight: f8[rows]", "scaling: f8[columns, 4]", "out: f8[columns] out"
)
column_squares_sparse = Loop(
    "column_squares_sparse", ENTRIES, "weight: f8[_]", "scaling: f8[all_columns, 4]", "out: f8[all_columns] out"
)
add_products = Loop(
    "add_products", "Z: f8[rows, all_columns]", STANDARDISED, "V: f8[columns, outputs]", "out: f8[rows, outputs] out"
)
add_products_sparse = Loop(
    "add_products_sparse", ENTRIES, STANDARDISED, "V: f8[columns, outputs]", "out: f8[_, outputs] out"
)
add_moments = Loop(
    "add_moments", "Z: f8[rows, all_columns]", STANDARDISED, "G: f8[rows, outputs]", "out: f8[columns, outputs] out"
)
add_moments_sparse = Loop(
    "add_moments_sparse", ENTRIES, STANDARDISED, "G: f8[_, outputs]", "out: f8[columns, outputs] out"
)
fill = Loop("fill", ENTRIES, "column: i8[columns]", "begin: int", "end: int", "out: f8[_, columns] out")

# grouping.c
put_in_bins = Loop(
    "put_in_bins", "X: f8[rows, features]", "cuts: f8[features, ends]", "bins: u1[features, rows] out",
    "lower: f8[features, ends] out", "upper: f8[features, ends] out",
)  # fmt: skip
group_rows = Loop("group_rows", "leaf: leaf[rows]", "order: u2[rows] out", "start: i8[leaves+1] out")
group_paths = Loop(
    "group_paths", _fields_of(LeafRows, "values"), "column: i4[_]", "Z: f8[part, columns]", "begin: int", "end: int",
    "at: i8[leaves] out",
)  # fmt: skip
group_block = Loop(
    "group_block", NODES, BINNED, "column: i4[_]", "leaf: leaf[_, rows] out",
    _fields_of(LeafRows, "start", "order", "values"),
)  # fmt: skip

# boosting.c
RIDGE = *PENALTY, "standardize: bool", "learning_rate: float", "block_rows: int"
SPACE = "order: u2[rows] out", "values: f8[_] out"
FITS = "leaf: leaf[trees, rows] out", "out: f8[outputs, rows] out"
SPLIT_ROOM = (
    "numbers: f8[2, room] out", "integers: i4[5, room] out", "missing_left: bool[room] out",
    "categories: u4[word_room] out", "tree_split: i8[trees+1] out",
)  # fmt: skip
GROWER = (
    "booster: int", "update: int", "iteration: int", "text: int", "derive: int", "sampled: bool[samples, rows]",
    "unsampled: float", "in_float32: f4[2, grown, rows] out",
)  # fmt: skip
OBJECTIVE = (
    "grad: f8[outputs, rows] out", "hess: f8[hessians, rows]", "shared_grad: f8[shared, rows]",
    "shared_hess: f8[shared, rows]", "base: f8[targets, rows]", "target: f8[targets, rows]",
)  # fmt: skip
LEAF_ROOM = (
    "per_feature: int", "degree: int", "start: i8[leaf_room+1] out", "column: i4[path_room] out",
    "scaling: f8[path_room, 4] out", "weight_start: i8[leaf_room+1] out", "weight: f8[_] out",
)  # fmt: skip
boost_rounds = Loop(
    "boost_rounds", GROWER, BINNED, OBJECTIVE, RIDGE, SPACE, SPLIT_ROOM, "most_splits: int", LEAF_ROOM, *FITS,
    "done: i8[2] out",
)  # fmt: skip

# reading.c
read_trees = Loop("read_trees", "text: u1[bytes]", SPLIT_ROOM, "n_words: i8[1] out")

# reading_ubj.c
read_ubj = Loop("read_ubj", "model: u1[bytes]", SPLIT_ROOM, "n_words: i8[1] out")
largest_below = Loop("largest_below", "threshold: f4[thresholds]", "out: f8[thresholds] out")

# ranking.c
TIED_CELLS = (
    "tie: i8[cells]", "score: f8[cells]", "gain: f8[cells]", "front: f8[cells]", "chance: f8[cells]",
    "discount: f8[cells]", "within: f8[cells]", "size: f8[cells]",
)  # fmt: skip
lambdas = Loop(
    "lambdas", "bounds: i8[queries+1]", TIED_CELLS, "inverse: f8[queries]", "sigmoid: float", "normalised: bool",
    "space: f8[2, cells] out", "grad: f8[cells] out", "hess: f8[cells] out",
)  # fmt: skip
pairs = Loop(
    "pairs", "bounds: i8[queries+1]", "score: f8[rows]", "relevance: f8[rows]", "partners: int", "sigmoid: float",
    "space: f8[3, longest] out", "value: f8[rows] out", "grad: f8[rows] out", "hess: f8[rows] out",
)  # fmt: skip

# rows.c
LOCKSTEP = 16  # trees that share a number of steps
AT_ONCE = 512  # trees that are walked before their leaves are read
FLAT = (
    "nodes: u8[_]", "trees: i4[_, 4]", "layers: i8[layers, 7]", "steps: i8[_]", "bounds: f8[_]",
    "first_bound: i8[_]", "table: u1[_]", "sets: i8[_, 4]", "categories: u4[_]", "baseline: f8[outputs]",
)  # fmt: skip
predict_rows = Loop(
    "predict_rows", FLAT, "bytes: int", "skip: bool", "X: f8[rows, columns]", "out: f8[rows, outputs] out"
)
