"""boostbp fit: progress for people, interrupts, earlier models and files of evaluation rows."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import QUICK, error_of, run
from pyarrow import csv, parquet

from boostbp import BoostBPRegressor, storage
from boostbp.network.trainer import Trainer

SHORT = ("-s", "quality=1", "-s", "n_estimators=4")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0] + 0.1 * rng.standard_normal(120))
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.mark.parametrize(("flags", "shows"), [((), False), (("--progress",), True), (("--progress", "-q"), False)])
def test_a_fit_shows_its_progress_where_it_is_asked_to(table, tmp_path, flags, shows):
    result = run("fit", table, "-t", "y", "-m", tmp_path / "model", *SHORT, *flags)
    assert result.exit_code == 0, result.output
    assert ("boostbp, first layers" in result.stderr) is shows
    assert result.stdout == ""
    assert storage.load(tmp_path / "model").verbose == "auto"
    if "-q" not in flags:
        [seconds] = re.findall(r"Fitted in ([\d.]+) s and saved to", result.stderr)
        [training] = re.findall(r"Training took ([\d.]+) s", result.stderr)
        assert float(seconds) >= float(training) - 0.1  # rounded


@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_an_interrupted_fit_saves_what_there_is_and_says_so(folder, tmp_path, press, quiet):
    press(Trainer, "step", 3)
    where = tmp_path / "model"
    alone = ("-s", "epochs=9", "-s", "deep=true")
    result = run("fit", folder / "diabetes.csv", "-t", "target", "-m", where, *QUICK, *alone, *quiet)
    assert result.exit_code == 130, result.output
    assert "Interrupted from the keyboard; the best state so far was kept." in result.stderr
    assert result.stderr.endswith(f" s and saved to {where}.\n")
    estimator = storage.load(where)
    assert estimator.n_iter_ == 1
    assert np.isfinite(estimator.predict(pd.read_csv(folder / "diabetes.csv").drop(columns="target"))).all()


def test_a_fit_that_is_interrupted_at_once_saves_nothing(folder, tmp_path, press):
    press(Trainer, "step", 1)
    result = run("fit", folder / "diabetes.csv", "-t", "target", "-m", tmp_path / "model", *QUICK, "-s", "deep=true")
    assert error_of(result, 130) == "error: interrupted."
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    """Counts of claims by exposure, as CSV and as Parquet: rows to fit, to check by, and of later."""
    where, rng = tmp_path_factory.mktemp("claims"), np.random.default_rng(0)
    exposure = rng.uniform(0.1, 3.0, 600)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 600), "area": np.array(list("abc"))[rng.integers(0, 3, 600)]})
    frame["log_exposure"] = np.log(exposure)
    frame["claims"] = rng.poisson(exposure * np.exp(frame.age / 80 + (frame.area == "a")))
    for name, rows in {"train": slice(0, 300), "valid": slice(300, 400), "later": slice(400, 600)}.items():
        table = pa.Table.from_pandas(frame[rows], preserve_index=False)
        csv.write_csv(table, where / f"{name}.csv")
        (where / name).mkdir()
        parquet.write_table(table, where / name / "0.parquet")
    return where


POISSON = ["-s", "loss=poisson", "-s", "quality=1", "-s", "n_estimators=20"]


def read_claims(claims, name):
    frame = pd.read_csv(claims / f"{name}.csv", dtype={"area": "category"})
    return frame[["age", "area"]].astype({"age": float}), frame.claims, frame.log_exposure


@pytest.mark.parametrize("source", ["later.csv", "later"])
def test_training_goes_on_from_a_file(claims, tmp_path, source):
    (X, y, _), (X_later, y_later, _) = read_claims(claims, "train"), read_claims(claims, "later")
    how = {"loss": "poisson", "quality": 1, "n_estimators": 20, "random_state": 0}
    first = BoostBPRegressor(**how).fit(X, y)
    storage.save(first, tmp_path / "first")
    expected = BoostBPRegressor(**how).fit(X_later, y_later, init_model=first).predict(X)
    more = ["--init-model", tmp_path / "first", *POISSON]
    made = run("fit", claims / source, "-t", "claims", "-m", tmp_path / "second", *more)
    assert made.exit_code == 0, made.output
    np.testing.assert_allclose(storage.load(tmp_path / "second").predict(X), expected, rtol=1e-12)


def test_validation_file_and_picture_are_typed_as_the_training_file(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{'A12'[k % 3]},{rng.normal():.3f},{'x12'[k % 3]}" for k in range(90)]
    (tmp_path / "train.csv").write_text("\n".join(["grade,x,lab", *lines]))
    numbers_alone = [line for line in lines if not line.startswith("A")]
    (tmp_path / "valid.csv").write_text("\n".join(["grade,x,lab", *numbers_alone]))
    where = tmp_path / "model"
    made = run("fit", tmp_path / "train.csv", "-t", "lab", "-m", where, "--valid", tmp_path / "valid.csv", *QUICK)
    assert made.exit_code == 0, made.output
    picture = tmp_path / "calibration.svg"
    drawn = run("plot", where, tmp_path / "valid.csv", "-t", "lab", "-k", "calibration", "-o", picture)
    assert drawn.exit_code == 0, drawn.output
