"""Reader of LightGBM's text model, which returns `Trees` and `LinearLeaves`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import LinearLeaves
from boostbp.runtime.arrays import Floats
from boostbp.trees.tree import Trees, offsets

_CATEGORICAL, _DEFAULT_LEFT = 1, 2  # bits of decision_type; bits 2 and 3 are the missing type
_MISSING_IS_NAN = 2
# LightGBM reads numbers up to this size as 0.0, and places thresholds at the ends of this range.
_ZERO = float(np.float32(1e-35))
_BELOW_ZERO = float(np.nextafter(-_ZERO, -np.inf))
_LARGEST = 1e300  # LightGBM reads larger numbers as this one

Fields = dict[str, str]
D = TypeVar("D", np.float64, np.int32)


def alike(values: Floats) -> NDArray[np.bool_]:
    """Return whether LightGBM merges each of ascending values, (..., n), with the next one."""
    # LightGBM treats two values as equal if no float64 is between them (its `Common::CheckDoubleEqualOrdered`).
    read = np.where(np.abs(values) <= _ZERO, 0.0, np.clip(values, -_LARGEST, _LARGEST))
    return np.asarray(read[..., 1:] <= np.nextafter(read[..., :-1], np.inf))


def trees_in_text(text: str) -> Trees:
    """Return every tree in the text of ``Booster.model_to_string``."""
    return _trees([_fields(_structure(block)) for block in _blocks(text)])


def linear_leaves(text: str) -> list[LinearLeaves]:
    """Return every tree with its linear leaves; constant leaves have no features."""
    return [_linear(_fields(block)) for block in _blocks(text)]


def _blocks(text: str) -> Iterator[str]:
    end = 0
    while (begin := text.find("\nTree=", end)) >= 0:
        end = text.index("\n\n", begin)
        yield text[begin + 1 : end]


def _structure(block: str) -> str:
    """Return the text up to the leaves, which are more than half of it; sets of categories come after them."""
    return block[: block.find("\nleaf_value=")] if "\nnum_cat=0\n" in block else block


def _fields(block: str) -> Fields:
    return dict([line.split("=", 1) for line in block.split("\n")])


def _numbers(group: Sequence[Fields], dtype: type[D], *names: str) -> NDArray[D]:
    """Return the numbers of all trees, with a row for each field."""
    text = " ".join([fields[name] for name in names for fields in group])
    return np.fromstring(text, dtype, sep=" ").reshape(len(names), -1)


def _trees(group: Sequence[Fields]) -> Trees:
    """Return trees from their fields; trees without categories are read together, by one call for several fields."""
    grown = [fields for fields in group if fields["num_leaves"] != "1"]
    if not grown:
        return Trees.stumps(len(group))
    if len(group) > 1 and any(fields["num_cat"] != "0" for fields in group):
        return Trees.concat([_trees([fields]) for fields in group])
    threshold, gain = _numbers(grown, np.float64, "threshold", "split_gain")
    names = "split_feature", "decision_type", "left_child", "right_child"
    feature, decision, left, right = _numbers(grown, np.int32, *names)
    # If the missing type is not NaN, LightGBM reads NaN as 0.0.
    default_left = (decision & _DEFAULT_LEFT) != 0
    missing_left = np.where(decision >> 2 & 3 == _MISSING_IS_NAN, default_left, threshold >= 0.0)
    start, words = np.full(len(threshold), -1, np.int32), np.zeros(len(threshold), np.int32)
    categories = np.empty(0, np.uint32)
    if grown[0]["num_cat"] != "0":
        categorical = (decision & _CATEGORICAL) != 0
        which = np.where(categorical, threshold, 0.0).astype(np.int64)
        [bounds] = _numbers(grown, np.int32, "cat_boundaries")
        start = np.where(categorical, bounds[which], np.int32(-1))
        words = np.where(categorical, bounds[which + 1] - bounds[which], np.int32(0))
        categories = np.fromstring(grown[0]["cat_threshold"], np.int64, sep=" ").astype(np.uint32)
        missing_left &= ~categorical
        threshold[categorical] = np.nan
    split = offsets([int(fields["num_leaves"]) - 1 for fields in group])
    return Trees(feature, _around_zero(threshold), left, right, missing_left, start, words, categories, gain, split)


def _around_zero(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move thresholds within the range of numbers that LightGBM reads as 0.0 to an end of it."""
    band = np.abs(threshold) <= _ZERO
    return np.where(band, np.where(threshold < 0.0, _BELOW_ZERO, _ZERO), threshold) if band.any() else threshold


def _linear(fields: Fields) -> LinearLeaves:
    [tree] = _trees([fields])
    [value] = _numbers([fields], np.float64, "leaf_value")
    start = np.zeros(tree.n_leaves + 1, np.int32)
    if fields.get("is_linear", "0") == "0":
        return LinearLeaves(tree, value, start, np.empty(0, np.int32), np.empty(0), value)
    np.cumsum(_numbers([fields], np.int32, "num_features")[0], out=start[1:])
    const, [coeff] = (_numbers([fields], np.float64, name) for name in ("leaf_const", "leaf_coeff"))
    [features] = _numbers([fields], np.int32, "leaf_features")
    n_terms = start[-1]  # numpy reads empty fields of a tree as one number
    return LinearLeaves(tree, const[0], start, features[:n_terms], coeff[:n_terms], value)
