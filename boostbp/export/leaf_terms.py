"""Terms of leaf regressions in units of the columns.

A leaf's value is ``constant + sum_j v_j (slope_j + v_j square_j)`` over its path columns, with
``v = min(max((x - center) factor, lower), upper)``, and 0 for a missing value. The kernels compute it in units of
``u = (x - center) inverse``. Where the scale is an ordinary power of two, as in rounded layers, the product is saved:
the factor is 1, and slopes are per unit of the column, with the same bits.

Other columns keep the units of the kernels (``factor = inverse``): other scales round otherwise, and slopes per unit of
very large or small columns are beyond float64. So do all columns without clipping: the square of a large cell is beyond
float64 where that of ``u`` is not, for example in a column that a leaf leaves out, whose ``inverse`` is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest

ORDINARY = 2.0**40  # largest scale, or inverse of one, with which slopes and squares per unit of a column fit float32


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms: each belongs to a leaf and one of its columns.

    Attributes
    ----------
    column : (terms,) int64
        Column of the layer's input.
    center, lower, upper : (terms,) float64
    slope : (terms, outputs) float64
    square : (terms, outputs) float64 or None
        None: all are 0.
    factor : (terms,) float64
        Centered cells are multiplied by it.
    """

    column: NDArray[np.int64]
    center: Floats
    lower: Floats
    upper: Floats
    slope: Floats
    square: Floats | None
    factor: Floats

    def bounds(self, dtype: np.dtype[np.floating]) -> tuple[Floats, Floats]:
        """Return the lower and the upper bounds, finite in a type: infinity times 0 would be NaN."""
        ends = np.finfo(dtype)
        return np.clip(self.lower, ends.min, ends.max), np.clip(self.upper, ends.min, ends.max)

    def padded(self, count: NDArray[np.int64], n_read: NDArray[np.int64], *, clip: bool) -> Terms:
        """Return the terms of leaves that have `count` with `n_read` for each leaf; those added are 0.

        Without clipping, their factor is 0, too: 0 times the square of a large cell, which is infinite, is NaN.
        """
        number = np.arange(n_read.sum()) - np.repeat(np.cumsum(n_read) - n_read, n_read)
        held = number < np.repeat(count, n_read)
        source = np.where(held, np.repeat(np.cumsum(count) - count, n_read) + number, 0)

        def taken(values: NDArray[Any], other: float = 0) -> NDArray[Any]:
            return np.where(held.reshape(-1, *[1] * (values.ndim - 1)), values[source], other)

        return Terms(
            taken(self.column),
            taken(self.center),
            taken(self.lower),
            taken(self.upper),
            taken(self.slope),
            None if self.square is None else taken(self.square),
            taken(self.factor, float(clip)),
        )


def constants_of(forest: Forest, leaf: NDArray[np.int64], m: int) -> Floats:
    """Return the constants of some leaves, (leaves, outputs), of trees that serve `m` outputs each."""
    constants: Floats = forest.leaves.weight[forest.leaves.weight_start[leaf, None] + np.arange(m)]
    return constants


def terms_of(forest: Forest, leaf: NDArray[np.int64], m: int) -> Terms:
    """Return the terms of some leaves, one leaf after the other, of trees that serve `m` outputs each."""
    leaves = forest.leaves
    count = np.diff(leaves.start)[leaf]
    j = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)  # number of each term in its leaf
    at = np.repeat(leaves.start[leaf], count) + j
    column = leaves.column[at].astype(np.int64)
    center, inverse, lower, upper = leaves.scaling[at].T
    flat = inverse == 0.0  # its u is 0, whatever it holds
    ordinary = flat | ((inverse >= 1.0 / ORDINARY) & (inverse <= ORDINARY) & (np.frexp(inverse)[0] == 0.5))
    ordinary &= forest.clip
    factor = np.where(ordinary, 1.0, inverse)
    inverse = np.where(ordinary & ~flat, inverse, 1.0)  # in units of v
    w = (np.repeat(leaves.weight_start[leaf], count) + (1 + j) * m)[:, None] + np.arange(m)
    tree = np.searchsorted(leaves.tree_leaf, np.repeat(leaf, count), "right") - 1
    curved = leaves.tree_degree[tree] == 2
    lower, upper = (np.where(flat, 0.0, bound / inverse) for bound in (lower, upper))
    slope = np.where(flat[:, None], 0.0, leaves.weight[w]) * inverse[:, None]
    square = None
    if curved.any():
        w = np.where(curved[:, None], w + m * np.repeat(count, count)[:, None], 0)
        square = np.where((curved & ~flat)[:, None], leaves.weight[w], 0.0) * np.square(inverse)[:, None]
    return Terms(column, np.where(flat, 0.0, center), lower, upper, slope, square, factor)
