"""The fit of a contender: all rows in the end, rounds and settings by validation rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge

from boostbp.comparison import searches
from boostbp.comparison.contenders import SINGLE_LAYER, Contender, Split, train_contender
from boostbp.comparison.searches import fit_contender, with_validation

X, Y = load_diabetes(return_X_y=True)
ROWS = Split(X, Y)
FIXED = {"task": "regression", "n_jobs": 1, "seed": 0}


def rmse(model, X, y, groups):
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def test_the_rounds_of_validation_rows_are_trained_on_all_rows():
    model = fit_contender(SINGLE_LAYER[0], ROWS, error=rmse, **FIXED)
    early = train_contender(SINGLE_LAYER[0], with_validation(ROWS, "regression", 0), **FIXED)
    again = train_contender(SINGLE_LAYER[0], ROWS, length=early.length, **FIXED).model
    assert model.n_estimators == early.length < 2000
    np.testing.assert_array_equal(model.predict(X), again.predict(X))


def test_a_search_keeps_what_validates_best():
    tuned = fit_contender(SINGLE_LAYER[0], ROWS, error=rmse, tune=4, **FIXED)
    split = with_validation(ROWS, "regression", 0)
    drawn = searches._settings(SINGLE_LAYER[0], 0)
    errors = {}
    for _ in range(4):
        params = next(drawn)
        contender = Contender("", "lightgbm", params)
        errors[params.get("num_leaves")] = rmse(train_contender(contender, split, **FIXED).model, split[2], split[3], 0)
    best = min(errors, key=errors.get)
    assert tuned.num_leaves == (best or 31)


def test_a_search_goes_on_for_the_seconds_of_the_others(monkeypatch):
    trained, now = [], iter(range(1000))
    monkeypatch.setattr(searches.time, "perf_counter", lambda: float(next(now)))
    monkeypatch.setattr(
        searches, "train_contender", lambda contender, rows, **_: trained.append(contender) or Fake(len(trained))
    )
    fit_contender(SINGLE_LAYER[0], ROWS, error=lambda *_: 0.0, tune=3, seconds=8.0, **FIXED)
    # By this clock, which is asked from the third one on, a setting takes a second. The last fit is on all rows.
    assert len(trained) == 2 + 8 + 1


class Fake:
    def __init__(self, length):
        self.model, self.length = None, length


def test_an_estimator_of_the_user_is_trained_once_as_it_is():
    model = fit_contender(Contender("r", "estimator", {"estimator": Ridge(alpha=2)}), ROWS, error=rmse, tune=5, **FIXED)
    np.testing.assert_array_equal(model.predict(X), Ridge(alpha=2).fit(X, Y).predict(X))


@pytest.mark.parametrize("task", ["classification", "survival"])
def test_validation_rows_keep_the_shares(task):
    y = np.repeat([0, 1], [80, 20]) if task == "classification" else np.repeat([-1.0, 2.0], [80, 20])
    split = with_validation(Split(np.zeros((100, 1)), y), task, 0)
    assert len(split.y_valid) == 20
    assert np.mean(split.y_valid == y[-1]) == 0.2


def test_validation_rows_are_whole_groups():
    groups = np.arange(100) // 5
    split = with_validation(Split(np.zeros((100, 1)), np.zeros(100), groups=groups), "ranking", 0)
    assert not set(split.groups) & set(split.groups_valid)
    assert len(split.groups) == len(split.y) == len(split.X)
