"""XGBoost's UBJSON model, read as `Tree`."""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends._float32 import largest_below
from boostbp.backends._nodes import Numbering
from boostbp.trees.tree import Tree

__all__ = ["node_of_leaf", "trees"]

Nodes = dict[str, Any]

_DTYPES = {b"d": ">f4", b"D": ">f8", b"U": ">u1", b"i": ">i1", b"I": ">i2", b"l": ">i4", b"L": ">i8"}
_SCALARS = {mark: Struct(f) for mark, f in zip(b"dDUiIlL", (">f", ">d", ">B", ">b", ">h", ">i", ">q"), strict=True)}
_LENGTH = Struct(">q")
_CONSTANTS = {ord("T"): True, ord("F"): False, ord("Z"): None}


def trees(raw: bytes | bytearray) -> list[Tree]:
    """Every tree of ``Booster.save_raw("ubj")``; leaves are numbered in the order of their nodes."""
    return [_tree(nodes) for nodes in _read_trees(raw)]


def node_of_leaf(raw: bytes | bytearray) -> list[NDArray[np.int64]]:
    """For each tree of the model, XGBoost's node number of each leaf, as ``pred_leaf`` gives it."""
    return [Numbering.of(nodes["left_children"]).leaves for nodes in _read_trees(raw)]


def _tree(nodes: Nodes) -> Tree:
    at, _, number = Numbering.of(nodes["left_children"])
    if len(at) == 0:
        return Tree.stump()
    left, right = number[nodes["left_children"][at]], number[nodes["right_children"][at]]
    missing_left = nodes["default_left"][at] != 0
    threshold = largest_below(nodes["split_conditions"][at].astype(np.float32))
    start = words = None
    categories: NDArray[np.uint32] | tuple[()] = ()
    categorical = nodes["split_type"][at] == 1
    if categorical.any():
        # XGBoost sends the categories of the set right, `Tree` sends them left.
        left, right = np.where(categorical, right, left), np.where(categorical, left, right)
        missing_left ^= categorical
        threshold[categorical] = np.nan
        start, words = np.full(len(at), -1), np.zeros(len(at), int)
        which = number[nodes["categories_nodes"]]
        start[which], words[which], categories = _bitsets(nodes)
    return Tree.of(
        nodes["split_indices"][at],
        threshold,
        left,
        right,
        missing_left,
        cat_start=start,
        cat_words=words,
        categories=categories,
        gain=nodes["loss_changes"][at] if "loss_changes" in nodes else None,  # vector leaves before XGBoost 3 lack it
    )


def _bitsets(nodes: Nodes) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """First word, number of words, and the words of each category set."""
    codes, sizes = nodes["categories"].astype(np.int64), nodes["categories_sizes"].astype(np.int64)
    words = np.maximum.reduceat(codes, nodes["categories_segments"]) // 32 + 1
    start = np.cumsum(words) - words
    bits = np.zeros(words.sum(), np.uint32)
    where = np.repeat(start, sizes) + codes // 32
    np.bitwise_or.at(bits, where, np.left_shift(1, codes % 32).astype(np.uint32))
    return start, words, bits


# ---------------------------------------------------------------------------- UBJSON


def _read_trees(raw: bytes | bytearray) -> list[Nodes]:
    # What precedes the trees holds one string per feature: skip it.
    trees: list[Nodes] = _value(raw, raw.index(b"trees[") + 5)[0]
    return trees


def _value(raw: bytes | bytearray, at: int) -> tuple[Any, int]:
    """The value at a position, and the position after it."""
    mark = raw[at]
    at += 1
    if mark == 91:  # [
        return _array(raw, at)
    if mark == 123:  # {
        found = {}
        while raw[at] != 125:  # }
            begin = at + 9
            at = begin + _LENGTH.unpack_from(raw, at + 1)[0]
            key = raw[begin:at].decode()
            found[key], at = _value(raw, at)
        return found, at + 1
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
        dtype = np.dtype(_DTYPES[bytes(raw[at + 1 : at + 2])])
        count = _LENGTH.unpack_from(raw, at + 4)[0]
        at += 12
        return np.frombuffer(raw, dtype, count, at), at + count * dtype.itemsize
    count = _LENGTH.unpack_from(raw, at + 2)[0]
    at += 10
    found = []
    for _ in range(count):
        element, at = _value(raw, at)
        found.append(element)
    return found, at
