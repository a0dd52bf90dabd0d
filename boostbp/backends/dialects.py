"""Dialects of libraries: exact conversions from float32 comparisons and arrays of mixed nodes to `Tree`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime.group import workers
from boostbp.trees.tree import Tree

Ints = NDArray[np.int64]


class Numbering(NamedTuple):
    """Split and leaf numbers of a `Tree`, in the order of the library's nodes."""

    splits: Ints  # (splits,): node of each split
    leaves: Ints  # (leaves,): node of each leaf; ``leaves[tree.leaf_of(X)]`` is the library's own leaf assignment
    number: Ints  # (nodes,): number of each node as a child: the index of a split, or ``~leaf``

    @classmethod
    def of(cls, left_child: Ints, base: Ints | None = None) -> Numbering:
        """Number the nodes of a tree in which leaves have a negative `left_child`.

        For several trees, one after the other, `base` holds the first node of each, and the number of all nodes. Then
        `number` begins at 0 in each tree, while `splits` and `leaves` index the nodes of all trees.
        """
        is_split = left_child >= 0
        # A split's number is that of the splits before it; a leaf's number is that of the other nodes before it.
        splits_before: Ints = np.cumsum(is_split) - is_split
        nodes_before: Ints = np.arange(len(left_child))
        if base is not None:
            splits_before, nodes_before = (
                before - np.repeat(before[base[:-1]], np.diff(base)) for before in (splits_before, nodes_before)
            )
        number = np.where(is_split, splits_before, ~(nodes_before - splits_before))
        return cls(np.flatnonzero(is_split), np.flatnonzero(~is_split), number)


def without_small_leaves(tree: Tree, X: NDArray[np.float64], min_rows: int) -> Tree:
    """Remove the splits that leave fewer than `min_rows` rows of `X` on one side.

    Such a split gives way to its larger side, which receives all of its rows. For libraries that do not count rows
    themselves.
    """
    [rows] = workers().sum(np.bincount(tree.leaf_of(X), minlength=tree.n_leaves))
    if tree.n_leaves == 1 or rows.min() >= min_rows:
        return tree
    children = list(zip(tree.left.tolist(), tree.right.tolist(), strict=True))
    # From the leaves up, as a split counts the rows of both sides, of splits that were removed below it, too.
    n_rows = {~leaf: float(count) for leaf, count in enumerate(rows)}  # of each node
    stand_in: dict[int, int] = {}  # of a removed split, the node that takes its place
    for split in reversed([node for node in _preorder(0, children) if node >= 0]):
        left, right = children[split]
        n_rows[split] = n_rows[left] + n_rows[right]
        if min(n_rows[left], n_rows[right]) < min_rows:
            larger = left if n_rows[left] >= n_rows[right] else right
            stand_in[split] = stand_in.get(larger, larger)
    children = [(stand_in.get(left, left), stand_in.get(right, right)) for left, right in children]
    nodes = _preorder(stand_in.get(0, 0), children)
    splits, leaves = ([node for node in nodes if (node >= 0) == is_split] for is_split in (True, False))
    if not splits:
        return Tree.stump()
    number = {split: k for k, split in enumerate(splits)} | {leaf: ~k for k, leaf in enumerate(leaves)}
    left, right = np.array([[number[child] for child in children[split]] for split in splits]).T
    names = ("feature", "threshold", "missing_left", "cat_start", "cat_words", "gain")
    kept = {name: getattr(tree, name)[splits] for name in names}
    return Tree.of(left=left, right=right, categories=tree.categories, **kept)


def _preorder(root: int, children: Sequence[tuple[int, int]]) -> list[int]:
    """Return a node and those below it: each split comes before its left side, and that before its right side."""
    nodes, ahead = [], [root]
    while ahead:
        nodes.append(ahead.pop())
        ahead += reversed(children[nodes[-1]]) if nodes[-1] >= 0 else ()
    return nodes


_LARGEST = np.finfo(np.float32).max


def representable(X: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the input in float32, with numbers beyond its range moved to its ends: libraries refuse infinities.

    Trees still route the float64 input: a threshold separates no more than float32 can tell apart.
    """
    with np.errstate(over="ignore"):
        Z = X.astype(np.float32)
    return np.clip(Z, -_LARGEST, _LARGEST, out=Z)


def alike_in_float32(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether each of ascending values, (..., n), is the same number as the next one in float32."""
    single = representable(values)
    return np.asarray(single[..., 1:] == single[..., :-1])


def gradients(grad: NDArray[np.float64], library: str) -> NDArray[np.float32]:
    """Return a gradient or hessian in float32, C-contiguous; ValueError if a value exceeds the range of float32."""
    try:
        with np.errstate(over="raise"):
            return np.ascontiguousarray(grad, np.float32)
    except FloatingPointError:
        raise ValueError(
            f"gradient or hessian of size {np.abs(grad).max():.3g} exceeds the range of float32, in which {library} "
            f"grows trees: standardise the targets or use smaller steps."
        ) from None


def largest_below(threshold: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the largest float64 whose float32 rounding is below each threshold.

    For a library that sends ``float32(x) < threshold`` left. Numbers round to the threshold from the midpoint to its
    predecessor on; the midpoint itself rounds to whichever of the two has the even mantissa.
    """
    with np.errstate(over="ignore"):  # the ends of float32 have infinite neighbours
        # The midpoint of two float32 numbers is exact in float64.
        before = np.nextafter(threshold, np.float32(-np.inf))
        middle = (before.astype(np.float64) + threshold) / 2
        rounded = middle.astype(np.float32)
    return np.where(rounded < threshold, middle, np.nextafter(middle, -np.inf))


def largest_not_above(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest float64 whose float32 rounding is at most each threshold.

    For a library that sends ``float32(x) <= threshold`` left, with a threshold in float64.
    """
    with np.errstate(over="ignore"):
        # x <= threshold for float32(x) is float32(x) < the next float32 above the threshold.
        nearest = threshold.astype(np.float32)
        above = np.where(nearest > threshold, nearest, np.nextafter(nearest, np.float32(np.inf)))
    return largest_below(above)
