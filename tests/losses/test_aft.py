"""Accelerated failure times, far from the times, too: likelihoods of SciPy and XGBoost; what survival losses share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import derivative
from numpy.typing import NDArray
from scipy import stats

import boostbp
from boostbp import losses
from boostbp.losses import AFT, Cox
from boostbp.network.stored import loss_from, loss_of

Floats = NDArray[np.float64]
NOISE = {"normal": stats.norm, "logistic": stats.logistic, "extreme": stats.gumbel_l}
CENSORED = ("event", "right", "left", "interval")
every_distribution = pytest.mark.parametrize("distribution", NOISE)


def bounds(n_rows: int, *kinds: str, seed: int = 0) -> Floats:
    """Times from 0.1 to 30 or so, each with the censoring of one of the kinds."""
    rng = np.random.default_rng(seed)
    time, kind = 0.1 + rng.exponential(4.0, n_rows), rng.choice(kinds or CENSORED, n_rows)
    lower = np.where(kind == "left", 0.0, time)
    return np.column_stack([lower, np.select([kind == "right", kind == "interval"], [np.inf, 1.7 * time], time)])


@every_distribution
@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0])
def test_the_members_of_aft_agree(distribution: Any, scale: float) -> None:
    report = boostbp.check_loss(AFT(distribution, scale), bounds(200))
    assert report.gradient_error < 1e-3
    assert report.curved


@every_distribution
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
def test_aft_has_the_likelihood_of_scipy(distribution: Any, scale: float) -> None:
    y = bounds(400)
    h = np.random.default_rng(1).normal(1.0, 1.0, (400, 1))
    noise = NOISE[distribution](h[:, 0], scale)
    lower, upper = np.log(np.maximum(y, 1e-300)).T
    mass = np.where(lower > h[:, 0], noise.sf(lower) - noise.sf(upper), noise.cdf(upper) - noise.cdf(lower))
    with np.errstate(divide="ignore"):  # of events
        log_mass = np.log(mass)
    expected = np.select(
        [y[:, 0] == y[:, 1], y[:, 1] == np.inf, y[:, 0] == 0],
        [noise.logpdf(lower) - lower, noise.logsf(lower), noise.logcdf(upper)],
        log_mass,
    )
    known = np.isfinite(expected)  # SciPy's mass rounds to 0 where ours has a logarithm
    assert known.mean() > 0.95
    np.testing.assert_allclose(-AFT(distribution, scale).value(h, y)[known], expected[known], rtol=1e-9, atol=1e-9)


@every_distribution
def test_aft_has_the_metric_of_xgboost(distribution: Any) -> None:
    xgboost = pytest.importorskip("xgboost")
    y = bounds(300)
    margin = np.random.default_rng(1).normal(1.0, 0.5, 300)
    data = xgboost.DMatrix(np.zeros((300, 1)), base_margin=margin, label_lower_bound=y[:, 0], label_upper_bound=y[:, 1])
    params = {"objective": "survival:aft", "aft_loss_distribution": distribution, "aft_loss_distribution_scale": 1.0}
    booster = xgboost.train(params | {"max_depth": 1, "eta": 0.0, "eval_metric": "aft-nloglik"}, data, 1)
    theirs = float(booster.eval(data).partition("aft-nloglik:")[2])
    assert AFT(distribution, 1.0).value(margin[:, None], y).mean() == pytest.approx(theirs, rel=1e-5)


@every_distribution
@pytest.mark.parametrize("kind", CENSORED)
def test_aft_has_derivatives_in_far_tails(distribution: Any, kind: str) -> None:
    loss, y = AFT(distribution, 0.5), bounds(40, kind)
    h = np.linspace(-7.0, 18.0, 40)[:, None]  # up to 35 standard units away
    gradient, hessian = loss.gradient(h, y), loss.hessian(h, y)
    numeric = derivative(lambda at: loss.value(at, y), h, 1e-5)
    np.testing.assert_allclose(gradient, numeric, rtol=2e-5, atol=1e-7)
    # at least the second derivative, and no step is much longer than the way to the time
    numeric = derivative(lambda at: loss.gradient(at, y), h, 1e-5)
    assert (hessian >= 0.98 * numeric - 1e-7).all()
    assert (
        np.abs(gradient / hessian) <= 1.0 + np.abs(h - np.log(y[:, 1:] if kind == "left" else y[:, :1])) + 0.6
    ).all()


@every_distribution
@pytest.mark.parametrize("h", [-1e250, -1e3, -100.0, 100.0, 1e3, 1e250])
def test_aft_is_finite_wherever_the_raw_output_is(distribution: Any, h: float) -> None:
    y = bounds(60)
    value, gradient, hessian = AFT(distribution, 0.3).derivatives(np.full((60, 1), h), y)
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    assert (hessian > 0).all()


def test_narrow_intervals_have_the_density_of_an_event() -> None:
    time, h = np.linspace(0.5, 9.0, 20), np.full((20, 1), 1.0)
    event = np.column_stack([time, time])
    for width in (1e-12, 1e-9, 1e-7, 1e-5):
        narrow = np.column_stack([time, time * (1 + width)])
        apart = narrow[:, 1] - time
        value = AFT().value(h, narrow) + np.log(apart)
        np.testing.assert_allclose(value, AFT().value(h, event), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(AFT().gradient(h, narrow), AFT().gradient(h, event), rtol=1e-4, atol=1e-4)


@every_distribution
def test_aft_estimates_its_scale(distribution: Any) -> None:
    rng = np.random.default_rng(0)
    time = np.exp(1.0 + 0.7 * NOISE[distribution].rvs(size=4000, random_state=rng))
    limit = rng.exponential(8.0, 4000)
    y = np.column_stack([np.minimum(time, limit), np.where(time <= limit, time, np.inf)])
    zeros, weight = np.zeros((4000, 1)), np.ones(4000)
    found = AFT(distribution).estimated(y, weight, zeros, shifted=True)
    assert found.scale == pytest.approx(0.7, abs=0.04)
    assert found.baseline(y, weight)[0] == pytest.approx(1.0, abs=0.05)
    assert AFT(distribution).estimated(y, weight, zeros + 1.0, shifted=False).scale == pytest.approx(0.7, abs=0.04)


@every_distribution
def test_quantiles_of_aft_are_where_survival_says(distribution: Any) -> None:
    loss, h, shares = AFT(distribution, 0.6), np.array([[0.0], [2.0]]), np.array([0.1, 0.5, 0.9])
    times = loss.quantiles(h, shares)
    for row in (0, 1):
        survival = np.exp(loss.log_survival(h[[row]], times[row]))
        np.testing.assert_allclose(survival[0], 1 - shares, rtol=1e-12)


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (Cox(), [[1.0, 2.0], [3.0, 3.0]], "loss='cox' takes events and right-censored rows.*Use loss='aft'"),
        (Cox(), [[0.0, 2.0], [3.0, 3.0]], "loss='cox' takes events and right-censored rows"),
        (Cox(), [[1.0, np.inf], [3.0, np.inf]], "y has no event"),
        (AFT(), [[1.0, np.inf], [3.0, np.inf]], "y has no event"),
        (AFT(), [[0.0, 0.0], [3.0, 3.0]], "loss='aft' takes times above 0.*use loss='cox'"),
        (AFT(), [[1e-30, 1e-30], [3.0, 3.0]], "Multiply y by a constant"),
    ],
)
def test_targets_are_refused_with_a_cure(loss: losses.Loss, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loss.check(np.array(y))


@pytest.mark.parametrize("params", [{"distribution": "gumbel"}, {"scale": 0.0}, {"scale": np.inf}])
def test_parameters_of_aft_are_checked(params: Any) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(params))}="):
        AFT(**params)


@pytest.mark.parametrize("loss", [AFT("extreme", 0.4), AFT(), Cox()])
def test_losses_come_back_from_plain_values(loss: losses.Loss) -> None:
    assert loss_from(loss_of(loss)) == loss


@pytest.mark.parametrize("loss", ["survival:cox", "survival:aft"])
def test_other_estimators_name_the_one_for_survival(loss: str) -> None:
    for model in (boostbp.BoostBPRegressor(loss=loss), boostbp.BoostBPClassifier(loss=loss)):
        with pytest.raises(ValueError, match=f"loss='{loss}' is for survival: use BoostBPSurvival"):
            model.fit(np.eye(4), [0, 1, 0, 1])
