"""Parsed trees send every row where the library sends it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from leaf_oracles import ORACLES, adversarial, library_leaf, table, target

from boostbp.backends import available, load_backend
from boostbp.backends.base import TreeParams
from boostbp.trees.sparse import Table

KNOWN = [name for name in available() if name in ORACLES]
Make = Callable[[np.random.Generator], Table]
WITH_CATEGORIES = [name for name in KNOWN if load_backend(name).capabilities.categories]


def check(name: str, data: Table, rng: np.random.Generator, growth: TreeParams) -> None:
    grower = load_backend(name).bind(data, growth)
    grad = target(rng, data)
    [tree] = grower.grow(grad, np.ones_like(grad))
    assert tree.n_leaves > 4
    rows = adversarial(tree, data, rng)
    wrong = np.flatnonzero(tree.leaf_of(rows) != library_leaf(grower, rows))
    assert len(wrong) == 0, f"{len(wrong)} of {len(rows)} rows go elsewhere, the first is {rows[wrong[:1]]}"


def scaled(rng: np.random.Generator, scale: float) -> Table:
    return Table(np.column_stack([rng.uniform(-1, 1, 900) * scale, rng.normal(size=(900, 2))]))


def near_zero(rng: np.random.Generator, values: tuple[float, ...]) -> Table:
    X = rng.choice(values, (600, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    return Table(X)


def one_hot(rng: np.random.Generator) -> Table:
    """Sparse columns that exclude each other, which LightGBM bundles."""
    X = np.eye(12)[rng.integers(0, 12, 1500)] * rng.uniform(1, 2, (1500, 1))
    return Table(np.column_stack([X, rng.normal(size=1500)]))


def never_missing(rng: np.random.Generator) -> Table:
    return Table(np.column_stack([rng.integers(0, 12, (1500, 2)).astype(float), rng.normal(size=1500)]), (0, 1))


def of_categories(*sizes: int) -> Make:
    return lambda rng: table(rng, 2000, numeric=2, categories=sizes)


# The table of a generator, the settings of growth besides leaves of five rows, and how many seeds are tried.
NUMERIC: dict[str, tuple[Make, dict[str, Any], int]] = {
    "thresholds and their neighbours": (lambda rng: table(rng, 1500), {}, 8),
    "nothing missing in training": (lambda rng: Table(rng.normal(size=(800, 3))), {"max_depth": 5}, 3),
    **{
        f"scale {scale}": (partial(scaled, scale=scale), {"max_depth": 5}, 1)
        for scale in (1e-40, 1e-30, 1e30, 2e38, 1e100, 1e300)
    },
    **{
        f"thresholds next to zero, {values}": (partial(near_zero, values=values), {"min_samples_leaf": 2}, 1)
        for values in ((0.0, 1.0), (-1.0, 0.0), (-0.0, 5.0), (-1.0, 0.0, 1.0))
    },
    "columns that exclude each other": (one_hot, {}, 1),
    "no limit of depth": (lambda rng: table(rng, 1500), {"max_depth": -1}, 1),
    "grown by gain": (lambda rng: table(rng, 1500), {"max_depth": -1, "max_leaves": 50}, 1),
    "few leaves": (lambda rng: table(rng, 1500), {"max_leaves": 12}, 1),
}
CATEGORICAL: dict[str, tuple[Make, dict[str, Any], int]] = {
    **{f"categories {sizes}": (of_categories(*sizes), {}, 2) for sizes in ((2,), (3, 5), (40,), (31, 32, 33), (70, 4))},
    "a thousand categories": (lambda rng: table(rng, 8000, numeric=1, categories=(1000,)), {"max_depth": 5}, 1),
    "categories that were never missing": (never_missing, {}, 4),
}
OF_A_LIBRARY: dict[str, tuple[str, Make, dict[str, Any]]] = {
    "missing is not used": ("lightgbm", lambda rng: table(rng, 1500), {"use_missing": False}),
    "pruned by gain": ("xgboost", lambda rng: table(rng, 1500), {"gamma": 30.0}),
    "one category against the rest": ("xgboost", of_categories(12), {"max_cat_to_onehot": 20}),
}


@pytest.mark.parametrize(
    ("name", "case"), [*product(KNOWN, NUMERIC), *product(WITH_CATEGORIES, CATEGORICAL)], ids=lambda value: value
)
def test_leaf_of_matches_the_library(name: str, case: str) -> None:
    make, growth, n_seeds = (NUMERIC | CATEGORICAL)[case]
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        check(name, make(rng), rng, TreeParams(**{"max_depth": 6, "min_samples_leaf": 5} | growth))


@pytest.mark.parametrize("case", OF_A_LIBRARY)
def test_leaf_of_matches_a_library_with_parameters_of_its_own(case: str) -> None:
    name, make, params = OF_A_LIBRARY[case]
    rng = np.random.default_rng(0)
    check(name, make(rng), rng, TreeParams(min_samples_leaf=5, params=params))
