"""Means of the target for the levels of a category, as hidden units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from problems import problem_of
from thread_workers import in_group

from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.ensemble.constants import ENCODED_MIN_LEVELS, ENCODING_FOLDS
from boostbp.ensemble.hidden_units import LevelSums, encoded_columns, encodings_layer
from boostbp.trees.sparse import Table

LEVELS = 150


def rows_of(seed=0, n_rows=1200, effect=1.0):
    """Numbers beside a category of many levels, of which each shifts the target."""
    rng = np.random.default_rng(seed)
    shift = effect * np.random.default_rng(7).normal(size=LEVELS)
    code = rng.integers(0, LEVELS, n_rows)
    code[:LEVELS] = np.arange(LEVELS)
    X = np.column_stack([rng.normal(size=(n_rows, 2)), code])
    return X, np.sin(2 * X[:, 0]) + shift[code] + 0.3 * rng.normal(size=n_rows)


def frame_of(X):
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "level": pd.Categorical([f"level {code:g}" for code in X[:, 2]])})


def problem_with_levels(X, y):
    problem = replace(problem_of((X, y[:, None]), (X[:50], y[:50, None])), baseline=np.zeros(1))
    return replace(problem, rows=replace(problem.rows, table=Table(np.ascontiguousarray(X), (2,))))


def test_means_are_those_of_a_plain_computation():
    rng = np.random.default_rng(0)
    code, fold, target = rng.integers(0, 9, 400), rng.integers(0, ENCODING_FOLDS, 400), rng.normal(size=400)
    weight = rng.uniform(0.5, 2.0, 400)
    sums = LevelSums.of(code, fold, target, weight, 9)
    weight = weight / weight.mean()
    for f in range(ENCODING_FOLDS):
        other = fold != f
        prior = np.average(target[other], weights=weight[other])
        for level in range(9):
            there = other & (code == level)
            expected = (weight[there] @ target[there] + 3.0 * prior) / (weight[there].sum() + 3.0)
            assert sums.means(3.0, of_other_folds=True)[f, level] == pytest.approx(expected)


def test_the_prior_counts_for_the_rows_by_which_levels_are_told_apart():
    """Levels whose means have the variance 4 and whose rows have 1: a mean of few rows is worth a quarter of a row."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 500, 20_000)
    fold = np.zeros(20_000, np.int64)
    target = 2.0 * rng.normal(size=500)[code] + rng.normal(size=20_000)
    strength = LevelSums.of(code, fold, target, np.ones(20_000), 500).prior_strength()
    assert strength == pytest.approx(0.25, rel=0.15)
    noise = LevelSums.of(code, fold, rng.normal(size=20_000), np.ones(20_000), 500)
    assert noise.prior_strength() > 100
    assert np.ptp(noise.means(np.inf)) == 0.0


def test_units_of_rows_are_their_levels_means_and_unknown_levels_have_the_mean_of_all():
    X, y = rows_of()
    X[5::40, 2] = np.nan
    problem = problem_with_levels(X, y)
    layer, units = encodings_layer(problem)
    of_rows = layer.predict(X)
    level = pd.Series(y - problem.baseline[0]).groupby(np.nan_to_num(X[:, 2], nan=-1.0))
    count, mean = level.transform("count").to_numpy(), level.transform("mean").to_numpy()
    overall = np.mean(y - problem.baseline[0])
    shrunken = (of_rows[:, 0] - overall) / (mean - overall)
    strength = count / shrunken - count  # the same for all levels
    np.testing.assert_allclose(strength, np.median(strength), rtol=0.02)
    unknown = layer.predict(np.array([[0.0, 0.0, LEVELS], [0.0, 0.0, 10.0 * LEVELS], [0.0, 0.0, -1.0]]))
    np.testing.assert_allclose(unknown[:, 0], unknown[0, 0])
    assert abs(unknown[0, 0] - overall) < 0.1
    assert units.shape == of_rows.shape
    assert 0.5 < np.corrcoef(units[:, 0], of_rows[:, 0])[0, 1] < 1.0
    missing = layer.predict(np.array([[0.0, 0.0, np.nan]]))
    np.testing.assert_allclose(of_rows[5::40], np.broadcast_to(missing, of_rows[5::40].shape))
    without = encodings_layer(problem_with_levels(*rows_of()))[0]
    np.testing.assert_array_equal(
        without.predict(np.array([[0.0, 0.0, np.nan]])), without.predict(np.array([[0.0, 0.0, LEVELS]]))
    )


def test_a_row_does_not_see_its_own_target():
    rng = np.random.default_rng(0)
    code, fold, noise = rng.integers(0, LEVELS, 1200), np.arange(1200) % ENCODING_FOLDS, rng.normal(size=1200)
    sums = LevelSums.of(code, fold, noise, np.ones(1200), LEVELS)
    assert np.corrcoef(sums.means(1.0, of_other_folds=True)[fold, code], noise)[0, 1] < 0.0
    assert np.corrcoef(sums.means(1.0)[0, code], noise)[0, 1] > 0.3


def test_levels_are_counted():
    X, y = rows_of()
    assert encoded_columns(problem_with_levels(X, y)) == [(2, LEVELS)]
    X[:, 2] = np.minimum(X[:, 2], ENCODED_MIN_LEVELS - 2)
    assert encoded_columns(problem_with_levels(X, y)) == []


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_model_learns_many_levels(backend):
    X, y = rows_of()
    X_test, y_test = rows_of(1)
    how = {"backend": backend, "random_state": 0}
    model = BoostBPRegressor(quality=1, **how).fit(frame_of(X), y)
    [part] = model.history_.choice.parts
    assert part.name == "means of levels"
    error, without = (
        np.std(one.predict(frame_of(X_test)) - y_test)
        for one in (model, BoostBPRegressor(quality=1, deep=False, **how).fit(frame_of(X), y))
    )
    assert error < (0.9 if backend == "lightgbm" else 1.02) * without  # XGBoost splits so many levels well


def test_classes_have_means_of_their_own():
    X, y = rows_of()
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    model = BoostBPClassifier(quality=1, random_state=0).fit(frame_of(X), labels)
    assert model.network_.layers[0].forest.n_outputs == 3
    X_test, y_test = rows_of(1)
    truth = np.digitize(y_test, np.quantile(y, [0.3, 0.6]))
    assert model.score(frame_of(X_test), truth) > 0.75


def test_all_workers_have_the_same_means():
    X, y = rows_of(n_rows=900)
    alone, units = encodings_layer(problem_with_levels(X, y))

    def of_worker(X, y):
        layer, units = encodings_layer(problem_with_levels(X, y))
        return layer.predict(X_all), units

    X_all = X
    parts = in_group(3, of_worker, X, y)
    for values, _ in parts:
        np.testing.assert_allclose(values, alone.predict(X), rtol=1e-6)
    np.testing.assert_allclose(np.concatenate([part for _, part in parts]), units, rtol=1e-9)
