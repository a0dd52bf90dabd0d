"""Several moves of the hidden variables before the output layer is fitted again."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BACKENDS
from sklearn.datasets import make_friedman1

from boostbp import BoostBPRegressor
from boostbp import backends as libraries
from boostbp.backends.base import Table
from boostbp.estimators.parameters import settings_of
from boostbp.learning import losses
from boostbp.learning.run import Run

X, Y = make_friedman1(300, n_features=5, random_state=0)
TARGET = ((Y - Y.mean()) / Y.std()).reshape(-1, 1)


def regressor(backend="lightgbm", **changes):
    chosen = {"n_estimators": 6, "epochs": 2, "random_state": 0, "early_stopping": False} | changes
    return BoostBPRegressor((3, 2), backend=backend, **chosen)


def run_of(model, backend):
    settings = settings_of(model, len(X), 1, 0)
    return Run(Table(X), TARGET, libraries.load(backend), losses.SquaredError(), settings, np.ones(len(X)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("skip", [False, True])
def test_a_glide_leaves_the_output_layer_and_all_structures_as_they_are(backend, skip):
    run = run_of(regressor(backend, skip=skip), backend)
    run.step()
    before, h = list(run.T), list(run.h)
    run._glide()
    assert run.T[-1].layer is before[-1].layer
    for old, new in zip(before[:-1], run.T[:-1], strict=True):
        np.testing.assert_array_equal(new.layer.forest.nodes.threshold, old.layer.forest.nodes.threshold)
        assert (new.layer.forest.leaves.weight != old.layer.forest.leaves.weight).any()
    assert (run.h[1] != h[1]).any()
    forward, _ = run.network.forward(X)
    for one, other in zip(run.h, forward, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_gradients_after_a_glide_are_those_of_the_moved_network():
    run = run_of(regressor(), "lightgbm")
    run.step()
    run._glide()
    h, traces = run.network.forward(X)
    g = traces[2].vjp(h[3] - TARGET)
    np.testing.assert_allclose(run.g[2], g, atol=1e-9)
    np.testing.assert_allclose(run.g[1], traces[1].vjp(g), atol=1e-9)


def test_more_moves_are_another_training_and_resume_bit_for_bit():
    one, three = regressor(epochs=3).fit(X, Y), regressor(epochs=3, moves=3).fit(X, Y)
    assert (one.predict(X) != three.predict(X)).any()
    half = regressor(epochs=1, moves=3, warm_start=True).fit(X, Y).fit_more(2)
    np.testing.assert_array_equal(half.predict(X), three.predict(X))


@pytest.mark.parametrize("changes", [{"output": "move"}, {"refit_order": "downward"}], ids=str)
def test_moves_need_a_boosted_output_fitted_upward(changes):
    with pytest.raises(ValueError, match="moves=2 is not supported with output="):
        regressor(moves=2, **changes).fit(X, Y)
