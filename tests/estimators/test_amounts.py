"""Regressions of amounts, by the gamma and the Tweedie loss, against scikit-learn's deviances and against LightGBM."""

from __future__ import annotations

from itertools import product

import lightgbm
import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BACKENDS
from sklearn.metrics import mean_tweedie_deviance

from boostbp import BoostBPRegressor, load, save
from boostbp.losses import Gamma, Tweedie

POWERS = {"gamma": 2.0, "tweedie": 1.5}
MODELS = {
    "network": {"hidden_layer_sizes": (4,), "deep": True, "epochs": 6},
    "single": {"hidden_layer_sizes": (), "deep": True},
    "ensemble": {"hidden_layer_sizes": (4,), "n_estimators": 12, "epochs": 2},
}
FAST = {"n_estimators": 30, "random_state": 0}
every_loss = pytest.mark.parametrize("loss", POWERS)


def drawn(loss, n_rows, seed):
    """Features, amounts, and their true means: gamma variables, or sums of as many as a Poisson variable says."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_rows, 5))
    mean = np.exp(1.0 + np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * (X[:, 3] > 0))
    if loss == "gamma":
        return X, rng.gamma(2.0, mean / 2.0), mean
    power, dispersion = POWERS[loss], 1.0
    number = rng.poisson(mean ** (2.0 - power) / (dispersion * (2.0 - power)))
    shape, size = (2.0 - power) / (power - 1.0), dispersion * (power - 1.0) * mean ** (power - 1.0)
    return X, np.where(number > 0, rng.gamma(shape * np.maximum(number, 1), size), 0.0), mean


def deviance(loss, y, prediction):
    return mean_tweedie_deviance(y, prediction, power=POWERS[loss])


@every_loss
@pytest.mark.parametrize(
    ("backend", "kind"),
    [
        pytest.param(backend, kind, marks=() if backend == "lightgbm" or kind == "single" else pytest.mark.slow)
        for backend, kind in product(BACKENDS, MODELS)
        if backend == "lightgbm" or kind != "ensemble"
    ],
)
def test_models_follow_the_means_of_amounts(loss, backend, kind):
    X, y, mean = drawn(loss, 800, seed=0)
    model = BoostBPRegressor(**parameters(loss=loss, backend=backend, **(FAST | MODELS[kind]))).fit(X[:600], y[:600])
    prediction = model.predict(X[600:])
    assert (prediction > 0).all()
    constant, best = deviance(loss, y[600:], np.full(200, y[:600].mean())), deviance(loss, y[600:], mean[600:])
    assert deviance(loss, y[600:], prediction) < best + 0.5 * (constant - best)


@every_loss
def test_constant_leaves_are_those_of_lightgbms_own_objective(loss):
    X, y, _ = drawn(loss, 1500, seed=1)
    trees = {"n_estimators": 50, "learning_rate": 0.1, "max_depth": 4, "reg_lambda": 0.0, "random_state": 0}
    theirs = lightgbm.LGBMRegressor(
        objective=loss, num_leaves=16, min_child_samples=20, min_child_weight=0.0, n_jobs=1, verbose=-1, **trees
    )
    plain = {"basis": "constant", "base": "zero", "extra_trees": False, "deep": True, "early_stopping": False}
    ours = BoostBPRegressor((), **parameters(loss=loss, **trees, **plain))
    np.testing.assert_allclose(ours.fit(X, y).predict(X), theirs.fit(X, y).predict(X), rtol=1e-6)


@every_loss
def test_one_layer_is_no_worse_than_lightgbm_on_new_rows(loss):
    X, y, _ = drawn(loss, 1500, seed=1)
    fresh, actual, mean = drawn(loss, 2000, seed=2)
    held_out = {"eval_X": X[1300:], "eval_y": y[1300:]}
    trees = {"n_estimators": 200, "learning_rate": 0.05, "max_depth": 4, "random_state": 0}
    theirs = lightgbm.LGBMRegressor(
        objective=loss, num_leaves=16, n_jobs=1, verbose=-1, early_stopping_round=30, **trees
    )
    ours = BoostBPRegressor((), **parameters(loss=loss, deep=True, **trees))
    best = deviance(loss, actual, mean)
    excess = [
        deviance(loss, actual, model.fit(X[:1300], y[:1300], **held_out).predict(fresh)) - best
        for model in (ours, theirs)
    ]
    assert excess[0] < 1.1 * excess[1], f"ours {excess[0]}, LightGBM's {excess[1]} above the true means"


@every_loss
def test_evaluation_sets_are_scored_by_the_loss_itself(loss):
    X, y, _ = drawn(loss, 300, seed=3)
    model = BoostBPRegressor((4,), **parameters(loss=loss, deep=True, epochs=2, **FAST))
    model.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])])
    assert model.history_.metric == loss
    actual = y[200:, None]
    fitted, perfect = (
        model.model_.targets.loss.value(np.log(p), actual).mean()
        for p in (model.predict(X[200:])[:, None], actual + 1e-9)
    )
    assert model.history_.scores["valid_0"] == pytest.approx(fitted, rel=1e-9)
    assert 2 * (fitted - perfect) == pytest.approx(deviance(loss, y[200:] + 1e-9, model.predict(X[200:])), rel=1e-3)


@pytest.mark.parametrize("power", [1.2, 1.8])
def test_a_metric_of_the_name_of_the_loss_has_its_power(power):
    X, y, _ = drawn("tweedie", 300, seed=4)
    scores = {}
    for name in ("tweedie", f"tweedie-nloglik@{power}"):
        model = BoostBPRegressor(
            (), **parameters(loss=Tweedie(power), eval_metric=name, n_estimators=5, random_state=0)
        )
        scores[name] = model.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])]).history_.scores["valid_0"]
    assert scores["tweedie"] == pytest.approx(scores[f"tweedie-nloglik@{power}"], rel=1e-12)


@every_loss
def test_a_weight_of_two_is_a_row_twice(loss):
    X, y, _ = drawn(loss, 200, seed=5)
    X = X.round(1)  # a bin for each value, whatever its rows
    times = np.random.default_rng(6).integers(1, 3, 200)
    how = {
        "loss": loss,
        "deep": True,
        "early_stopping": False,
        "min_samples_leaf": 1,
        "max_depth": 2,
        "extra_trees": False,
    }
    weighted, repeated = (BoostBPRegressor((), **parameters(n_estimators=5, random_state=0, **how)) for _ in range(2))
    weighted.fit(X, y, sample_weight=times)
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-5)


@every_loss
def test_two_outputs_are_fitted_as_each_alone(loss):
    X, y, _ = drawn(loss, 200, seed=7)
    both = np.stack([y, y[::-1]], axis=1)
    how = {"loss": loss, "deep": True, "early_stopping": False, "extra_trees": False, "random_state": 0, "base": "zero"}
    together = BoostBPRegressor((), **parameters(n_estimators=5, **how)).fit(X, both).predict(X)
    for k in range(2):
        alone = BoostBPRegressor((), **parameters(n_estimators=5, **how)).fit(X, both[:, k]).predict(X)
        np.testing.assert_allclose(together[:, k], alone, rtol=1e-6)


@pytest.mark.parametrize(("loss", "wrong"), [("gamma", 0.0), ("tweedie", -1.0), ("poisson", -1.0)])
def test_wrong_amounts_are_refused_in_training_and_evaluation_sets(loss, wrong):
    X, y, _ = drawn("gamma", 100, seed=8)
    spoilt = np.where(np.arange(100) == 7, wrong, y)
    model = BoostBPRegressor((), **parameters(loss=loss, n_estimators=2))
    with pytest.raises(ValueError, match=f"^y={wrong:g} in row 7, output 0: loss='{loss}' takes"):
        model.fit(X, spoilt)
    with pytest.raises(ValueError, match=rf"^eval_set\[1\]: y={wrong:g} in row 7, output 0: loss='{loss}' takes"):
        model.fit(X, y, eval_set=[(X, y), (X, spoilt)])


@pytest.mark.parametrize("loss", [Gamma(), Tweedie(power=1.7)], ids=str)
def test_models_come_back_from_files_with_their_loss(loss, tmp_path):
    X, y, _ = drawn("gamma", 200, seed=9)
    model = BoostBPRegressor((3,), **parameters(loss=loss, deep=True, epochs=2, **FAST)).fit(X, y)
    save(model, tmp_path / "model")
    found = load(tmp_path / "model")
    assert found.loss == loss
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    np.testing.assert_array_equal(found.jacobian(X), model.jacobian(X))
