"""Files as teams export them: one message has all options, and the model reads later files as it read the first."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import QUICK, error_of, run
from cures import options_in
from pyarrow import csv
from raw_files import american, european, rare_log
from sklearn.metrics import r2_score, roc_auc_score

from boostbp import load
from boostbp.inputs.files.reading import chunks

pytestmark = pytest.mark.filterwarnings("default")  # which the command prints
SHORT = ["-s", "quality=1", "-s", "n_estimators=40"]
FILES = {
    "eu.csv": (european, "Miete", ["--encoding", "cp1252", "--sep", ";", "--dates", "Datum", "--drop", "Nr"]),
    "us.csv.gz": (
        american,
        "price",
        ["--thousands", ",", "--numeric", "tax", "--dates", "sold_at", "--numeric", "paid"],
    ),
    "log.csv": (rare_log, "fraud", ["--missing", "?", "--dates", "day", "--drop", "tx_id"]),
}


def refused(*command):
    """Return the options of the error and of the warnings of a command, and the error."""
    result = run(*command)
    error = error_of(result, 1)
    warned = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    return [word for line in (error, *warned) for word in options_in(line)], error


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Return a function from the name of a raw file to its folder, table, options and what the fit printed."""
    where, made = tmp_path_factory.mktemp("raw"), {}

    def fit(name):
        if name not in made:
            make, target, _ = FILES[name]
            table = make(where / name)
            command = ["fit", where / name, "-t", target, "-m", where / f"{name}.model", *SHORT]
            options, error = refused(*command)
            made[name] = table, options, error, run(*command, *options)
        return where, *made[name]

    return fit


@pytest.mark.parametrize("name", FILES)
def test_two_commands_make_a_model_and_one_predicts(fitted, name):
    where, table, options, error, result = fitted(name)
    assert result.exit_code == 0, (error, result.output)
    assert "warning" not in result.output
    pairs = list(zip(options[::2], options[1::2], strict=True))
    assert set(zip(FILES[name][2][::2], FILES[name][2][1::2], strict=True)) <= set(pairs)
    out, target = where / f"{name}-out.csv", FILES[name][1]
    shares = ["--proba"] if name == "log.csv" else []
    predict = ["predict", where / name, "-m", where / f"{name}.model", "-o", out, "--keep", target, *shares]
    predicted = run(*predict)
    assert (predicted.exit_code, "warning" in predicted.output) == (0, False), predicted.output
    found = pd.read_csv(out)
    assert found[target].astype(str).tolist() == table[target].astype(str).tolist()  # as it stands in the file
    if name == "log.csv":
        assert roc_auc_score(table["fraud"], found["probability_1"]) > 0.95
        return
    decimal = str.maketrans(",.", ".,") if name == "eu.csv" else {}
    truth = [float(text.translate(decimal).replace(",", "").lstrip("$")) for text in table[target]]
    assert r2_score(truth, found["prediction"]) > 0.99


@pytest.mark.parametrize("name", FILES)
def test_frames_and_files_with_the_numbers_of_dates_are_read_too(fitted, name, tmp_path):
    where, table, _, error, _ = fitted(name)
    model, file = load(where / f"{name}.model"), where / name
    assert error.count("cannot be used as it is") == 1
    expected = model.predict(file)
    date = model.schema_.file_options.dates[0]
    names = [*model.feature_names_in_]
    assert {f"{date}_{part}" for part in ("year", "month", "day", "weekday", "seconds")} <= {*names}
    X = pd.concat([X for X, _ in chunks(file, model.schema_.roles())])
    np.testing.assert_array_equal(model.predict(X), expected)
    moments = pd.to_datetime(table[date], utc=True, format="%d.%m.%Y" if name == "eu.csv" else None)
    place = names.index(f"{date}_year")
    raw = X.drop(columns=[column for column in names if column.startswith(f"{date}_")])
    raw.insert(place, date, moments.to_numpy())
    np.testing.assert_array_equal(model.predict(raw), expected)
    csv.write_csv(pa.Table.from_pandas(X, preserve_index=False), tmp_path / "numbers.csv")
    plain = ["--sep", ",", "--decimal", ".", "--thousands", "", "--encoding", "utf-8"]
    out = tmp_path / "out.csv"
    done = run("predict", tmp_path / "numbers.csv", "-m", where / f"{name}.model", "-o", out, *plain)
    assert done.exit_code == 0, done.output
    predicted = pd.read_csv(out)["prediction"]
    np.testing.assert_array_equal(predicted.astype(expected.dtype), expected)


