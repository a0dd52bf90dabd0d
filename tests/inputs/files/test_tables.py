"""Columns of tables in files: their roles, names and types."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from boostbp.inputs.files.reading import chunks, read_table
from boostbp.inputs.files.tables import ColumnRoles


def test_types_can_be_overridden(path):
    X, _, _ = read_table(path, "y", ColumnRoles(categorical=["whole"], numeric=["id"], features=("id", "whole")))
    assert list(X.columns) == ["id", "whole"]
    assert X["id"].tolist() == [7.0, 8.0, 9.0, 10.0]
    assert X["whole"].cat.categories.tolist() == ["1", "3", "4"]


@pytest.mark.parametrize(
    ("columns", "target", "message"),
    [
        (ColumnRoles(), "z", r"rows.\w+ has no column 'z': its columns are 'whole', 'real'"),
        (ColumnRoles(drop=["z"]), "y", r"has no column 'z'"),
        (ColumnRoles(features=("real", "w")), "y", r"has no column 'w'"),
        (ColumnRoles(), "real", r"Column 'real' is missing in 1 rows, which only features may be: remove these rows"),
        (ColumnRoles(features=("y",)), "y", r"rows.\w+ has no feature besides 'y'"),
    ],
)
def test_wrong_columns_are_named(path, columns, target, message):
    with pytest.raises(ValueError, match=message):
        read_table(path, target, columns)


def test_a_header_with_blanks_is_quoted_with_a_cure_that_works(tmp_path):
    where = tmp_path / "rows.csv"
    where.write_text("x, y\n1,2\n3,4\n")
    with pytest.raises(ValueError, match=r"no column 'y': its columns are 'x', ' y'\. Write ' y' with its blanks, or"):
        read_table(where, "y")
    assert read_table(where, " y")[1].tolist() == [2, 4]


def test_dates_are_refused_with_the_cure(tmp_path):
    where = tmp_path / "rows.csv"
    where.write_text("when,y\n2020-01-01,1\n2020-01-02,2\n")
    with pytest.raises(
        ValueError, match=r"Column 'when' of rows.csv holds date32\[day\].*drop it, or make it categorical"
    ):
        read_table(where, "y")
    X, _, _ = read_table(where, "y", ColumnRoles(categorical=["when"]))
    assert X["when"].tolist() == ["2020-01-01", "2020-01-02"]


def test_same_name_twice_is_refused(tmp_path):
    where = tmp_path / "rows.csv"
    where.write_text("x,x,y\n1,2,3\n")
    with pytest.raises(ValueError, match=r"more than one column 'x': rename"):
        read_table(where, "y")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_kept_column_stays_as_it_stands_though_it_is_a_feature_too(tmp_path, form):
    where = tmp_path / f"rows.{form}"
    numbers = [1234567890123456789, 1234567890123456790]
    table = pa.table({"id": numbers, "zip": ["01235", "90210"], "flag": [True, False], "x": [0.5, 1.5]})
    (csv.write_csv if form == "csv" else parquet.write_table)(table, where)
    columns = ColumnRoles(features=("id", "zip", "flag", "x"), numeric=["id", "zip", "flag", "x"])
    [(X, kept)] = chunks(where, columns._replace(verbatim=["id", "zip", "flag"]))
    [(expected, _)] = chunks(where, columns)
    pd.testing.assert_frame_equal(X, expected)
    assert X["zip"].tolist() == [1235.0, 90210.0]
    assert X["flag"].tolist() == [1.0, 0.0]
    assert [str(one) for one in kept["id"].to_pylist()] == list(map(str, numbers))
    assert kept["zip"].to_pylist() == ["01235", "90210"]
    assert kept["flag"].to_pylist() == (["true", "false"] if form == "csv" else [True, False])
