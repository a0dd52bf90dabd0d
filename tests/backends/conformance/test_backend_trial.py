"""A trial of a backend demands the sizes that were asked for, and tells drawn trees from repeated ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from leaf_oracles import table, target

from boostbp.backends import available, capabilities_of, load_backend
from boostbp.backends.base import TreeParams
from boostbp.backends.conformance.backend_trial import BackendTrial, same
from boostbp.trees.sparse import Table

EVERY = pytest.mark.parametrize("name", available())

PURE = pytest.mark.parametrize(
    "name", [name for name in available() if capabilities_of(load_backend(name)).deterministic]
)


def numeric(rows: int = 600, columns: int = 4, seed: int = 0) -> Table:
    return table(np.random.default_rng(seed), rows, numeric=columns)


def gradient(data: Table, columns: int, seed: int = 0) -> np.ndarray:
    return target(np.random.default_rng(seed), data, columns)


@EVERY
@settings(max_examples=25)
@given(
    rows=st.integers(1, 300),
    depth=st.integers(-1, 6),
    leaves=st.none() | st.integers(1, 20),
    least=st.integers(1, 60),
    weight=st.sampled_from([1.0, 0.3, 1e-3, 7.0]),
    shared=st.booleans(),
    seed=st.integers(0, 5),
)
def test_trees_keep_to_the_sizes_asked_for(
    name: str, rows: int, depth: int, leaves: int | None, least: int, weight: float, shared: bool, seed: int
) -> None:
    trial = BackendTrial(load_backend(name))
    data = table(np.random.default_rng(seed), rows, missing=trial.capabilities.missing)
    grad = gradient(data, 2 if shared and trial.capabilities.vector_leaf else 1, seed) * weight
    growth = {"max_depth": depth, "max_leaves": leaves, "min_samples_leaf": least, "multi_output": shared}
    trial.grow(data, grad, np.full_like(grad, weight), **growth)  # it demands these sizes


@PURE
def test_growing_is_a_function_of_the_gradient_alone_beyond_the_life_of_a_booster(name: str) -> None:
    data = numeric(60)
    grad = gradient(data, 1)
    grower = load_backend(name).bind(data, TreeParams(max_depth=2, min_samples_leaf=5))
    trees = [grower.grow(grad, np.ones_like(grad))[0] for _ in range(600)]
    assert all(same(tree, trees[0]) for tree in trees)
