"""Proportional hazards: the weighted partial likelihood, and that of lifelines."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import boostbp
from boostbp.losses import Cox
from tests.losses.test_aft import bounds

Floats = NDArray[np.float64]


def test_the_members_of_cox_agree_with_ties() -> None:
    assert boostbp.check_loss(Cox(), np.ceil(bounds(60, "event", "right"))).gradient_error < 1e-3


def partial_likelihood(h: Floats, y: Floats, weight: Floats) -> float:
    """The negative log partial likelihood by its definition, over all pairs of rows."""
    event = y[:, 0] == y[:, 1]
    at_risk = (y[:, 0] >= y[:, :1]) @ (weight * np.exp(h))
    return float(np.sum((weight * (np.log(at_risk) - h))[event]))


@pytest.mark.parametrize("seed", range(3))
def test_cox_is_the_weighted_partial_likelihood(seed: int) -> None:
    y, rng = np.ceil(2 * bounds(200, "event", "right", seed=seed)), np.random.default_rng(seed)
    h, weight = rng.normal(size=(200, 1)), rng.integers(1, 4, 200).astype(float)
    value, gradient, hessian = Cox().prepare(y, weight).derivatives(h, y)
    assert weight @ value == pytest.approx(partial_likelihood(h[:, 0], y, weight), rel=1e-12)
    direction = rng.normal(size=200)
    above, below = (partial_likelihood(h[:, 0] + step * direction, y, weight) for step in (1e-5, -1e-5))
    assert (above - below) / 2e-5 == pytest.approx(float((weight * gradient[:, 0]) @ direction), rel=1e-6)
    # Steps of all rows at once are not too long: the diagonal is not below the matrix of second derivatives.
    moved = [weight * Cox().prepare(y, weight).gradient(h + 1e-5 * unit[:, None], y)[:, 0] for unit in np.eye(200)]
    second = (np.array(moved) - weight * gradient[:, 0]) / 1e-5
    least = np.linalg.eigvalsh(np.diag(weight * hessian[:, 0]) - (second + second.T) / 2)[0]
    assert least > -1e-3


def test_weights_of_cox_are_repeated_rows() -> None:
    y, rng = np.ceil(bounds(80, "event", "right")), np.random.default_rng(0)
    h, weight = rng.normal(size=(80, 1)), rng.integers(1, 4, 80)
    rows = np.repeat(np.arange(80), weight)
    repeated = Cox().prepare(y[rows], np.ones(len(rows))).value(h[rows], y[rows]).sum()
    assert weight @ Cox().prepare(y, weight.astype(float)).value(h, y) == pytest.approx(repeated, rel=1e-12)


def test_cox_is_the_likelihood_of_lifelines() -> None:
    lifelines = pytest.importorskip("lifelines")
    from lifelines.datasets import load_rossi

    rows = load_rossi()
    model = lifelines.CoxPHFitter().fit(rows.assign(week=rows["week"] + 0.001 * np.arange(len(rows))), "week", "arrest")
    time = rows["week"].to_numpy() + 0.001 * np.arange(len(rows))
    y = np.column_stack([time, np.where(rows["arrest"] == 1, time, np.inf)])
    h = model.predict_log_partial_hazard(rows).to_numpy()[:, None]
    assert -Cox().value(h, y).sum() == pytest.approx(model.log_likelihood_, rel=1e-10)


def test_cox_has_the_likelihood_that_lifelines_has() -> None:
    # lifelines 0.30: CoxPHFitter().fit(frame, "T", "E").log_likelihood_ and .params_ of these rows
    time = np.array([5.0, 8.0, 12.0, 3.0, 9.0, 11.0, 2.0, 7.0])
    event = np.array([1, 0, 1, 1, 1, 0, 1, 0])
    x = np.array([0.2, -1.0, 0.5, 1.5, -0.3, 0.0, 2.0, -0.7])
    y = np.column_stack([time, np.where(event == 1, time, np.inf)])
    assert -Cox().value(BETA * x[:, None], y).sum() == pytest.approx(LOG_LIKELIHOOD, rel=1e-10)


BETA, LOG_LIKELIHOOD = 1.9935154801090893, -4.124925611449987


@pytest.mark.parametrize("distance", [50.0, 1e3, 1e6])
def test_cox_is_finite_for_hazards_that_differ_by_any_factor(distance: float) -> None:
    y = bounds(100, "event", "right")
    h = np.where(np.arange(100) % 2, distance, -distance)[:, None].astype(float)
    value, gradient, hessian = Cox().prepare(y, np.ones(100)).derivatives(h, y)
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
    assert (hessian > 0).all()
    assert gradient.sum() == pytest.approx(0.0, abs=1e-8)
    assert Cox().prepare(y, np.ones(100)).value(h + 77.0, y) == pytest.approx(value, rel=1e-9)


def test_one_evaluation_of_cox_is_linear_in_the_rows() -> None:
    y = bounds(200_000, "event", "right")
    prepared, h = Cox().prepare(y, np.ones(len(y))), np.zeros((len(y), 1))
    expected = np.log(len(y) - np.argsort(np.argsort(y[:, 0])))[y[:, 0] == y[:, 1]]
    np.testing.assert_allclose(prepared.value(h, y)[y[:, 0] == y[:, 1]], expected, rtol=1e-9)
