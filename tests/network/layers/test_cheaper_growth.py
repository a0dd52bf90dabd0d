"""Sampling: structures come from the sample alone, leaves from all rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from flat_parameters import parameters

from boostbp import BoostBPRegressor
from boostbp.backends import available, load_backend
from boostbp.backends.base import TreeParams
from boostbp.network.layers.cheaper_growth import RowSampling, drawn_rows
from boostbp.trees.sparse import Sparse, Table

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (600, 4))
y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def grow(backend, X, grad, **growth):
    [tree] = (
        backend.bind(Table(X), TreeParams(max_depth=4, **growth)).fork(slice(0, 1), 0).grow(grad, np.ones_like(grad))
    )
    return tree


@pytest.mark.parametrize("name", available())
def test_structure_is_that_of_the_sampled_rows_alone(name):
    backend, grad = load_backend(name), -y[:, None]
    rows = np.sort(np.random.default_rng(5).permutation(600)[:200])
    sampled = grow(RowSampling(backend, 200), X, grad, min_samples_leaf=30, random_state=5)
    alone = grow(backend, X[rows], grad[rows], min_samples_leaf=10, random_state=5)
    np.testing.assert_array_equal(sampled.threshold, alone.threshold)
    np.testing.assert_array_equal(sampled.feature, alone.feature)


@pytest.mark.parametrize("name", available())
def test_a_sample_as_large_as_the_table_changes_nothing(name):
    model = {
        "backend": name,
        "hidden_layer_sizes": (3,),
        "epochs": 2,
        "n_estimators": 5,
        "deep": True,
        "random_state": 0,
    }
    whole = BoostBPRegressor(**parameters(**model)).fit(X, y).predict(X)
    np.testing.assert_array_equal(
        BoostBPRegressor(**parameters(**model, structure_samples=1.0)).fit(X, y).predict(X), whole
    )
    assert not np.array_equal(
        BoostBPRegressor(**parameters(**model, structure_samples=0.5)).fit(X, y).predict(X), whole
    )


@pytest.mark.parametrize("deep", ["auto", True])
def test_all_trees_of_a_model_grow_on_the_sample(deep):
    backend, bound = load_backend("lightgbm"), []

    class Watched:
        capabilities = backend.capabilities

        def bind(self, table, growth):
            bound.append(len(table.X))
            return backend.bind(table, growth)

    model = {"epochs": 1, "n_estimators": 3, "deep": deep, "random_state": 0}
    BoostBPRegressor((3,), **parameters(backend=Watched(), structure_samples=100, **model)).fit(X, y)
    assert set(bound) == {100}


def test_leaves_see_all_rows():
    """A leaf's training range reaches the extremes of the whole table, not of the sample."""
    model = BoostBPRegressor(
        (3,),
        **parameters(
            epochs=0, n_estimators=[3, 3], structure_samples=100, early_stopping=False, base="zero", random_state=0
        ),
    )
    leaves = model.fit(X, y).network_.layers[0].forest.leaves
    seen = leaves.scaling[:, 0] + leaves.scaling[:, 3] / leaves.scaling[:, 1]
    for feature in np.unique(leaves.column):
        assert seen[leaves.column == feature].max() == pytest.approx(X[:, feature].max(), abs=1e-9)


# Rows drawn for each fit.

WHOLE = rng.integers(0, 30, (600, 4)).astype(float)  # so few values that bins of all rows are those of a sample
COUNTS = np.sin(WHOLE[:, 0]) + WHOLE[:, 1] * WHOLE[:, 2] / 30


@pytest.mark.parametrize("name", available())
@pytest.mark.parametrize("kind", ["dense", "sparse", "categorical"])
def test_each_fit_grows_on_rows_of_its_own(name, kind):
    backend, grad = load_backend(name), -COUNTS[:, None]
    if not {"dense": True, "sparse": backend.capabilities.sparse, "categorical": backend.capabilities.categories}[kind]:
        pytest.skip(f"{name} takes no {kind} tables")
    growth = TreeParams(max_depth=4, min_samples_leaf=10)
    table = Table(Sparse.of(sp.csc_matrix(WHOLE)) if kind == "sparse" else WHOLE, (3,) if kind == "categorical" else ())
    bound = RowSampling(backend, 200, anew=True).bind(table, growth)
    ones, thresholds = np.ones_like(grad), []
    for seed in (3, 4):
        rows = drawn_rows(600, 200, seed)
        assert len(np.unique(rows)) == 200
        [tree] = bound.fork(slice(0, 1), seed).grow(grad, ones)
        [alone] = backend.bind(table.take(rows), growth).fork(slice(0, 1), seed).grow(grad[rows], ones[rows])
        part = table.take(rows).X
        np.testing.assert_array_equal(tree.leaf_of(part), alone.leaf_of(part))
        thresholds.append(tree.threshold)
    assert not np.array_equal(*thresholds)


def test_outputs_that_draw_rows_are_grouped_alike_on_any_threads():
    able = RowSampling(load_backend("lightgbm"), 200, anew=True).capabilities
    assert able.draws(TreeParams())
    assert not RowSampling(load_backend("lightgbm"), 200).capabilities.draws(TreeParams())
