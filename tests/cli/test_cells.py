"""Cells that a reader may mistake: text among numbers, numbers as text, categories written otherwise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from command_line import QUICK, run
from flat_parameters import parameters

from boostbp import BoostBPRegressor, storage

DEEP = [*QUICK, "-s", "deep=true"]


def test_one_text_cell_among_numbers_is_refused_and_may_be_called_missing(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=400).round(2), "z": rng.normal(size=400)})
    table["y"] = 3 * table["x"] + table["z"]
    table["x"] = table["x"].astype(str)
    table.loc[7, "x"] = "?"
    table.to_csv(tmp_path / "rows.csv", index=False)
    fit = ["fit", tmp_path / "rows.csv", "-t", "y", "-m", tmp_path / "model", *DEEP]
    refused = run(*fit)
    assert refused.exit_code == 1
    assert "error: rows.csv cannot be used as it is: 'x' holds text, but" in refused.stderr
    assert run(*fit, "--missing", "?").exit_code == 0
    predict = ["predict", tmp_path / "rows.csv", "-m", tmp_path / "model", "-o", tmp_path / "out.csv"]
    assert run(*predict, "--missing", "none").exit_code == 1
    assert run(*predict).exit_code == 0  # the model knows it
    X = table[["x", "z"]].assign(x=pd.to_numeric(table["x"], errors="coerce"))
    np.testing.assert_array_equal(
        pd.read_csv(tmp_path / "out.csv")["prediction"], storage.load(tmp_path / "model").predict(X)
    )


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line(tmp_path):
    table = pd.DataFrame({"key": [f"k{i}" for i in range(100)], "z": np.arange(100.0), "y": np.arange(100.0)})
    table.to_csv(tmp_path / "rows.csv", index=False)
    result = run("fit", tmp_path / "rows.csv", "-t", "y", "-m", tmp_path / "model", *DEEP)
    assert result.exit_code == 0, result.output
    said = "warning: Column 'key' is read as categories, but has 100 distinct values in 100 rows"
    assert [line for line in result.stderr.splitlines() if line.startswith(said)]
    assert "UserWarning" not in result.stderr


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_missing_cell_that_makes_floats_of_codes_leaves_the_categories(tmp_path, form):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"store": rng.integers(1, 9, 300), "open": rng.random(300) < 0.5, "z": rng.normal(size=300)})
    table["y"] = rng.permutation(10.0 * np.arange(9))[table["store"]] + table["z"] + 5 * table["open"]
    holed = table.astype({"store": float, "open": object})
    holed.loc[0, ["store", "open"]] = np.nan

    def write(frame, name):
        (frame.to_csv if form == "csv" else frame.to_parquet)(tmp_path / f"{name}.{form}", index=False)
        return tmp_path / f"{name}.{form}"

    path = write(table, "whole")
    chosen = ["--categorical", "store", "--categorical", "open"]
    assert run("fit", path, "-t", "y", "-m", tmp_path / "model", *chosen, *DEEP).exit_code == 0
    found = {}
    for name, frame in (("whole", table), ("holed", holed)):
        done = run("predict", write(frame, name), "-m", tmp_path / "model", "-o", tmp_path / f"{name}-out.csv")
        assert done.exit_code == 0, done.output
        found[name] = pd.read_csv(tmp_path / f"{name}-out.csv")["prediction"].to_numpy()
    np.testing.assert_array_equal(found["holed"][1:], found["whole"][1:])
    assert storage.load(tmp_path / "model").importance("split")[0] > 0


@pytest.mark.filterwarnings("default")
def test_a_column_of_unseen_categories_is_told(tmp_path):
    table = pd.DataFrame({"colour": ["red", "blue"] * 50, "z": np.arange(100.0), "y": np.arange(100.0)})
    table.to_csv(tmp_path / "rows.csv", index=False)
    assert run("fit", tmp_path / "rows.csv", "-t", "y", "-m", tmp_path / "model", *DEEP).exit_code == 0
    table.assign(colour=table["colour"].str.upper()).to_csv(tmp_path / "loud.csv", index=False)
    done = run("predict", tmp_path / "loud.csv", "-m", tmp_path / "model", "-o", tmp_path / "out.csv")
    assert done.exit_code == 0
    assert "warning: Column 'colour': almost no value was seen at fit, such as 'RED'; fit had 'red'" in done.stderr


def test_codes_of_a_table_in_memory_are_exact_in_a_file(tmp_path):
    keys = 2**53 + np.arange(8)
    frame = pd.DataFrame({"key": np.tile(keys, 20), "z": np.tile([0.0, 1.0], 80)})
    y = 100.0 * (frame["key"] % 8)
    model = BoostBPRegressor(
        (2,), **parameters(n_estimators=20, epochs=1, deep=True, categorical_features=["key"], random_state=0)
    )
    model.fit(frame, y)
    storage.save(model, tmp_path / "model")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert run("predict", tmp_path / "rows.csv", "-m", tmp_path / "model", "-o", tmp_path / "out.csv").exit_code == 0
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "out.csv")["prediction"], model.predict(frame))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_column_of_groups_is_no_feature_and_keeps_its_rows_together(tmp_path, form):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 5)
    table = pd.DataFrame(
        {"patient": [f"p{group}" for group in groups], "x": rng.normal(size=200), "z": rng.normal(size=200)}
    )
    table["y"] = rng.normal(size=40)[groups] + table["x"]
    path = tmp_path / f"rows.{form}"
    (table.to_csv if form == "csv" else table.to_parquet)(path, index=False)
    fit = ["fit", path, "-t", "y", "-m", tmp_path / "model", *DEEP]
    assert run(*fit, "--groups", "patient").exit_code == 0
    model = storage.load(tmp_path / "model")
    assert model.schema_.names == ("x", "z")
    alone = BoostBPRegressor((3,), n_estimators=4, min_samples_leaf=5, epochs=1, deep=True, n_jobs=1, random_state=0)
    alone.fit(table[["x", "z"]], table["y"], groups=table["patient"])
    np.testing.assert_array_equal(model.predict(table[["x", "z"]]), alone.predict(table[["x", "z"]]))
    both = run(*fit, "--groups", "patient", "--valid", path)
    assert both.exit_code == 2
    assert "error: --groups holds out rows of DATA" in both.stderr
    assert "has no column 'doctor'" in run(*fit, "--groups", "doctor").stderr
