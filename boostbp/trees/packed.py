"""Forests as named arrays and back, with checks, so that the core cannot read outside the arrays of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.runtime import plain
from boostbp.runtime.archive import Arrays, take
from boostbp.trees.basis import BASES, Basis
from boostbp.trees.forest import Forest, Run
from boostbp.trees.tree import ARRAYS, Trees, levels, offsets

_OWN = "own functions"
# Limit on sizes, far below that of int64, and below that of int32, which holds feature numbers.
_MAX_SIZE = 1 << 31
_LEAVES = {"tree_output": "i8", "tree_degree": "i8", "start": "i8", "column": "i4", "scaling": "f8", "weight": "f8"}
_DTYPES = {"tree_split": "i8", "gain": "f8", **ARRAYS, **_LEAVES}  # in the order of files
_SHAPES = {"tree_output": (None, 2), "scaling": (None, 4)}  # of arrays with two axes
_FACTS = {"n_features", "n_outputs", "basis", "functions", "clip", "n_base", "runs"}


def pack(forest: Forest, *, functions: bool = False) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON facts of a forest, and its arrays by their names in `Forest`, `Nodes` and `Leaves`.

    ``tree_leaf`` and ``weight_start`` follow from the others. An output that no tree serves gets a tree of one leaf of
    value 0, so that the arrays determine the number of outputs. With `functions`, user-defined functions of a basis are
    left out, and the reader must have them; otherwise they raise ValueError.
    """
    if facts_of(forest.basis)["basis"] == _OWN and not functions:
        fault = "its functions are code, which a file of data does not hold"
        cure = "Use basis='linear' or 'quadratic', name it in boostbp.trees.basis.BASES, or keep the model by pickle"
        raise ValueError(f"basis={forest.basis!r} cannot be stored: {fault}. {cure}.")
    forest = _serving_all_outputs(forest)
    facts = {"n_features": forest.n_features, "n_outputs": forest.n_outputs, **facts_of(forest.basis)}
    facts |= {"clip": bool(forest.clip), "n_base": forest.n_base, "runs": plain.encode([*forest.runs], records=True)}
    trees, leaves = forest.trees, forest.leaves
    parts = {"tree_split": trees.tree_split, "gain": trees.gain, **trees.nodes._asdict(), **leaves._asdict()}
    return facts, {name: parts[name] for name in _DTYPES}


def facts_of(basis: Basis) -> dict[str, Any]:
    """Return the facts of a basis: its name, if it has one, and its number of functions of a feature."""
    name = next((name for name, known in BASES.items() if known == basis), _OWN)
    return {"basis": name, "functions": basis.columns_per_feature if basis.has_functions else 0}


def _serving_all_outputs(forest: Forest) -> Forest:
    first, served = forest.leaves.tree_output.T
    idle = np.ones(forest.n_outputs, bool)
    for begin, count in zip(first.tolist(), served.tolist(), strict=True):
        idle[begin : begin + count] = False
    if not idle.any():
        return forest
    return replace(Forest.concat([forest, forest.zero(np.flatnonzero(idle).tolist())]), n_base=forest.n_base)


def unpack(facts: Mapping[str, Any], arrays: Arrays, prefix: str = "", *, functions: Basis | None = None) -> Forest:
    """Return the forest that `pack` described; its arrays, whose names begin with `prefix`, are removed from `arrays`.

    `functions` is the basis of a forest with user-defined functions. Raises ValueError if the arrays are inconsistent.
    """
    facts = {"runs": [], **facts} if isinstance(facts, dict) else facts  # files of version 9 have none
    basis = _basis(facts, functions)
    parts = {name: take(arrays, prefix + name, dtype, _SHAPES.get(name, (None,))) for name, dtype in _DTYPES.items()}
    nodes = core.Nodes(*[parts[name] for name in core.Nodes._fields])
    tree_split, n_splits = parts["tree_split"], len(nodes.feature)
    n_features, n_outputs, n_base = facts["n_features"], facts["n_outputs"], facts["n_base"]
    _check_offsets("tree_split", tree_split, len(parts["tree_degree"]), n_splits)
    check_nodes(nodes, tree_split, n_features)
    _require(len(parts["gain"]) == n_splits, "gain has another length than the splits")
    leaves = _leaves(parts, tree_split, n_features * basis.columns_per_feature, n_outputs)
    _require(n_base < len(tree_split), f"n_base is {n_base}")
    trees, runs = Trees(*nodes, parts["gain"], tree_split), _runs(facts["runs"], len(tree_split) - 1)
    return Forest(trees, leaves, n_features, n_outputs, basis, facts["clip"], n_base, runs)


