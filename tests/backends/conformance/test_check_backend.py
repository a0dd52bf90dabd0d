"""A backend that breaks a duty, or declares what it cannot do, is told which and how to mend it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from leaf_oracles import ORACLES

import boostbp
from boostbp.backends import Capabilities, ConformanceError, check_backend, load_backend
from boostbp.backends.base import Floats, Grower, TreeParams
from boostbp.backends.conformance import duties_of
from boostbp.trees.sparse import Table
from boostbp.trees.tree import Tree

HONEST = Capabilities(
    missing=True, sparse=True, vector_leaf=True, extra_trees=True, colsample_bytree="node", deterministic=True
)


def unchanged(value: Any) -> Any:
    return value


@dataclass
class Wrapped:
    """Scikit-learn's trees; what is asked for, or what is grown, is changed on the way."""

    capabilities: Capabilities = HONEST
    growth: Callable[[TreeParams], TreeParams] = unchanged
    table: Callable[[Table], Table] = unchanged
    gradients: Callable[[Floats, Floats], tuple[Floats, Floats]] = lambda grad, hess: (grad, hess)
    trees: Callable[[list[Tree]], Any] = unchanged
    seed: Callable[[int], int] = unchanged
    name: str = "sklearn"

    def bind(self, table: Table, growth: TreeParams) -> WrappedGrower:
        return WrappedGrower(self, load_backend(self.name).bind(self.table(table), self.growth(growth)))


@dataclass
class WrappedGrower:
    of: Wrapped
    grower: Grower
    rounds: list[int] = field(default_factory=list)

    def grow(self, grad: Floats, hess: Floats) -> Any:
        return self.of.trees(list(self.grower.grow(*self.of.gradients(grad, hess))))

    def fork(self, outputs: slice, seed: int) -> WrappedGrower:
        return WrappedGrower(self.of, self.grower.fork(outputs, self.of.seed(seed)))


def each(change: Callable[[Tree], Tree]) -> Callable[[list[Tree]], list[Tree]]:
    return lambda trees: [change(tree) for tree in trees]


def drawn(growth: TreeParams) -> TreeParams:
    return replace(growth, extra_trees=True)


def wrote_to(grad: Floats, hess: Floats) -> tuple[Floats, Floats]:
    grad[0] += 1.0
    return grad, hess


def says(**more: Any) -> Capabilities:
    return Capabilities(missing=True, **more)


BROKEN: dict[str, tuple[Wrapped, str]] = {
    "one tree too many": (Wrapped(trees=lambda trees: [*trees, trees[0]]), "grew 4 trees instead of 3"),
    "no list": (Wrapped(trees=lambda trees: None), "grew None instead of 3"),
    "no trees": (Wrapped(trees=lambda trees: ["tree"] * len(trees)), "grew 'tree': .*Tree.of"),
    "features from 1": (
        Wrapped(trees=each(lambda tree: replace(tree, feature=tree.feature + 1))),
        "splits feature 4, of 4: number features from 0",
    ),
    "children of another numbering": (
        Wrapped(trees=each(lambda tree: replace(tree, left=tree.left + 1))),
        "is not consistent.*Numbering",
    ),
    "no thresholds": (
        Wrapped(trees=each(lambda tree: replace(tree, threshold=tree.threshold * np.nan))),
        "is not consistent.* has a threshold and a set, or neither",
    ),
    "a gain below 0": (
        Wrapped(trees=each(lambda tree: replace(tree, gain=-tree.gain))),
        "has the gains .* Leave them out",
    ),
    "left is right": (
        Wrapped(trees=each(lambda tree: replace(tree, threshold=np.nextafter(tree.threshold, -np.inf) - 1e-3))),
        "Tree.leaf_of|min_samples_leaf",
    ),
    "missing goes astray": (
        Wrapped(trees=each(lambda tree: replace(tree, missing_left=~tree.missing_left))),
        "min_samples_leaf=.* was asked for, and Tree.leaf_of sends .* missing_left",
    ),
    "no limit of rows": (
        Wrapped(growth=lambda growth: replace(growth, min_samples_leaf=1)),
        "min_samples_leaf=.*without_small_leaves",
    ),
    "no limit of depth": (
        Wrapped(growth=lambda growth: replace(growth, max_depth=-1, max_leaves=9)),
        "max_depth=4 was asked for, and a tree has the depth|grew .* leaves",
    ),
    "no limit of leaves": (
        Wrapped(growth=lambda growth: replace(growth, max_leaves=None)),
        "leaves: `TreeParams.leaves` allows 2",
    ),
    "larger leaves": (
        Wrapped(growth=lambda growth: replace(growth, min_samples_leaf=growth.min_samples_leaf + 1)),
        "rows were not split off with min_samples_leaf=.* Count rows",
    ),
    "rows alike": (
        Wrapped(gradients=lambda grad, hess: (grad / np.maximum(hess, 1e-300), np.ones_like(hess))),
        "leaves .* of the loss .* sample weights hess",
    ),
    "no gradient": (
        Wrapped(gradients=lambda grad, hess: (np.sin(1e6 * np.arange(grad.size)).reshape(grad.shape), hess)),
        "leaves .* of the loss",
    ),
    "rounded input": (
        Wrapped(table=lambda table: replace(table, X=table.X.astype(np.float16).astype(float))),
        "raised|Tree.leaf_of",
    ),
    "writes": (Wrapped(gradients=wrote_to), "writes into X, grad or hess: work on a copy"),
    "shares its seed": (
        Wrapped(seed=lambda seed: 0),
        "'extra_trees': forks with other seeds grew the same trees.*Or leave 'extra_trees' out",
    ),
    "deterministic in name": (Wrapped(growth=drawn), "'deterministic': a gradient gave another tree in"),
    "thresholds in name": (
        Wrapped(growth=lambda growth: replace(growth, extra_trees=False)),
        "'extra_trees': 12 rounds of one gradient gave trees with the same root",
    ),
    "features in name": (
        Wrapped(growth=lambda growth: replace(growth, colsample_bytree=1.0)),
        "'colsample_bytree': 12 rounds of one gradient gave trees with the same root",
    ),
    "features of each tree in name": (
        Wrapped(says(colsample_bytree="tree")),
        "colsample_bytree='tree', but a tree splits .* of 10 features .* say 'node'",
    ),
    "sparse in name": (
        Wrapped(says(sparse=True), table=lambda table: replace(table, X=table.X.astype(float))),
        "capability 'sparse': it raised .* leave 'sparse' out",
    ),
    "categories in name": (Wrapped(says(categories=True)), "category sets .* Or leave 'categories' out"),
    "vector leaves in name": (
        Wrapped(replace(HONEST, extra_trees=False, sparse=False), name="lightgbm"),
        "'vector_leaf': it raised ValueError: multi_output=True",
    ),
    "some rows in name": (Wrapped(says(row_subsets=True)), "'row_subsets': it raised AttributeError.*take"),
    "own leaves in name": (Wrapped(says(native_leaves=True)), "'native_leaves': it raised AttributeError.*boost"),
    "parameters in name": (
        Wrapped(says(params=True), growth=lambda growth: replace(growth, params={})),
        "'params': bind.. with TreeParams.params=.'no_such_parameter': 1.. raised no error",
    ),
    "no streams": (Wrapped(says(streams=lambda n_rows, n_outputs, growth: 0)), "returned 0 for 1 outputs"),
}


