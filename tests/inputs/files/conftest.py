"""A table in files, and files that come in many blocks without being large."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from boostbp.inputs.files import parts

TABLE = pa.table(
    {
        "whole": pa.array([1, None, 3, 4]),
        "real": pa.array([0.5, 1.5, None, -2.0]),
        "truth": pa.array([True, False, None, True]),
        "text": pa.array(["a", "b", None, "a"]),
        "empty": pa.array([None, None, None, None], pa.float64()),
        "id": pa.array(["007", "008", "009", "010"]),
        "y": pa.array(["yes", "no", "yes", "no"]),
    }
)


@pytest.fixture(params=["csv", "parquet"])
def path(request, tmp_path):
    where = tmp_path / f"rows.{request.param}"
    (csv.write_csv if request.param == "csv" else parquet.write_table)(TABLE, where)
    return where


@pytest.fixture
def small_blocks(tune):
    """CSV files come in blocks of 4 kB, and Parquet files in batches of 3 rows."""
    tune(parts, _CSV_BLOCK=4096, _PARQUET_ROWS=3)
