"""boostbp predict: the predictions of the estimator, chunk by chunk, in a file that is whole or not there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import QUICK, error_of, run
from pyarrow import parquet

from boostbp import storage
from boostbp.cli.predict import write_tables
from boostbp.inputs.files.reading import read_table


@pytest.mark.parametrize("read_from", ["csv", "parquet"])
@pytest.mark.parametrize("write_to", ["csv", "parquet"])
def test_predictions_are_those_of_the_estimator(folder, model, tmp_path, read_from, write_to):
    out = tmp_path / f"out.{write_to}"
    result = run("predict", folder / f"iris.{read_from}", "-m", model, "-o", out, "--proba", "--keep", "key")
    assert result.exit_code == 0, result.output
    written = pd.read_csv(out, dtype={"key": str}) if write_to == "csv" else pd.read_parquet(out)
    estimator = storage.load(model)
    X = pd.read_parquet(folder / "iris.parquet").drop(columns=["key", "species"])
    expected = estimator.predict_proba(X)
    names = [f"probability_{name}" for name in ("setosa", "versicolor", "virginica")]
    assert list(written.columns) == ["key", "prediction", *names]
    np.testing.assert_array_equal(written[names].to_numpy(), expected)
    np.testing.assert_array_equal(written["prediction"], estimator.predict(X))
    assert written["key"].tolist() == [f"{row:03d}" for row in range(150)]


def test_chunks_change_nothing(folder, model, tmp_path):
    """Files are read in chunks of 16,384 rows."""
    source, out = tmp_path / "many.parquet", tmp_path / "out.parquet"
    rows = pd.concat([pd.read_parquet(folder / "iris.parquet")] * 120, ignore_index=True)
    rows.to_parquet(source)
    assert run("transform", source, "-m", model, "-o", out).exit_code == 0
    expected = storage.load(model).transform(rows.drop(columns=["key", "species"]))  # units of all networks in the sum
    written = pd.read_parquet(out)
    assert list(written.columns) == [f"h{k}" for k in range(expected.shape[1])]
    np.testing.assert_array_equal(written, expected)


def test_column_order_of_the_file_does_not_matter(folder, model, tmp_path):
    shuffled = pd.read_parquet(folder / "iris.parquet").iloc[:, ::-1]
    shuffled.to_parquet(tmp_path / "shuffled.parquet")
    for source, out in ((folder / "iris.parquet", "a.csv"), (tmp_path / "shuffled.parquet", "b.csv")):
        assert run("predict", source, "-m", model, "-o", tmp_path / out, "--proba").exit_code == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_failed_prediction_leaves_the_old_file(folder, model, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("precious")
    lacking = tmp_path / "lacking.csv"
    lacking.write_text("sepal_length,colour\n1,blue\n")
    assert "lacking.csv has no column 'sepal_width'" in error_of(run("predict", lacking, "-m", model, "-o", out), 1)
    text = (
        folder.joinpath("iris.csv").read_text().replace("\n5.1,3.5", "\nlong,3.5", 1).replace("\n4.9,3", "\nlong,3", 1)
    )
    broken = tmp_path / "broken.csv"
    broken.write_text(text)
    assert "long" in error_of(run("predict", broken, "-m", model, "-o", out), 1)
    assert out.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.csv", "lacking.csv", "out.csv"]


def test_earlier_output_is_replaced(folder, model, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("old")
    assert run("predict", folder / "iris.csv", "-m", model, "-o", out).exit_code == 0
    assert len(pd.read_csv(out)) == 150


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_kept_column_with_the_name_of_an_output_is_refused(folder, model, tmp_path, form):
    table = pd.read_csv(folder / "iris.csv").assign(prediction="old", probability_setosa=0.5, h0=1, hi=2)
    source, out = tmp_path / "clash.parquet", tmp_path / f"out.{form}"
    table.to_parquet(source)
    for command, clash in (
        ("predict --keep prediction", "'prediction'"),
        ("predict --proba --keep probability_setosa --keep prediction", "'prediction', 'probability_setosa'"),
        ("transform --keep h0", "'h0'"),
    ):
        message = error_of(run(*command.split(), "--keep", "hi", source, "-m", model, "-o", out), 1)
        assert f"--keep {clash}: " in message
        assert "rename it in clash.parquet" in message
        assert not out.exists()
    # what is not written may be kept
    kept = ["--keep", "probability_setosa", "--keep", "h0"]
    assert run("predict", source, "-m", model, "-o", out, *kept).exit_code == 0
    written = pd.read_csv(out) if form == "csv" else pd.read_parquet(out)
    assert list(written.columns) == ["probability_setosa", "h0", "prediction"]


def test_tables_take_their_place_only_when_all_is_well(tmp_path):
    path = tmp_path / "out.parquet"
    table = pa.table({"x": [1.5, 2.5]})

    def tables():
        yield table
        assert not path.exists()
        yield table

    write_tables(path, tables())
    assert parquet.read_table(path)["x"].to_pylist() == [1.5, 2.5, 1.5, 2.5]

    def half():
        yield table
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_tables(path, half())
    with pytest.raises(ValueError, match="no rows to write"):
        write_tables(path, iter([]))
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.parquet"]
    assert parquet.read_table(path).num_rows == 4


def test_kept_identifier_that_is_a_feature_too_is_not_rounded(folder, tmp_path):
    table = parquet.read_table(folder / "diabetes.parquet")
    ids = pa.array([1234567890123456789 + k for k in range(len(table))])
    parquet.write_table(table.append_column("id", ids), tmp_path / "people.parquet")
    where, out = tmp_path / "model", tmp_path / "out.parquet"
    assert run("fit", tmp_path / "people.parquet", "-t", "target", "-m", where, *QUICK).exit_code == 0
    assert run("predict", tmp_path / "people.parquet", "-m", where, "-o", out, "--keep", "id").exit_code == 0
    assert parquet.read_table(out)["id"].combine_chunks() == ids


def test_quantiles_are_named_by_their_levels(folder, tmp_path):
    file, out = tmp_path / "levels.model", tmp_path / "levels.csv"
    options = ["-s", "loss=quantile", "-s", "alpha=[0.1, 0.5]", "-s", "deep=false", "-s", "quality=1"]
    assert run("fit", folder / "diabetes.csv", "-t", "target", "-m", file, *options, "-q").exit_code == 0
    assert run("predict", folder / "diabetes.csv", "-m", file, "-o", out, "-q").exit_code == 0
    found = pd.read_csv(out)
    assert list(found) == ["quantile_0.1", "quantile_0.5"]
    expected = storage.load(file).predict(read_table(folder / "diabetes.csv", "target")[0])
    np.testing.assert_array_equal(found, expected)
