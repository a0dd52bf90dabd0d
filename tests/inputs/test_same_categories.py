"""A category is the same however it is written: as a number, a float for want of a cell, text, or a truth value."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbp.inputs.schema import read_input

NAN = np.nan
STORES = {
    "int": pd.Series([3, 1, 2, 1]),
    "float": pd.Series([3.0, 1.0, 2.0, 1.0]),
    "Int64": pd.Series([3, 1, 2, 1], dtype="Int64"),
    "int8": pd.Series([3, 1, 2, 1], dtype="int8"),
    "object": pd.Series([3, 1, 2, 1], dtype=object),
    "text": pd.Series(["3", "1", "2", "1"]),
    "text of floats": pd.Series(["3.0", "1.0", "2.0", "1.0"]),
    "category": pd.Series([3, 1, 2, 1]).astype("category"),
    "category of floats": pd.Series([3.0, 1.0, 2.0, 1.0]).astype("category"),
    "category of text": pd.Series(["3", "1", "2", "1"]).astype("category"),
    "arrow": pd.Series([3, 1, 2, 1], dtype="int64[pyarrow]"),
}


def with_a_hole(series):
    """What pandas makes of the column when its last cell is empty."""
    if series.dtype.kind in "iu":
        series = series.astype(float) if isinstance(series.dtype, np.dtype) else series
    holed = series.copy()
    holed.iloc[3] = None
    return holed


@pytest.mark.parametrize("now", STORES)
@pytest.mark.parametrize("then", STORES)
def test_numbers_and_text_that_spells_them_are_one_category(fit, then, now):
    estimator, table = fit(pd.DataFrame({"store": STORES[then]}), ["store"])
    np.testing.assert_array_equal(table.X[:, 0], [2, 0, 1, 0])
    for series, expected in ((STORES[now], [2, 0, 1, 0]), (with_a_hole(STORES[now]), [2, 0, 1, NAN])):
        frames = [series.to_frame("store")]
        if len({type(value) for value in series}) == 1 and series.dtype != object:
            frames += [pl.from_pandas(frames[0]), pa.Table.from_pandas(frames[0], preserve_index=False)]
        for frame in frames:
            np.testing.assert_array_equal(read_input(estimator, frame, estimator.schema_).X[:, 0], expected)


TRUTHS = {
    "bool": pd.Series([True, False, True]),
    "boolean": pd.Series([True, False, True], dtype="boolean"),
    "object": pd.Series([True, False, True], dtype=object),
    "text": pd.Series(["True", "False", "True"]),
    "text of polars": pd.Series(["true", "false", "true"]),
    "number": pd.Series([1.0, 0.0, 1.0]),
}


@pytest.mark.parametrize("now", TRUTHS)
@pytest.mark.parametrize("then", TRUTHS)
def test_truth_values_are_one_category_in_bools_text_and_numbers(fit, then, now):
    estimator, _ = fit(pd.DataFrame({"open": TRUTHS[then]}), ["open"])
    later = TRUTHS[now].astype(object)
    later[1] = None
    for series, expected in ((TRUTHS[now], [1, 0, 1]), (later, [1, NAN, 1])):
        np.testing.assert_array_equal(
            read_input(estimator, series.to_frame("open"), estimator.schema_).X[:, 0], expected
        )


def read(fit, then, now):
    estimator, _ = fit(pd.DataFrame({"c": pd.Series(then, dtype=object)}), ["c"])
    return read_input(estimator, pd.DataFrame({"c": pd.Series(now, dtype=object)}), estimator.schema_).X[:, 0].tolist()


def test_whole_numbers_beyond_float64_are_told_apart(fit):
    big = 2**53
    assert read(fit, [big, big + 1], [str(big), str(big + 1), big + 1, float(big)]) == [0, 1, 1, 0]
    assert read(fit, [str(big), str(big + 1)], [big, big + 1, f"{big + 1}.0"]) == [0, 1, 1]
    assert read(fit, [big + 1], [float(big)]) == [1]  # another one, perhaps


def test_text_that_differs_as_text_stays_different(fit):
    assert read(fit, ["01", "1", "2"], ["1", "01", "001", "2.0"]) == [1, 0, 3, 2]
    assert read(fit, ["1", "1.0", "2"], ["1", "1.0", 1, "1.00", 2]) == [0, 1, 3, 3, 2]
    assert read(fit, [1, "1", 2], [1, "1", "1.0", "2"]) == [0, 2, 3, 1]
    assert read(fit, ["1e3", "x"], [1000, "1000", "1,000"]) == [0, 0, 2]
    assert read(fit, ["0.5", "x"], [0.5, ".5", "0,5"]) == [0, 2, 2]
    assert read(fit, ["9" * 5000, "0" * 5000 + "1", "2"], ["9" * 4999, 2, 1]) == [3, 1, 0]


def test_zeros_that_a_reader_took_away_are_put_back(fit):
    assert read(fit, ["01234", "10001"], [1234, 10001.0, None]) == pytest.approx([0, 1, NAN], nan_ok=True)
    assert read(fit, ["01234", "1234"], [1234]) == [1]
    assert read(fit, ["00", "01", "0"], [0, 1]) == [0, 2]
    assert read(fit, ["01", "001"], [1]) == [2]


@given(st.lists(st.one_of(st.integers(-(2**62), 2**62), st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
@pytest.mark.filterwarnings("ignore:Column 'c' is read as categories")
def test_what_a_file_makes_of_numbers_are_the_same_categories(fit, values):
    distinct = sorted(set(values))
    for later in (list(map(str, values)), values):
        assert read(fit, values, later) == [distinct.index(value) for value in values]
    if len({str(value) for value in distinct}) == len(distinct):
        codes = read(fit, list(map(str, distinct)), distinct)
        assert sorted(codes) == list(range(len(distinct)))


@pytest.mark.parametrize(
    ("then", "now", "message"),
    [
        (["a", "b"], ["A"] * 20, r"Column 'c': almost no value was seen at fit, such as 'A'; fit had 'a', 'b'"),
        ([1, 2], [7] * 10 + [None], r"almost no value was seen at fit, such as 7; fit had 1, 2"),
        (["1", "2"], [3.5] * 20, r"such as 3.5; fit had '1', '2'"),
        ([None, None], ["a"] * 20, r"such as 'a'; it was empty at fit"),
        (["a", "b"], ["a"] + ["A"] * 19, r"such as 'A'"),
    ],
)
def test_a_column_of_which_hardly_a_value_was_seen_is_warned_of(fit, then, now, message):
    with pytest.warns(UserWarning, match=message):
        read(fit, then, now)


@pytest.mark.parametrize("now", [["A"] * 9, [None] * 50, ["A"] * 10 + ["a"] * 2, []])
def test_few_rows_and_few_new_values_are_not_warned_of(fit, now):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(fit, ["a", "b"], [*now, "a"])
