"""Several quantiles in one model: levels, order, units, metrics and what is refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from helpers import BACKENDS, few_rounds
from scipy.stats import norm
from sklearn.metrics import mean_pinball_loss

from boostbp import BoostBPRegressor
from boostbp.losses import Quantile, Quantiles

LEVELS = [0.1, 0.5, 0.9]
KINDS = {
    "network": {"deep": True, "epochs": 3},
    "average": {"epochs": 3},
    "single layers": {"deep": False},
    "single layer": {"hidden_layer_sizes": ()},
}


def noisy(rows, seed=0):
    """Rows with a target whose standard deviation grows with the first feature, and its true quantiles."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 3))
    mean, deviation = 50 + 10 * X[:, 1], 5 * (1.5 + X[:, 0])
    y = mean + deviation * rng.standard_normal(rows)
    return X, y, mean[:, None] + deviation[:, None] * norm.ppf(LEVELS)


def regressor(**changes):
    return BoostBPRegressor(**({"loss": "quantile", "alpha": LEVELS, "random_state": 0} | changes))


@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        pytest.param(kind, backend, marks=() if backend == "lightgbm" else pytest.mark.slow)
        for kind, backend in product(KINDS, BACKENDS)
        if backend == "lightgbm" or kind == "network"
    ],
)
def test_a_model_has_a_column_for_each_level_near_the_true_quantile(kind, backend):
    X, y, _ = noisy(1500)
    rows, target, true = noisy(3000, seed=1)
    with few_rounds():
        model = regressor(backend=backend, **KINDS[kind]).fit(X, y)
    predicted = model.predict(rows)
    assert predicted.shape == (3000, 3)
    below = (target[:, None] <= predicted).mean(axis=0)
    np.testing.assert_allclose(below, LEVELS, atol=0.1)
    constant = np.quantile(y, LEVELS)
    for k, level in enumerate(LEVELS):
        least, found, worst = (
            mean_pinball_loss(target, of, alpha=level)
            for of in (true[:, k], predicted[:, k], np.full(len(target), constant[k]))
        )
        assert found - least < 0.5 * (worst - least), f"level {level}: {found}, true {least}, constant {worst}"


def test_quantiles_do_not_cross_where_raw_outputs_do():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    model = regressor(alpha=[0.45, 0.5, 0.55], **KINDS["network"]).fit(X, X[:, 0] + 0.1 * rng.normal(size=300))
    raw = model._raw(X) * model.model_.targets.scale + model.model_.targets.shift
    assert (np.diff(raw, axis=1) < 0).any()
    np.testing.assert_array_equal(model.predict(X), np.sort(raw, axis=1))


def test_predictions_follow_the_units_of_the_target():
    X, y, _ = noisy(400)
    model, scaled = regressor(**KINDS["network"]), regressor(**KINDS["network"])
    expected = 1000.0 * model.fit(X, y).predict(X) - 7.0
    np.testing.assert_allclose(scaled.fit(X, 1000.0 * y - 7.0).predict(X), expected, rtol=1e-6)


def test_the_metric_and_the_score_are_means_over_the_levels():
    X, y, _ = noisy(600)
    held = X[400:], y[400:]
    model = regressor(**KINDS["network"]).fit(X[:400], y[:400], eval_set=[held])
    predicted = model.predict(held[0])
    by_level = [mean_pinball_loss(y[400:], predicted[:, k], alpha=level) for k, level in enumerate(LEVELS)]
    assert model.history_.scores["valid_0"] == pytest.approx(np.mean(by_level), rel=1e-9)
    constant = [mean_pinball_loss(y[400:], np.full(200, np.quantile(y[400:], level)), alpha=level) for level in LEVELS]
    assert model.score(*held) == pytest.approx(np.mean(1 - np.divide(by_level, constant)), rel=1e-6)


def test_the_metric_of_the_name_is_that_of_the_levels():
    X, y, _ = noisy(300)
    scores = [
        regressor(eval_metric=metric, **KINDS["single layer"]).fit(X, y).history_.scores
        for metric in (None, "quantile", "quantiles")
    ]
    assert scores[0] == scores[1] == scores[2]


