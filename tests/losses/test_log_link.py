"""Losses with a logarithmic link (Poisson, Tweedie, gamma): a family, whose deviances scikit-learn has by power."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import derivative
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_tweedie_deviance

from boostbp.losses import Gamma, Poisson, Tweedie

POWERS = {Poisson(max_delta_step=0.0): 1.0, Tweedie(1.1): 1.1, Tweedie(): 1.5, Tweedie(1.9): 1.9, Gamma(): 2.0}
every_loss = pytest.mark.parametrize("loss", POWERS, ids=str)
amounts = st.floats(0.01, 100.0)


@every_loss
@given(h=st.floats(-5.0, 5.0), y=amounts)
def test_hessian_is_the_second_derivative(loss, h, y):
    h, y = np.array([[h]]), np.array([[y]])
    numeric = derivative(lambda at: loss.gradient(at, y), h, 1e-5)
    np.testing.assert_allclose(loss.hessian(h, y), np.maximum(numeric, 1e-6), rtol=1e-6, atol=1e-8)


@every_loss
@given(predicted=amounts, y=amounts)
def test_excess_over_the_perfect_prediction_is_half_the_deviance(loss, predicted, y):
    h, y = np.log([[predicted]]), np.array([[y]])
    value, least = loss.value(h, y), loss.value(np.log(y), y)
    expected = mean_tweedie_deviance(y[:, 0], [predicted], power=POWERS[loss])
    np.testing.assert_allclose(2 * (value - least), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", [loss for loss, power in POWERS.items() if power < 2], ids=str)
@given(predicted=amounts)
def test_value_at_a_target_of_0_is_half_the_deviance(loss, predicted):
    expected = mean_tweedie_deviance([0.0], [predicted], power=POWERS[loss])
    np.testing.assert_allclose(2 * loss.value(np.log([[predicted]]), np.zeros((1, 1))), expected, rtol=1e-9)


@every_loss
@given(beyond=st.floats(0.5, 30.0), y=st.floats(1e-10, 1e10))
def test_losses_go_on_as_tangents_where_exponentials_end(loss, beyond, y):
    ends = np.array([[loss.highest], [max(loss.lowest, -700.0)]])
    h, y = ends + np.array([[beyond], [-beyond]]), np.full((2, 1), y)
    numeric = derivative(lambda at: loss.value(at, y), h, 1e-4)
    np.testing.assert_allclose(loss.gradient(h, y), numeric, rtol=1e-5)
    slope = (loss.value(h, y) - loss.value(ends, y)) / (h - ends)[:, 0]
    np.testing.assert_allclose(loss.gradient(ends, y)[:, 0], slope, rtol=1e-6)


@every_loss
def test_gradients_fit_single_precision_for_all_targets_that_are_taken(loss):
    y = np.exp([[loss.highest], [max(loss.lowest, -40.0)]]) * [[1 - 1e-12], [1 + 1e-12]]
    loss.check(y)
    for h in (-1e9, 1e9):
        at = np.full((2, 1), h)
        for array in (loss.gradient(at, y), loss.hessian(at, y)):
            assert np.isfinite(array.astype(np.float32)).all()


@every_loss
@given(prediction=st.floats(-1e3, 1e3))
def test_inverse_link_takes_predictions_of_any_sign(loss, prediction):
    h = loss.inverse_link(np.array([[prediction]]))
    np.testing.assert_allclose(loss.link(h), max(prediction, 1e-10), rtol=1e-12)


@pytest.mark.parametrize(
    ("loss", "wrong", "message"),
    [
        (Gamma(), 0.0, "y=0 in row 1, output 0: loss='gamma' takes numbers above 0.*loss='tweedie', which takes 0"),
        (Gamma(), -3.0, "y=-3 in row 1, output 0: loss='gamma' takes numbers above 0"),
        (Gamma(), 1e-300, "y=1e-300 in row 1, output 0: loss='gamma' predicts 4e-18 to 2e.17. Multiply y"),
        (Tweedie(), -1e-9, "y=-1e-09 in row 1, output 0: loss='tweedie' takes numbers >= 0.*squared_error"),
        (Tweedie(), np.nan, "y=nan in row 1, output 0: loss='tweedie' takes numbers >= 0"),
        (Tweedie(), 1e30, "y=1e.30 in row 1, output 0: loss='tweedie' predicts 4e-18 to 2e.17. Multiply y"),
    ],
)
def test_wrong_targets_are_refused_with_their_place_and_the_cure(loss, wrong, message):
    with pytest.raises(ValueError, match=message):
        loss.check(np.array([[1.0], [wrong]]))


@pytest.mark.parametrize("power", [0.9, 1, 2, 2.5, np.nan, -np.inf])
def test_a_power_that_is_no_compound_distribution_is_refused(power):
    with pytest.raises(ValueError, match=r"power=.* is not allowed: give a number above 1, and below 2"):
        Tweedie(power)
