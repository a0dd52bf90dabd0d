"""Cells of text that spell amounts, truth and dates, as the options of a file say."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from boostbp.inputs.files.cells import are_numbers, numbers_in
from boostbp.inputs.files.options import FileOptions
from boostbp.inputs.files.reading import chunks, read_table
from boostbp.inputs.files.tables import ColumnRoles

ENGLISH = FileOptions(thousands=",")
GERMAN = FileOptions(thousands=".", decimal=",")
FRENCH = FileOptions(thousands=" ", decimal=",")
SPELT = FileOptions(thousands=",", numeric=("x",))


def numbers(texts, options):
    return numbers_in(pa.array(texts, pa.string()), options, "x").to_pylist()


@given(st.floats(-1e12, 1e12))
def test_amounts_are_read_in_each_language(number):
    english = f"{number:,.2f}"
    german, french = english.translate(str.maketrans(",.", ".,")), english.translate(str.maketrans(",.", "\u202f,"))
    value = float(f"{number:.2f}")
    assert numbers([english, None], ENGLISH) == numbers([german, None], GERMAN) == [value, None]
    assert numbers([french], FRENCH) == numbers([french.replace("\u202f", " ")], FRENCH) == [value]
    dollars = english.replace("-", "-$") if number < 0 else f"${english}"
    for spelling in (dollars, f"{english} %", f" {english} €"):
        assert numbers([spelling], SPELT) == [value]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("($1,234.50)", -1234.5),
        ("\u22125", -5),
        ("$-5", -5),
        ("- $5", -5),
        ("Yes", 1),
        ("F", 0),
        ("1e3", 1000),
        (".5", 0.5),
    ],
)
def test_other_spellings(text, number):
    assert numbers([text], SPELT) == [number]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("1,23", ENGLISH),
        ("1,2345", ENGLISH),
        ("1,234,56", ENGLISH),
        ("0,123", ENGLISH),
        ("0.123", GERMAN),
        ("0 123,5", FRENCH),
        ("$5", ENGLISH),
        ("1.5", GERMAN),
        ("1,234.5", GERMAN),
        ("1.234", FRENCH),
        ("maybe", SPELT),
        ("$", SPELT),
        (".", SPELT),
        ("1-2", SPELT),
        ("5 % of it", SPELT),
    ],
)
def test_what_is_written_otherwise_is_no_number(text, options):
    with pytest.raises(ValueError, match=r"Column 'x' must hold numbers: .* is not one. Declare it as missing"):
        numbers(["1", text], options)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["12%", "0.12"], "some have a percent sign, and others none: write all of them alike"),
        (["yes", "12 %"], "some have a percent sign, and others none"),
        (["$12", "€12"], "they are amounts of several currencies: write all of them alike"),
    ],
)
@pytest.mark.parametrize("n_rows", [1, 2000], ids=["one block", "several blocks"])
def test_a_column_that_mixes_units_is_refused(tmp_path, small_blocks, texts, message, n_rows):
    for text, name in zip(texts, "ab", strict=True):
        (tmp_path / f"{name}.csv").write_text("z,x\n" + f"1,{text}\n" * n_rows + "1,\n1,?\n")
    options = FileOptions(numeric=("x",), missing=("?",))
    assert len(list(chunks(tmp_path / "a.csv", ColumnRoles(options=options))))
    with pytest.raises(ValueError, match=f"b.csv: Column 'x' must hold numbers: {message}"):
        list(chunks(tmp_path, ColumnRoles(options=options)))


def test_signs_that_agree_are_read():
    assert numbers(["12%", "3 %", "?", None, ""], FileOptions(numeric=("x",), missing=("?",)))[:2] == [12, 3]
    assert numbers(["$12", "13"], SPELT) == [12, 13]


def test_missing_texts_and_blanks_are_missing():
    assert numbers(["?", " ", None, "1"], FileOptions(missing=("?",), decimal=",")) == [None, None, None, 1]


def test_a_column_is_of_numbers_if_all_its_cells_are():
    assert are_numbers(pa.array(["1,234", None]), ENGLISH)
    assert not are_numbers(pa.array(["1,234", "a"]), ENGLISH)
    assert not are_numbers(pa.array([None, None], pa.string()), ENGLISH)


def write(table, path):
    (csv.write_csv if path.suffix == ".csv" else parquet.write_table)(table, path)
    return path


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_of_text_are_features_as_stated(tmp_path, form):
    days = ["03.02.2024", "28.02.2024", None, "?"]
    table = pa.table(
        {
            "size": ["1.234,5", "2", None, "?"],
            "price": ["€ 1.000", "(5)", "yes", "?"],
            "day": days,
            "code": ["1,5", "a", "b", "b"],
            "y": [1, 2, 3, 4],
        }
    )
    options = FileOptions(thousands=".", decimal=",", missing=("?",), dates=("day",), numeric=("price", "size"))
    X, y, _ = read_table(write(table, tmp_path / f"rows.{form}"), "y", ColumnRoles(options=options))
    assert list(X) == ["size", "price", "day_year", "day_month", "day_day", "day_weekday", "day_seconds", "code"]
    np.testing.assert_array_equal(X["size"], [1234.5, 2, np.nan, np.nan])
    np.testing.assert_array_equal(X["price"], [1000, -5, 1, np.nan])
    np.testing.assert_array_equal(X["day_day"], [3, 28, np.nan, np.nan])
    assert X["code"].tolist() == ["1,5", "a", "b", "b"]
    assert y.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([dt.date(2024, 1, 3), None]),
        pa.array([dt.datetime(2024, 1, 3), None], pa.timestamp("ns")),
        pa.array([dt.datetime(2024, 1, 3), None], pa.timestamp("s", "Europe/Berlin")),
        pa.array([dt.time(10, 30), None], pa.time32("s")),
        pa.array(["2024-01-03T02:00:00+02:00", None]).dictionary_encode(),
    ],
    ids=["date", "time stamp", "zone", "time", "text"],
)
def test_dates_of_all_types_are_moments_in_utc(tmp_path, form, column):
    if form == "csv" and pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    path = write(pa.table({"x": [1, 2], "t": column}), tmp_path / f"rows.{form}")
    [(X, _)] = chunks(path, ColumnRoles(options=FileOptions(dates=("t",))))
    expected = 37800 if pa.types.is_time(column.type) else 19725 * 86400
    np.testing.assert_array_equal(X["t_seconds"], [expected, np.nan])
    np.testing.assert_array_equal(X["t_month"], [1, np.nan])


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()], ids=str)
def test_numbers_are_no_dates_in_any_file(tmp_path, form, kind):
    column = pa.array([20240301, None]).cast(kind)
    path = write(pa.table({"x": [1, 2], "t": column}), tmp_path / f"rows.{form}")
    message = rf"Column 't' of rows.{form} must hold dates.*'20240301\S*' is a number.*write dates as 2024-03-01"
    with pytest.raises(ValueError, match=message):
        list(chunks(path, ColumnRoles(options=FileOptions(dates=("t",)))))


def test_years_of_two_digits_are_refused_with_the_column(tmp_path):
    (tmp_path / "rows.csv").write_text("x,t\n1,99-01-13\n")
    with pytest.raises(ValueError, match=r"Columns 't' of rows.csv must hold dates: '99-01-13' .* a four-digit year"):
        list(chunks(tmp_path / "rows.csv", ColumnRoles(options=FileOptions(dates=("t",)))))


def test_a_late_cell_that_is_no_date_or_number_is_named(tmp_path, small_blocks):
    options = FileOptions(dates=("t",), thousands=",")
    for late, message in (
        ("soon,1", r"Column 't' of rows.csv must hold dates, or text that --missing names: .*soon"),
        ("2024-01-03,x", r"rows.csv: Column 'n' must hold numbers: 'x' is not one"),
    ):
        (tmp_path / "rows.csv").write_text("t,n\n" + "2024-01-03,1\n" * 900 + late + "\n")
        with pytest.raises(ValueError, match=message):
            list(chunks(tmp_path / "rows.csv", ColumnRoles(options=options)))
