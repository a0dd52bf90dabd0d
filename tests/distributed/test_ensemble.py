"""The default model over several workers: that of one machine with XGBoost, of any number of workers with LightGBM."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from monotone import thresholds_of, violations
from process_workers import fit_together, many_from, same_trees
from sklearn.base import clone

from boostbp import BoostBPClassifier, BoostBPRegressor, BoostBPSurvival

pytest.importorskip("xgboost")

HOW = {"backend": "xgboost", "quality": 2, "epochs": 8, "random_state": 0}


def table(n_rows=300, seed=0):
    """Numbers with missing values, a column of categories, repeated rows, a target and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    city = rng.integers(0, 3, n_rows)
    y = 2 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + np.array([0.0, 1.0, -1.0])[city] + 0.2 * rng.normal(size=n_rows)
    X[rng.random(X.shape) < 0.05] = np.nan
    rows = pd.DataFrame(X, columns=list("abc"))
    rows["city"] = np.array(["Bonn", "Ulm", "Hof"], object)[city]
    rows["y"] = y
    rows[-20:] = rows[:20]  # on other workers
    return rows.drop(columns="y"), rows["y"].to_numpy(), rng.integers(1, 4, n_rows).astype(float)


def assert_same(got, one, X):
    raw = one._raw(X)
    difference = np.abs(got._raw(X) - raw).max()
    assert difference < 1e-9, f"predictions are off by {difference:g} of {raw.std():g}"
    assert same_trees(got, one)
    if one.history_.choice is not None:
        names, weights = (
            [[getattr(each, what) for each in model.history_.choice.candidates] for model in (got, one)]
            for what in ("name", "weight")
        )
        assert names[0] == names[1]
        np.testing.assert_allclose(*weights, atol=1e-9)


@pytest.mark.slow
def test_a_default_regressor_is_that_of_one_machine(pool):
    X, y, weight = table()
    one = BoostBPRegressor((3,), **HOW).fit(X, y, weight)
    assert one.history_.refitted
    assert len(one.network_.layers) == 2, "no network, and no direction, has weight"
    assert_same(fit_together(pool, BoostBPRegressor((3,), **HOW), 2, X, y, weight), one, X)


@pytest.mark.slow
def test_a_default_classifier_is_that_of_one_machine_though_a_worker_has_no_rows_of_weight(pool):
    X, y, weight = table()
    y = np.array(["low", "mid", "high"])[np.digitize(y, [-1.0, 1.5])]
    weight[:100] = 0.0  # of the first of three
    model = BoostBPClassifier((3, 2), **HOW)
    assert_same(fit_together(pool, clone(model), 3, X, y, weight), model.fit(X, y, weight), X)


@pytest.mark.slow
def test_the_model_of_many_rows_is_that_of_one_machine(pool, tune):
    X, y, weight = table()
    model = BoostBPRegressor((3,), **HOW)
    got = fit_together(pool, clone(model), 2, X, y, weight, many=200)
    tune(**many_from(200))
    one = model.fit(X, y, weight)
    assert any("some rows" in each.name for each in one.history_.choice.candidates)
    assert_same(got, one, X)


DEEP = {"deep": True, "epochs": 3, "n_estimators": 8, "random_state": 0}
NOT_DRAWN = {"hidden": {"extra_trees": False}, "output": {"extra_trees": False}}


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_a_default_model_of_lightgbm_is_the_same_for_any_number_of_workers(pool, weighted):
    X, y, weight = table()
    model = BoostBPRegressor((3,), quality=2, epochs=8, random_state=0)
    if weighted:  # and so other hessians in every row
        y, model = np.digitize(y, [-1.0, 1.5]), BoostBPClassifier((4, 3), colsample_bytree=0.5, **DEEP)
        weight[:100] = 0.0  # of the first of three
    two, three = (fit_together(pool, clone(model), size, X, y, weight) for size in (2, 3))
    assert_same(three, two, X)
    assert two.score(X, y, weight) > 0.8


@pytest.mark.slow
def test_a_network_of_lightgbm_is_that_of_one_machine_where_hessians_are_equal_and_no_threshold_is_drawn(pool):
    X, y, _ = table()
    # many categories to send: messages of thousands of bytes are cut in pieces
    many = {"backend_params": {"max_cat_threshold": 2000}}
    model = BoostBPRegressor((3,), early_stopping=False, **DEEP, **NOT_DRAWN, **many)
    assert_same(fit_together(pool, clone(model), 2, X, y), model.fit(X, y), X)


@pytest.mark.slow
def test_lightgbm_is_left_by_itself_after_a_fit(pool):
    X, y, _ = table()
    model = BoostBPRegressor((3,), early_stopping=False, **DEEP)
    fit_together(pool, clone(model), 2, X, y)
    alone = pool.submit(BoostBPRegressor.fit, clone(model), X, y).result()
    np.testing.assert_array_equal(alone.predict(X), model.fit(X, y).predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["xgboost", "lightgbm"])
def test_a_model_that_must_rise_does_so_whatever_the_number_of_workers(pool, backend):
    X, y, weight = table()
    X = X[["a", "b", "c"]].to_numpy()
    model = BoostBPRegressor(quality=2, backend=backend, output={"monotone_constraints": [1, 0, -1]}, random_state=0)
    two = fit_together(pool, clone(model), 2, X, y, weight)
    assert violations(two.predict, X, (1, 0, -1), thresholds_of(two.network_.layers[-1].forest)) == 0
    assert_same(
        fit_together(pool, clone(model), 3, X, y, weight) if backend == "lightgbm" else model.fit(X, y, weight), two, X
    )


@pytest.mark.parametrize("classes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_default_model_of_lightgbm_is_that_of_one_machine_where_rows_are_few(pool, classes):
    X, y, weight = table()
    if classes:
        y, model = np.digitize(y, [-1.0, 1.5]), BoostBPClassifier((4, 3), colsample_bytree=0.5, **DEEP)
        weight[:100] = 0.0  # of the first of three
    else:
        model = BoostBPRegressor((3,), quality=2, epochs=8, random_state=0)
    got = fit_together(pool, clone(model), 3 if classes else 2, X, y, weight, gathered=len(X))
    assert_same(got, model.fit(X, y, weight), X)


@pytest.mark.slow
def test_accelerated_failure_times_are_those_of_one_machine(pool):
    X, y, weight = table()
    times = np.exp(y / 3) * np.where(np.arange(len(y)) % 4, 1.0, -1.0)  # a quarter is censored
    how = HOW | {"quality": 1, "loss": "aft"}
    how.pop("epochs")
    one = BoostBPSurvival(**how).fit(X, times, weight)
    got = fit_together(pool, BoostBPSurvival(**how), 2, X, times, weight)
    np.testing.assert_allclose(got._raw(X), one._raw(X), atol=1e-4)
    assert got.model_.targets.loss.scale == pytest.approx(one.model_.targets.loss.scale, rel=1e-3)
    np.testing.assert_array_equal(got.unique_times_, one.unique_times_)
    with pytest.raises(ValueError, match="depends on all rows at once, which workers divide: train in one process"):
        fit_together(pool, BoostBPSurvival(**HOW), 2, X, times, weight)