def test_a_later_file_that_is_written_otherwise_is_noticed(fitted, tmp_path):
    where, table, *_ = fitted("eu.csv")
    model, files = where / "eu.csv.model", {"same": where / "eu.csv", "other": tmp_path / "other.csv"}
    table.to_csv(files["other"], sep="|", index=False, encoding="utf-16")
    options, error = refused("predict", files["other"], "-m", model, "-o", tmp_path / "out.csv")
    assert "its text is in utf-16; its columns are separated by '|'. Add" in error
    with pytest.raises(ValueError, match=r"pandas.read_csv\(path, encoding='utf-16', sep='\|'\)"):
        load(model).predict(files["other"])
    for name, more in (("same", []), ("other", options)):
        assert run("predict", files[name], "-m", model, "-o", tmp_path / f"{name}-out.csv", *more).exit_code == 0
    assert (tmp_path / "same-out.csv").read_bytes() == (tmp_path / "other-out.csv").read_bytes()


@pytest.mark.parametrize("name", ["eu.csv", "us.csv.gz"])
def test_a_folder_is_read_as_a_file(fitted, tmp_path, name):
    where, _, options, *_ = fitted(name)
    data = (where / name).read_bytes()
    head, *lines = (gzip.decompress(data) if name.endswith("gz") else data).splitlines(keepends=True)
    (tmp_path / "rows").mkdir()
    for part in range(2):
        (tmp_path / "rows" / f"{part}.csv").write_bytes(head + b"".join(lines[1000 * part : 1000 * (part + 1)]))
    command = ["fit", tmp_path / "rows", "-t", FILES[name][1], "-m", tmp_path / "model", *SHORT]
    assert sorted(refused(*command)[0]) == sorted(options)
    done = run(*command, *options)
    assert "read block by block" in done.stderr, done.output
    one, many = load(where / f"{name}.model"), load(tmp_path / "model")
    assert many.schema_.file_options == one.schema_.file_options
    np.testing.assert_array_equal(many.predict(tmp_path / "rows"), one.predict(where / name))


def test_compare_takes_the_same_options_for_the_same_message(fitted, one_process):
    where, _, options, *_ = fitted("eu.csv")
    command = ["compare", where / "eu.csv", "-t", "Miete", "-q", "1", "-s", "n_estimators=3"]
    assert sorted(refused(*command)[0]) == sorted(options)


@pytest.mark.slow
def test_compare_runs_with_them(fitted, one_process):
    where, _, options, *_ = fitted("eu.csv")
    quick = ["-q", "1", "-s", "n_estimators=40", "--folds", "2", "--repeats", "1"]
    done = run("compare", where / "eu.csv", "-t", "Miete", *quick, *options)
    assert (done.exit_code, "2000 rows, 7 features" in done.output) == (0, True), done.output


def test_plots_transforms_and_further_training_read_as_the_model_does(fitted, tmp_path):
    pytest.importorskip("matplotlib")
    where, _, options, *_ = fitted("log.csv")
    file, model = where / "log.csv", tmp_path / "model"
    assert run("fit", file, "-t", "fraud", "-m", model, *QUICK, "-s", "deep=true", *options).exit_code == 0
    picture = ["plot", model, file, "-t", "fraud", "-k", "calibration", "-o", tmp_path / "picture.svg"]
    further = ["fit", file, "-t", "fraud", "--init-model", model, "-m", tmp_path / "more", *SHORT]
    for command in (picture, further, ["transform", file, "-m", model, "-o", tmp_path / "out.csv"]):
        done = run(*command)
        assert done.exit_code == 0, done.output
    assert load(tmp_path / "more").schema_ == load(model).schema_


