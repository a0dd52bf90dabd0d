"""Survival curves of a model: steps, quantiles, and the rows that determine them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from boostbp import BoostBPSurvival
from boostbp.losses import AFT
from tests.estimators.test_time_to_event import LIMIT, TIME_NEW, X_NEW, Y_NEW, X, Y, bounds_of, rows

Floats = NDArray[np.float64]

QUICK: dict[str, Any] = {"quality": 1, "n_estimators": 60, "random_state": 0}

BOTH = pytest.mark.parametrize("loss", ["cox", "aft"])


@BOTH
@pytest.mark.filterwarnings("ignore:No effect on the model")
@pytest.mark.parametrize(("deep", "quality"), [("auto", 2), (True, 3), (False, 2)])
def test_models_rank_and_their_curves_are_survival_functions(loss: str, deep: Any, quality: int) -> None:
    model = BoostBPSurvival((4,), loss=loss, deep=deep, quality=quality, epochs=2, random_state=0)
    model.fit(X, Y)
    assert model.score(X_NEW, Y_NEW) > 0.86
    times = np.linspace(0.0, float(Y[:, 0].max()), 40)
    survival = model.predict_survival_function(X_NEW, times=times)
    assert survival.shape == (2000, 40)
    assert (survival[:, 0] == 1.0).all()
    assert ((survival >= 0) & (survival <= 1)).all()
    assert (np.diff(survival, axis=1) <= 0).all()
    hazard = model.predict_cumulative_hazard_function(X_NEW, times=times)
    np.testing.assert_allclose(np.exp(-hazard), survival, rtol=1e-12)


@BOTH
def test_step_functions_are_those_of_the_array(loss: str) -> None:
    model = BoostBPSurvival(loss=loss, **QUICK).fit(X, Y)
    times = model.unique_times_
    events = np.unique(Y[:, 0][Y[:, 0] == Y[:, 1]])
    assert np.isin(events, times).all()
    for method in (model.predict_survival_function, model.predict_cumulative_hazard_function):
        array, functions = method(X_NEW[:5], return_array=True), method(X_NEW[:5])
        assert array.shape == (5, len(times))
        for row, function in zip(array, functions, strict=True):
            np.testing.assert_array_equal(function(times), row)
    assert functions[0](0.0) == 0.0


@BOTH
def test_quantiles_are_where_the_curves_reach_the_share(loss: str) -> None:
    model = BoostBPSurvival(loss=loss, **QUICK).fit(X, Y)
    shares = [0.1, 0.5, 0.9]
    quantiles = model.predict_quantile(X_NEW[:50], shares)
    assert quantiles.shape == (50, 3)
    np.testing.assert_array_equal(model.predict_quantile(X_NEW[:50]), quantiles[:, 1])
    np.testing.assert_array_equal(model.predict_interval(X_NEW[:50], 0.8), quantiles[:, [0, 2]])
    for row, share in ((row, k) for row in range(50) for k in range(3)):
        if np.isfinite(time := quantiles[row, share]):
            before, after = model.predict_survival_function(X_NEW[[row]], times=[time * (1 - 1e-9), time])[0]
            assert after <= 1 - shares[share] + 1e-9
            assert before >= 1 - shares[share] - 1e-9
        else:
            assert model.predict_survival_function(X_NEW[[row]], return_array=True)[0, -1] > 1 - shares[share]
    with pytest.raises(ValueError, match="q="):
        model.predict_quantile(X_NEW, 1.0)


@pytest.mark.parametrize(("loss", "weibull"), [("cox", True), (AFT("extreme"), True), ("aft", False)])
def test_quantiles_of_a_linear_model_are_recovered(loss: Any, weibull: bool) -> None:
    x, time, limit = rows(4000, weibull=weibull)
    model = BoostBPSurvival(loss=loss, quality=2, deep=False, random_state=0).fit(x, bounds_of(time, limit))
    x_new, time_new, _ = rows(4000, seed=1, weibull=weibull)
    for share in (0.1, 0.25, 0.5, 0.75):
        assert np.mean(time_new <= model.predict_quantile(x_new, share)) == pytest.approx(share, abs=0.035)
    low, high = model.predict_interval(x_new, 0.8).T
    assert np.mean((low <= time_new) & (time_new <= high)) == pytest.approx(0.8, abs=0.035)
    noise = np.log(-np.log(0.5)) if weibull else 0.0
    median = np.exp(x_new[:, 0] + x_new[:, 1] / 2 + 0.5 * noise)
    reached = model.predict_quantile(x_new) < 4.0
    assert np.corrcoef(np.log(model.predict_quantile(x_new)[reached]), np.log(median[reached]))[0, 1] > 0.98


def test_the_scale_is_the_users_or_that_of_the_held_out_rows() -> None:
    fixed = BoostBPSurvival(loss=AFT(scale=0.8), **QUICK).fit(X, Y)
    assert fixed.model_.targets.loss == AFT(scale=0.8)
    learned = BoostBPSurvival(loss="aft", **QUICK).fit(X, Y)
    assert learned.model_.targets.loss.scale == pytest.approx(0.5, abs=0.12)
    assert learned.history_.held_out is None
    alone = BoostBPSurvival(loss="aft", early_stopping=False, **QUICK).fit(X, Y)
    assert alone.model_.targets.loss.scale > 1.0  # that of the constant


@BOTH
def test_calibration_rows_determine_the_curves(loss: str) -> None:
    model = BoostBPSurvival(loss=loss, calibration=0.3, **QUICK).fit(X, Y)
    median = model.predict_quantile(X_NEW)
    assert np.mean(median >= TIME_NEW) == pytest.approx(0.5, abs=0.08)
    model.calibrate(X_NEW, Y_NEW)
    assert np.mean(model.predict_quantile(X_NEW) >= TIME_NEW) == pytest.approx(
        0.5, abs=0.09
    )  # hazards are not proportional
    with pytest.raises(ValueError, match="y has no event"):
        model.calibrate(X, -LIMIT)
