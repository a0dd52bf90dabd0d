"""Arrays that the compiled loops read, and how the loops are compiled."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numba import njit

CENTER, INV_SCALE, LOWER, UPPER = 0, 1, 2, 3
BLOCK = 256  # rows whose terms are held at once while summing
TILE = 128  # rows that pass all trees before the next rows come, so that they stay in cache

# A loop that Python calls returns None or a number, and writes its arrays where the caller says: to make a returned
# array into an object, numba calls a Python function and does not ask whether it failed. A signal that came while the
# loop ran is handled there first, and if its handler raises (a time limit, Ctrl-C), the process ends.
#
# Every loop releases the interpreter lock, so that callers run row blocks or outputs in threads of their own. None is
# handed on as a value, and some are called by compiled code alone: without the wrappers for the rest, a first call
# compiles for an eighth less. Python has no way into `internal` and `fastmath` loops: calling one kills the process.
ENTERED: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER = ENTERED | {"no_cpython_wrapper": True}
internal = njit(**_INNER)
# Always inlined: a compiled module carries its own copies of what it calls, which of them runs depends on the order
# of loading, and copies that may reassociate sums need not agree in the last bit between a compiled and a cached run.
fastmath = njit(**_INNER, fastmath={"reassoc", "contract"}, forceinline=True)


class Nodes(NamedTuple):
    """Splits of one tree, or of all trees of a forest one after the other; see `Tree`."""

    feature: Any
    threshold: Any
    left: Any
    right: Any
    missing_left: Any
    cat_start: Any
    cat_words: Any
    categories: Any


class Leaves(NamedTuple):
    """Leaf regressions of all trees of a forest.

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
    """Number of the leaf of a row under a tree, from the bytes of leaf numbers, (trees, rows, size)."""
    size = leaf.shape[2]
    if size == 1:
        return np.int64(leaf[tree, row, 0])
    number = np.int64(0)
    for k in range(size):
        number |= np.int64(leaf[tree, row, k if _LITTLE else size - 1 - k]) << (8 * k)
    return number


@internal
def put_leaf(leaf, tree, row, number):
    """Write the number of the leaf of a row under a tree; see `leaf_at`."""
    size = leaf.shape[2]
    if size == 1:
        leaf[tree, row, 0] = number
        return
    for k in range(size):
        leaf[tree, row, k if _LITTLE else size - 1 - k] = (number >> (8 * k)) & 255


@internal
def largest(start):
    """Size of the largest of the parts that `start` cuts an array into.

    Loops of one number compile in a tenth of the time that numpy's functions of whole arrays take.
    """
    most = 0
    for i in range(len(start) - 1):
        most = max(most, start[i + 1] - start[i])
    return most
