"""Numbered values: what splits and leaves share, by its number among the few different values of a column.

Thresholds are such values. So are the ends of the scaling of a path column, ``(center, inv_scale, lower, upper)``,
which follows from the mean of the leaf's rows and from the smallest and the largest value among them (see
`kernels.sums.scaling_of`): these are values of training rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.archive import Arrays
from boostbp.floats import Floats
from boostbp.trees.rounding import RANGE_BITS
from boostbp.trees.tree import offsets

MADE_OF_NUMBERS, AS_IT_IS = -2, -1  # what stands for the ends of a scaling that was not made of ends
NEAR = range(-3, 4)  # units in the last place between an end and what is computed back


def ranges_of(column: NDArray[np.int32], scaling: Floats) -> Arrays:
    """Return arrays from which `scaling_from` makes the same scalings, bit for bit.

    Returns
    -------
    dict
        ``center`` (path columns,); ``ends`` (different ends,) float64, those of a column side by side, ascending;
        ``first_end`` (columns + 1,), where those of each column begin; ``end`` (path columns, 2), numbers of the ends
        of each among those of its column, or what else the scaling is; ``short`` (these, 4), the whole numbers of
        scalings that `boostbp.trees.rounding` made, those of a column side by side; ``odd`` (these, 4), other scalings.
    """
    center, inverse, lower, upper = scaling.T
    with np.errstate(all="ignore"):
        values = center[:, None] + scaling[:, 2:] / inverse[:, None]
    short = _short(scaling)
    is_short = (_of_short(short).view(np.int64) == scaling.view(np.int64)).all(1)
    odd = is_short | ~(np.isfinite(values).all(1) & (lower < upper))
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
    end[odd] = AS_IT_IS
    end[is_short] = MADE_OF_NUMBERS
    return {
        "center": np.where(odd, 0.0, center),
        "ends": ends,
        "first_end": first,
        "end": end,
        "short": short[_by_column(column, is_short)],
        "odd": scaling[odd & ~is_short],
    }


def _short(scaling: Floats) -> NDArray[np.int32]:
    """Return what scalings would be made of, were they rounded; of others it is arbitrary.

    Center, logarithm of the inverse scale, bounds below and above the center; in 1/64 of the scale, without signs.
    """
    center, inverse, lower, upper = scaling.T
    exponent = np.frexp(inverse)[1] - 1
    with np.errstate(all="ignore"):
        numbers = np.ldexp(np.column_stack([center * inverse, -lower, upper]), RANGE_BITS)
        numbers = np.where(np.abs(numbers) < np.iinfo(np.int32).max, numbers, 0.0).astype(np.int32)
    return np.column_stack([numbers[:, 0], exponent, numbers[:, 1:]]).astype(np.int32)


def _of_short(short: NDArray[np.int32]) -> Floats:
    numbers, exponent = short.astype(np.float64), short[:, 1]
    with np.errstate(all="ignore"):
        center = np.ldexp(numbers[:, 0], -RANGE_BITS - exponent)
        lower, upper = np.ldexp(0.0 - numbers[:, 2], -RANGE_BITS), np.ldexp(numbers[:, 3], -RANGE_BITS)
        return np.column_stack([center, np.ldexp(1.0, exponent), lower, upper])


def _by_column(column: NDArray[np.int32], which: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return some of the path columns, in the order of the columns that they read: like numbers side by side."""
    place = np.flatnonzero(which)
    return place[np.argsort(column[place], kind="stable")]


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
    short: NDArray[np.int32], odd: Floats,
) -> Floats:  # fmt: skip
    """Return the scalings, (path columns, 4), that `ranges_of` described.

    Raises
    ------
    ValueError
        If the arrays do not fit together.
    """
    is_short, is_odd = (end == MADE_OF_NUMBERS).all(1), (end == AS_IT_IS).all(1)
    of_ends = ~(is_short | is_odd)
    good = len(center) == len(end) == len(column) and (len(short), len(odd)) == (is_short.sum(), is_odd.sum())
    good = good and len(first_end) == int(column.max(initial=-1)) + 2 and int(first_end[-1]) == len(ends)
    good = good and bool(first_end[0] == 0 and (np.diff(first_end) >= 0).all())
    known = column[of_ends] if good else column[:0]
    if good:
        size = np.diff(first_end)[known][:, None]
        good = bool(((end[of_ends] >= 0) & (end[of_ends] < size)).all())
    if not good:
        raise ValueError("This is not a forest: the ends of path columns do not fit to them.")
    if is_odd.all():
        return odd
    scaling = np.empty((len(column), 4))
    scaling[is_odd] = odd
    scaling[_by_column(column, is_short)] = _of_short(short)
    scaling[of_ends] = _scaling(center[of_ends], ends[first_end[known][:, None] + end[of_ends]])
    return scaling


def _scaling(center: Floats, ends: Floats) -> Floats:
    """Return the scalings of centers and ends, (path columns, 2): the operations of `kernels.sums.scaling_of`."""
    lower, upper = ends.T
    with np.errstate(all="ignore"):
        inverse = 1.0 / np.maximum(upper - center, center - lower)
        return np.column_stack([center, inverse, (lower - center) * inverse, (upper - center) * inverse])


class Thresholds(NamedTuple):
    """Thresholds of splits.

    Attributes
    ----------
    threshold_number : (splits,) int32
        Number of each among those of its feature, -1 of a split by a set of categories.
    thresholds : (different thresholds,) float64
        Those of a feature side by side, ascending.
    first_threshold : (features in use + 1,) int64
        Where those of each feature begin.
    """

    threshold_number: NDArray[np.int32]
    thresholds: Floats
    first_threshold: NDArray[np.int64]

    @classmethod
    def of(cls, feature: NDArray[np.int32], threshold: Floats, n_features: int = 0) -> Thresholds:
        """Number the thresholds of splits, NaN of sets of categories, of at least so many features."""
        number = np.full(len(feature), -1, np.int32)
        numeric = np.flatnonzero(~np.isnan(threshold))
        order = numeric[np.lexsort((threshold[numeric], feature[numeric]))]
        of_feature, value = feature[order], threshold[order]
        is_new = np.ones(len(order), bool)
        is_new[1:] = (of_feature[1:] != of_feature[:-1]) | (value[1:] != value[:-1])
        count = np.bincount(of_feature[is_new], minlength=max(n_features, int(feature.max(initial=-1)) + 1))
        first = offsets(count)
        number[order] = np.cumsum(is_new) - 1 - first[of_feature]
        return cls(number, value[is_new], first)

    def of_splits(self, feature: NDArray[np.int32]) -> Floats:
        """Return the threshold of each split, NaN of those by sets.

        Raises
        ------
        ValueError
            If the numbers do not fit to the features.
        """
        number, first, known = self.threshold_number, self.first_threshold, self.threshold_number != -1
        fit = len(number) == len(feature) and len(first) == int(feature.max(initial=-1)) + 2
        fit = fit and bool(feature.min(initial=0) >= 0 and first[0] == 0 and first[-1] == len(self.thresholds))
        count = np.diff(first)
        if not fit or (count < 0).any() or ((number < -1) | (number >= count[feature])).any():
            raise ValueError("This is not a forest: the thresholds of splits do not fit to them.")
        threshold = np.full(len(number), np.nan)
        threshold[known] = self.thresholds[first[feature[known]] + number[known]]
        return threshold
