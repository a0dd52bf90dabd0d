"""What None stands for."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import layer_of, parameters
from helpers import BACKENDS
from sklearn.datasets import make_friedman1

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, fit_layer
from boostbp.backends import load_backend
from boostbp.estimators.request import Request


@pytest.mark.parametrize(
    ("model", "n_outputs", "rounds"),
    [
        (BoostBPRegressor(), 1, [20, 100]),
        (BoostBPRegressor(), 10, [20, 100]),
        (BoostBPClassifier(), 1, [20, 100]),
        (BoostBPClassifier(), 4, [20, 100]),
        (BoostBPClassifier(), 10, [20, 40]),
        (BoostBPClassifier(), 300, [20, 20]),
        (BoostBPClassifier((8, 8)), 10, [20, 20, 40]),
        (BoostBPClassifier(()), 10, [100]),
        (BoostBPClassifier(n_estimators=70), 10, [20, 70]),
        (BoostBPClassifier(n_estimators=70, hidden={"n_estimators": 30}), 10, [30, 70]),
    ],
)
def test_output_layers_of_many_classes_have_fewer_rounds(model, n_outputs, rounds):
    layers = Request.of(model).settings(1000, n_outputs, seed=0).layers
    assert [layer.n_estimators for layer in layers] == rounds


def test_the_ridge_base_above_hidden_units_has_a_least_penalty_and_that_of_features_none():
    for sizes in ((), (8,), (8, 8)):
        first, *above = Request.of(BoostBPRegressor(sizes)).settings(1000, 1, seed=0).layers
        assert first.min_base_lambda == (0.0 if sizes else None)  # of a single layer: by its columns
        assert all(layer.min_base_lambda > 0 for layer in above)


def drawn(**words):
    layers = Request.of(BoostBPRegressor(**parameters(**words))).settings(1000, 1, seed=0).layers
    [answer] = {layer.growth.extra_trees for layer in layers}
    return answer


@pytest.mark.parametrize("backend", BACKENDS)
def test_thresholds_are_drawn_where_the_library_can(backend):
    can = load_backend(backend).capabilities.extra_trees
    assert drawn(backend=backend) is can
    assert drawn(backend=backend, extra_trees=False) is False
    if can:
        assert drawn(backend=backend, extra_trees=True) is True
        return
    X, y = make_friedman1(100, random_state=0)
    for fit in (
        BoostBPRegressor(**parameters(backend=backend, extra_trees=True)).fit,
        BoostBPClassifier(**parameters(backend=backend, extra_trees=True)).fit,
        BoostBPAutoencoder(**parameters(backend=backend, extra_trees=True)).fit,
    ):
        with pytest.raises(ValueError, match=rf"extra_trees=True .*backend='{backend}'.*extra_trees=False.*lightgbm"):
            fit(X, (y > 15).astype(int))
    with pytest.raises(ValueError, match=rf"extra_trees=True .*backend='{backend}'"):
        fit_layer(X, y, {"extra_trees": True}, backend=backend)


def test_leaves_of_the_library_are_grown_as_it_grows_them():
    assert drawn(leaves="native") is False
    assert drawn(leaves="native", extra_trees=True) is True


def test_thresholds_under_their_native_name_are_refused():
    X, y = make_friedman1(100, random_state=0)
    for backend, native in (("lightgbm", {"extra_tree": True}), ("sklearn", {"splitter": "random"})):
        if backend in BACKENDS:
            with pytest.raises(ValueError, match=rf"backend_params.*{next(iter(native))}.*extra_trees"):
                BoostBPRegressor(backend=backend, backend_params=native).fit(X, y)


@pytest.mark.parametrize("backend", [name for name in BACKENDS if load_backend(name).capabilities.extra_trees])
def test_drawn_thresholds_follow_the_seed_and_spare_the_best_ones(backend):
    X, y = make_friedman1(300, random_state=0)

    def output(**how):
        return layer_of(X, y, n_estimators=5, backend=backend, **{"extra_trees": False, **how}).predict(X)

    np.testing.assert_array_equal(output(extra_trees=True), output(extra_trees=True))
    assert not np.allclose(output(extra_trees=True), output(extra_trees=True, random_state=1))
    assert not np.allclose(output(extra_trees=True), output())