@pytest.mark.parametrize("metric", ["rmse", "mape"])
def test_metrics_of_numbers_are_those_of_all_levels(metric):
    X, y, _ = noisy(300)
    model = regressor(eval_metric=metric, **KINDS["network"]).fit(X, y)
    assert all(np.isfinite(epoch.metrics["held_out"]) for epoch in model.history_.epochs)


def test_a_function_as_metric_gets_the_target_and_a_column_for_each_level():
    shapes = set()

    def width(y_true, y_pred):
        shapes.add((y_true.ndim, y_pred.shape[1]))
        return float((y_pred[:, -1] - y_pred[:, 0]).mean())

    X, y, _ = noisy(300)
    regressor(eval_metric=("width", width, False), **KINDS["network"]).fit(X, y)
    assert shapes == {(1, 3)}


@pytest.mark.slow
def test_a_number_is_the_level_of_one_column():
    X, y, _ = noisy(300)
    how = KINDS["network"] | {"random_state": 0}
    expected = BoostBPRegressor(loss=Quantile(0.8), **how).fit(X, y).predict(X)
    np.testing.assert_array_equal(regressor(alpha=0.8, **how).fit(X, y).predict(X), expected)
    assert regressor(alpha=[0.8], **how).fit(X, y).predict(X).shape == (300, 1)
    np.testing.assert_array_equal(
        regressor(loss=Quantiles((0.2, 0.8)), alpha=None, **how).fit(X, y).predict(X),
        regressor(alpha=np.array([0.2, 0.8]), **how).fit(X, y).predict(X),
    )


def test_weights_count_as_rows():
    X, y, _ = noisy(300)
    how = {"hidden_layer_sizes": (), "early_stopping": False, "min_samples_leaf": 1, "n_estimators": 10}
    twice = np.arange(300) % 3 == 0
    weighted = regressor(**how).fit(X, y, sample_weight=1.0 + twice)
    repeated = regressor(**how).fit(np.vstack([X, X[twice]]), np.append(y, y[twice]))
    np.testing.assert_allclose(weighted.predict(X).mean(axis=0), repeated.predict(X).mean(axis=0), rtol=0.02)


def test_outputs_are_named_by_their_levels():
    X, y, _ = noisy(200)
    model = regressor(**KINDS["network"]).fit(X, y)
    assert model.output_names() == ["q0.1", "q0.5", "q0.9"]
    found = model.attributions(X[:5])
    targets = model.model_.targets
    np.testing.assert_allclose(
        found.base_values + found.values.sum(axis=-1),
        model._raw(X[:5]) * targets.scale + targets.shift,
        rtol=1e-6,
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": [0.9, 0.1]}, r"alpha=\(0.9, 0.1\) must be ascending levels"),
        ({"alpha": []}, r"alpha=\(\) must be"),
        ({"alpha": 1.5}, r"alpha=1.5 is not allowed: give a number above 0, and below 1"),
        ({"alpha": "0.5"}, r"alpha='0.5' is not a level"),
        ({"alpha": [0.1, "0.9"]}, r"alpha=\[0.1, '0.9'\] is not a level"),
        ({"alpha": True}, r"alpha=True is not a level"),
        ({"loss": "huber"}, r"alpha=\[0.1, .*\] holds levels of loss='quantile', and loss='huber' has none"),
        ({"loss": Quantile(0.9)}, r"alpha=\[0.1, .*\] holds levels of loss='quantile', and loss=Quantile"),
    ],
    ids=str,
)
def test_what_is_no_level_is_refused_by_name(changes, message):
    X, y, _ = noisy(60)
    with pytest.raises(ValueError, match=message):
        regressor(**changes).fit(X, y)


def test_several_targets_are_refused():
    X, y, _ = noisy(60)
    with pytest.raises(ValueError, match=r"takes one target, y has 2: train a model for each column of y"):
        regressor().fit(X, np.column_stack([y, y]))


def test_native_leaves_are_refused():
    X, y, _ = noisy(60)
    with pytest.raises(ValueError, match=r"leaves='native' is not supported"):
        regressor(output={"leaves": "native", "basis": "linear"}, **KINDS["network"]).fit(X, y)
