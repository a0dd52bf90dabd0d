"""Command lines as the documents show them, on made tables; and what tells the task."""

from __future__ import annotations

import gzip
import re
import runpy
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import run
from sklearn.utils import Bunch

from boostbp import load

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide" / "command_line.md"  # which makes the model that others go on with
FOLDERS = [ROOT / "docs" / name for name in (".", "start", "guide", "coming_from")]
PAGES = [
    GUIDE,
    ROOT / "README.md",
    *(page for folder in FOLDERS for page in sorted(folder.glob("*.md")) if page != GUIDE),
]
BLOCKS = [block for page in PAGES for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.S)]
LINES = [line.strip() for block in BLOCKS for line in block.splitlines() if line.startswith("boostbp ")]
COMPARE = [line for line in LINES if line.startswith("boostbp compare")]
SHORT = {
    "fit": ["--set", "deep=true", "--set", "n_estimators=4", "--set", "hidden.n_estimators=4"],
    "compare": ["--quality", "1", "--set", "n_estimators=4", "--folds", "2", "--repeats", "1", "--tune", "0"],
}


def people(n=150, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"id": range(n), "age": rng.uniform(18, 80, n), "work": rng.choice(["a", "b", "c"], n)})
    return frame.assign(income=np.where(frame["age"] + 20 * (frame["work"] == "a") > 60, "high", "low"))


@pytest.fixture
def tables(here):
    """What the lines read."""
    rng = np.random.default_rng(0)
    for name in ("people.csv", "june.csv", "new.csv"):
        people().to_csv(name, index=False)
    people().to_parquet("new.parquet", index=False)
    for folder in ("folder", "rows"):
        Path(folder).mkdir()
        for part in range(2):
            people(seed=part).assign(price=rng.normal(size=150)).drop(
                columns="price" if folder == "folder" else "income"
            ).to_parquet(f"{folder}/{part}.parquet", index=False)
    houses = pd.DataFrame({"area": rng.uniform(30, 200, 150), "sold": pd.date_range("2024-01-01", periods=150)})
    houses.assign(price=houses["area"] * 2).to_csv("houses.csv", sep=";", decimal=",", index=False)
    exposure = rng.uniform(0.2, 2.0, 200)
    claims = pd.DataFrame({"age": rng.uniform(18, 80, 200), "log_exposure": np.log(exposure)})
    claims.assign(claims=rng.poisson(exposure * np.exp(claims["age"] / 80))).to_csv("claims.csv", index=False)
    return here


def words_of(line):
    words = shlex.split(line, comments=True)[1:]
    return [*words, *SHORT.get(words[0], [])]


@pytest.mark.slow
def test_the_lines_run_one_after_the_other(tables):
    assert len(LINES) - len(COMPARE) >= 10
    for line in LINES:
        if line not in COMPARE:
            result = run(*words_of(line))
            assert result.exit_code == 0, f"{line}\n{result.output}"
            if "claims" in line:
                assert "1 features, regression of 'claims'" in result.stderr
    assert {"predicted.csv", "hidden.parquet", "calibration.svg", "income.onnx", "income.c"} <= {
        path.name for path in tables.iterdir()
    }


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("line", COMPARE)
def test_the_lines_that_compare_run(line, tables, openml):
    frame = people()
    told = Bunch(data=frame.drop(columns="income"), target=frame["income"])
    openml(lambda **_: told)
    result = run(*words_of(line))
    assert result.exit_code == 0, result.output


def counts(path, values, seed=0):
    rng = np.random.default_rng(seed)
    n = 120
    pd.DataFrame({"x": rng.normal(size=n), "o": 0.1, "p": 0.2, "q": 0.3, "y": np.arange(n) % values}).to_csv(
        path, index=False
    )
    return path


@pytest.mark.parametrize(
    ("values", "options", "kind"),
    [
        (3, [], "classification"),
        (30, [], "regression"),
        (3, ["-s", "loss=poisson"], "regression"),
        (3, ["-s", "loss=count:poisson"], "regression"),
        (3, ["-s", "loss=quantile"], "regression"),
        (30, ["-s", "loss=softmax"], "classification"),
        (30, ["-s", "loss=log_loss"], "classification"),
        (3, ["-s", "alpha=0.9", "-s", "loss=quantile"], "regression"),
        (30, ["-s", "class_weight=balanced"], "classification"),
        (3, ["--config", "poisson.toml"], "regression"),
        (3, ["--offset", "o"], "regression"),
        (3, ["--offset", "o", "--offset", "p", "--offset", "q"], "classification"),
        (2, ["--offset", "o"], "classification"),
        (3, ["-s", "loss=poisson", "--offset", "o"], "regression"),
    ],
)
def test_loss_parameters_and_offsets_tell_the_task(here, values, options, kind):
    Path("poisson.toml").write_text('loss = "poisson"\n', encoding="utf-8")
    told = run("fit", counts(Path("t.csv"), values), "-t", "y", "-m", "model", "-s", "quality=1", *options)
    assert told.exit_code == 0, told.output
    assert f"{kind} of 'y'" in told.stderr
    assert type(load("model")).__name__ == {"classification": "BoostBPClassifier"}.get(kind, "BoostBPRegressor")


def test_parameters_that_contradict_each_other_are_refused_by_name(tmp_path):
    for options in (
        ["-s", "loss=poisson", "-s", "class_weight=balanced"],
        ["--task", "classification", "-s", "loss=huber"],
    ):
        told = run("fit", counts(tmp_path / "t.csv", 3), "-t", "y", "-m", tmp_path / "model", *options)
        assert told.exit_code in (1, 2)
        assert "loss" in told.stderr or "class_weight" in told.stderr


def test_gzipped_csv_is_read_and_written(tmp_path):
    frame = people()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_csv(tmp_path / "rows.csv.gz", index=False)
    for name in ("rows.csv", "rows.csv.gz"):
        fitted = run("fit", tmp_path / name, "-t", "income", "-m", tmp_path / f"{name}.model", "-s", "quality=1")
        assert fitted.exit_code == 0, fitted.output
        out = tmp_path / f"out-{name}"
        assert run("predict", tmp_path / name, "-m", tmp_path / f"{name}.model", "-o", out, "--proba").exit_code == 0
    with gzip.open(tmp_path / "out-rows.csv.gz") as file:
        assert file.read() == (tmp_path / "out-rows.csv").read_bytes()
    cut = (tmp_path / "rows.csv.gz").read_bytes()[:-40]
    (tmp_path / "rows.csv.gz").write_bytes(cut)
    told = run("fit", tmp_path / "rows.csv.gz", "-t", "income", "-m", tmp_path / "model")
    assert told.exit_code == 1
    assert "rows.csv.gz" in told.stderr


def test_python_m_boostbp_is_the_command(tune, capsys):
    tune(sys, argv=["boostbp", "--version"])
    sys.modules.pop("boostbp.__main__", None)  # another test may have imported all modules
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("boostbp", run_name="__main__", alter_sys=True)
    assert (ended.value.code, capsys.readouterr().out.split()[0]) == (0, "boostbp")
