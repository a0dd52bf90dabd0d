"""Folders of files, and files larger than memory, on the command line: the models of one file that is read whole."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import error_of, run
from pyarrow import csv, parquet

from boostbp import load

QUICK = ["-s", "quality=1", "--seed", "3"]
fit_module = importlib.import_module("boostbp.cli.fit")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The rows in one file, in a folder of Parquet files, and in one of CSV files."""
    where = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 3)), columns=list("abc"))
    frame["zip"] = rng.integers(10, 15, 600)
    frame["colour"] = rng.choice(["red", "blue"], 600)
    frame["shop"] = rng.integers(0, 40, 600)
    frame["price"] = frame["a"] - frame["b"] * 2 + rng.normal(size=600) / 9
    frame["sold"] = frame["price"] > 0
    table = pa.Table.from_pandas(frame, preserve_index=False)
    parquet.write_table(table, where / "all.parquet")
    for kind, write in {"parquet": parquet.write_table, "csv": csv.write_csv}.items():
        (where / kind).mkdir()
        for number in range(3):
            write(table.slice(200 * number, 200), where / kind / f"{number}.{kind}")
    return where


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_folder_gives_the_model_of_one_file(folder, tmp_path, kind):
    options = ["-t", "price", "--categorical", "zip", "--groups", "shop", "--drop", "sold", *QUICK]
    assert run("fit", folder / "all.parquet", "-m", tmp_path / "one", *options).exit_code == 0
    told = run("fit", folder / kind, "-m", tmp_path / "many", *options)
    assert f"{kind}: read block by block, 5 features, regression of 'price'" in told.stderr
    for model in ("one", "many"):
        out = tmp_path / f"{model}.csv"
        assert run("predict", folder / kind, "-m", tmp_path / model, "-o", out, "--keep", "price").exit_code == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "one.csv"), pd.read_csv(tmp_path / "many.csv"))
    assert len(pd.read_csv(tmp_path / "many.csv")) == 600


@pytest.mark.parametrize("name", ["all.parquet", "csv/0.csv"])
def test_a_large_file_is_read_block_by_block(folder, tmp_path, tune, name):
    options = ["-t", "sold", "--drop", "price", *QUICK]
    assert "200 rows" in run("fit", folder / "csv" / "0.csv", "-m", tmp_path / "small", *options).stderr
    tune(fit_module, LARGE=2000)
    told = run("fit", folder / name, "-m", tmp_path / "large", "--valid", folder / "parquet" / "2.parquet", *options)
    assert "read block by block, 6 features, classification of 'sold'" in told.stderr
    assert load(tmp_path / "large").classes_.tolist() == ["false", "true"]


def test_folders_that_are_no_table_are_one_line(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    for data, message in {
        tmp_path / "empty": "has no file that ends in .csv, .csv.gz, .csv.bz2, .csv.zst or .parquet",
        folder: "has CSV and Parquet files",
        folder / "parquet": "has no column 'cost'",
    }.items():
        assert message in error_of(run("fit", data, "-t", "cost", "-m", tmp_path / "model"), 1)
    assert not (tmp_path / "model").exists()
