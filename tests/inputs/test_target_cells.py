"""Targets of dates, or with several values in a cell: errors name the cause, and their cures work."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.preprocessing

from boostbp import BoostBPClassifier, BoostBPRegressor, BoostBPSurvival

X = np.random.default_rng(0).normal(size=(60, 2))
DAYS = pd.date_range("2020", periods=60)
LABELS = [("a",), ("a", "b")] * 30
PAIRS = [(bool(row % 2), row + 1.0) for row in range(60)]
QUICK = {"quality": 1, "n_estimators": 2, "random_state": 0}
DATES = {
    "array": DAYS.to_numpy(),
    "series": pd.Series(DAYS),
    "frame": pd.DataFrame({"day": DAYS}),
    "list": [day.date() for day in DAYS],
    "objects": pd.Series([day.date() for day in DAYS]),
    "polars": pl.Series(DAYS.to_numpy()),
    "durations": pd.Series(DAYS - DAYS[0]),
    "object durations": np.array([dt.timedelta(day) for day in range(60)], object),
}
estimators = pytest.mark.parametrize("kind", [BoostBPRegressor, BoostBPClassifier, BoostBPSurvival])


def refusal(kind, y, **arguments):
    with pytest.raises(ValueError, match=r"holds|has dtype|1d array") as caught:
        kind(**QUICK).fit(X, y, **arguments)
    return str(caught.value)


@estimators
@pytest.mark.parametrize("held", DATES)
def test_dates_are_refused_as_a_target_not_as_a_column(kind, held):
    text = refusal(kind, DATES[held])
    assert re.match(r"y(: Column 'day')? (has dtype|holds dates)", text)
    assert re.search(r"turn it into numbers.*; or,? (into strings, if it has labels|if it has labels, into text)", text)
    assert "categorical_features" not in text


def test_the_cures_of_dates_work():
    BoostBPRegressor(**QUICK).fit(X, (pd.Series(DAYS) - DAYS[0]).dt.days)
    months = pd.Series(DAYS.to_period("M").to_timestamp())
    BoostBPClassifier(**QUICK).fit(X, months.astype(str))


@estimators
@pytest.mark.parametrize("y", [LABELS, [*map(list, LABELS)], [*map(set, LABELS)], pd.Series(LABELS), pl.Series(LABELS)])
def test_labels_in_tuples_are_told_how_to_become_columns(kind, y):
    text = refusal(kind, y)
    assert text.startswith("y holds several values in a cell, such as")
    cure = re.search(r"pass (sklearn\S+\(y\));", text)[1]
    columns = eval(cure, {"sklearn": sklearn, "y": y})
    np.testing.assert_array_equal(columns, [[1, 0], [1, 1]] * 30)
    BoostBPClassifier(**QUICK).fit(X, columns)


def test_pairs_of_labels_are_told_how_to_become_columns():
    assert "columns of 0 and 1, as MultiLabelBinarizer makes them" in refusal(BoostBPClassifier, [("a", "b")] * 60)


def test_events_and_times_in_tuples_are_told_how_to_become_columns():
    text = refusal(BoostBPSurvival, pd.Series(PAIRS))
    cure = re.search(r"pandas\.DataFrame\(.*\)", text)[0]
    columns = eval(cure, {"pandas": pd, "y": pd.Series(PAIRS)})
    model = BoostBPSurvival(**QUICK).fit(X, columns)
    event, time = zip(*PAIRS, strict=True)
    expected = BoostBPSurvival(**QUICK).fit(X, pd.DataFrame({"event": event, "time": time}))
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize("name", ["sample_weight", "offset", "groups"])
def test_arguments_beside_the_target_have_no_advice_for_a_column(name):
    text = refusal(BoostBPRegressor, X[:, 0], **{name: pd.Series(DAYS)})
    assert text.startswith(f"{name} has dtype Datetime")
    assert "categorical_features" not in text
    cells = refusal(BoostBPRegressor, X[:, 0], **{name: pd.Series(PAIRS)})
    assert cells == f"{name} holds several values in a cell, such as (True, 60.0): give one value in each."
