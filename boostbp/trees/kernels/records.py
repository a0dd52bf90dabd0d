"""Arrays that the compiled loops read, and how the loops are compiled."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numba import njit

CENTER, INV_SCALE, LOWER, UPPER = 0, 1, 2, 3

# A loop that Python calls returns None or a number, and writes to arrays of the caller. To return an array, numba calls
# a Python function and does not check for its failure. A signal that arrives during the loop is handled in that call,
# and if its handler raises (a time limit, Ctrl-C), the process ends.
#
# Every loop releases the interpreter lock, so that callers can run row blocks or outputs in threads. No loop is passed
# as a value, and some are called by compiled code alone: to leave out the wrappers for other uses saves an eighth of
# the compilation. Python must not call `internal` loops, as the process would crash.
ENTERED: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INTERNAL = ENTERED | {"no_cpython_wrapper": True}
internal = njit(**_INTERNAL)


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


_LITTLE = sys.byteorder == "little"


@internal
def leaf_at(leaf, tree, row):
    """Return the leaf number of a row under a tree, from the bytes of leaf numbers, (trees, rows, size)."""
    size = leaf.shape[2]
    if size == 1:
        return np.int64(leaf[tree, row, 0])
    number = np.int64(0)
    for k in range(size):
        number |= np.int64(leaf[tree, row, k if _LITTLE else size - 1 - k]) << (8 * k)
    return number