def test_an_honest_backend_passes() -> None:
    check_backend(Wrapped())
    boostbp.check_backend(Wrapped(Capabilities(missing=True)))


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_told_with_the_cure(what: str) -> None:
    backend, message = BROKEN[what]
    with pytest.raises(ConformanceError, match=message) as caught:
        check_backend(backend)
    assert str(caught.value).startswith("backend Wrapped, ")
    assert isinstance(caught.value, AssertionError)


def test_a_backend_that_draws_whatever_the_seed_says_is_told() -> None:
    rng = np.random.default_rng(0)
    backend = Wrapped(Capabilities(missing=True), growth=drawn, seed=lambda seed: int(rng.integers(2**31)))
    with pytest.raises(ConformanceError, match="repeats itself: forks with the same seeds grew other trees"):
        check_backend(backend)


def of_sklearn(grower: Any, rows: Floats) -> Any:
    return ORACLES["sklearn"](grower.grower, rows)


@pytest.mark.slow
def test_rows_near_a_threshold_that_the_library_sends_another_way_are_told() -> None:
    check_backend(Wrapped(), leaf_of=of_sklearn)
    nearly = each(
        lambda tree: replace(tree, threshold=np.nextafter(tree.threshold, -np.inf))
    )  # no row of a table there
    check_backend(Wrapped(trees=nearly))
    with pytest.raises(ConformanceError, match=r"routes rows as the library does: Tree.leaf_of sends \d+ of \d+ rows"):
        check_backend(Wrapped(trees=nearly), leaf_of=of_sklearn)


def test_what_is_not_declared_is_not_tried() -> None:
    assert [words for words in duties_of(Wrapped(Capabilities())) if "capability" in words] == ["capability 'streams'"]


def test_what_is_no_backend_is_refused() -> None:
    with pytest.raises(TypeError, match="has no method bind"):
        check_backend(object())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="backend='catboost' is unknown"):
        check_backend("catboost")


def test_the_backend_of_the_guide_is_told_what_the_guide_says() -> None:
    text = (Path(__file__).parents[3] / "docs" / "extending.md").read_text(encoding="utf-8")
    _, _, section = text.partition("\n## A new backend\n")
    code, said = re.findall(r"```(?:python)?\n(.*?)```", section, re.DOTALL)[:2]
    names: dict[str, Any] = {}
    exec(code, names)
    with pytest.raises(ConformanceError) as caught, np.errstate(all="ignore"):
        check_backend(names["MedianStumps"]())
    for part in said.removeprefix("ConformanceError: ").split("[...]"):
        assert " ".join(part.split()) in str(caught.value)
