"""Estimators without a hidden layer: a single layer of boosted trees."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BACKENDS, assert_close
from sklearn.datasets import load_diabetes, load_iris

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, fit_layer, load, save
from boostbp.interop.mixtures import GBDTNNRegressor

X, Y = load_diabetes(return_X_y=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_regressor_is_one_layer_fitted_to_the_target(backend):
    shape = {
        "n_estimators": 12,
        "max_depth": 3,
        "backend": backend,
        "random_state": 0,
        "base": "ridge",
        "extra_trees": False,
    }
    model = BoostBPRegressor((), early_stopping=False, reg_lambda=1.0, **shape).fit(X, Y)
    layer = fit_layer(X, (Y - Y.mean()) / Y.std(), **shape)
    assert_close(model.predict(X), layer.predict(X)[:, 0] * Y.std() + Y.mean(), 1e-6)
    assert model.n_iter_ == 0


def test_classifier_keeps_the_rounds_that_validation_likes_and_can_be_stored(tmp_path):
    flowers, y = load_iris(return_X_y=True)
    model = BoostBPClassifier((), n_estimators=200, learning_rate=0.5, max_depth=3, random_state=0)
    model.fit(flowers[::2], y[::2], eval_set=[(flowers[1::2], y[1::2])])
    assert model.network_.layers[0].forest.n_trees < 1 + 3 * 200
    save(model, tmp_path / "single.boostbp")
    np.testing.assert_array_equal(
        load(tmp_path / "single.boostbp").predict_proba(flowers), model.predict_proba(flowers)
    )


def test_there_is_nothing_hidden_to_show():
    model = BoostBPRegressor((), n_estimators=3).fit(X, Y)
    with pytest.raises(ValueError, match=r"layer=-1 does not exist: this model has no hidden layer"):
        model.transform(X)


@pytest.mark.parametrize("kind", [BoostBPAutoencoder, GBDTNNRegressor])
def test_what_lives_by_its_hidden_layer_asks_for_one(kind):
    with pytest.raises(ValueError, match=r"hidden_layer_sizes=\(\) must hold at least 1 hidden layers"):
        kind(()).fit(X, Y)
