"""XGBoost's UBJSON model, read as `Trees`."""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from boostbp.backends.dialects import Numbering, largest_below
from boostbp.trees.tree import Trees

Record = dict[str, Any]

# Marks of UBJSON, whose numbers are big-endian
_DTYPES = {
    mark: np.dtype(d) for mark, d in zip(b"dDUiIlL", (">f4", ">f8", ">u1", ">i1", ">i2", ">i4", ">i8"), strict=True)
}
_LENGTH = Struct(">q")
_CONSTANTS = {ord("T"): True, ord("F"): False, ord("Z"): None}


def trees_in_ubj(raw: bytes | bytearray) -> Trees:
    """Return every tree of ``Booster.save_raw("ubj")``; leaves are numbered in the order of their nodes."""
    return _trees(read_trees(raw))


def _trees(group: list[Record]) -> Trees:
    """Return trees from their records; trees without categories are read together, by one call for each field."""

    def concatenated(name: str, dtype: DTypeLike) -> NDArray[Any]:
        return np.concatenate([nodes[name] for nodes in group], dtype=dtype, casting="unsafe")

    categorical = concatenated("split_type", np.uint8) == 1
    if len(group) > 1 and categorical.any():
        return Trees.concat([_trees([nodes]) for nodes in group])
    base = np.cumsum([0] + [len(nodes["left_children"]) for nodes in group])
    left_child = concatenated("left_children", np.int64)
    at, _, number = Numbering.of(left_child, base)
    root = np.repeat(base[:-1], np.diff(base))[at]  # children are numbered within their tree
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
        which = number[group[0]["categories_nodes"]]
        start[which], words[which], categories = _bitsets(group[0])
    feature = concatenated("split_indices", np.int32)[at]
    # vector leaves before XGBoost 3 have no gains
    gain = concatenated("loss_changes", np.float64)[at] if "loss_changes" in group[0] else np.full(len(at), np.nan)
    left, right = left.astype(np.int32), right.astype(np.int32)
    split = np.searchsorted(at, base)
    return Trees(feature, threshold, left, right, missing_left, start, words, categories, gain, split)


def _bitsets(nodes: Record) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """Return the first word and the number of words of each category set, and the words of all sets."""
    codes, sizes = nodes["categories"].astype(np.int64), nodes["categories_sizes"].astype(np.int64)
    words = np.maximum.reduceat(codes, nodes["categories_segments"]) // 32 + 1  # up to the largest code of each set
    start = np.cumsum(words) - words
    bits = np.zeros(words.sum(), np.uint32)
    where = np.repeat(start, sizes) + codes // 32
    np.bitwise_or.at(bits, where, np.left_shift(1, codes % 32).astype(np.uint32))
    return start, words, bits


def read_trees(raw: bytes | bytearray) -> list[Record]:
    """Return the record of every tree of ``Booster.save_raw("ubj")``, arrays as NumPy arrays."""
    # What comes before the trees holds one string per feature: skip it.
    records: list[Record] = _value(raw, raw.index(b"trees[") + 5)[0]
    return records


def _value(raw: bytes | bytearray, at: int) -> tuple[Any, int]:
    """Return the value of UBJSON at a position, and the position after it."""
    mark, at = raw[at], at + 1
    if mark == ord("{"):
        record = {}
        while raw[at] != ord("}"):
            key, at = _text(raw, at)
            record[key], at = _value(raw, at)
        return record, at + 1
    if mark == ord("["):
        return _array(raw, at)
    if mark == ord("S"):
        return _text(raw, at)
    if mark in _CONSTANTS:
        return _CONSTANTS[mark], at
    dtype = _DTYPES[mark]
    return np.frombuffer(raw, dtype, 1, at).item(), at + dtype.itemsize


def _text(raw: bytes | bytearray, at: int) -> tuple[str, int]:
    begin = at + 9  # the mark of an int64, and the length
    end = begin + _LENGTH.unpack_from(raw, at + 1)[0]
    return raw[begin:end].decode(), end


def _array(raw: bytes | bytearray, at: int) -> tuple[Any, int]:
    if raw[at] == ord("$"):  # all elements have one type: its mark, then # and the length
        dtype, count = _DTYPES[raw[at + 1]], _LENGTH.unpack_from(raw, at + 4)[0]
        return np.frombuffer(raw, dtype, count, at + 12), at + 12 + count * dtype.itemsize
    values, count, at = [], _LENGTH.unpack_from(raw, at + 2)[0], at + 10
    for _ in range(count):
        element, at = _value(raw, at)
        values.append(element)
    return values, at