def _runs(facts: object, n_trees: int) -> tuple[Run, ...]:
    """Return the runs of a number of trees, checked."""
    runs: list[Run] = plain.decode_as(list[Run], facts)
    _require(not runs or sum(run.n_trees for run in runs) == n_trees, f"its runs are not those of {n_trees} trees")
    for run in runs:
        numbers = (run.learning_rate, run.ridge.reg_lambda, run.base_lambda or 0.0, run.min_base_lambda or 0.0)
        sizes = 0 <= run.n_base <= run.n_trees and run.degree in (0, 1, 2) and 0 <= run.stage < len(runs)
        good = run.weight != 0 and np.isfinite([run.weight, *numbers]).all() and min(numbers) >= 0 and numbers[0] <= 2
        _require(sizes and good and run.base in (None, "ridge", "additive"), f"it has the run {run}")
    return tuple(runs)


def _check_offsets(name: str, values: NDArray[np.int64], count: int, end: int) -> None:
    good = len(values) == count + 1 and values[0] == 0 and values[-1] == end and (values[1:] >= values[:-1]).all()
    _require(good, f"{name} does not divide {end} entries into {count} parts")


def _basis(facts: Mapping[str, Any], functions: Basis | None) -> Basis:
    """Return the basis of a forest, and check the other facts."""
    _require(isinstance(facts, dict) and set(facts) == _FACTS, f"it states {facts!r:.200}")
    _require(type(facts["clip"]) is bool, f"clip is {facts['clip']!r:.200}")
    _require(isinstance(facts["basis"], str), f"basis is {facts['basis']!r:.200}")
    for name in ("n_features", "n_outputs", "functions", "n_base"):
        _require(type(facts[name]) is int and 0 <= facts[name] < _MAX_SIZE, f"{name} is {facts[name]!r:.200}")
    n_functions = facts["functions"]
    basis = BASES.get(facts["basis"]) if functions is None else functions
    if basis is None or facts_of(basis) != {name: facts[name] for name in ("basis", "functions")}:
        raise ValueError(f"This is not a forest: basis {facts['basis']!r:.200}.")
    n_features = facts["n_features"]
    _require(n_features * max(1, n_functions) < _MAX_SIZE, f"{n_functions} functions of {n_features} features")
    return basis


def _require(good: bool | np.bool_, what: str) -> None:
    if not good:
        raise ValueError(f"This is not a forest: {what}.")


def check_nodes(nodes: core.Nodes, tree_split: NDArray[Any], n_features: int) -> None:
    """Refuse splits with which routing could leave the arrays or not end; the ValueError names the fault."""
    n_splits = len(nodes.feature)
    for name in ("threshold", "left", "right", "missing_left", "cat_start", "cat_words"):
        _require(len(getattr(nodes, name)) == n_splits, f"{name} has another length than the splits")
    _require(((nodes.feature >= 0) & (nodes.feature < n_features)).all(), "a split has a feature that does not exist")
    begin, words = nodes.cat_start.astype(np.int64), nodes.cat_words.astype(np.int64)
    numeric = (begin == -1) & (words == 0)
    # the core may read the first word even of an empty set
    inside = (begin >= 0) & (words >= 0) & (begin + np.maximum(words, 1) <= len(nodes.categories))
    _require((numeric | inside).all(), "a set of categories does not exist")
    _require(np.array_equal(np.isnan(nodes.threshold), ~numeric), "a split has a threshold and a set, or neither")
    _check_children(np.stack([nodes.left, nodes.right]).astype(np.int64), tree_split)


