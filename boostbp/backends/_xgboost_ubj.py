"""Reader of XGBoost's UBJSON model, which returns `Trees`."""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from boostbp.backends.dialects import Numbering, largest_below
from boostbp.trees.tree import Trees

# Type markers of UBJSON, whose numbers are big-endian
_DTYPES = dict(zip(b"dDUiIlL", map(np.dtype, (">f4", ">f8", ">u1", ">i1", ">i2", ">i4", ">i8")), strict=True))
_LENGTH = Struct(">q")
_FIELDS = (
    "left_children", "right_children", "default_left", "split_conditions", "split_indices", "split_type",
    "loss_changes", "categories", "categories_nodes", "categories_segments", "categories_sizes",
)  # fmt: skip
Fields = dict[str, list[NDArray[Any]]]  # an array for each tree


def trees_in_ubj(raw: bytes | bytearray, last: int | None = None) -> Trees:
    """Return the trees of ``Booster.save_raw("ubj")``, or the last ones; leaves have the order of their nodes."""
    trees = raw.index(b"trees[")  # after the names of the features
    at = trees if last is None else len(raw)
    for _ in range(last or 0):
        at = raw.rindex(b"base_weights[", trees, at)  # the first field of a tree
    return _trees({name: arrays_in_ubj(raw, name, at) for name in _FIELDS})


def arrays_in_ubj(raw: bytes | bytearray, name: str, at: int) -> list[NDArray[Any]]:
    """Return the array of this name in every tree of ``Booster.save_raw("ubj")`` from a byte on."""
    # A key is a length and a name. An array of numbers of one type begins with their type marker and count.
    key, arrays = b"L" + _LENGTH.pack(len(name)) + name.encode() + b"[$", []
    while (at := raw.find(key, at)) >= 0:
        at += len(key)
        arrays.append(np.frombuffer(raw, _DTYPES[raw[at]], _LENGTH.unpack_from(raw, at + 3)[0], at + 11))
    return arrays


def _trees(fields: Fields) -> Trees:
    """Return trees from their fields; trees without categories are read together, by one call for each field."""

    def concatenated(name: str, dtype: DTypeLike) -> NDArray[Any]:
        return np.concatenate(fields[name], dtype=dtype, casting="unsafe")

    categorical = concatenated("split_type", np.uint8) == 1
    n_trees = len(fields["split_type"])
    if n_trees > 1 and categorical.any():
        return Trees.concat([_trees({name: of[k : k + 1] for name, of in fields.items()}) for k in range(n_trees)])
    left_child = concatenated("left_children", np.int64)
    if n_trees == 1:  # once per round
        at, _, number = Numbering.of(left_child)
        root, split = np.zeros(1, np.int64), np.array([0, len(at)])
    else:
        base = np.cumsum([0, *map(len, fields["left_children"])])
        at, _, number = Numbering.of(left_child, base)
        root = np.repeat(base[:-1], np.diff(base))[at]  # numbers of children count within a tree
        split = np.searchsorted(at, base)
    left, right = number[root + left_child[at]], number[root + concatenated("right_children", np.int64)[at]]
    missing_left = concatenated("default_left", np.bool_)[at]
    # XGBoost sends float32(x) < condition left, `Tree` sends x <= threshold left.
    threshold = largest_below(concatenated("split_conditions", np.float32)[at])
    start, words = np.full(len(at), -1, np.int32), np.zeros(len(at), np.int32)
    categories = np.empty(0, np.uint32)
    if categorical.any():
        # XGBoost sends the categories of the set right, `Tree` sends them left.
        categorical = categorical[at]
        left, right = np.where(categorical, right, left), np.where(categorical, left, right)
        missing_left ^= categorical
        threshold[categorical] = np.nan
        which = number[fields["categories_nodes"][0]]
        start[which], words[which], categories = _bitsets(fields)
    feature = concatenated("split_indices", np.int32)[at]
    # trees with vector leaves have no gains before XGBoost 3
    gain = concatenated("loss_changes", np.float64)[at] if fields["loss_changes"] else np.full(len(at), np.nan)
    left, right = left.astype(np.int32), right.astype(np.int32)
    return Trees(feature, threshold, left, right, missing_left, start, words, categories, gain, split)


def _bitsets(fields: Fields) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """Return the first word and the number of words of each category set of a tree, and the words of all sets."""
    codes, sizes = (fields[name][0].astype(np.int64) for name in ("categories", "categories_sizes"))
    words = np.maximum.reduceat(codes, fields["categories_segments"][0]) // 32 + 1  # up to the largest code of each
    start = np.cumsum(words) - words
    bits = np.zeros(words.sum(), np.uint32)
    np.bitwise_or.at(bits, np.repeat(start, sizes) + codes // 32, np.left_shift(1, codes % 32).astype(np.uint32))
    return start, words, bits
