"""Terms of leaf regressions in units of the columns.

A leaf's value is ``constant + sum_j v_j (slope_j + v_j square_j)`` of its path columns, with
``v = min(max(x - center, lower), upper)`` and 0 for a missing value: what the kernels compute in units of
``u = (x - center) inverse``, with one product less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats
from boostbp.trees.forest import Forest

NOTHING = 1e-30  # a weight that no prediction shows: u is of the size of 1


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms, each of a leaf and one of its columns.

    Attributes
    ----------
    column : (terms,) int64
        Of the layer's input.
    center, lower, upper : (terms,) float64
    slope : (terms, outputs) float64
    square : (terms, outputs) float64 or None
        None: all are 0.
    """

    column: NDArray[np.int64]
    center: Floats
    lower: Floats
    upper: Floats
    slope: Floats
    square: Floats | None


@dataclass(frozen=True, slots=True)
class Linear:
    """The trees of one leaf, such as ridge bases and constants, as one function of standardised columns.

    Attributes
    ----------
    terms : Terms
    constant : (outputs,) float64
    """

    terms: Terms
    constant: Floats


def constants_of(forest: Forest, leaf: NDArray[np.int64], m: int) -> Floats:
    """Return the constants of some leaves, (leaves, outputs), of trees that serve `m` outputs each."""
    constants: Floats = forest.leaves.weight[forest.leaves.weight_start[leaf, None] + np.arange(m)]
    return constants


def terms_of(forest: Forest, leaf: NDArray[np.int64], degree: int, m: int) -> Terms:
    """Return the terms of some leaves, one leaf after the other, of trees of one degree that serve `m` outputs each.

    Raises
    ------
    ValueError
        If float64 does not hold a slope in units of the column.
    """
    leaves = forest.leaves
    count = np.diff(leaves.start)[leaf]
    begin = np.concatenate([[0], np.cumsum(count)])
    j = np.arange(begin[-1]) - np.repeat(begin[:-1], count)  # number of each term in its leaf
    at = np.repeat(leaves.start[leaf], count) + j
    column = leaves.column[at].astype(np.int64)
    center, inverse, lower, upper = leaves.scaling[at].T
    flat = inverse == 0.0  # its u is 0, whatever it holds
    inverse = np.where(flat, 1.0, inverse)
    w = (np.repeat(leaves.weight_start[leaf], count) + (1 + j) * m)[:, None] + np.arange(m)
    with np.errstate(over="ignore", under="ignore"):
        lower, upper = (np.where(flat, 0.0, bound / inverse) for bound in (lower, upper))
        slope = _per_unit(np.where(flat[:, None], 0.0, leaves.weight[w]), inverse, column)
        square = None
        if degree == 2:
            weight = np.where(flat[:, None], 0.0, leaves.weight[w + m * np.repeat(count, count)[:, None]])
            square = _per_unit(_per_unit(weight, inverse, column), inverse, column)
    return Terms(column, center, lower, upper, slope, square)


def _per_unit(weight: Floats, inverse: Floats, column: NDArray[np.int64]) -> Floats:
    """Return weights per unit of the column, (terms, outputs)."""
    slope: Floats = weight * inverse[:, None]
    lost = (np.abs(weight) > NOTHING) & ~((np.abs(slope) >= np.finfo(np.float64).tiny) & np.isfinite(slope))
    if lost.any():
        term = int(np.argmax(lost.any(axis=1)))
        raise ValueError(
            f"Column {column[term]} of a layer has the scale {1 / inverse[term]:.3g}, whose slopes float64 does not "
            "hold: multiply it by a constant before the fit."
        )
    return slope


def linear_of(forest: Forest) -> Linear:
    """Return all trees of one leaf as one function; standardised columns that they share stand in it once."""
    leaves = forest.leaves
    constant = np.zeros(forest.n_outputs)
    parts = []
    for tree in np.flatnonzero(np.diff(leaves.tree_leaf) == 1).tolist():
        first, m = leaves.tree_output[tree].tolist()
        outputs, leaf = slice(first, first + m), leaves.tree_leaf[[tree]]
        constant[outputs] += constants_of(forest, leaf, m)[0]
        parts.append((outputs, terms_of(forest, leaf, int(leaves.tree_degree[tree]), m)))
    keys = [np.stack([terms.column, terms.center, terms.lower, terms.upper], axis=1) for _, terms in parts]
    distinct, place = np.unique(np.concatenate([np.empty((0, 4)), *keys]), axis=0, return_inverse=True)
    slope, square = np.zeros((2, len(distinct), forest.n_outputs))
    begin = 0
    for outputs, terms in parts:
        at = place.ravel()[begin : begin + len(terms.column)]
        begin += len(at)
        np.add.at(slope[:, outputs], at, terms.slope)
        if terms.square is not None:
            np.add.at(square[:, outputs], at, terms.square)
    column, center, lower, upper = distinct.T
    terms = Terms(column.astype(np.int64), center, lower, upper, slope, square if square.any() else None)
    return Linear(terms, constant)