def _check_children(children: NDArray[np.int64], tree_split: NDArray[Any]) -> None:
    """Refuse trees in which a split or leaf has no parent or two, or cannot be reached from the root."""
    size = np.diff(tree_split)
    n_splits, tree = int(tree_split[-1]), np.repeat(np.arange(len(size)), size)
    _require(((children < size[tree]) & (~children <= size[tree])).all(), "a split has a child that does not exist")
    is_leaf = children < 0
    leaf = ~children + tree_split[tree] + tree  # a tree has one leaf more than splits
    parents = np.bincount(leaf[is_leaf], minlength=n_splits + len(size))
    _require(np.array_equal(parents, np.repeat(size > 0, size + 1)), "a leaf has no parent, or two")
    below, roots = children + tree_split[tree], tree_split[:-1][size > 0]
    parents = np.bincount(np.concatenate([below[~is_leaf], roots]), minlength=n_splits)
    _require((parents == 1).all(), "a split has no parent, or two")
    # Each split has one parent. A split that is not below the root is in a cycle, so its ancestors never reach the
    # root.
    _, top = levels(children, tree_split)
    _require(np.array_equal(top, tree_split[tree]), "a split is not below the root of its tree")


def _leaves(parts: Arrays, tree_split: NDArray[Any], n_columns: int, n_outputs: int) -> core.Leaves:
    """Return the leaves of checked trees, checked, with the arrays that follow from those of the file."""
    size = np.diff(tree_split)
    tree_leaf = offsets(size + 1)  # a tree has one leaf more than splits
    output, degree, start, column, scaling, weight = (parts[name] for name in _LEAVES)
    _require(len(output) == len(size), f"tree_output has the length {len(output)}")
    _check_outputs(output, n_outputs, len(weight))
    _require(np.isin(degree, (1, 2)).all(), "the degree of a tree is neither 1 nor 2")
    _check_offsets("start", start, int(tree_leaf[-1]), len(column))
    _require(((column >= 0) & (column < n_columns)).all(), "a leaf reads a column that does not exist")
    _require(len(scaling) == len(column), f"scaling has the length {len(scaling)}, and column {len(column)}")
    # A leaf with k columns has 1 + degree * k terms, with a weight for each output of its tree.
    terms = 1 + np.repeat(degree, size + 1) * np.diff(start)
    weight_start = offsets(terms * np.repeat(output[:, 1], size + 1))
    _require(len(weight) == weight_start[-1], f"weight has the length {len(weight)}, and leaves {weight_start[-1]}")
    return core.Leaves(tree_leaf, output, degree, start, column, scaling, weight_start, weight)


def _check_outputs(tree_output: NDArray[Any], n_outputs: int, n_weights: int) -> None:
    """Refuse trees that serve outputs that do not exist, and outputs that no tree serves.

    The number of outputs is then at most the number of weights in the file.
    """
    first, served = tree_output.T
    good = (first >= 0) & (first < n_outputs) & (served >= 1) & (served <= np.minimum(n_outputs - first, n_weights))
    _require(good.all(), "a tree serves an output that does not exist")
    # In the order of first outputs, each tree must begin no later than the outputs that are served so far.
    order = np.argsort(first, kind="stable")
    reached = np.concatenate([[0], np.maximum.accumulate((first + served)[order])])
    whole = reached[-1] == n_outputs and (first[order] <= reached[:-1]).all()
    _require(whole, f"no tree serves some of the {n_outputs} outputs")
