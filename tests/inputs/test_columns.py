"""Columns of tables: numbers, and what has none."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from boostbp.inputs.schema import read_input

NAN = np.nan


COLUMNS = {"i": [1, None, 3], "f": [0.5, None, NAN], "b": [True, None, False], "s": ["y", None, ""]}
EXPECTED = [[1, 0.5, 1, 1], [NAN, NAN, NAN, NAN], [3, NAN, 0, 0]]


def pandas_nullable():
    return pd.DataFrame(COLUMNS).astype({"i": "Int64", "f": "Float64", "b": "boolean", "s": "string"})


TABLES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas nullable": pandas_nullable,
    "pandas category": lambda: pandas_nullable().astype({"s": "category"}),
    "pandas object": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas arrow": lambda: pandas_nullable().astype(
        {"i": "int64[pyarrow]", "f": "double[pyarrow]", "b": "bool[pyarrow]", "s": "string[pyarrow]"}
    ),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars categorical": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("s").cast(pl.Categorical)),
    "polars enum": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("s").cast(pl.Enum(["", "y"]))),
    "polars narrow": lambda: pl.DataFrame(COLUMNS).with_columns(
        pl.col("i").cast(pl.UInt8), pl.col("f").cast(pl.Float32)
    ),
    "arrow": lambda: pa.table(COLUMNS),
    "arrow dictionary": lambda: pa.table({**COLUMNS, "s": pa.array(COLUMNS["s"]).dictionary_encode()}),
    "arrow chunks": lambda: pa.concat_tables([pa.table(COLUMNS)[:1], pa.table(COLUMNS)[1:]]),
    "arrow batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_every_library_read_alike(fit, name):
    estimator, table = fit(TABLES[name]())
    np.testing.assert_array_equal(table.X, EXPECTED)
    assert table.categorical == (3,)
    assert estimator.schema_.categories == {3: ("", "y")}
    assert estimator.feature_names_in_.tolist() == list("ifbs")
    assert estimator.n_features_in_ == 4
    for other in TABLES.values():
        np.testing.assert_array_equal(read_input(estimator, other(), estimator.schema_).X, EXPECTED)


def test_rare_dtypes_of_numbers_are_numbers(fit):
    values = [Decimal("1.5"), None, Decimal("2.0")]
    nothing = [None] * 3
    polars = pl.DataFrame(
        {
            "d": values,
            "w": pl.Series([1, None, 3], dtype=getattr(pl, "Int128", pl.Int64)),
            "n": nothing,
            "t": pl.Series(nothing, dtype=pl.String),
        }
    )
    pandas = pd.DataFrame({"d": values, "w": pd.arrays.SparseArray([1.0, NAN, 3.0]), "n": nothing, "t": nothing})
    arrow = pa.table(
        {"d": values, "w": pa.array([1, NAN, 3], pa.float32()), "n": pa.nulls(3), "t": pa.nulls(3, pa.string())}
    )
    expected = [[1.5, 1, NAN, NAN], [NAN, NAN, NAN, NAN], [2, 3, NAN, NAN]]
    for X in (polars, pandas, arrow):
        np.testing.assert_array_equal(fit(X)[1].X, expected)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.to_datetime(["2020-01-01", None]), "Column 'c' has dtype Datetime, which holds no numbers.*to_datetime"),
        (pd.to_timedelta([1, 2]), "Column 'c' has dtype Duration"),
        (pd.period_range("2020", periods=2), r"Column 'c' has dtype period\[.*which holds no numbers"),
        (pd.cut([1, 2], 2), r"Column 'c' holds categories of type Interval.*astype\(str\)"),
        (pd.Categorical(pd.to_datetime(["2020-01-01", None])), "categories of type Timestamp"),
        (pd.Series([b"a", "b"], dtype=object), "categories of type bytes"),
        (pd.Series([[1], "b"], dtype=object), "Column 'c' holds objects that cannot be categories"),
        (pd.Series([dt.date(2020, 1, 1), 1], dtype=object), "Column 'c' has dtype Object, which holds no numbers"),
        (
            pd.Series([10**400, 1], dtype=object),  # pandas 2 cannot tell its distinct values
            "Column 'c' (has dtype Object, which holds no numbers|holds objects that cannot be categories)",
        ),
        (pl.Series([[1], [2]]), "Column 'c' has dtype List"),
        (pl.Series([dt.date(2020, 1, 1)] * 2), "Column 'c' has dtype Date"),
        (pl.Series([b"a", b"b"]), "Column 'c' has dtype Binary"),
        (pl.Series([object(), object()], dtype=pl.Object), "Column 'c' has dtype Object"),
        (pd.Series([1j, 2.0]), "Column 'c' has dtype complex128"),
        (pd.Series([1.0, np.inf]), r"Input X contains infinity: Column 'c', row 1 .* holds inf.*missing \(NaN\)"),
        (pd.Categorical([np.inf, 1.0]), "Input X contains infinity: Column 'c' holds the category inf"),
    ],
)
def test_columns_without_a_number_are_refused_by_name(fit, column, message):
    make = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    wanted = [1] if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype) else "from_dtype"
    with pytest.raises(ValueError, match=message):
        fit(make({"a": [0, 1], "c": column}), wanted)
