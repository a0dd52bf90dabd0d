"""Ranges: the scalings of path columns by what they were made of, for files.

The scaling of a path column, ``(center, inv_scale, lower, upper)``, follows from the mean of the leaf's rows and from
the smallest and the largest value among them (see `kernels.sums.scaling_of`). These ends are values of training rows:
few different ones in each column, which many leaves share.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boostbp.archive import Arrays
from boostbp.floats import Floats
from boostbp.trees.tree import offsets

NEAR = range(-3, 4)  # units in the last place between an end and what is computed back


def ranges_of(column: NDArray[np.int32], scaling: Floats) -> Arrays:
    """Return arrays from which `scaling_from` makes the same scalings, bit for bit.

    Returns
    -------
    dict
        ``center`` (path columns,); ``ends`` (different ends,) float64, those of a column side by side, ascending;
        ``first_end`` (columns + 1,), where those of each column begin; ``end`` (path columns, 2), numbers of the ends
        of each among those of its column, -1 where the scaling was not made so; ``odd`` (these, 4), such scalings.
    """
    center, inverse, lower, upper = scaling.T
    with np.errstate(all="ignore"):
        values = center[:, None] + scaling[:, 2:] / inverse[:, None]
    rounded = np.frexp(inverse)[0] == 0.5  # powers of two: they and their ends are of few bits as they are
    odd = rounded | ~(np.isfinite(values).all(1) & (lower < upper))
    rows = np.repeat(np.flatnonzero(~odd), 2)
    place, ends = _common(column[rows], values[~odd].ravel(), center[rows], inverse[rows], scaling[~odd, 2:].ravel())
    end = np.full((len(scaling), 2), -1, np.int32)
    end[~odd] = place.reshape(-1, 2)
    columns_of_ends = np.empty(len(ends), np.int64)
    columns_of_ends[place] = column[rows]
    first = offsets(np.bincount(columns_of_ends, minlength=int(column.max(initial=-1)) + 1))
    made = _scaling(center, ends[end]) if len(ends) else np.full_like(scaling, np.nan)
    odd |= (made.view(np.int64) != scaling.view(np.int64)).any(1)
    end -= first[column][:, None].astype(np.int32)
    end[odd] = -1
    return {
        "center": np.where(odd, 0.0, center),
        "ends": ends,
        "first_end": first,
        "end": end,
        "odd": scaling[odd],
    }


def _common(
    column: NDArray[np.int32], value: Floats, center: Floats, inverse: Floats, bound: Floats
) -> tuple[NDArray[np.int64], Floats]:
    """Return the place of each value among the different ones, and these: values but for rounding, now exact."""
    order = np.lexsort((value, column))
    sorted_value, sorted_column = value[order], column[order]
    with np.errstate(all="ignore"):
        error = 4.0 * np.finfo(np.float64).eps * (np.abs(center) + np.abs(value) + 1.0 / inverse)[order]
    is_new = np.ones(len(value), bool)
    is_new[1:] = (sorted_column[1:] != sorted_column[:-1]) | (sorted_value[1:] - sorted_value[:-1] > error[1:])
    place = np.empty(len(value), np.int64)
    place[order] = np.cumsum(is_new) - 1
    first = offsets(np.bincount(place))
    middle = sorted_value[(first[:-1] + first[1:]) // 2]
    unit = np.spacing(np.abs(middle))
    with np.errstate(all="ignore"):
        hits = [np.bincount(place, ((middle + k * unit)[place] - center) * inverse == bound) for k in NEAR]
    return place, middle + (np.argmax(hits, axis=0) + NEAR[0]) * unit if len(value) else middle


def scaling_from(
    column: NDArray[np.int32], center: Floats, ends: Floats, first_end: NDArray[np.int64], end: NDArray[np.int32],
    odd: Floats,
) -> Floats:  # fmt: skip
    """Return the scalings, (path columns, 4), that `ranges_of` described.

    Raises
    ------
    ValueError
        If the arrays do not fit together.
    """
    is_odd = (end < 0).all(1)
    good = len(center) == len(end) == len(column) and len(odd) == is_odd.sum()
    good = good and len(first_end) == int(column.max(initial=-1)) + 2 and first_end[-1] == len(ends)
    good = good and first_end[0] == 0 and (np.diff(first_end) >= 0).all()
    known = column[~is_odd] if good else column[:0]
    if good:
        size = np.diff(first_end)[known][:, None]
        good = ((end[~is_odd] >= 0) & (end[~is_odd] < size)).all()
    if not good:
        raise ValueError("This is not a forest: the ends of path columns do not fit to them.")
    if is_odd.all():
        return odd
    scaling = np.empty((len(column), 4))
    scaling[is_odd] = odd
    scaling[~is_odd] = _scaling(center[~is_odd], ends[first_end[known][:, None] + end[~is_odd]])
    return scaling


def _scaling(center: Floats, ends: Floats) -> Floats:
    """Return the scalings of centers and ends, (path columns, 2): the operations of `kernels.sums.scaling_of`."""
    lower, upper = ends.T
    with np.errstate(all="ignore"):
        inverse = 1.0 / np.maximum(upper - center, center - lower)
        return np.column_stack([center, inverse, (lower - center) * inverse, (upper - center) * inverse])
