"""Units of targets: mean and standard deviation, or median and quartiles where the loss does not mind rows far off."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters

from boostbp import BoostBPRegressor
from boostbp.losses import AbsoluteError, Huber, Poisson, Quantile, SquaredError
from boostbp.model.model import robust_units, standard_units, units_of

RNG = np.random.default_rng(0)
GAUSSIAN = 3.0 + 2.0 * RNG.standard_normal((20_001, 1))
ONES = np.ones(20_001)


def test_robust_units_of_a_gaussian_are_its_own():
    shift, unit = robust_units(GAUSSIAN, ONES)
    np.testing.assert_allclose([shift[0], unit[0]], [3.0, 2.0], atol=0.05)


def test_rows_far_off_do_not_change_robust_units():
    far = GAUSSIAN.copy()
    far[:20] = 1e9
    np.testing.assert_allclose(robust_units(far, ONES), robust_units(GAUSSIAN, ONES), rtol=0.01)


@pytest.mark.parametrize(("zeros", "between"), [(0.8, 2.563), (0.95, 4.107)])
def test_where_quartiles_agree_wider_quantiles_count(zeros, between):
    y = np.where(np.arange(1000) < 1000 * zeros, 0.0, 10.0)[:, None]
    shift, unit = robust_units(y, np.ones(1000))
    assert shift[0] == 0.0
    assert unit[0] == pytest.approx(10.0 / between)


def test_where_nearly_all_agree_it_is_the_spread():
    y = np.where(np.arange(1000) < 995, 7.0, 8.0)[:, None]
    assert robust_units(y, np.ones(1000))[1] == pytest.approx(y.std())
    np.testing.assert_array_equal(
        robust_units(np.full((9, 1), 7.0), np.ones(9)), standard_units(np.full((9, 1), 7.0), np.ones(9))
    )


def test_a_weight_of_two_is_a_row_twice():
    y, weight = GAUSSIAN[:50], RNG.integers(1, 4, 50)
    twice = np.repeat(y, weight, axis=0)
    np.testing.assert_allclose(robust_units(y, weight.astype(float)), robust_units(twice, np.ones(len(twice))))


@pytest.mark.parametrize("loss", [SquaredError(), AbsoluteError(), Huber(), Quantile(0.9), Poisson()])
def test_the_loss_says_which(loss):
    y = np.exp(RNG.standard_normal((501, 1)))
    expected = robust_units if loss.name in ("absolute_error", "huber", "quantile") else standard_units
    if loss.name == "poisson":
        expected = lambda y, weight: (np.zeros(1), np.ones(1))  # noqa: E731
    np.testing.assert_array_equal(units_of(y, np.ones(501), loss), expected(y, np.ones(501)))


@pytest.mark.parametrize("loss", ["absolute_error", "huber"])
def test_one_bad_row_does_not_spoil_a_robust_loss(loss):
    X = np.random.default_rng(0).normal(size=(400, 3))
    y = X[:, 0] + 0.5 * X[:, 1] * X[:, 2]
    bad = np.where(np.arange(400) == 7, 1e6, y)
    how = {"n_estimators": 10, "epochs": 3, "max_depth": 3, "random_state": 0, "deep": True}
    good, spoilt = (BoostBPRegressor((4,), **parameters(loss=loss, **how)).fit(X, target) for target in (y, bad))
    others = np.arange(400) != 7
    errors = [np.abs(model.predict(X) - y)[others].mean() for model in (good, spoilt)]
    assert errors[1] < 1.3 * errors[0]


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_epochs_are_chosen_by_hubers_loss_in_the_units_of_training(unit):
    """And so do not depend on the units of the target: `delta` is in standard deviations."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] * X[:, 1] + rng.standard_t(2, size=300)
    how = {"n_estimators": 10, "epochs": 8, "random_state": 0, "deep": True, "loss": "huber"}
    one, other = (BoostBPRegressor((4,), **parameters(**how)).fit(X, target) for target in (y, unit * y))
    assert one.history_.best_epoch == other.history_.best_epoch
    np.testing.assert_allclose(one.history_.metrics("held_out"), other.history_.metrics("held_out"), rtol=1e-6)
    np.testing.assert_allclose(unit * one.predict(X), other.predict(X), rtol=1e-6, atol=1e-6 * unit)
