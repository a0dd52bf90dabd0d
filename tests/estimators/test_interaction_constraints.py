"""Interaction constraints: kept where one layer is the whole model, refused where hidden layers would mix features."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import WITH_NATIVE_LEAVES, needs_torch

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, fit_layer
from boostbp.backends import available, load_backend
from boostbp.backends.base import TreeParams
from boostbp.trees.sparse import Table

GROUPS = [[0, 1], [2, 3]]  # of six columns; the fourth and the fifth are in no group
ALLOWED = {(0, 1), (2, 3)}
BACKENDS = sorted({"lightgbm", "xgboost"} & set(available()))
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (500, 6))
X[:, 5] = rng.integers(0, 3, len(X))
H = X + 0.5  # greedy trees find products whose factors matter by themselves, too
y = 3 * H[:, 0] * H[:, 1] + 2 * H[:, 0] * H[:, 2] + 3 * H[:, 2] * H[:, 3] + H[:, 3] * H[:, 4] + (X[:, 5] == 1) * H[:, 0]


def interaction(output: Any, i: int, j: int) -> float:
    """Largest mixed second difference of an output in two columns: 0 where it is a sum of functions of one of them."""
    ends = [(0.0, 1.0) if column == 5 else (-0.7, 0.6) for column in (i, j)]

    def at(a: float, b: float) -> np.ndarray:
        Z = X[:100].copy()
        Z[:, i], Z[:, j] = a, b
        return output(Z)

    (low, high), (left, right) = ends
    return float(np.abs(at(low, left) - at(low, right) - at(high, left) + at(high, right)).max())


def assert_kept(output: Any) -> None:
    scale = np.ptp(output(X))
    for i, j in combinations(range(6), 2):
        if (i, j) not in ALLOWED:
            assert interaction(output, i, j) < 1e-9 * scale, (i, j)
    assert all(interaction(output, i, j) > 0.05 * scale for i, j in ALLOWED)


def single(backend: str, kind: Any = BoostBPRegressor, **how: Any) -> Any:
    settings = {"n_estimators": 60, "max_depth": 4, "random_state": 0, "categorical_features": [5]} | how
    return kind((), **parameters(backend=backend, backend_params={"interaction_constraints": GROUPS}, **settings))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "how",
    [{}, {"base": "additive"}, {"base": "zero"}, {"basis": "linear"}, {"basis": "constant"}, {"extra_trees": False}],
    ids=repr,
)
def test_features_of_other_groups_do_not_interact(backend, how):
    assert_kept(single(backend, **how).fit(X, y).predict)


@pytest.mark.parametrize("backend", BACKENDS)
def test_they_do_without_constraints(backend):
    free = single(backend).set_params(backend_params=None).fit(X, y).predict
    assert interaction(free, 0, 2) > 0.1 * np.ptp(y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_of_a_classifier_the_log_odds_are_meant(backend):
    model = single(backend, BoostBPClassifier).fit(X, y > np.median(y))
    assert_kept(lambda Z: np.diff(np.log(model.predict_proba(Z)))[:, 0])


@pytest.mark.parametrize("backend", WITH_NATIVE_LEAVES)
def test_leaves_of_the_library_keep_them(backend):
    assert_kept(single(backend, leaves="native").fit(X, y).predict)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_layer_by_itself_keeps_them(backend):
    layer = fit_layer(X, y, {"base": "ridge", "backend_params": {"interaction_constraints": GROUPS}}, backend=backend)
    assert_kept(lambda Z: layer.predict(Z)[:, 0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("units", [4, 16])
@pytest.mark.parametrize(
    "make",
    [
        lambda units, **how: BoostBPRegressor((units,), **parameters(**how)).fit(X, y),
        lambda units, **how: BoostBPRegressor((units,), **parameters(deep=True, skip=True, **how)).fit(X, y),
        lambda units, **how: BoostBPClassifier((units,), **parameters(**how)).fit(X, y > np.median(y)),
        lambda units, **how: BoostBPAutoencoder((units,), **parameters(**how)).fit(X),
    ],
    ids=["regressor", "skip", "classifier", "autoencoder"],
)
def test_hidden_layers_are_refused_as_they_mix_features(backend, units, make):
    with pytest.raises(ValueError, match=r"'interaction_constraints'\]=\[\[0, 1\].*hidden layers mix.*_sizes=\(\)"):
        make(units, backend=backend, backend_params={"interaction_constraints": [[0, 1], [2, 3], [4, 5]]})


@needs_torch
@pytest.mark.parametrize("backend", BACKENDS)
def test_mixtures_with_neural_networks_are_refused_too(backend):
    from benchmarks.mixtures import GBDTNNRegressor, NNGBDTRegressor

    for kind in (GBDTNNRegressor, NNGBDTRegressor):
        with pytest.raises(ValueError, match="hidden layers mix"):
            kind((4,), backend=backend, backend_params={"interaction_constraints": GROUPS}).fit(X, y)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("groups", "cure"),
    [
        ([[0, 6]], "a column=6 is not allowed: give a whole number of at most 5"),
        ([[0, 2**40]], f"a column={2**40} is not allowed: give a whole number of at most 5"),
        ([[0, -1]], "a column=-1 is not allowed: give a whole number of at least 0"),
        ([["a"]], "a column='a' is not allowed"),
        ([[0.5]], "a column=0.5 is not allowed"),
        ([[None]], "a column=None is not allowed"),
        ("[0,1],[2,3]", "give lists of column numbers"),
        ([0, 1], "give lists of column numbers"),
        ([[]], "give lists of column numbers"),
        ([], "give lists of column numbers"),
        (3, "give lists of column numbers"),
    ],
)
def test_groups_are_lists_of_columns_that_are_there(backend, groups, cure):
    with pytest.raises(ValueError, match=r"backend_params\['interaction_constraints'\].*") as caught:
        load_backend(backend).bind(Table(X), TreeParams(params={"interaction_constraints": groups}))
    assert cure in str(caught.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_groups_may_be_any_lists(backend):
    def prediction(groups):
        return fit_layer(X, y, {"backend_params": {"interaction_constraints": groups}}, backend=backend).predict(X)

    expected = prediction([[0, 1], [2, 3]])
    for groups in (((0, 1), (2, 3)), [{0, 1}, {2, 3}], np.array([[0, 1], [2, 3]]), [[1, 0, 0], [3.0, 2]]):
        np.testing.assert_array_equal(prediction(groups), expected)
