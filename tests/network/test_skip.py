"""Skip connections: layers above the first see the input beside the hidden layer below them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from flat_parameters import parameters
from helpers import BACKENDS
from sklearn.datasets import make_friedman1

from boostbp import BoostBPRegressor, load, losses, save
from boostbp import backends as libraries
from boostbp.estimators.request import Request
from boostbp.inputs.rows import Rows
from boostbp.network.trainer import Trainer
from boostbp.trees.sparse import Table

X, Y = make_friedman1(300, n_features=5, random_state=0)
backends = pytest.mark.parametrize("backend", BACKENDS)


def regressor(backend, sizes=(3, 2), **changes):
    small = {"n_estimators": 4, "epochs": 2, "random_state": 0, "early_stopping": False}
    chosen = small | {"deep": True, "skip": True} | changes
    return BoostBPRegressor(sizes, **parameters(backend=backend, **chosen))


@backends
def test_each_layer_above_the_first_sees_the_features(backend):
    network = regressor(backend).fit(X, Y).network_
    assert [layer.forest.n_features for layer in network.layers] == [5, 3 + 5, 2 + 5]
    h1 = network.layers[0].predict(X)
    h2 = network.layers[1].predict(np.hstack([h1, X]))
    expected = network.layers[2].predict(np.hstack([h2, X])) + network.baseline
    np.testing.assert_array_equal(network.predict(X), expected)
    np.testing.assert_array_equal(network.forward(X)[0][-1], expected)


@backends
def test_jacobian_matches_finite_differences(backend):
    network, eps, compared = regressor(backend, epochs=1).fit(X, Y).network_, 1e-6, 0
    rows = make_friedman1(300, n_features=5, random_state=1)[0]  # training rows lie on the edges of their leaves
    J = network.jacobian(rows)
    _, traces = network.forward(rows)
    for j in range(5):
        ends = []
        same = np.ones(len(rows), bool)
        for sign in (-1, 1):
            moved = rows.copy()
            moved[:, j] += sign * eps
            h, seen = network.forward(moved)
            ends.append(h[-1])
            for old, new in zip(traces, seen, strict=True):
                same &= (old.leaf == new.leaf).all(axis=0)
        slope = (ends[1] - ends[0])[same] / (2 * eps)
        np.testing.assert_allclose(slope, J[same, :, j], atol=1e-6 * np.abs(J).max())
        compared += same.sum()
    assert compared > 1000


@backends
def test_gradients_of_hidden_layers_are_those_of_the_whole_network(backend):
    """dL/dh_1 by back-propagation equals the derivative of the layers above, with the features held."""

    y = ((Y - Y.mean()) / Y.std()).reshape(-1, 1)
    settings = Request.of(regressor(backend)).settings(len(X), 1, 0)
    run = Trainer(Rows(Table(X), y, np.ones(len(X))), libraries.load_backend(backend), losses.SquaredError(), settings)
    run.step()
    top, middle = run.traces[2].jacobian(), run.traces[1].jacobian()
    residual = run.h[3] - y
    g2 = np.einsum("no,nou->nu", residual, top[..., :2])
    np.testing.assert_allclose(run.g[2], g2, atol=1e-12)
    np.testing.assert_allclose(run.g[1], np.einsum("nu,nuv->nv", g2, middle[..., :3]), atol=1e-12)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("multi_strategy", ["one_output_per_tree", "multi_output_tree"])
def test_categories_and_missing_values_reach_the_output_layer(backend, multi_strategy):
    table = pd.DataFrame(X[:, :3], columns=list("abc"))
    table["group"] = pd.Categorical(np.where(X[:, 3] > 0.5, "high", "low"))
    table.loc[::7, "a"] = np.nan
    y = np.where(X[:, 3] > 0.5, 10.0, 0.0) + X[:, 1]
    grown = {"n_estimators": 30, "multi_strategy": multi_strategy, "structure_epochs": 1}  # the last epoch's too
    model = regressor(backend, (2,), **grown).fit(table, y)
    assert (model.network_.layers[1].forest.nodes.cat_start >= 0).any()
    assert model.score(table, y) > 0.95
    assert np.isfinite(model.jacobian(table)).all()


@backends
@pytest.mark.parametrize("changes", [{"structure_epochs": 2}, {"refit_order": "downward"}], ids=str)
def test_resumed_and_stored_networks_are_the_same(backend, changes, tmp_path):
    whole = regressor(backend, epochs=4, **changes).fit(X, Y)
    half = regressor(backend, **changes).fit(X, Y, keep_state=True).fit_more(2)
    np.testing.assert_array_equal(half.predict(X), whole.predict(X))
    save(whole, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), whole.predict(X))


def test_output_rounds_are_chosen_with_the_features():
    model = regressor("lightgbm", early_stopping=True, deep=True, n_estimators=[5, 5, 60]).fit(
        X[:200], Y[:200], eval_set=[(X[200:], Y[200:])]
    )
    score = np.sqrt(np.mean(np.square(model.predict(X[200:]) - Y[200:])))
    assert score == pytest.approx(model.history_.scores["valid_0"])
