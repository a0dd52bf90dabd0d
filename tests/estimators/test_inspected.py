"""Derivatives and attributions are those of the public prediction that their documentation names."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp import (
    BoostBPAutoencoder,
    BoostBPClassifier,
    BoostBPRanker,
    BoostBPRegressor,
    BoostBPSurvival,
    losses,
)
from boostbp.model.attributions import _by_place

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 3))
SIGNAL = X[:, 0] + 0.5 * X[:, 1] * X[:, 2]
AMOUNTS = np.exp(SIGNAL + 0.3 * RNG.normal(size=300))
NOISY = SIGNAL + 0.1 * RNG.normal(size=300)
ROWS = RNG.uniform(-0.8, 0.8, (100, 3))  # not training values, at which leaves are clipped
NETWORK = {"hidden_layer_sizes": (4,), "deep": True, "epochs": 2, "random_state": 0}
LAYER = {"hidden_layer_sizes": (), "n_estimators": 20, "random_state": 0, "output": {"basis": "quadratic"}}
CENSORED = np.column_stack([AMOUNTS, np.where(np.arange(300) % 3, AMOUNTS, np.inf)])


def log_of(model, rows):
    return np.log(model.predict(rows))


def decision(model, rows):
    return model.decision_function(rows)


def regressor(y=NOISY, **how):
    return lambda size: BoostBPRegressor(**size, **how).fit(X, y)


def quantiles(alpha, **how):
    return regressor(loss="quantile", alpha=alpha, **how)


def predicted(model, rows):
    return model.predict(rows)


OFFSET = 0.5 * X[:, 2]
# what is fitted, and the public function of its rows that the derivative is that of
MODELS = {
    "squared error": (regressor(), predicted),
    "absolute error": (regressor(loss="absolute_error"), predicted),
    "huber": (regressor(loss="huber"), predicted),
    "quantile": (regressor(loss="quantile", alpha=0.3), predicted),
    "close quantiles": (quantiles([0.45, 0.5, 0.55]), predicted),
    "many quantiles": (quantiles(np.linspace(0.3, 0.7, 9)), predicted),
    "loss of quantiles": (regressor(loss=losses.Quantiles((0.49, 0.5, 0.51))), predicted),
    "poisson": (regressor(np.floor(AMOUNTS * 3), loss="poisson"), log_of),
    "gamma": (regressor(AMOUNTS, loss="gamma"), log_of),
    "tweedie": (regressor(np.where(AMOUNTS > 0.7, AMOUNTS, 0.0), loss="tweedie"), log_of),
    "several outputs": (regressor(np.column_stack([NOISY, AMOUNTS])), predicted),
    "offset": (
        lambda size: BoostBPRegressor(**size, loss="quantile", alpha=[0.45, 0.55]).fit(X, NOISY, offset=OFFSET),
        lambda model, rows: model.predict(rows, offset=0),
    ),
    "two classes": (lambda size: BoostBPClassifier(**size).fit(X, NOISY > 0), decision),
    "three classes": (lambda size: BoostBPClassifier(**size).fit(X, np.digitize(NOISY, [-0.3, 0.3])), decision),
    "several labels": (
        lambda size: BoostBPClassifier(**size).fit(X, np.column_stack([NOISY > 0, NOISY > 0.4, X[:, 1] > 0])),
        decision,
    ),
    "ranking": (
        lambda size: BoostBPRanker(**size).fit(X, np.digitize(NOISY, [-0.3, 0.3]), qid=np.arange(300) // 10),
        predicted,
    ),
    "hazards": (lambda size: BoostBPSurvival(**size).fit(X, CENSORED), predicted),
    "times": (lambda size: BoostBPSurvival(**size, loss="aft").fit(X, CENSORED), log_of),
}
SIZES = {"network": NETWORK, "layer": LAYER}
CASES = [(name, size) for name in MODELS for size in SIZES]
_fitted = {}


def fitted(name, size):
    """Fit once; return the model and its public function of rows, (rows, outputs)."""
    fit, function = MODELS[name]
    if (name, size) not in _fitted:
        _fitted[name, size] = fit(SIZES[size])
    model = _fitted[name, size]
    return model, lambda rows: function(model, rows).reshape(len(rows), -1)


def compared(model, of, rows, step=1e-6):
    """Return derivatives, finite differences and where they can be compared: no jump, kink or crossing in a step."""
    slopes, here = model.jacobian(rows), of(rows)
    ahead, behind = np.empty_like(slopes), np.empty_like(slopes)
    for j in range(rows.shape[1]):
        move = np.eye(rows.shape[1])[j] * step
        ahead[:, :, j], behind[:, :, j] = (of(rows + move) - here) / step, (here - of(rows - move)) / step
    return slopes, (ahead + behind) / 2, np.isclose(ahead, behind, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("name", "size"), CASES)
def test_the_jacobian_is_that_of_the_public_function(name, size):
    model, of = fitted(name, size)
    slopes, differences, smooth = compared(model, of, ROWS)
    assert slopes.shape == (100, of(ROWS).shape[1], 3)
    assert smooth.mean() > 0.95
    np.testing.assert_allclose(slopes[smooth], differences[smooth], rtol=1e-3, atol=1e-4)
    assert np.abs(differences[smooth]).max() > 0.01


def test_the_jacobian_of_a_reconstruction():
    data = np.column_stack([X, X[:, 0] + X[:, 1]])
    model = BoostBPAutoencoder((2,), epochs=2, random_state=0).fit(data)
    rows = np.column_stack([ROWS, ROWS[:, 0] + ROWS[:, 1]])
    slopes, differences, smooth = compared(model, model.predict, rows)
    assert smooth.mean() > 0.95
    np.testing.assert_allclose(slopes[smooth], differences[smooth], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("name", "size"), CASES)
@pytest.mark.parametrize("steps", [1, 7])
def test_attributions_sum_to_the_public_function(name, size, steps):
    model, of = fitted(name, size)
    result = model.attributions(ROWS, baseline=ROWS[:1], steps=steps)
    np.testing.assert_allclose(result.base_values, np.repeat(of(ROWS[:1]), 100, axis=0), rtol=1e-8)
    np.testing.assert_allclose(result.outputs, of(ROWS), rtol=1e-8)
    np.testing.assert_allclose(result.base_values + result.values.sum(axis=2), of(ROWS), rtol=1e-8, atol=1e-8)


def test_these_quantiles_cross_before_they_are_sorted():
    for size in SIZES:
        model, _ = fitted("close quantiles", size)
        assert (np.diff(model._raw(ROWS), axis=1) < 0).any(axis=1).sum() > 10


def test_slopes_times_moves_follow_the_order_of_the_prediction():
    model, _ = fitted("close quantiles", "network")
    result = model.attributions(ROWS, "gradient_x_input", baseline=ROWS[:1])
    np.testing.assert_allclose(result.values, model.jacobian(ROWS) * (ROWS - ROWS[0])[:, None], rtol=1e-9)


def test_places_get_the_changes_of_the_outputs_that_hold_them():
    """Small steps of the straight line, in each of which no output crosses another, give the same shares."""
    rng = np.random.default_rng(1)
    a, shares = rng.normal(size=(40, 4)), rng.normal(size=(40, 4, 3))
    b = a + shares.sum(axis=2)
    expected = np.zeros_like(shares)
    for time in (np.arange(4000) + 0.5) / 4000:
        expected += np.take_along_axis(shares, (a + time * (b - a)).argsort(axis=1)[..., None], axis=1) / 4000
    values = _by_place(a, b, shares)
    np.testing.assert_allclose(values, expected, atol=5e-3)
    np.testing.assert_allclose(values.sum(axis=2), np.sort(b, axis=1) - np.sort(a, axis=1), atol=1e-12)
