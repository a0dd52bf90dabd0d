"""XGBoost's UBJSON model, read as `Trees`."""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.dialects import Numbering, largest_below
from boostbp.trees.kernels import Nodes
from boostbp.trees.tree import Trees

Record = dict[str, Any]

_DTYPES = {
    mark: np.dtype(d) for mark, d in zip(b"dDUiIlL", (">f4", ">f8", ">u1", ">i1", ">i2", ">i4", ">i8"), strict=True)
}
_SCALARS = {mark: Struct(f) for mark, f in zip(b"dDUiIlL", (">f", ">d", ">B", ">b", ">h", ">i", ">q"), strict=True)}
_LENGTH = Struct(">q")
_CONSTANTS = {ord("T"): True, ord("F"): False, ord("Z"): None}


def trees(raw: bytes | bytearray) -> Trees:
    """Every tree of ``Booster.save_raw("ubj")``; leaves are numbered in the order of their nodes."""
    return _trees(_read_trees(raw))


def node_of_leaf(raw: bytes | bytearray) -> list[NDArray[np.int64]]:
    """For each tree of the model, XGBoost's node number of each leaf, as ``pred_leaf`` gives it."""
    return [Numbering.of(nodes["left_children"].astype(np.int64)).leaves for nodes in _read_trees(raw)]


def _trees(group: list[Record]) -> Trees:
    """Trees without categories are read together: one call for a field of all of them."""

    def joined(name: str, dtype: Any) -> NDArray[Any]:
        return np.concatenate([nodes[name] for nodes in group], dtype=dtype, casting="unsafe")

    categorical = joined("split_type", np.uint8) == 1
    if len(group) > 1 and categorical.any():
        return Trees.of([_trees([nodes])[0] for nodes in group])
    base = np.cumsum([0] + [len(nodes["left_children"]) for nodes in group])
    left_child = joined("left_children", np.int64)
    at, _, number = Numbering.of(left_child, base)
    root = np.repeat(base[:-1], np.diff(base))[at]  # children are counted from their root
    left, right = number[root + left_child[at]], number[root + joined("right_children", np.int64)[at]]
    missing_left = joined("default_left", np.bool_)[at]
    threshold = largest_below(joined("split_conditions", np.float32)[at])
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
    feature = joined("split_indices", np.int32)[at]
    if "loss_changes" in group[0]:
        gain = joined("loss_changes", np.float64)[at]
    else:  # vector leaves before XGBoost 3
        gain = np.full(len(at), np.nan)
    left, right = left.astype(np.int32), right.astype(np.int32)
    nodes = Nodes(feature, threshold, left, right, missing_left, start, words, categories)
    return Trees(nodes, np.searchsorted(at, base), gain)


def _bitsets(nodes: Record) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """First word, number of words, and the words of each category set."""
    codes, sizes = nodes["categories"].astype(np.int64), nodes["categories_sizes"].astype(np.int64)
    words = np.maximum.reduceat(codes, nodes["categories_segments"]) // 32 + 1
    start = np.cumsum(words) - words
    bits = np.zeros(words.sum(), np.uint32)
    where = np.repeat(start, sizes) + codes // 32
    np.bitwise_or.at(bits, where, np.left_shift(1, codes % 32).astype(np.uint32))
    return start, words, bits


# ---------------------------------------------------------------------------- UBJSON


def _read_trees(raw: bytes | bytearray) -> list[Record]:
    # What precedes the trees holds one string per feature: skip it.
    trees: list[Record] = _value(raw, raw.index(b"trees[") + 5)[0]
    return trees


def _value(raw: bytes | bytearray, at: int) -> tuple[Any, int]:
    """The value at a position, and the position after it."""
    mark = raw[at]
    at += 1
    if mark == 91:  # [
        return _array(raw, at)
    if mark == 123:  # {
        record = {}
        length_at, frombuffer = _LENGTH.unpack_from, np.frombuffer
        while raw[at] != 125:  # }
            begin = at + 9
            at = begin + length_at(raw, at + 1)[0]
            key = raw[begin:at].decode()
            if raw[at : at + 2] == b"[$":  # an array of one type, in place: most of a tree is that
                dtype = _DTYPES[raw[at + 2]]
                count = length_at(raw, at + 5)[0]
                record[key] = frombuffer(raw, dtype, count, at + 13)
                at += 13 + count * dtype.itemsize
            else:
                record[key], at = _value(raw, at)
        return record, at + 1
    if mark == 83:  # S
        begin = at + 9
        at = begin + _LENGTH.unpack_from(raw, at + 1)[0]
        return raw[begin:at].decode(), at
    if mark in _CONSTANTS:
        return _CONSTANTS[mark], at
    scalar = _SCALARS[mark]
    return scalar.unpack_from(raw, at)[0], at + scalar.size


def _array(raw: bytes | bytearray, at: int) -> tuple[Any, int]:
    if raw[at] == 36:  # $: all elements of one type
        dtype = _DTYPES[raw[at + 1]]
        count = _LENGTH.unpack_from(raw, at + 4)[0]
        at += 12
        return np.frombuffer(raw, dtype, count, at), at + count * dtype.itemsize
    count = _LENGTH.unpack_from(raw, at + 2)[0]
    at += 10
    values = []
    for _ in range(count):
        element, at = _value(raw, at)
        values.append(element)
    return values, at
