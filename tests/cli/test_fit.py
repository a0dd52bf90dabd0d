"""boostbp fit: progress for people, interrupts, earlier models and files of evaluation rows."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from command_line import QUICK, error_of, run

from boostbp import BoostBPRegressor, storage
from boostbp.network.trainer import Trainer
from tests.cli.conftest import POISSON, read_claims

SHORT = ("-s", "quality=1", "-s", "n_estimators=4")


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
