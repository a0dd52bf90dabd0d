"""Cells that a reader may mistake: text among numbers, numbers as text, categories written otherwise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from boostbp.cli import app
from boostbp.interop import storage

QUICK = ["-s", "epochs=1", "-s", "hidden_layer_sizes=3", "-s", "n_estimators=4", "-s", "min_samples_leaf=5"]


def run(*arguments):
    """Run a command; whatever happens, it must not end in a traceback."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_one_text_cell_among_numbers_is_refused_and_may_be_called_missing(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=400).round(2), "z": rng.normal(size=400)})
    table["y"] = 3 * table["x"] + table["z"]
    table["x"] = table["x"].astype(str)
    table.loc[7, "x"] = "?"
    table.to_csv(tmp_path / "rows.csv", index=False)
    fit = ["fit", tmp_path / "rows.csv", "-t", "y", "-m", tmp_path / "model", *QUICK]
    refused = run(*fit)
    assert refused.exit_code == 1
    assert "error: Column 'x' of rows.csv is text, but" in refused.stderr
    assert run(*fit, "--missing", "?").exit_code == 0
    predict = ["predict", tmp_path / "rows.csv", "-m", tmp_path / "model", "-o", tmp_path / "out.csv"]
    assert run(*predict).exit_code == 1
    assert run(*predict, "--missing", "?").exit_code == 0
    X = table[["x", "z"]].assign(x=pd.to_numeric(table["x"], errors="coerce"))
    np.testing.assert_array_equal(
        pd.read_csv(tmp_path / "out.csv")["prediction"], storage.load(tmp_path / "model").predict(X)
    )


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line(tmp_path):
    table = pd.DataFrame({"key": [f"k{i}" for i in range(100)], "z": np.arange(100.0), "y": np.arange(100.0)})
    table.to_csv(tmp_path / "rows.csv", index=False)
    result = run("fit", tmp_path / "rows.csv", "-t", "y", "-m", tmp_path / "model", *QUICK)
    assert result.exit_code == 0, result.output
    said = "warning: Column 'key' is read as categories, but has 100 distinct values in 100 rows"
    assert [line for line in result.stderr.splitlines() if line.startswith(said)]
    assert "UserWarning" not in result.stderr
