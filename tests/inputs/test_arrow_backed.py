"""Columns of pandas that Arrow holds are read as columns of Arrow, as features and in all other places."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import BaseEstimator

from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.inputs.schema import learn_schema, read_input
from boostbp.inputs.targets import read_groups, read_offset, read_target, read_weight

N = 60
RNG = np.random.default_rng(0)
COLUMNS = {
    "dictionary": pa.array(RNG.choice(["a", "b"], N)).dictionary_encode(),
    "dictionary with nulls": pa.array([None if k % 7 == 0 else "ab"[k % 2] for k in range(N)]).dictionary_encode(),
    "dictionary of numbers": pa.array(RNG.integers(0, 3, N)).dictionary_encode(),
    "string": pa.array(RNG.choice(["a", "b"], N)),
    "large string": pa.array(RNG.choice(["a", "b"], N).tolist(), pa.large_string()),
    "string view": pa.array(RNG.choice(["a", "b"], N).tolist(), pa.string_view()),
    "bool": pa.array(np.arange(N) % 3 == 0),
    "bool with nulls": pa.array([None if k % 7 == 0 else k % 2 == 0 for k in range(N)]),
    "null": pa.nulls(N),
    "decimal": pa.array([Decimal(k) / 4 for k in range(N)]),
    "whole": pa.array(range(N), pa.uint8()),
    "whole with nulls": pa.array([None if k % 7 == 0 else k for k in range(N)]),
    "half": pa.array(np.arange(N).astype(np.float16)),
    "timestamp": pa.array([dt.datetime(2020, 1, 1) + dt.timedelta(days=k) for k in range(N)]),
    "date": pa.array([dt.date(2020, 1, 1) + dt.timedelta(days=k) for k in range(N)]),
    "duration": pa.array([dt.timedelta(days=k) for k in range(N)]),
    "binary": pa.array([b"a"] * N),
    "list": pa.array([[1]] * N),
}


def of_pandas(values):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([values[:20], values[20:]])))


def told(read, *args, **options):
    """What a reader returns, or what it raises."""
    try:
        found = read(*args, **options)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return found.dtype, found.tolist() if found.dtype.kind == "O" else found.tobytes()


def features_of(X, rows):
    estimator = BaseEstimator()
    estimator.schema_, table = learn_schema(estimator, X)
    fitted = table.X
    later = read_input(estimator, rows, estimator.schema_).X
    return np.concatenate([fitted, later])


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.filterwarnings("ignore:y holds bools", "ignore:The number of unique classes")
def test_they_are_those_of_arrow_everywhere(name):
    values, x = COLUMNS[name], np.arange(N) / 7
    frame, table = pd.DataFrame({"x": x, "c": of_pandas(values)}), pa.table({"x": x, "c": values})
    assert told(features_of, frame, frame[3:9]) == told(features_of, table, table.slice(3, 6))
    series, column = frame["c"], table["c"]
    for read, args in ((read_target, (N,)), (read_weight, (N,)), (read_groups, (N,)), (read_offset, (N, 1))):
        assert told(read, series, *args) == told(read, column, *args)
    assert told(read_target, series, N, labels=True) == told(read_target, column, N, labels=True)


def test_a_file_read_as_arrow_gives_the_model_of_one_read_as_pandas(tmp_path):
    kind = pa.DictionaryArray.from_arrays([None if k % 7 == 0 else k % 2 for k in range(N)], ["a", "b"])
    table = pa.table({"x": np.arange(N) / 7, "kind": kind, "y": COLUMNS["dictionary"]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    plain = pd.read_parquet(tmp_path / "rows.parquet")
    arrow = pd.read_parquet(tmp_path / "rows.parquet", dtype_backend="pyarrow")
    assert isinstance(arrow["kind"].dtype, pd.ArrowDtype)
    expected = BoostBPClassifier(quality=1, random_state=0).fit(plain[["x", "kind"]], plain["y"])
    found = BoostBPClassifier(quality=1, random_state=0).fit(arrow[["x", "kind"]], arrow["y"])
    assert found.schema_.categories == expected.schema_.categories
    assert found.classes_.tolist() == expected.classes_.tolist() == ["a", "b"]
    probability = expected.predict_proba(plain[["x", "kind"]])
    np.testing.assert_array_equal(found.predict_proba(arrow[["x", "kind"]]), probability)
    np.testing.assert_array_equal(found.predict_proba(plain[["x", "kind"]]), probability)
    np.testing.assert_array_equal(expected.predict_proba(arrow[["x", "kind"]][:5]), probability[:5])


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_the_cure_for_dates_works(kind):
    days = pd.Series(pd.date_range("2020-01-01", periods=N).to_numpy())
    when = of_pandas(pa.array(days)) if kind == "arrow" else days
    X, y = pd.DataFrame({"when": when, "x": np.arange(N) / 7}), np.arange(N)
    cure = r"Column 'when' has dtype Datetime, .*to_datetime.*; or into strings named in categorical_features"
    with pytest.raises(ValueError, match=cure):
        BoostBPRegressor(quality=1).fit(X, y)
    numbers = X.assign(when=(days - days.min()).dt.days)
    assert BoostBPRegressor(quality=1).fit(numbers, y).schema_.categories == {}
    text = X.assign(when=days.dt.month.map("2020-{:02d}-01".format))
    named = BoostBPRegressor(quality=1, categorical_features=["when"]).fit(text, y)
    assert named.schema_.categories == {0: ("2020-01-01", "2020-02-01")}
