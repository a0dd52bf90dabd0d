"""Features that gain nothing are left out of a fit where that clearly lowers the held-out loss, and only there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import boostbp
from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.ensemble import few_features
from boostbp.ensemble.few_features import on_all_features
from boostbp.network.layers.layer import rounds_of

pytestmark = pytest.mark.full_length
ROWS, USED = 700, (3, 7, 11)


def noisy_table(n_features=24, seed=0):
    """A target of two numbers and a category, among columns of noise; some cells are missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * ROWS, n_features))
    X[:, 11] = rng.integers(0, 4, len(X))
    y = 2 * np.sin(2 * X[:, 3]) * X[:, 7] + np.array([0.0, 2.0, -2.0, 0.5])[X[:, 11].astype(int)]
    X[rng.random(X.shape) < 0.02] = np.nan
    return X, y + 0.3 * rng.normal(size=len(y))


def fitted(**how):
    X, y = noisy_table()
    return BoostBPRegressor(quality=1, random_state=0, **how).fit(X[:ROWS], y[:ROWS])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_noise_is_left_out_and_the_model_is_better(backend, tune):
    X, y = noisy_table()
    how = {"backend": backend, "categorical_features": [11]}
    model = fitted(**how)
    tune(few_features.constants, FEW_FEATURES_OF=25)
    other = fitted(**how)
    left_out = model.history_.choice.left_out
    assert set(USED).isdisjoint(left_out)
    assert len(left_out) >= 18
    assert f"{len(left_out)} features gain nothing on held-out rows, and are left out." in model.summary()
    assert other.history_.choice.left_out == ()
    assert model.score(X[ROWS:], y[ROWS:]) > other.score(X[ROWS:], y[ROWS:])
    changed = X.copy()
    changed[:, left_out] = np.random.default_rng(1).normal(size=(len(X), len(left_out)))
    np.testing.assert_array_equal(model.predict(changed), model.predict(X))
    assert not model.feature_importances_[list(left_out)].any()
    assert model.feature_importances_[list(USED)].all()


def test_the_model_is_the_one_on_the_other_columns():
    X, y = noisy_table()
    model = fitted(categorical_features=[11])
    columns = np.setdiff1d(np.arange(X.shape[1]), model.history_.choice.left_out)
    categorical = np.flatnonzero(columns == 11).tolist()
    alone = BoostBPRegressor(quality=1, random_state=0, categorical_features=categorical)
    alone.fit(X[:ROWS, columns], y[:ROWS])
    assert alone.history_.choice.left_out == ()
    np.testing.assert_allclose(model.predict(X), alone.predict(X[:, columns]), rtol=1e-9)


def test_nothing_is_left_out_where_every_feature_counts(tune):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 10))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=600)
    model = BoostBPRegressor(quality=1, random_state=0).fit(X, y)
    assert model.history_.choice.left_out == ()
    tune(few_features.constants, FEW_FEATURES_OF=11)
    without = BoostBPRegressor(quality=1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), without.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        {"backend_params": {"lambda_l2": 1.0}},  # native parameters may name columns
        {"output": {"monotone_constraints": [0] * 3 + [1] + [0] * 20}},
        {"quality": 2, "deep": False},
    ],
)
def test_settings_of_columns_and_higher_qualities_keep_all_features(how):
    X, y = noisy_table()
    model = BoostBPRegressor(**{"quality": 1, "random_state": 0, **how}).fit(X[:ROWS], y[:ROWS])
    assert model.history_.choice.left_out == ()


@pytest.mark.parametrize("deep", [True, False])
def test_a_network_on_columns_becomes_one_on_all_features(deep):
    X, y = noisy_table()
    columns = np.array([3, 5, 7])
    how = {"hidden_layer_sizes": (3,), "epochs": 2, "n_estimators": 10} if deep else {"quality": 1}
    network = BoostBPRegressor(deep=deep, random_state=0, **how).fit(X[:ROWS, columns], y[:ROWS]).network_
    assert len(network.layers) == (2 if deep else 1)
    placed = on_all_features(network, columns, X.shape[1])
    assert [rounds_of(layer.forest) for layer in placed.layers] == [rounds_of(layer.forest) for layer in network.layers]
    np.testing.assert_array_equal(placed.predict(X), network.predict(np.ascontiguousarray(X[:, columns])))


def test_what_a_model_is_used_for_knows_all_features(tmp_path):
    X, y = noisy_table()
    names = [f"x{j}" for j in range(X.shape[1])]
    model = BoostBPClassifier(quality=1, random_state=0).fit(pd.DataFrame(X[:ROWS], columns=names), y[:ROWS] > 0)
    assert model.history_.choice.left_out
    table = pd.DataFrame(X, columns=names)
    boostbp.save(model, tmp_path / "model")
    expected = model.predict_proba(table)
    np.testing.assert_array_equal(boostbp.load(tmp_path / "model").predict_proba(table), expected)
    again = model.refit(table[:ROWS], y[:ROWS] > 0, decay_rate=0.5)
    assert again.score(table[ROWS:], y[ROWS:] > 0) > 0.8
    jacobian = model.jacobian(table[:5])
    assert not jacobian[..., list(model.history_.choice.left_out)].any()
