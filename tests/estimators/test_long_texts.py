"""A text of megabytes, wherever it stands, does not hide the message: its argument comes first, its cure last."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.runtime.messages import MAX_MESSAGE, brief

LONG = "cell " * 600_000
X = pd.DataFrame({"a": np.arange(60.0), "b": np.arange(60.0)[::-1]})
Y = np.arange(60.0)
QUICK = {"n_estimators": 3, "deep": False, "early_stopping": False}


def with_cell(value):
    return X.assign(a=np.array([value, *X["a"][1:]], object))


def csv_of(tmp_path, frame):
    frame.assign(y=Y).to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


CASES = {
    "cell": lambda _: BoostBPRegressor(**QUICK).fit(X, Y).predict(with_cell(LONG)),
    "target": lambda _: BoostBPRegressor(**QUICK).fit(X, [LONG, *Y[1:]]),
    "name": lambda _: BoostBPRegressor(**QUICK).fit(X, Y).predict(X.rename(columns={"a": LONG})),
    "date in a column of a long name": lambda _: BoostBPRegressor(**QUICK).fit(
        X.assign(**{LONG: pd.Timestamp("2020-01-01")}), Y
    ),
    "class": lambda _: BoostBPClassifier(**QUICK).fit(X, [LONG] * 60),
    "weight": lambda _: BoostBPRegressor(**QUICK).fit(X, Y, sample_weight=LONG),
    "parameter": lambda _: BoostBPRegressor(**QUICK, loss=LONG).fit(X, Y),
    "unknown parameter": lambda _: BoostBPRegressor().set_params(**{LONG: 1}),
    "cell of a file": lambda tmp_path: BoostBPRegressor(**QUICK).fit(X, Y).predict(csv_of(tmp_path, with_cell(LONG))),
    "target in a file": lambda tmp_path: BoostBPRegressor(**QUICK).fit(csv_of(tmp_path, X), LONG),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_no_message_is_long(tmp_path, name):
    with pytest.raises((TypeError, ValueError)) as caught:
        CASES[name](tmp_path)
    error = caught.value
    while error is not None:
        assert len(str(error)) < MAX_MESSAGE + 100, name
        error = error.__cause__ or error.__context__


def test_no_warning_is_long():
    column = [f"{LONG}{i}" for i in range(60)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        BoostBPRegressor(**QUICK).fit(X.assign(c=pd.Categorical(column)), Y)
    assert any("distinct values in 60 rows" in str(one.message) for one in caught)
    assert max(len(str(one.message)) for one in caught) < MAX_MESSAGE + 100


def test_what_users_raise_arrives_whole():
    def metric(y, prediction):
        raise ValueError(LONG)

    with pytest.raises(ValueError, match="cell") as caught:
        BoostBPRegressor(**QUICK | {"early_stopping": True}, eval_metric=metric).fit(X, Y, eval_set=(X, Y))
    assert LONG in str(caught.value)


def test_beginning_and_end_stay():
    text = "the argument" + LONG + "the cure."
    assert brief(text).startswith("the argument")
    assert brief(text).endswith("the cure.")
    assert str(len(text)) in brief(text)
    assert brief("short") == "short"
