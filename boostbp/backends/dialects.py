"""Dialects of libraries, and the exact way back to `Tree`: numbers in float32, trees as one array of nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.group import workers
from boostbp.trees.tree import Tree

Ints = NDArray[np.int64]


class Numbering(NamedTuple):
    """Split and leaf numbers of a `Tree`, in the order of the library's nodes."""

    splits: Ints  # (splits,): node of each split
    leaves: Ints  # (leaves,): node of each leaf; ``leaves[tree.leaf_of(X)]`` is a library's own leaf assignment
    number: Ints  # (nodes,): each node as a child, its split's index, or ``~leaf``

    @classmethod
    def of(cls, left_child: Ints, base: Ints | None = None) -> Numbering:
        """Number the nodes of a tree in which leaves have a negative `left_child`.

        Of several trees, one after the other, `base` holds the first node of each, and the number of nodes:
        every tree is numbered from 0, ``splits`` and ``leaves`` count nodes through.
        """
        if base is None:
            base = np.array([0, len(left_child)])
        is_split = left_child >= 0
        splits_before: Ints = np.cumsum(is_split) - is_split
        numbers: Ints = np.arange(len(left_child))
        if len(base) > 2:
            tree_sizes = np.diff(base)
            splits_before = splits_before - np.repeat(splits_before[base[:-1]], tree_sizes)
            numbers = numbers - np.repeat(base[:-1], tree_sizes)
        number = np.where(is_split, splits_before, ~(numbers - splits_before))
        return cls(np.flatnonzero(is_split), np.flatnonzero(~is_split), number)


def without_small_leaves(tree: Tree, X: NDArray[np.float64], min_rows: int) -> Tree:
    """Take out the splits that leave fewer than `min_rows` rows of `X` on one side.

    Such a split gives way to its larger side, which receives all of its rows. For libraries that do
    not count rows themselves.
    """
    [rows] = workers().sum(np.bincount(tree.leaf_of(X), minlength=tree.n_leaves))
    if tree.n_leaves == 1 or rows.min() >= min_rows:
        return tree
    kept: list[tuple[int, int, int]] = []  # old split, left, right: children as indices into this list or ~(old leaf)
    child_of: dict[int, tuple[int, int]] = {}  # old split -> what stands in its place, rows
    for split in _children_first(tree):
        sides = [
            (~(~c), int(rows[~c])) if c < 0 else child_of[c] for c in (int(tree.left[split]), int(tree.right[split]))
        ]
        (left, n_left), (right, n_right) = sides
        if min(n_left, n_right) < min_rows:
            child_of[split] = (left if n_left >= n_right else right), n_left + n_right
        else:
            kept.append((split, left, right))
            child_of[split] = len(kept) - 1, n_left + n_right
    return _renumbered(tree, kept, child_of[0][0])


def _children_first(tree: Tree) -> list[int]:
    order, ahead = [], [0]
    while ahead:
        split = ahead.pop()
        order.append(split)
        ahead += [int(c) for c in (tree.left[split], tree.right[split]) if c >= 0]
    return order[::-1]


def _renumbered(tree: Tree, kept: list[tuple[int, int, int]], root: int) -> Tree:
    """The tree of the splits below `root`, which comes first, and leaves numbered anew."""
    order: list[tuple[int, int, int]] = []
    sides: list[list[int]] = []
    ahead = [(root, -1, 0)] if root >= 0 else []
    n_leaves = 0
    while ahead:
        at, parent, side = ahead.pop()
        if at < 0:
            sides[parent][side] = ~n_leaves
            n_leaves += 1
            continue
        if parent >= 0:
            sides[parent][side] = len(order)
        order.append(kept[at])
        sides.append([0, 0])
        ahead += [(kept[at][2], len(order) - 1, 1), (kept[at][1], len(order) - 1, 0)]
    if not order:
        return Tree.stump()
    old = np.array([split for split, _, _ in order])
    left, right = np.array(sides).T
    return Tree.of(
        tree.feature[old],
        tree.threshold[old],
        left,
        right,
        tree.missing_left[old],
        cat_start=tree.cat_start[old],
        cat_words=tree.cat_words[old],
        categories=tree.categories,
        gain=tree.gain[old],
    )


_LARGEST = np.finfo(np.float32).max


def representable(X: NDArray[np.float64]) -> NDArray[np.float32]:
    """The input in float32, with numbers beyond its range moved to its ends.

    Libraries refuse infinities. Trees still route the float64 input: a threshold separates no more
    than float32 can tell apart.
    """
    with np.errstate(over="ignore"):
        Z = X.astype(np.float32)
    return np.clip(Z, -_LARGEST, _LARGEST, out=Z)


def alike_in_float32(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each of ascending values, (..., n), is the same number as the next one in float32."""
    single = representable(values)
    return np.asarray(single[..., 1:] == single[..., :-1])


def gradients(grad: NDArray[np.float64], library: str) -> NDArray[np.float32]:
    """Gradient or hessian in float32, C-contiguous; ValueError if a value exceeds the range of float32."""
    try:
        with np.errstate(over="raise"):
            return np.ascontiguousarray(grad, np.float32)
    except FloatingPointError:
        raise ValueError(
            f"gradient or hessian of size {np.abs(grad).max():.3g} exceeds the range of float32, in which {library} "
            f"grows trees: standardise the targets or use smaller steps."
        ) from None


def largest_below(threshold: NDArray[np.float32]) -> NDArray[np.float64]:
    """The largest float64 whose float32 rounding is below each threshold.

    For a library that sends ``float32(x) < threshold`` left. Rounding turns at the midpoint of the
    threshold and its predecessor, and there to whichever of the two has the even mantissa.
    """
    with np.errstate(over="ignore"):  # the ends of float32 have infinite neighbours
        before = np.nextafter(threshold, np.float32(-np.inf))
        middle = (before.astype(np.float64) + threshold) / 2
        rounded = middle.astype(np.float32)
    return np.where(rounded < threshold, middle, np.nextafter(middle, -np.inf))


def largest_not_above(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest float64 whose float32 rounding is at most each threshold.

    For a library that sends ``float32(x) <= threshold`` left, with a threshold in float64.
    """
    with np.errstate(over="ignore"):
        nearest = threshold.astype(np.float32)
        above = np.where(nearest > threshold, nearest, np.nextafter(nearest, np.float32(np.inf)))
    return largest_below(above)
