"""Rows of CSV and Parquet files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from boostbp import BoostBPRegressor
from boostbp.inputs.files.options import FileOptions
from boostbp.inputs.files.reading import chunks, columns_like, read_table
from boostbp.inputs.files.tables import ColumnRoles

MISSING = FileOptions(missing=("?",))


def test_columns_become_float64_and_categories(path):
    X, y, _ = read_table(path, "y", ColumnRoles(drop=["id"]))
    expected = pd.DataFrame(
        {
            "whole": [1.0, np.nan, 3.0, 4.0],
            "real": [0.5, 1.5, np.nan, -2.0],
            "truth": [1.0, 0.0, np.nan, 1.0],
            "text": pd.Categorical(["a", "b", None, "a"]),
            "empty": np.full(4, np.nan),
        }
    )
    pd.testing.assert_frame_equal(X, expected)
    assert y.tolist() == ["yes", "no", "yes", "no"]


@pytest.mark.parametrize(
    ("column", "expected", "kind"),
    [
        (pa.array([3, 1, 3]), [3, 1, 3], "i"),
        (pa.array([2.0, 0.0, 1.0]), [2, 0, 1], "i"),
        (pa.array([2.5, 0.0, 1.0]), [2.5, 0.0, 1.0], "f"),
        (pa.array([True, False, True]), ["true", "false", "true"], "U"),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"], "U"),
    ],
    ids=["whole", "whole as real", "real", "truth", "dictionary"],
)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_target_keeps_its_values(tmp_path, column, expected, kind, form):
    where = tmp_path / f"rows.{form}"
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": column})
    if form == "csv":
        text = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        csv.write_csv(table.set_column(1, "y", text), where)
    else:
        parquet.write_table(table, where)
    _, y, _ = read_table(where, "y")
    assert y.tolist() == expected
    assert y.dtype.kind == kind


def test_chunks_put_together_are_the_whole(path, small_blocks):
    columns = ColumnRoles(verbatim=["id"], drop=["y", "text"])
    pieces, kept = zip(*chunks(path, columns), strict=True)
    whole, _, _ = read_table(path, "y", ColumnRoles(drop=["id", "text"]))
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True), whole)
    assert pa.concat_tables(kept)["id"].to_pylist() == ["007", "008", "009", "010"]
    assert len(pieces) == (2 if path.suffix == ".parquet" else 1)


def test_large_csv_comes_in_more_than_one_chunk(tmp_path, small_blocks):
    values = np.random.default_rng(0).normal(size=2000)
    where = tmp_path / "rows.csv"
    csv.write_csv(pa.table({"x": values}), where)
    pieces = [X["x"].to_numpy() for X, _ in chunks(where)]
    assert len(pieces) > 5
    np.testing.assert_array_equal(np.concatenate(pieces), values)


def test_type_that_changes_after_the_first_block_is_explained(tmp_path, small_blocks):
    where = tmp_path / "rows.csv"
    where.write_text("x\n" + "1.5\n" * 3000 + "late text\n")
    with pytest.raises(ValueError, match=r"rows.csv: .*late text.*name a column of text categorical"):
        list(chunks(where))
    assert sum(len(X) for X, _ in chunks(where, ColumnRoles(categorical=["x"]))) == 3001


def test_unknown_format_and_missing_file_are_told_apart(tmp_path):
    with pytest.raises(
        ValueError, match=r"unknown format: give a file that ends in .csv, .csv.gz, .csv.bz2, .csv.zst or .parquet"
    ):
        read_table(tmp_path / "rows.xlsx", "y")
    with pytest.raises(FileNotFoundError, match=r"rows\.csv' is neither a file nor a folder"):
        read_table(tmp_path / "rows.csv", "y")


def test_few_rows_are_typed_as_the_many(tmp_path):
    many, few = tmp_path / "many.csv", tmp_path / "few.csv"
    many.write_text("grade,x,y\nA,1,x\n1,2,1\n2,3,2\n")
    few.write_text("grade,x,y\n1,1,1\n2,2.5,2\n")
    X, y, _ = read_table(many, "y")
    again, labels, _ = read_table(few, "y", columns_like(X), text=True)
    assert again["grade"].tolist() == ["1", "2"]
    assert (again.dtypes.map(str) == X.dtypes.map(str)).all()
    assert y.tolist() == ["x", "1", "2"]
    assert labels.tolist() == ["1", "2"]


def test_what_is_no_table_of_numbers_and_text_is_explained(tmp_path):
    where = tmp_path / "rows.csv"
    where.write_bytes("city,y\nMünchen,1\nKöln,2\n".encode("latin-1"))
    with pytest.raises(
        ValueError, match=r"rows.csv needs other options: pass pandas.read_csv\(path, encoding='cp1252'"
    ):
        read_table(where, "y")
    where.write_text("a;y\n1;2\n3,4;5\n")
    with pytest.raises(ValueError, match=r"rows.csv needs other options: pass pandas.read_csv\(path, sep=';'\)"):
        read_table(where, "y")
    where.write_text("a,y\n1,2\n3,4,5\n")
    with pytest.raises(ValueError, match=r"rows.csv: .*Columns are separated by ',' \(--sep\), in utf-8"):
        read_table(where, "y")
    where.write_text("day,x\n2024-01-02,1\n2024-01-03,2\n")
    with pytest.raises(ValueError, match=r"Target 'day' holds date.*turn it into numbers, such as days"):
        read_table(where, "day")


def test_header_that_is_not_utf8_is_explained(tmp_path):
    where = tmp_path / "rows.csv"
    where.write_bytes("größe,y\n1,2\n3,4\n".encode("latin-1"))
    message = r"rows\.csv needs other options: pass pandas.read_csv\(path, encoding='cp1252'\)"
    for reading in (lambda: read_table(where, "y"), lambda: list(chunks(where, ColumnRoles(features=("y",))))):
        with pytest.raises(ValueError, match=message):
            reading()
    where.write_bytes(where.read_bytes().decode("latin-1").encode("utf-8"))
    assert list(read_table(where, "y")[0].columns) == ["größe"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_text_that_spells_numbers_is_refused_unless_it_is_called_missing_or_categorical(tmp_path, form):
    where = tmp_path / f"rows.{form}"
    values = [f"{x / 7:.2f}" for x in range(400)]
    values[7] = "?"
    table = pa.table({"x": values, "y": range(400)})
    (csv.write_csv if form == "csv" else parquet.write_table)(table, where)
    with pytest.raises(
        ValueError, match=rf"Column 'x' of rows.{form} holds text, but .*'\?' does not.*na_values=\['\?'\]"
    ):
        read_table(where, "y")
    X, _, _ = read_table(where, "y", ColumnRoles(options=MISSING, numeric=["x"]))
    assert np.flatnonzero(X["x"].isna()).tolist() == [7]
    [(streamed, _)] = chunks(where, columns_like(X, MISSING)._replace(drop=["y"]))
    pd.testing.assert_frame_equal(streamed, X)
    X, _, _ = read_table(where, "y", ColumnRoles(categorical=["x"]))
    assert X["x"].cat.categories.size == 400


def test_a_number_misspelt_after_the_first_block_is_refused_with_the_cure(tmp_path, small_blocks):
    where = tmp_path / "rows.csv"
    where.write_text("x,y\n" + "1.5,1\n" * 3000 + "?,1\n")
    with pytest.raises(ValueError, match=r"rows.csv: .*'\?'.*--missing"):
        read_table(where, "y")
    X, _, _ = read_table(where, "y", ColumnRoles(options=MISSING))
    assert X["x"].isna().sum() == 1
    where.write_text("x,y\n?,1\n" + "".join(f"{x / 7:.2f},1\n" for x in range(3000)))
    with pytest.raises(ValueError, match=r"Column 'x' of rows.csv holds text"):
        read_table(where, "y")


def test_a_dictionary_is_declared_to_be_categories(tmp_path):
    values = [f"{k / 7:.2f}" for k in range(40)]
    frame = pd.DataFrame({"c": pd.Categorical(values), "x": np.arange(40) / 7, "y": np.arange(40)})
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    X, _, _ = read_table(tmp_path / "rows.parquet", "y")
    assert X["c"].astype(str).tolist() == values
    with pytest.warns(UserWarning, match="distinct values"):
        model = BoostBPRegressor(quality=1, random_state=0).fit(tmp_path / "rows.parquet", "y")
    assert list(model.schema_.categories) == [0]
    np.testing.assert_array_equal(model.predict(frame[["c", "x"]]), model.predict(tmp_path / "rows.parquet"))
