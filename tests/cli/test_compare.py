"""boostbp compare: scores in the terminal, in files and in a report."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import QUICK, error_of, run

from boostbp.comparison.contenders import SINGLE_LAYER
from tests.cli.test_documents import SHORT, counts


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_compare_prints_and_writes_the_same_scores(tmp_path):
    out = tmp_path / "out.json"
    result = run("compare", "iris", "-b", "lightgbm", "--json", out, "--test-size", 0.3, *QUICK)
    assert result.exit_code == 0, result.output
    written = json.loads(out.read_text())
    assert written["machine"]["lightgbm"]
    models = {row["model"]: row for row in written["results"]["iris"]}
    assert list(models) == ["boostbp (lightgbm)", "LightGBM", "LightGBM linear_tree", "XGBoost"]
    for name, row in models.items():
        line = next(line for line in result.stdout.splitlines() if f" {name} " in line)
        assert f"{row['scores']['accuracy']:.4f}" in line
        assert f"{row['scores']['log_loss']:.4f}" in line


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_compare_takes_a_file_with_categories(folder):
    arguments = ["-t", "species", "--drop", "key", "-b", "lightgbm", "-s", "early_stopping=false", *QUICK]
    result = run("compare", folder / "iris.csv", *arguments)
    assert result.exit_code == 0, result.output
    assert "classification, 150 rows, 5 features" in result.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_compare_fails_when_a_model_fails():
    result = run("compare", "wine", "-b", "catboost")
    assert "failed: boostbp (catboost) on wine" in error_of(result, 1)
    assert "LightGBM" in result.stdout


@pytest.mark.parametrize(
    ("sources", "more", "reason"),
    [
        (["table.csv", "breast_cancer"], ["--target", "y"], "'breast_cancer' has its own target"),
        (["iris", "table.csv"], [], "needs the name of the column that is predicted"),
        (["diabetes", "iris"], ["--folds", "60"], "a comparison needs at least 2 classes with 60 rows each"),
    ],
)
def test_compare_refuses_before_it_trains(table, sources, more, reason):
    paths = [table if source == "table.csv" else source for source in sources]
    result = run("compare", *paths, *more)
    assert result.exit_code == 1
    assert reason in " ".join(result.stderr.split())
    assert result.stdout == ""  # no table of a data set before the one that is refused


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_compare_takes_the_task_of_a_loss(tmp_path):
    told = run("compare", counts(tmp_path / "t.csv", 3), "-t", "y", *SHORT["compare"], "--set", "loss=poisson")
    assert told.exit_code == 0, told.output
    assert "regression, 120 rows" in told.output


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_compare_writes_a_report_over_folds(models, tmp_path):
    out, html = tmp_path / "out.json", tmp_path / "out.html"
    quick = ["-s", "n_estimators=3", "-s", "epochs=2", "-s", "deep=true"]
    files = ["--json", out, "--html", html]
    result = run("compare", models / "iris.csv", "-t", "species", "-b", "lightgbm", "--folds", 2, *files, *quick)
    assert result.exit_code == 0, result.output
    (rows,) = json.loads(out.read_text())["results"].values()
    page = html.read_text()
    for row in rows:
        values = [fold["accuracy"] for fold in row["folds"]]
        text = f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}"
        assert text in page
        assert text in result.stdout
    assert "iris.csv" in page
    assert [row["model"] for row in rows] == ["boostbp (lightgbm)", *(one.label for one in SINGLE_LAYER)]
    assert all(row["model_bytes"] > 0 for row in rows)


def test_report_without_its_packages_fails_before_the_work(without, tmp_path):
    without("jinja2")
    result = run("compare", "iris", "--html", tmp_path / "out.html")
    assert result.exit_code == 1
    assert "pip install 'boostbp[report]'" in result.stderr
    assert result.stdout == ""
