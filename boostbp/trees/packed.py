"""Packed: a forest as named arrays, and back, checked so that no kernel can leave its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.trees import kernels
from boostbp.trees.basis import Basis, Constant, Linear, Quadratic
from boostbp.trees.forest import Forest

__all__ = ["pack", "unpack"]

Arrays = Mapping[str, NDArray[Any]]

_BASES: dict[str, Basis] = {"constant": Constant(), "linear": Linear(), "quadratic": Quadratic()}
_MOST_OUTPUTS = 1 << 31  # sizes of leaves stay far from the end of int64
_NODES = {
    "feature": "i4",
    "threshold": "f8",
    "left": "i4",
    "right": "i4",
    "missing_left": "?",
    "cat_start": "i4",
    "cat_words": "i4",
    "categories": "u4",
}
_LEAVES = {
    "tree_leaf": "i8",
    "tree_output": "i8",
    "tree_degree": "i8",
    "start": "i8",
    "column": "i4",
    "frame": "f8",
    "weight_start": "i8",
    "weight": "f8",
    "fallback": "f8",
}
_DTYPES = {"tree_split": "i8", "gain": "f8", **_NODES, **_LEAVES}


def pack(forest: Forest) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What JSON holds of a forest, and its arrays by their names in `Forest`, `Nodes` and `Leaves`.

    Raises
    ------
    ValueError
        If its basis has functions of the user's own.
    """
    name = next((name for name, basis in _BASES.items() if type(basis) is type(forest.basis)), None)
    if name is None:
        raise ValueError(
            f"basis={forest.basis!r} cannot be stored: its functions are code, which a file of data does not hold. "
            "Use basis='linear' or 'quadratic', or keep the model by pickle."
        )
    facts = {"n_features": forest.n_features, "n_outputs": forest.n_outputs, "basis": name, "clip": bool(forest.clip)}
    facts["n_base"] = forest.n_base
    nodes, leaves = forest.nodes._asdict(), forest.leaves._asdict()
    return facts, {"tree_split": forest.tree_split, "gain": forest.gain, **nodes, **leaves}


def unpack(facts: Mapping[str, Any], arrays: Arrays) -> Forest:
    """The forest that `pack` described.

    Raises
    ------
    ValueError
        If an index leads out of its array, a walk down a tree does not end, or sizes disagree.
    """
    facts = {"n_base": 0, **facts}  # files of the first versions did not say
    _require(set(facts) == {"n_features", "n_outputs", "basis", "clip", "n_base"}, f"it states {sorted(facts)}")
    _require(type(facts["clip"]) is bool and facts["basis"] in _BASES, f"basis {facts['basis']!r}")
    for name in ("n_features", "n_outputs", "n_base"):
        _require(type(facts[name]) is int and 0 <= facts[name] < _MOST_OUTPUTS, f"{name} is {facts[name]!r}")
    _require(set(arrays) == set(_DTYPES), f"it has the arrays {sorted(arrays)}")
    for name, dtype in _DTYPES.items():
        axes = 2 if name in ("tree_output", "frame") else 1
        fits = arrays[name].dtype == dtype and arrays[name].ndim == axes and arrays[name].flags.c_contiguous
        _require(fits, f"{name} is {arrays[name].dtype}, {arrays[name].shape}")
    nodes = kernels.Nodes(*(arrays[name] for name in kernels.Nodes._fields))
    leaves = kernels.Leaves(*(arrays[name] for name in kernels.Leaves._fields))
    tree_split = arrays["tree_split"]
    _check_starts("tree_split", tree_split, len(leaves.tree_degree), len(nodes.feature))
    _check_nodes(nodes, tree_split, facts["n_features"])
    _require(len(arrays["gain"]) == len(nodes.feature), "gain has another length than the splits")
    _check_leaves(leaves, tree_split, facts["n_features"], facts["n_outputs"])
    _require(facts["n_base"] < len(tree_split), f"n_base is {facts['n_base']}")
    sizes, basis = (facts["n_features"], facts["n_outputs"]), _BASES[facts["basis"]]
    return Forest(*sizes, basis, facts["clip"], tree_split, nodes, leaves, arrays["gain"], facts["n_base"])


def _require(good: Any, what: str) -> None:
    if not good:
        raise ValueError(f"This is not a forest: {what}.")


