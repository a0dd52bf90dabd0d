"""Losses of residuals: Huber's, and several quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbp.losses import AbsoluteError, Huber, Quantile, Quantiles
from tests.losses.test_base import floats, raw_and_target


@pytest.mark.parametrize("loss", [AbsoluteError(), Huber(), Quantile(), Quantiles()], ids=lambda loss: loss.name)
@given(data=st.data())
def test_losses_without_curvature_have_hessian_one(loss, data):
    h, y = data.draw(raw_and_target(loss))
    np.testing.assert_array_equal(loss.hessian(h, y), np.ones_like(h))


@pytest.mark.parametrize("loss", [AbsoluteError(), Quantile(alpha=0.3)], ids=lambda loss: loss.name)
def test_gradient_is_zero_on_a_kink(loss):
    y = np.array([[1.5, -2.0]])
    np.testing.assert_array_equal(loss.gradient(y.copy(), y), np.zeros((1, 2)))


@pytest.mark.parametrize("delta", [0.1, 1.0, 3.0])
def test_huber_is_squared_near_and_linear_far(delta):
    residual = delta * np.array([[0.0], [0.5], [-1.0], [2.0], [-10.0]])
    expected = delta**2 * np.array([0.0, 0.125, 0.5, 1.5, 9.5])
    np.testing.assert_allclose(Huber(delta=delta).value(residual, np.zeros((5, 1))), expected, rtol=1e-12)


@given(data=st.data())
def test_several_quantiles_are_the_sum_of_single_ones(data):
    loss = Quantiles(alpha=(0.1, 0.5, 0.8))
    h, y = data.draw(raw_and_target(loss))
    alone = [Quantile(level) for level in loss.alpha]
    parts = list(zip(alone, h.T[:, :, None], y.T[:, :, None], strict=True))
    np.testing.assert_allclose(loss.value(h, y), sum(one.value(a, b) for one, a, b in parts), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(loss.gradient(h, y), np.hstack([one.gradient(a, b) for one, a, b in parts]))
    weight = np.arange(1.0, len(y) + 1)
    baselines = [one.baseline(b, weight)[0] for one, _, b in parts]
    np.testing.assert_array_equal(loss.baseline(y, weight), baselines)


@given(data=st.data())
def test_quantiles_that_are_sorted_have_no_larger_pinball_loss(data):
    loss = Quantiles(alpha=(0.1, 0.5, 0.8))
    h, _ = data.draw(raw_and_target(loss))
    y = np.repeat(data.draw(floats(-6, 6, len(h), 1)), 3, axis=1)
    assert (loss.value(loss.link(h), y) <= loss.value(h, y) + 1e-12).all()


def test_median_of_an_even_number_is_the_middle():
    y = np.array([[1.0], [2.0], [10.0], [4.0]])
    np.testing.assert_array_equal(AbsoluteError().baseline(y, np.ones(4)), [np.median(y)])


def test_huber_baseline_is_the_middle_where_the_minimum_is_flat():
    y = np.array([[0.0], [0.0], [10.0], [10.0]])
    np.testing.assert_allclose(Huber(delta=1.0).baseline(y, np.ones(4)), [5.0])
    np.testing.assert_allclose(Huber(delta=1.0).baseline(np.sqrt(y), np.full(4, 1 / 3)), [np.sqrt(10) / 2])


def test_huber_baseline_of_far_targets_is_within_delta_of_the_median():
    y = np.array([[1e20], [1e20], [-1e20], [0.0], [0.0]])
    np.testing.assert_allclose(Huber().baseline(y, np.ones(5)), [0.5], atol=1e-12)
