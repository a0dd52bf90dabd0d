"""A row index that was written with a table is no feature, and what is read later may have it or not."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from command_line import run
from pyarrow import parquet

from boostbp import BoostBPRegressor, load

ROWS = 300
LEFT_OUT = r"Column {} of .* is left out: it looks like the row index"


def shuffled(seed=0):
    """Rows whose target rises along the index, which tells it, and noise."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=ROWS), "y": np.arange(ROWS) / 100 + rng.normal(size=ROWS)})
    return frame.sample(frac=0.7, random_state=seed)


def written(frame, path, **options):
    frame.to_parquet(path, **options) if path.suffix == ".parquet" else frame.to_csv(path, **options)
    return path


@pytest.mark.parametrize(("name", "column"), [("rows.parquet", "'__index_level_0__'"), ("rows.csv", "''")])
def test_the_index_is_left_out_with_a_word_and_later_files_need_none(tmp_path, name, column):
    frame = shuffled()
    model = BoostBPRegressor(quality=1, random_state=0)
    with pytest.warns(UserWarning, match=LEFT_OUT.format(column)):
        model.fit(written(frame, tmp_path / name), "y")
    assert model.schema_.names == ("x",)
    expected = BoostBPRegressor(quality=1, random_state=0).fit(frame[["x"]], frame["y"]).predict(frame[["x"]])
    for index in (True, False):
        later = written(frame, tmp_path / f"later-{index}-{name}", index=index)
        np.testing.assert_array_equal(model.predict(later), expected)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv"])
def test_the_command_line_leaves_it_out_too(tmp_path, name):
    told = run("fit", written(shuffled(), tmp_path / name), "-t", "y", "-m", tmp_path / "model", "-s", "quality=1")
    assert told.exit_code == 0, told.stderr
    assert "is left out: it looks like the row index" in " ".join(told.stderr.split())
    assert "1 features" in told.stderr
    assert load(tmp_path / "model").schema_.names == ("x",)
    later = written(shuffled(1), tmp_path / f"later-{name}", index=False)
    assert run("predict", later, "-m", tmp_path / "model", "-o", tmp_path / "out.csv").exit_code == 0


@pytest.mark.filterwarnings("always")
def test_a_folder_warns_once(tmp_path):
    (tmp_path / "rows").mkdir()
    for number in range(3):
        written(shuffled(number), tmp_path / "rows" / f"{number}.csv")
    told = run("fit", tmp_path / "rows", "-t", "y", "-m", tmp_path / "model", "-s", "quality=1")
    assert " ".join(told.stderr.split()).count("left out") == 1
    assert load(tmp_path / "model").schema_.names == ("x",)


def test_a_named_index_is_one_as_pandas_reads_it_unless_it_is_named(tmp_path):
    frame = shuffled().rename_axis("row")
    path = written(frame, tmp_path / "rows.parquet")
    with pytest.warns(UserWarning, match=LEFT_OUT.format("'row'")):
        assert BoostBPRegressor(quality=1).fit(path, "y").schema_.names == ("x",)
    grouped = BoostBPRegressor(quality=1).fit(path, "y", groups="row")
    assert grouped.schema_.names == ("x",)
    told = run("fit", path, "-t", "y", "-m", tmp_path / "model", "-s", "quality=1", "--numeric", "row")
    assert "left out" not in told.stderr
    assert load(tmp_path / "model").schema_.names == ("x", "row")


def test_an_index_that_was_read_as_a_column_and_written_again_is_one(tmp_path):
    again = pd.read_csv(io.StringIO(shuffled().to_csv()))
    assert again.columns[0] == "Unnamed: 0"
    for name in ("rows.csv", "rows.parquet"):
        with pytest.warns(UserWarning, match=LEFT_OUT.format("'Unnamed: 0'")):
            model = BoostBPRegressor(quality=1).fit(written(again, tmp_path / name, index=False), "y")
        assert model.schema_.names == ("x",)


@pytest.mark.slow
def test_tables_in_memory_keep_it_and_are_warned_of(tmp_path):
    path = written(shuffled(), tmp_path / "rows.parquet")
    named = written(shuffled().rename_axis("row"), tmp_path / "named.parquet")
    tables = {
        "__index_level_0__": [parquet.read_table(path), pl.read_parquet(path)],
        "row": [parquet.read_table(named)],
        "Unnamed: 0": [pd.read_csv(io.StringIO(shuffled().to_csv()))],
        "": [pa.table({"": range(ROWS), "x": np.arange(ROWS) / 7.0, "y": np.arange(ROWS) / 9.0})],
    }
    for column, sources in tables.items():
        for table in sources:
            X, y = table[["x", column]] if not isinstance(table, pa.Table) else table.select(["x", column]), table["y"]
            with pytest.warns(UserWarning, match=f"Column {column!r} looks like the row index"):
                model = BoostBPRegressor(quality=1).fit(X, y)
            assert model.schema_.names == ("x", column)
            with pytest.warns(UserWarning, match=f"Column {column!r} looks like the row index"):
                BoostBPRegressor(quality=1).fit(iter([(X, y)]))


def test_metadata_of_a_stranger_is_none(tmp_path):
    table = pa.table({"x": np.arange(ROWS) / 7.0, "y": np.arange(ROWS) / 9.0})
    for metadata in (b"{", b"[]", b'{"index_columns": 3}', b'{"index_columns": "xy"}', b"\xff"):
        parquet.write_table(table.replace_schema_metadata({b"pandas": metadata}), tmp_path / "rows.parquet")
        assert BoostBPRegressor(quality=1).fit(tmp_path / "rows.parquet", "y").schema_.names == ("x",)
