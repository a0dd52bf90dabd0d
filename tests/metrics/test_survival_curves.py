"""Breslow's estimate against other libraries, and step functions."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from boostbp import metrics
from tests.metrics.test_survival import CLOSE, MADE, SHIPPED, made, shipped


@pytest.mark.parametrize("name", [*MADE, *SHIPPED])
def test_breslow_is_that_of_scikit_survival(name):
    coxph = pytest.importorskip("sksurv.linear_model.coxph")
    risk, time, event = made(name) if name in MADE else shipped(name)
    risk = risk / np.abs(risk).max()
    theirs = coxph.BreslowEstimator().fit(risk, event, time).cum_baseline_hazard_
    hazard = metrics.breslow(risk, time, event)
    points = np.append(theirs.x, np.linspace(0.0, time.max(), 50))
    assert hazard.domain == theirs.domain
    np.testing.assert_allclose(hazard(points), theirs(points), **CLOSE)


def test_breslow_is_the_baseline_of_scikit_survivals_cox_model():
    cox = pytest.importorskip("sksurv.linear_model")
    X, y = import_module("sksurv.datasets").load_whas500()
    model = cox.CoxPHSurvivalAnalysis(ties="breslow").fit(X.astype(float), y)
    hazard = metrics.breslow(model.predict(X.astype(float)), y["lenfol"], y["fstat"])
    np.testing.assert_allclose(hazard.y, model.cum_baseline_hazard_.y, rtol=1e-9)
    np.testing.assert_allclose(np.exp(-hazard.y), model.baseline_survival_.y, **CLOSE)


@pytest.mark.filterwarnings("ignore:Starting with pandas")
def test_breslow_is_the_baseline_of_lifelines_cox_model_with_weights():
    lifelines = pytest.importorskip("lifelines")
    rows = import_module("lifelines.datasets").load_rossi()
    rows["weight"] = np.random.default_rng(0).integers(1, 4, size=len(rows))
    model = lifelines.CoxPHFitter().fit(rows, "week", "arrest", weights_col="weight", robust=True)
    risk = model.predict_log_partial_hazard(rows)
    hazard = metrics.breslow(risk, rows["week"], rows["arrest"], sample_weight=rows["weight"])
    theirs = model.baseline_cumulative_hazard_.iloc[:, 0]
    np.testing.assert_allclose(hazard(hazard.x), theirs.loc[hazard.x], **CLOSE)


def test_step_functions_have_values_between_steps():
    step = metrics.StepFunction(np.array([1.0, 3.0]), np.array([2.0, 2.4]))
    np.testing.assert_allclose(step([0.0, 1.0, 2.9, 3.0]), [2.0, 2.0, 2.0, 2.4])
    assert step(1) == 2.0
    assert step.domain == (0.0, 3.0)
    for x in (-0.1, 3.1, np.nan, [1.0, np.inf]):
        with pytest.raises(ValueError, match="from 0 to 3"):
            step(x)
