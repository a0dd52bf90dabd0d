"""Dates as numbers, in UTC, of any text and of the columns of frames."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cures import pasted
from hypothesis import given
from hypothesis import strategies as st

from boostbp.inputs.dates import (
    date_numbers,
    day_order,
    is_order_open,
    moments_of,
    part_names,
    source_columns,
    with_date_numbers,
)


@given(st.lists(st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1)), min_size=1, max_size=5))
def test_the_numbers_are_those_of_python(moments):
    found = date_numbers(np.array(moments, "M8[us]"))
    for place, moment in enumerate(moments):
        seconds = (moment - dt.datetime(1970, 1, 1)) / dt.timedelta(seconds=1)
        expected = (moment.year, moment.month, moment.day, moment.weekday(), seconds)
        np.testing.assert_allclose([numbers[place] for numbers in found], expected, rtol=1e-15)


def test_missing_dates_are_missing_numbers():
    for numbers in date_numbers(np.array(["NaT", "2024-02-29"], "M8[D]")):
        assert np.isnan(numbers).tolist() == [True, False]


@pytest.mark.parametrize(
    ("texts", "day_first"),
    [
        (["2024-02-03", "2024-02-03T00:00:00Z", "2024/02/03", "3 Feb 2024", "Feb 3, 2024"], None),
        (["2024-02-03", "2024-02-03 02:00+02:00", "03.02.2024", "03/02/2024", "3-2-2024"], True),
        (["Sat 03/02/2024", "saturday, 3-02/2024", "03 02 2024", "03 /02/2024", "3. 2. 2024", "Sat 2024-02-03"], True),
        (["Sat 02/03/2024", "02 03 2024", "2024 02 03", "20240203T00", "03FEB2024", "Sat Feb  3 00:00:00 2024"], False),
        (["2024-02-03", "2024-02-02T19:00:00-0500", "02/03/2024 12:00 AM"], False),
    ],
)
def test_texts_of_one_day_are_one_moment(texts, day_first):
    assert moments_of(texts, day_first).tolist() == [dt.datetime(2024, 2, 3)] * len(texts)


def test_times_are_of_the_first_day_and_missing_ones_stay():
    found = moments_of(["10:30", "00:00:01", None, dt.time(1), dt.date(1970, 1, 2)])
    seconds = date_numbers(found)[-1]
    np.testing.assert_array_equal(seconds, [37800, 1, np.nan, 3600, 86400])


@pytest.mark.parametrize(
    ("texts", "order", "is_open"),
    [
        (["13/01/2024", "01/02/2024"], True, True),
        (["01/13/2024"], False, True),
        (["01/02/2024"], None, True),
        (["01.02.2024"], None, False),
        (["2024-01-13", "13 Jan 2024", "10:30"], None, False),
        (["Sat 13/01/2024", "Fri 02/02/2024", "Fri 01/03/2024"], True, True),
        (["03 01 2024", "03 /01/2024", "03-01/2024", "Sat, 03/01/2024"], None, True),
    ],
)
def test_the_order_of_day_and_month_is_told_by_numbers_above_twelve(texts, order, is_open):
    assert day_order(texts) is order
    assert is_order_open(texts) is is_open


def test_orders_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="'13/01/2024' has the day first, and '01/13/2024' the month"):
        day_order(["13/01/2024", "01/13/2024"])
    with pytest.raises(ValueError, match="the month comes first in some dates"):
        moments_of(["01/13/2024"], day_first=True)
    with pytest.raises(ValueError, match="'03/01/2024' may have the day or the month first: pass dates, not text"):
        moments_of(["2024-01-03", "03/01/2024"])


@pytest.mark.parametrize("text", ["Wed 03/01/2024", "03 01 2024", "03 /01/2024", "03-01/2024"])
def test_an_order_that_is_not_known_is_refused_however_it_is_written(text):
    with pytest.raises(ValueError, match=f"{text!r} may have the day or the month first"):
        moments_of([text])


def test_an_order_is_that_of_all_dates():
    found = moments_of(["Sat 13/01/2024", "Fri 02/02/2024", "Fri 01/03/2024"], day_first=True)
    assert [moment.month for moment in found.tolist()] == [1, 2, 3]


@pytest.mark.parametrize("day_first", [True, False, None])
@pytest.mark.parametrize(
    "text",
    [
        *("24-01-03", "99-01-03", "14/02/75", "3.2.24", "3 Feb 24", "Feb 3", "3 Feb 24 10:00 +0000"),
        *("today", "now", "Sat", "2024 10:30", "2024/13/01", "2024-Q1", "2024-061", "03/01 10:30", "100/01/2024"),
    ],
)
def test_text_that_leaves_the_year_or_the_month_open_is_refused(text, day_first):
    with pytest.raises(
        ValueError,
        match="is neither a time nor a date with a four-digit year and a clear month: write dates as 2024-03-01",
    ):
        moments_of(["2024-01-03", text], day_first)


@pytest.mark.parametrize("value", [20240301, 45352.5, 0, True, np.int64(20240301), "20240301", "2024", "2024.05"])
def test_numbers_are_no_dates(value):
    with pytest.raises(ValueError, match=r"is a number, which may count days .*format='%Y%m%d'|'True' is neither"):
        moments_of([None, value])
    with pytest.raises(ValueError, match=r"Column 'day' must hold dates: "):
        with_date_numbers(pd.DataFrame({"day": [value]}), ["day"])


def test_the_cure_of_numbers_makes_dates_of_them():
    column = pd.Series([20240301])
    with pytest.raises(ValueError, match="is a number") as caught:
        moments_of(column.tolist())
    assert pasted(str(caught.value), column=column).tolist() == [pd.Timestamp(2024, 3, 1)]


def test_missing_values_of_any_kind_are_missing_dates():
    assert np.isnat(moments_of([None, np.nan, pd.NaT, "", "NaN", "nat"])).all()


def test_names_of_parts_lead_back_to_their_column():
    names = ["x", *part_names("day"), "z"]
    assert source_columns(names, ["day"]) == ["x", "day", "z"]
    assert source_columns(names, []) == names


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
@pytest.mark.parametrize("kind", ["date", "datetime", "text"])
def test_columns_of_frames_become_their_numbers_in_their_place(make, kind):
    days = [dt.date(2024, 1, 3), dt.date(1969, 12, 31)]
    of_kind = {
        "date": days,
        "datetime": [dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC) for day in days],
        "text": list(map(str, days)),
    }
    table = make({"x": [1, 2], "day": of_kind[kind], "z": [3, 4]})
    found = with_date_numbers(table, ["day"])
    assert type(found) is type(table)
    names = found.column_names if isinstance(found, pa.Table) else list(found.columns)
    assert names == ["x", *part_names("day"), "z"]
    assert [*map(float, found["day_seconds"].to_pylist() if isinstance(found, pa.Table) else found["day_seconds"])] == [
        19725 * 86400.0,
        -86400.0,
    ]


def test_other_tables_are_left_alone():
    for table in (np.ones((2, 2)), [[1, 2]], pd.DataFrame({"day_year": [1]})):
        assert with_date_numbers(table, ["day"]) is table