def _check_starts(name: str, starts: NDArray[Any], count: int, end: int) -> None:
    """`starts` cuts ``range(end)`` into `count` parts."""
    good = len(starts) == count + 1 and starts[0] == 0 and starts[-1] == end and (starts[1:] >= starts[:-1]).all()
    _require(good, f"{name} does not cut {end} entries into {count} parts")


def _check_nodes(nodes: kernels.Nodes, tree_split: NDArray[Any], n_features: int) -> None:
    n_splits = len(nodes.feature)
    for name in ("threshold", "left", "right", "missing_left", "cat_start", "cat_words"):
        _require(len(getattr(nodes, name)) == n_splits, f"{name} has another length than the splits")
    _require(
        ((nodes.feature >= 0) & (nodes.feature < n_features)).all(), "a split looks at a feature that is not there"
    )
    begin, words = nodes.cat_start.astype(np.int64), nodes.cat_words.astype(np.int64)
    numeric = (begin == -1) & (words == 0)
    # a kernel may read the first word of a set without words
    inside = (begin >= 0) & (words >= 0) & (begin + np.maximum(words, 1) <= len(nodes.categories))
    _require((numeric | inside).all(), "a set of categories is not there")
    _check_children(np.stack([nodes.left, nodes.right]).astype(np.int64), tree_split)


def _check_children(children: NDArray[np.int64], tree_split: NDArray[Any]) -> None:
    """Every split but a root, and every leaf, has one parent, and all are reached from the root of their tree."""
    size = np.diff(tree_split)
    n_splits, tree = int(tree_split[-1]), np.repeat(np.arange(len(size)), size)
    _require(((children < size[tree]) & (~children <= size[tree])).all(), "a split has a child that is not there")
    is_leaf = children < 0
    below = np.where(is_leaf, -1, children + tree_split[tree])
    leaf = np.where(is_leaf, ~children + tree_split[tree] + tree, -1)  # a tree has one leaf more than splits
    parents = np.bincount(leaf[is_leaf], minlength=n_splits + len(size))
    _require(np.array_equal(parents, np.repeat(size > 0, size + 1)), "a leaf has no parent, or two")
    roots = tree_split[:-1][size > 0]
    parents = np.bincount(np.concatenate([below[~is_leaf], roots]), minlength=n_splits)
    _require((parents == 1).all(), "a split has no parent, or two")
    seen, level = 0, roots
    while len(level):
        seen += len(level)
        level = below[:, level]
        level = level[level >= 0]
    _require(seen == n_splits, "a split is not below the root of its tree")


def _check_leaves(leaves: kernels.Leaves, tree_split: NDArray[Any], n_features: int, n_outputs: int) -> None:
    size = np.diff(tree_split)
    expected = np.concatenate([[0], np.cumsum(size + 1)])
    _require(np.array_equal(leaves.tree_leaf, expected), "tree_leaf does not agree with tree_split")
    n_trees, n_leaves = len(size), int(expected[-1])
    _require(leaves.tree_output.shape == (n_trees, 2), f"tree_output has the shape {leaves.tree_output.shape}")
    first, served = leaves.tree_output.T
    good = (first >= 0) & (first < n_outputs) & (served >= 1) & (served <= n_outputs - first)
    _require(good.all(), "a tree serves an output that is not there")
    _require(np.isin(leaves.tree_degree, (1, 2)).all(), "a tree has another degree than 1 and 2")
    _check_starts("start", leaves.start, n_leaves, len(leaves.column))
    good = (leaves.column >= 0) & (leaves.column < n_features)
    _require(good.all(), "a leaf reads a column that is not there")
    _require(leaves.frame.shape == (len(leaves.column), 4), f"frame has the shape {leaves.frame.shape}")
    weights = (1 + np.repeat(leaves.tree_degree, size + 1) * np.diff(leaves.start)) * np.repeat(served, size + 1)
    expected = np.concatenate([[0], np.cumsum(weights)])
    _require(np.array_equal(leaves.weight_start, expected), "weight_start does not agree with the terms of the leaves")
    _require(len(leaves.weight) == expected[-1], "weight has another length than weight_start says")
    _require(len(leaves.fallback) == n_leaves, "fallback has another length than the leaves")
