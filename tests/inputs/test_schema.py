"""The schema holds later tables to the columns of fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from boostbp import BoostBPRegressor
from boostbp.inputs.schema import Schema, learn_schema, read_input
from boostbp.runtime import plain
from tests.inputs.test_columns import COLUMNS

NAN = np.nan


@pytest.mark.parametrize(
    "wanted", [["s", "i"], [3, 0], [True, False, False, True], np.array([0, 3]), ("i", "s"), pd.Index(["s", "i"])]
)
def test_categorical_features_takes_names_positions_and_masks(fit, wanted):
    estimator, table = fit(pd.DataFrame(COLUMNS), wanted)
    assert table.categorical == (0, 3)
    assert estimator.schema_.categories == {0: (1.0, 3.0), 3: ("", "y")}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (None, r"Column 's' could not be read as numbers \(the first holds 'y'\).*categorical_features=None"),
        ([], "Column 's' could not be read as numbers"),
        (["i", "q"], r"names \['q'\], but the columns are \['i', 'f', 'b', 's'\]"),
        ([-1, 4], r"\[-1, 4\], but columns are numbered 0 to 3"),
        ([True], "mask of 1 columns, but X has 4"),
        ([0, "i"], "mixes kinds"),
        ("all", "'all' is not known: use 'from_dtype'"),
        (3, "categorical_features=3 is not known"),
    ],
)
def test_categorical_features_that_fit_no_column_are_refused(fit, wanted, message):
    with pytest.raises(ValueError, match=message):
        fit(pd.DataFrame(COLUMNS), wanted)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("fibs", "(?s)should match those that were passed during fit.*same order"),
        ("ifb", "(?s)should match those that were passed during fit.*now missing:\n- s"),
        ("ifbsz", "(?s)should match those that were passed during fit.*unseen at fit time:\n- z"),
    ],
)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, pa.RecordBatch.from_pydict])
def test_missing_new_and_reordered_columns_are_listed(fit, make, names, message):
    estimator, _ = fit(make(COLUMNS))
    later = make({name: COLUMNS.get(name, [0, 0, 0]) for name in names})
    with pytest.raises(ValueError, match=message):
        read_input(estimator, later, estimator.schema_)


def test_another_number_of_features_is_refused(fit):
    estimator, _ = fit(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="X has 1 features, but Estimator is expecting 2 features as input"):
        read_input(estimator, np.zeros((3, 1)), estimator.schema_)
    with pytest.raises(ValueError, match="Reshape your data"):
        read_input(estimator, np.zeros(2), estimator.schema_)


def test_a_column_that_changed_its_kind_is_refused(fit):
    estimator, _ = fit(pd.DataFrame({"s": ["b", "a"], "i": [1, 2]}))
    with pytest.raises(ValueError, match="Column 's' holds categories such as 1, but held values such as 'a' at fit"):
        read_input(estimator, pd.DataFrame({"s": [1, 2], "i": [1, 2]}), estimator.schema_)
    with pytest.raises(ValueError, match=r"Column 'i' holds 'x', but held numbers \(Int64\) at fit"):
        read_input(estimator, pd.DataFrame({"s": ["a", "b"], "i": ["x", "y"]}), estimator.schema_)
    nothing = read_input(estimator, pd.DataFrame({"s": [NAN, NAN], "i": [None, None]}), estimator.schema_)
    assert np.isnan(nothing.X).all()


def test_columns_without_string_names_have_no_names(fit):
    estimator, _ = fit(pd.DataFrame(np.eye(2)))
    assert estimator.schema_.names is None
    assert not hasattr(estimator, "feature_names_in_")
    np.testing.assert_array_equal(read_input(estimator, np.eye(2), estimator.schema_).X, np.eye(2))


def test_a_refused_fit_keeps_the_schema_of_the_last_one(fit):
    estimator, _ = fit(np.zeros((3, 2)))
    before = estimator.schema_
    with pytest.raises(ValueError, match="infinity"):
        learn_schema(estimator, np.full((3, 2), np.inf))[1]
    assert estimator.schema_ is before


@pytest.mark.parametrize(
    "change",
    [
        {"n_features": 3},
        {"n_features": "2"},
        {"names": {"tuple": ["a"]}},
        {"names": {"tuple": [1, 2]}},
        {"names": ["s", "i"]},
        {"categories": {"dict": [[5, {"tuple": ["a"]}]]}},
        {"categories": {"dict": [[0, {"tuple": [["a"]]}]]}},
        {"categories": {"dict": [[0, {"tuple": ["a", "a"]}]]}},
        {"categories": {"dict": [["x", {"tuple": ["a"]}]]}},
        {"dtypes": None},
    ],
)
def test_a_damaged_schema_is_refused(fit, change):
    fields = plain.encode(fit(pd.DataFrame({"s": ["b", "a"], "i": [1, 2]}))[0].schema_, records=True)
    Schema.decoded(fields)
    with pytest.raises(ValueError, match="is not"):
        Schema.decoded({**fields, **change})
    with pytest.raises(ValueError, match="is not"):
        Schema.decoded({name: value for name, value in fields.items() if name not in change})


@pytest.mark.parametrize("as_frame", [False, True])
def test_whole_numbers_that_float64_does_not_tell_apart_are_warned_of(as_frame):
    def fitted(ids):
        columns = np.column_stack([ids, np.arange(60)])
        table = pd.DataFrame(columns, columns=["id", "x"]) if as_frame else columns
        return BoostBPRegressor((), n_estimators=1).fit(table, np.arange(60.0))

    label = "Column 'id'" if as_frame else "Column 0"
    with pytest.warns(
        UserWarning, match=rf"{label} holds whole numbers beyond 2\*\*53, of which .* become 1 in float64"
    ):
        fitted(2**60 + np.arange(60))
    fitted(2**54 + 4 * np.arange(60))  # which float64 holds