@pytest.mark.parametrize("first", ["--day-first", "--month-first"])
def test_an_order_that_no_date_tells_is_stated_once(tmp_path, first):
    rows = [(f"{1 + k % 12:02}/{1 + k // 12 % 12:02}/2024", k % 7, k) for k in range(144)]
    pd.DataFrame(rows, columns=["t", "x", "y"]).to_csv(tmp_path / "rows.csv", index=False)
    command = ["fit", tmp_path / "rows.csv", "-t", "y", "-m", tmp_path / "model", *SHORT]
    options, error = refused(*command)
    assert options == ["--dates", "t", "--day-first"]
    assert "--month-first in place of --day-first" in error
    assert "say --day-first or --month-first" in error_of(run(*command, "--dates", "t"), 1)
    assert run(*command, "--dates", "t", first).exit_code == 0
    model = load(tmp_path / "model")
    pd.DataFrame({"t": ["03/01/2024"], "x": [1]}).to_csv(tmp_path / "one.csv", index=False)
    day = dt.date(2024, 1, 3) if first == "--day-first" else dt.date(2024, 3, 1)
    expected = model.predict(pd.DataFrame({"t": [day], "x": [1.0]}))
    np.testing.assert_array_equal(model.predict(tmp_path / "one.csv"), expected)
    np.testing.assert_array_equal(model.predict(pd.DataFrame({"t": ["03/01/2024"], "x": [1.0]})), expected)


def test_a_decimal_comma_is_that_of_the_whole_file(tmp_path):
    """Its other columns are read with it: "1.234" is no number any more, but a thousand."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": [f"{x:.2f}".replace(".", ",") for x in rng.normal(size=300)]})
    table["b"] = [f"{x:,}".replace(",", ".") for x in rng.integers(1000, 90_000, 300)]
    table["y"] = rng.normal(size=300).round(1) * 10 // 1
    table["y"] = table["y"].astype(int)
    table.to_csv(tmp_path / "rows.csv", sep=";", index=False)
    command = ["fit", tmp_path / "rows.csv", "-t", "y", "-m", tmp_path / "model", "--task", "regression", *SHORT]
    options, _ = refused(*command)
    assert options == ["--sep", ";", "--decimal", ",", "--thousands", "."]
    assert run(*command, *options).exit_code == 0


def test_wrong_options_are_usage_errors(table, tmp_path):
    for options, message in (
        (["--sep", ";;"], "--sep ';;' is not known: give one character"),
        (["--thousands", "."], "--thousands and --decimal are both '.'"),
        (["--encoding", "ebcdic-x"], "--encoding 'ebcdic-x' is not known"),
    ):
        for command in (["fit", table, "-t", "y", "-m", tmp_path / "m"], ["compare", table, "-t", "y"]):
            assert message in error_of(run(*command, *options), 2)
    told = error_of(run("fit", table, "-t", "y", "-m", tmp_path / "m", "--dates", "day"), 1)
    assert "has no column 'day'" in told
    frame = pd.read_csv(table).assign(d="2024-01-03", d_day=1.0)
    frame.to_csv(tmp_path / "clash.csv", index=False)
    told = error_of(run("fit", tmp_path / "clash.csv", "-t", "y", "-m", tmp_path / "m", "--dates", "d"), 1)
    assert "has columns 'd_day', as the date 'd' would: rename them" in told


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst"])
def test_compressed_files_are_read_and_written(table, tmp_path, ending):
    name = tmp_path / f"rows.csv.{ending}"
    with pa.output_stream(name, compression={"gz": "gzip", "bz2": "bz2", "zst": "zstd"}[ending]) as stream:
        stream.write(Path(table).read_bytes())
    assert run("fit", name, "-t", "y", "-m", tmp_path / "model", *SHORT).exit_code == 0
    outs = [tmp_path / f"out.csv.{ending}", tmp_path / "out.csv"]
    for source, out in zip((name, table), outs, strict=True):
        assert run("predict", source, "-m", tmp_path / "model", "-o", out).exit_code == 0
    with pa.input_stream(outs[0], compression="detect") as stream:
        assert stream.read() == outs[1].read_bytes()


def test_one_message_lists_wide_tables_and_its_options_work(tmp_path):
    rng, days = np.random.default_rng(0), pd.date_range("2024-01-01", periods=90).strftime("%Y-%m-%d")
    table = pd.DataFrame({f"day {k}": rng.permutation(days) for k in range(30)}).assign(y=rng.normal(size=90))
    table.to_csv(tmp_path / "rows.csv", index=False)
    command = [
        "fit",
        tmp_path / "rows.csv",
        "-t",
        "y",
        "-m",
        tmp_path / "model",
        "-s",
        "quality=1",
        "-s",
        "n_estimators=2",
    ]
    options, error = refused(*command)
    assert error.count(" holds ") == 8
    assert "Nor can 'day 8', 'day 9'" in error
    assert options == [word for k in range(30) for word in ("--dates", f"day {k}")]
    assert run(*command, *options).exit_code == 0
