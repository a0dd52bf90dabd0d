"""boostbp compare: scores in the terminal, in files and in a report."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from command_line import QUICK, error_of, run

from tests.cli.test_documents import SHORT, counts

SMALL = ["--folds", 2, "--repeats", 1, "-q", 1]


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_compare_prints_and_writes_the_same_scores(tmp_path):
    out, html = tmp_path / "out.json", tmp_path / "out.html"
    result = run("compare", "iris", "--json", out, "--html", html, *SMALL, "-q", 2, *QUICK)
    assert result.exit_code == 0, result.output
    written = json.loads(out.read_text())
    assert written["machine"]["lightgbm"]
    comparison = written["results"]["iris"]
    assert result.stdout.startswith(f"iris: {comparison['verdict']}\n")
    assert comparison["verdict"] in html.read_text(encoding="utf-8")
    models = {row["model"]: row for row in comparison["models"]}
    assert list(models) == ["LightGBM", "XGBoost", "boostbp quality=1", "boostbp quality=2"]
    for name, row in models.items():
        line = next(line for line in result.stdout.splitlines() if line.startswith(f"\u2502 {name} "))
        assert f"{row['scores']['accuracy']:.4f}" in line
        assert f"{row['scores']['log_loss']:.4f}" in line


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_compare_takes_a_file_with_categories_and_models_of_the_user(folder, here):
    (here / "team.py").write_text(
        "from sklearn.ensemble import HistGradientBoostingClassifier\n"
        "def ours():\n    return HistGradientBoostingClassifier(max_iter=5, categorical_features='from_dtype')\n"
    )
    options = ["--with", "team:ours", "--reference", "ours", "--metric", "accuracy", *SMALL, *QUICK]
    result = run("compare", folder / "iris.csv", "-t", "species", "--drop", "key", *options)
    assert result.exit_code == 0, result.output
    assert "classification, 150 rows, 5 features, 2 folds" in result.stdout
    assert result.stdout.startswith("iris.csv: Keep ours: no model is better beyond chance.")


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_compare_fails_when_a_model_fails_and_shows_the_others():
    result = run("compare", "wine", "-b", "catboost", *SMALL)
    assert "failed: boostbp quality=1 on wine" in error_of(result, 1)
    assert "LightGBM" in result.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_compare_takes_queries_events_and_groups(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=240)
    frame = pd.DataFrame({"x": x, "z": rng.normal(size=240), "who": [f"q{k}" for k in np.arange(240) // 8]})
    frame = frame.assign(grade=np.digitize(x, [-0.5, 0.5]), days=np.exp(-x), died=rng.uniform(size=240) < 0.7)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for target, options, told in (
        ("grade", ["--query", "who", "--drop", "days", "--drop", "died"], "ranking, 240 rows, 2 features"),
        ("days", ["--event", "died", "--drop", "grade", "--drop", "who"], "survival, 240 rows, 2 features"),
        ("x", ["--groups", "who", "--drop", "grade", "--drop", "died"], "regression, 240 rows, 2 features"),
    ):
        result = run("compare", tmp_path / "rows.csv", "-t", target, *options, *SMALL, "-s", "n_estimators=5")
        assert result.exit_code == 0, result.output
        assert told in result.stdout


@pytest.mark.parametrize(
    ("sources", "more", "reason"),
    [
        (["table.csv", "breast_cancer"], ["--target", "y"], "'breast_cancer' has its own target"),
        (["iris", "table.csv"], [], "needs the name of the column that is predicted"),
        (["diabetes", "iris"], ["--folds", "60"], "a comparison needs at least 2 classes with 60 rows each"),
        (["table.csv"], ["--target", "y", "--event", "a"], "event='a': the column holds"),
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


def test_ctrl_c_prints_what_was_measured_and_ends_with_its_code(monkeypatch, one_process):
    from boostbp.comparison import measuring

    calls, measured = [], measuring.measure

    def interrupted(job, data):
        calls.append(job)
        if len(calls) > 6:
            raise KeyboardInterrupt
        return measured(job, data)

    monkeypatch.setattr("studies.measure", interrupted)
    result = run("compare", "diabetes", "--folds", 4, "-q", 1, "-s", "n_estimators=3")
    assert result.exit_code == 130
    assert "2 of 8 folds" in result.stdout


def test_report_without_its_packages_fails_before_the_work(without, tmp_path):
    without("jinja2")
    result = run("compare", "iris", "--html", tmp_path / "out.html")
    assert result.exit_code == 1
    assert "pip install 'boostbp[report]'" in result.stderr
    assert result.stdout == ""
