"""Explanations for shap: they add up, are closed forms where there are any, and its plots draw them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from flat_parameters import parameters

from boostbp import BoostBPClassifier, BoostBPRegressor
from tests.model.models import FLOWERS, KINDS, fitted, raw_output

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what shap asks of other packages is not ours
    import shap

ROWS = 12


@pytest.mark.parametrize("kind", KINDS)
def test_base_values_and_values_sum_to_the_raw_output(kind):
    model, X = fitted(kind, "lightgbm")
    X = X[:ROWS]
    explained, raw = model.explain(X), raw_output(model, X)
    shape = (ROWS, X.shape[1]) if raw.shape[1] == 1 else (ROWS, X.shape[1], raw.shape[1])
    assert explained.shape == shape
    total = explained.base_values + explained.values.sum(axis=1)
    np.testing.assert_allclose(total.reshape(raw.shape), raw, rtol=1e-9, atol=1e-9)
    assert explained.feature_names == model.layer_names(0)
    for name in model.output_names():
        of_output = explained[:, :, name] if raw.shape[1] > 1 else explained
        np.testing.assert_array_equal(of_output.data, explained.data)


def test_classes_are_named_by_their_labels():
    labels = np.array(["setosa", "versicolor", "virginica"])[np.repeat([0, 1, 2], 50)]
    small = {"hidden_layer_sizes": (3,), "n_estimators": 3, "epochs": 1, "deep": True, "random_state": 0}
    model = BoostBPClassifier(**parameters(**small)).fit(FLOWERS, labels)
    explained, values = model.explain(FLOWERS[:3]), model.attributions(FLOWERS[:3]).values  # as many rows as classes
    assert explained.output_names == ["setosa", "versicolor", "virginica"]
    for k, name in enumerate(explained.output_names):
        np.testing.assert_array_equal(explained[:, :, name].values, values[:, k])
        assert explained[1, :, name].base_values == model.attributions(FLOWERS[:3]).base_values[1, k]


def test_a_linear_model_has_the_closed_form():
    """Coefficient times distance from the mean, as shap has it for linear models."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
    y = 3.0 * X[:, 0] - X[:, 1] + 20.0 * X[:, 2] + rng.normal(size=200)
    line = {"hidden_layer_sizes": (), "output": {"n_estimators": 0, "base": "ridge", "basis": "linear", "clip": False}}
    model = BoostBPRegressor(**line, deep=True).fit(X, y)
    intercept, *slopes = np.linalg.lstsq(np.column_stack([np.ones(200), X]), model.predict(X), rcond=None)[0]
    assert np.abs(slopes).min() > 0.5
    explained = model.explain(X[:50], baseline=X.mean(axis=0, keepdims=True))
    expected = shap.LinearExplainer((np.array(slopes), intercept), shap.maskers.Independent(X, max_samples=200))(X[:50])
    np.testing.assert_allclose(explained.values, np.array(slopes) * (X[:50] - X.mean(axis=0)), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(explained.values, expected.values, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(explained.base_values, expected.base_values, rtol=1e-9)


def test_sums_of_functions_of_single_features_have_their_shapley_values():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 3)), rng.integers(0, 4, 300)])
    y = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 2.0 * (X[:, 3] == 2) + X[:, 2] ** 2
    stumps = {"hidden_layer_sizes": (), "max_depth": 1, "n_estimators": 40, "random_state": 0}
    model = BoostBPRegressor(**stumps, deep=True, categorical_features=[3]).fit(X, y)
    assert model.score(X, y) > 0.8
    start = X[:1]
    ours = model.explain(X[1:7], baseline=start)
    for column in range(4):  # in a sum, what the cell alone makes of the start
        rows = np.repeat(start, 6, axis=0)
        rows[:, column] = X[1:7, column]
        np.testing.assert_allclose(ours.values[:, column], model.predict(rows) - model.predict(start), atol=1e-9)
    np.testing.assert_allclose(ours.base_values, np.full(6, model.predict(start)), atol=1e-9)
    assert np.abs(ours.values).max(axis=0).min() > 0.0


@pytest.mark.slow  # shap compiles its explainers
@pytest.mark.parametrize("kind", [BoostBPRegressor, BoostBPClassifier])
def test_explainer_of_shap_takes_the_function_and_refuses_the_model(kind):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(200, 3)), rng.integers(0, 4, 200)])
    X[::9, 1] = np.nan
    y = X[:, 0] * X[:, 2] + np.sin(3 * X[:, 0]) + (X[:, 3] == 2)
    model = kind(quality=1, categorical_features=[3], random_state=0)
    if kind is BoostBPRegressor:
        function = model.fit(X, y).predict
    else:
        function = model.fit(X, np.digitize(y, [0.0, 1.0])).predict_proba
    with pytest.raises(TypeError, match="not callable and cannot be analyzed"):
        shap.Explainer(model, X[:20])
    explained, predicted = shap.Explainer(function, X[:20], seed=0)(X[100:103]), function(X[100:103])
    assert np.ptp(predicted, axis=0).min() > 0.05
    np.testing.assert_allclose(explained.base_values + explained.values.sum(axis=1), predicted, atol=1e-9)
    np.testing.assert_allclose(explained.base_values[0], function(X[:20]).mean(axis=0), atol=1e-9)


@pytest.mark.filterwarnings("ignore")  # shap's own, of matplotlib and numpy
def test_plots_of_shap_draw_it_with_names_of_categories():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    model, frame = fitted("regressor", "lightgbm")
    explained = model.explain(frame[:40])
    red = int(np.flatnonzero(frame["colour"][:40] == "red")[0])
    shap.plots.waterfall(explained[red], show=False)
    assert "red = colour" in [label.get_text() for label in plt.gca().get_yticklabels()]
    plt.close("all")
    shap.plots.beeswarm(explained, show=False)
    drawn = [label.get_text() for label in plt.gca().get_yticklabels()]
    assert set(drawn) == set(frame.columns)
    largest = frame.columns[np.abs(explained.values).mean(axis=0).argmax()]
    assert drawn[-1] == largest
    plt.close("all")
    flowers, X = fitted("classifier", "lightgbm")
    for plot in (shap.plots.bar, shap.plots.heatmap, shap.plots.violin):
        plot(flowers.explain(X[:20])[:, :, "1"], show=False)
        assert plt.gcf().axes
        plt.close("all")


def test_data_are_codes_and_display_data_what_was_written():
    model, frame = fitted("regressor", "lightgbm")
    rows = frame[:ROWS].copy()
    rows["colour"] = rows["colour"].astype(object)
    rows.loc[0, "colour"] = "mauve"
    rows.loc[1, "colour"] = None
    explained = model.explain(rows)
    written = pd.DataFrame(explained.display_data, columns=frame.columns)
    assert written.loc[0, "colour"] == "unseen"
    assert np.isnan(written.loc[1, "colour"])
    assert written["colour"][2:].fillna("none").tolist() == rows["colour"][2:].fillna("none").tolist()
    np.testing.assert_array_equal(written["size"].astype(float), frame["size"][:ROWS])
    assert explained.data.dtype == np.float64
    assert fitted("classifier", "lightgbm")[0].explain(FLOWERS[:2]).display_data is None


def test_without_shap_the_error_names_the_extra(without):
    model, frame = fitted("regressor", "lightgbm")
    without("shap")
    with pytest.raises(ImportError, match=r"explain\(\.\.\.\) needs the shap package: pip install 'boostbp\[shap\]'"):
        model.explain(frame)
