"""Derivatives in columns and targets of any size: what finite differences say, infinite only where float64 ends."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp import BoostBPClassifier, BoostBPRegressor, fit_layer
from tests.support.helpers import BACKENDS

ROWS = 200
Z = np.random.default_rng(0).normal(size=(ROWS, 3))
Y = np.sin(Z[:, 0]) + Z[:, 1]
WAYS = {
    "hidden": {"deep": True, "hidden_layer_sizes": (3,), "epochs": 2},
    "skip": {"deep": True, "hidden_layer_sizes": (3,), "epochs": 2, "backprop": {"skip": True}},
    "layer": {"deep": True, "hidden_layer_sizes": ()},
}


def fitted(way, columns, target, backend="lightgbm"):
    """A model of columns in units of ``columns``, and a target in units of ``target``, and its rows."""
    X, how = Z * columns, {"n_estimators": 5, "random_state": 0, "output": {"basis": "quadratic"}, "backend": backend}
    return BoostBPRegressor(**how | WAYS[way]).fit(X, Y * target), X


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("columns", "target"),
    [([1e-300, 1, 1], 1.0), ([1e-307, 1, 1e5], 1e-90), ([1e-307] * 3, 1e-90), ([1e290] * 3, 1e90)],
)
def test_finite_differences(way, columns, target):
    model, X = fitted(way, columns, target)
    J = model.jacobian(X)[:, 0]
    assert np.isfinite(J).all()
    step = 1e-5 * np.array(columns)
    for j in range(3):
        below, above = X.copy(), X.copy()
        below[:, j] -= step[j]
        above[:, j] += step[j]
        forward = (model.predict(above) - model.predict(X)) / target
        backward = (model.predict(X) - model.predict(below)) / target
        smooth = np.isclose(forward, backward, rtol=1e-3, atol=1e-10)  # no step to another leaf, or the end of one
        assert smooth.mean() > 0.7
        slope = (J[:, j] * step[j]) / target
        np.testing.assert_allclose(slope[smooth], (0.5 * (forward + backward))[smooth], rtol=1e-3, atol=1e-10)


def test_a_slope_that_float64_holds_though_its_parts_are_beyond_it():
    """Of a column of 1e-307 and a target of 1e-90: 1e217, by way of inverse scales beyond 1e308."""
    X = np.linspace(-1.0, 1.0, 40)[:, None] * 3e-308
    how = {"deep": True, "hidden_layer_sizes": (), "n_estimators": 1, "early_stopping": False}
    model = BoostBPRegressor(**how, output={"base": "ridge", "base_lambda": 1e-12, "basis": "linear"}).fit(
        X, 1e-90 * (X[:, 0] / 3e-308)
    )
    np.testing.assert_allclose(model.jacobian(X)[1:-1].ravel(), 1e-90 / 3e-308, rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_beyond_float64_the_derivative_is_infinite_and_never_nan(backend):
    model, X = fitted("layer", [1e-307, 1, 1], 1e40, backend)
    J = model.jacobian(X)[:, 0]
    assert not np.isnan(J).any()
    assert np.isinf(J[:, 0]).any()
    assert np.isfinite(J[:, 1:]).all()


@pytest.mark.parametrize("columns", [[1e-300, 1, 1], [1e-307, 1, 1], [1e-180] * 3, [1e200] * 3, [1e300, 1, 1e-30]])
@pytest.mark.parametrize("way", WAYS)
def test_importances_do_not_depend_on_units(columns, way):
    """Squares of such columns, of which standard deviations were made, are beyond float64."""
    model, _ = fitted(way, columns, 1.0, backend="xgboost" if "xgboost" in BACKENDS else "lightgbm")
    importance = model.importance("jacobian")
    assert importance[:2].min() > 0.02, importance
    np.testing.assert_allclose(importance.sum(), 1.0)


def test_slopes_times_moves_are_finite():
    model, X = fitted("hidden", [1e-307, 1, 1], 1e40)
    values = model.attributions(X[:20], method="gradient_x_input").values
    assert np.isfinite(values).all()
    assert np.abs(values[..., 0]).max() > 1e38


def test_a_classifier_and_a_layer():
    X = Z * [1e-305, 1.0, 1e-310]
    model = BoostBPClassifier((3,), epochs=1, deep=True, random_state=0).fit(X, np.digitize(Y, [-0.5, 0.5]))
    assert np.isfinite(model.jacobian(X)).all()
    layer = fit_layer(X, Y[:, None], {"n_estimators": 3})
    _, trace = layer.forward(X)
    unit = np.array([1e-305, 1.0, 1.0])
    in_units = trace.jacobian(unit)[:, 0]
    np.testing.assert_allclose(in_units, layer.jacobian(X)[:, 0] * unit, rtol=1e-14)
    np.testing.assert_allclose(trace.vjp(np.ones((ROWS, 1)), unit), in_units, rtol=1e-14)
