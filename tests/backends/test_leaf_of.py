"""Parsed trees send every row where the library sends it."""

from __future__ import annotations

import numpy as np
import pytest
from leaf_oracles import ORACLES, adversarial, library_leaf, table, target

from boostbp.backends import available, load_backend
from boostbp.backends.base import TreeParams
from boostbp.trees.sparse import Table

KNOWN = [name for name in available() if name in ORACLES]
WITH_CATEGORIES = [name for name in KNOWN if load_backend(name).capabilities.categories]


def check(name: str, data: Table, rng: np.random.Generator, growth: TreeParams) -> None:
    grower = load_backend(name).bind(data, growth)
    grad = target(rng, data)
    [tree] = grower.grow(grad, np.ones_like(grad))
    assert tree.n_leaves > 4
    rows = adversarial(tree, data, rng)
    wrong = np.flatnonzero(tree.leaf_of(rows) != library_leaf(grower, rows))
    assert len(wrong) == 0, f"{len(wrong)} of {len(rows)} rows go elsewhere, the first is {rows[wrong[:1]]}"


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("seed", range(8))
def test_leaf_of_matches_backend_on_thresholds_and_their_neighbours(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    check(name, table(rng, 1500), rng, TreeParams(max_depth=6, min_samples_leaf=5))


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("seed", range(3))
def test_leaf_of_matches_backend_where_nothing_was_missing_in_training(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    check(name, Table(rng.normal(size=(800, 3))), rng, TreeParams(max_depth=5, min_samples_leaf=5))


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e30, 2e38, 1e100, 1e300])
def test_leaf_of_matches_backend_on_scales_beyond_float32(name: str, scale: float) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, 900) * scale, rng.normal(size=(900, 2))])
    check(name, Table(X), rng, TreeParams(max_depth=5, min_samples_leaf=5))


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("values", [(0.0, 1.0), (-1.0, 0.0), (-0.0, 5.0), (-1.0, 0.0, 1.0)])
def test_leaf_of_matches_backend_on_thresholds_next_to_zero(name: str, values: tuple[float, ...]) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(values, 600), rng.choice(values, 600), rng.choice(values, 600)])
    X[rng.random(X.shape) < 0.1] = np.nan
    check(name, Table(X), rng, TreeParams(max_depth=4, min_samples_leaf=2))


@pytest.mark.parametrize("name", KNOWN)
def test_leaf_of_matches_backend_with_sparse_exclusive_columns(name: str) -> None:
    rng = np.random.default_rng(0)  # one-hot columns, which LightGBM bundles
    X = np.column_stack([np.eye(12)[rng.integers(0, 12, 1500)] * rng.uniform(1, 2, (1500, 1)), rng.normal(size=1500)])
    check(name, Table(X), rng, TreeParams(max_depth=6, min_samples_leaf=5))


@pytest.mark.parametrize("name", WITH_CATEGORIES)
@pytest.mark.parametrize("categories", [(2,), (3, 5), (40,), (31, 32, 33), (70, 4)])
def test_leaf_of_matches_backend_on_categories(name: str, categories: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(categories))
    check(name, table(rng, 2000, numeric=2, categories=categories), rng, TreeParams(max_depth=6, min_samples_leaf=5))


@pytest.mark.parametrize("name", WITH_CATEGORIES)
def test_leaf_of_matches_backend_on_a_thousand_categories(name: str) -> None:
    rng = np.random.default_rng(0)
    check(name, table(rng, 8000, numeric=1, categories=(1000,)), rng, TreeParams(max_depth=5, min_samples_leaf=5))


@pytest.mark.parametrize("name", WITH_CATEGORIES)
@pytest.mark.parametrize("seed", range(4))
def test_leaf_of_matches_backend_where_categories_were_never_missing(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 12, (1500, 2)).astype(float), rng.normal(size=1500)])
    check(name, Table(X, (0, 1)), rng, TreeParams(max_depth=6, min_samples_leaf=5))


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize(
    "growth", [TreeParams(max_depth=-1), TreeParams(max_depth=-1, max_leaves=50), TreeParams(max_leaves=12)]
)
def test_leaf_of_matches_backend_on_trees_grown_by_gain(name: str, growth: TreeParams) -> None:
    rng = np.random.default_rng(0)
    check(name, table(rng, 1500), rng, growth)


def test_leaf_of_matches_lightgbm_where_missing_is_not_used() -> None:
    rng = np.random.default_rng(0)
    check("lightgbm", table(rng, 1500), rng, TreeParams(min_samples_leaf=5, params={"use_missing": False}))


def test_leaf_of_matches_xgboost_after_pruning_by_gain() -> None:
    rng = np.random.default_rng(0)
    check("xgboost", table(rng, 1500), rng, TreeParams(min_samples_leaf=5, params={"gamma": 30.0}))


def test_leaf_of_matches_xgboost_with_one_category_against_the_rest() -> None:
    rng = np.random.default_rng(0)
    data = table(rng, 2000, numeric=2, categories=(12,))
    check("xgboost", data, rng, TreeParams(min_samples_leaf=5, params={"max_cat_to_onehot": 20}))
