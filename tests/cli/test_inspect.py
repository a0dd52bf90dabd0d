"""The command line on a model: what it is, and pictures of it."""

from __future__ import annotations

import json
import warnings
from contextlib import chdir
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from command_line import run
from flat_parameters import parameters
from matplotlib.image import imread
from sklearn.datasets import load_diabetes, load_iris

from boostbp import BoostBPClassifier, BoostBPRegressor, load, plots, save
from boostbp.cli import console
from boostbp.cli.report.contenders import SINGLE_LAYER
from boostbp.network.history import REFITTED
from boostbp.plots.axes import figure
from tests.support.studies import weighed_at

TINY = {"n_estimators": 3, "min_samples_leaf": 5, "epochs": 2, "early_stopping": False, "random_state": 0}
DEEP = TINY | {"deep": True}


HOSTILE = "\x1b]0;owned\x07[bold red]:bomb:[link=http://evil.example]\x9b2J\u202ename"
SHOWN = r"\x1b]0;owned\x07[bold red]:bomb:[link=http://evil.example]\x9b2J\u202ename"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model whose columns, classes and file have names that a terminal, or rich, would obey; its table."""
    where = tmp_path_factory.mktemp("hostile")
    iris = load_iris(as_frame=True)
    X = iris.data.set_axis([f"{HOSTILE}{number}" for number in range(4)], axis=1)
    y = np.array(["=1+cmd|x", "-2", f"[red]{HOSTILE}"])[iris.target]
    name = where / f"{HOSTILE.replace('/', '|')}.boostbp"
    save(BoostBPClassifier((2,), **parameters(**DEEP)).fit(X, y), name)
    X.assign(**{"=cmd|y": np.where(y == "-2", "-2.5", "@SUM(A1)"), "target": y}).to_csv(
        where / "table.csv", index=False
    )
    return where, name, y


def unobeyed(text):
    return all(one.isprintable() or one in "\n" for one in text)


def test_nothing_of_a_file_reaches_the_terminal_as_more_than_text(hostile):
    where, model, _ = hostile
    told = run("inspect", model)
    assert told.exit_code == 0
    assert unobeyed(told.output)
    words = "".join(told.stdout.split())  # lines are broken anywhere
    for name in (f"{SHOWN}0", f"{SHOWN.replace('/', '|')}.boostbp", f"[red]{SHOWN}"):
        assert "".join(name.split()) in words
    broken = where / f"{HOSTILE.replace('/', '|')}.csv"
    broken.write_text("a\n1\n")
    for arguments in (
        ("predict", broken, "-m", model, "-o", where / "out.csv"),
        ("fit", broken, "-t", HOSTILE, "-m", where / "model"),
        ("fit", where / "table.csv", "-t", "target", "-m", where / "model", "--drop", f"{HOSTILE}9"),
        ("inspect", broken),
        ("compare", broken, "-t", HOSTILE),
    ):
        told = run(*arguments)
        assert told.exit_code == 1
        assert unobeyed(told.output)
        assert "[bold red]:bomb:[link=" in told.stderr


@pytest.mark.filterwarnings("always")
def test_warnings_of_the_command_line_are_text_too(capsys):
    console.one_line_errors(warnings.warn)(HOSTILE)
    told = capsys.readouterr().err
    assert SHOWN in told
    assert unobeyed(told)


def test_formulas_are_escaped_where_it_is_asked_for(hostile, tmp_path):
    where, model, y = hostile
    arguments = ["predict", where / "table.csv", "-m", model, "--keep", "=cmd|y"]
    for options in ([], ["--escape-formulas"]):
        assert run(*arguments, "-o", tmp_path / f"{len(options)}.csv", *options).exit_code == 0
    plain, escaped = (pd.read_csv(tmp_path / f"{number}.csv", dtype=str) for number in (0, 1))
    assert list(plain.columns) == ["=cmd|y", "prediction"]
    assert list(escaped.columns) == ["'=cmd|y", "prediction"]
    predicted = load(model).predict(pd.read_csv(where / "table.csv").iloc[:, :4])
    assert plain["prediction"].tolist() == predicted.tolist()
    assert escaped["prediction"].tolist() == [f"'{one}" if one.startswith("=") else one for one in predicted]
    kept = ["-2.5" if one == "-2" else "'@SUM(A1)" for one in y]  # a number stays one
    assert escaped.iloc[:, 0].tolist() == kept
    told = run(*arguments, "-o", tmp_path / "out.parquet", "--escape-formulas")
    assert told.exit_code == 2
    assert "--escape-formulas is for CSV files" in told.stderr


def test_hidden_representations_have_numbers_that_stay(hostile, tmp_path):
    where, model, _ = hostile
    for options in ([], ["--escape-formulas"]):
        out = tmp_path / f"{len(options)}.csv"
        assert run("transform", where / "table.csv", "-m", model, "-o", out, *options).exit_code == 0
    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "1.csv").read_bytes()


def test_inspect_counts_what_the_model_holds(models):
    facts = json.loads(run("inspect", models / "iris.boostbp", "--json").stdout)
    assert facts["estimator"] == "BoostBPClassifier"
    assert facts["features"] == list(load_iris(as_frame=True).data.columns)
    assert facts["outputs"] == ["setosa", "versicolor", "virginica"]
    assert facts["settings"] == {"hidden_layer_sizes": [4, 3], **parameters(**DEEP)}
    assert facts["bytes"] == (models / "iris.boostbp").stat().st_size
    # 3 rounds of a tree for each output, on a ridge regression
    assert [(layer["outputs"], layer["trees"], layer["ridge"]) for layer in facts["layers"]][:2] == [
        (4, 12, 1),
        (3, 9, 1),
    ]
    model = load(models / "iris.boostbp")
    assert [layer["inputs"] for layer in facts["layers"]] == [len(model.layer_names(number)) for number in range(3)]
    assert all(layer["leaves"] >= 2 * layer["trees"] for layer in facts["layers"])
    assert sum(facts["importances"].values()) == pytest.approx(1.0)
    assert facts["training"]["epochs"] == 2
    assert [layer["layer"] for layer in facts["health"]["layers"]] == [0, 1]


def test_inspect_prints_what_json_holds(models):
    printed = run("inspect", models / "iris.boostbp", "--most", "2").stdout
    facts = json.loads(run("inspect", models / "iris.boostbp", "--json").stdout)
    best = sorted(facts["importances"].items(), key=lambda pair: -pair[1])
    for name, share in best[:2]:
        assert any(name in line and f"{share:.1%}" in line for line in printed.splitlines())
    for layer in facts["layers"]:
        assert any(f"{layer['leaves']:,}" in line for line in printed.splitlines())
    assert facts["training"]["stop"] in printed
    assert "hidden_layer_sizes" in printed


def test_inspect_of_an_average_tells_its_scores_once(tmp_path):
    model = BoostBPRegressor((2,), **parameters(**{**TINY, "early_stopping": "auto"})).fit(
        *load_diabetes(return_X_y=True)
    )
    save(model, tmp_path / "average.boostbp")
    facts = json.loads(run("inspect", tmp_path / "average.boostbp", "--json").stdout)["training"]
    assert facts["scores"] == model.history_.scores
    assert "metrics" not in facts["choice"]
    printed = run("inspect", tmp_path / "average.boostbp").stdout
    assert printed.count(f"It has rmse {facts['scores']['held_out']:.6g} on held_out.") == 1
    assert facts["refitted"]
    assert REFITTED in printed


@pytest.mark.parametrize(
    ("weight", "words"), [(0.0, "no weight in the model"), (0.25, "25% of the weight in the model"), (1.0, "")]
)
def test_what_is_said_of_a_network_tells_its_weight_in_the_model(models, tmp_path, weight, words):
    model = load(models / "diabetes.boostbp")
    model.model_ = replace(model.model_, history=weighed_at(model.history_, weight))
    save(model, tmp_path / "average.boostbp")
    inspected = run("inspect", tmp_path / "average.boostbp")
    printed = " ".join(inspected.output.split())
    for part in (model.summary(), str(model.health())):
        assert " ".join(part.split()) in printed
    of = f" of the network, which has {words}," if words else ""
    assert printed.count(f"Epoch 2{of} was kept:") == 1
    assert f"Hidden layers at epoch 2{f', of a network with {words}' if words else ''}:" in printed
    arguments = ("transform", models / "diabetes.parquet", "--model", tmp_path / "average.boostbp")
    said = run(*arguments, "--out", tmp_path / "hidden.csv").output
    assert (f"They are the units of hidden layers with {words}." in " ".join(said.split())) == bool(words)
    drawn = run("plot", arguments[2 + 1], "--out", tmp_path / "h.svg", arguments[1], "--kind", "representation")
    assert drawn.exit_code == 0


@pytest.mark.parametrize("kind", ["training", "health", "importances"])
def test_model_is_drawn(models, tmp_path, kind):
    out = tmp_path / "out.png"
    result = run("plot", models / "iris.boostbp", "-k", kind, "-o", out)
    assert result.exit_code == 0, result.output
    assert np.ptp(imread(out)) == 1.0  # ink on paper
    assert [path.name for path in tmp_path.iterdir()] == ["out.png"]


@pytest.mark.parametrize(
    ("name", "kind", "target"),
    [
        ("iris.csv", "representation", None),
        ("iris.csv", "representation", "species"),
        ("iris.csv", "calibration", "species"),
        ("diabetes.parquet", "representation", "target"),
        ("diabetes.parquet", "residuals", "target"),
    ],
)
def test_rows_of_a_file_are_drawn(models, tmp_path, name, kind, target):
    out = tmp_path / "out.svg"
    model = (models / name).with_suffix(".boostbp")
    options = [] if target is None else ["-t", target]
    result = run("plot", model, models / name, "-k", kind, "-o", out, "--rows", 60, *options)
    assert result.exit_code == 0, result.output
    assert "<svg" in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["iris.boostbp", "-o", "out.gif"], 2, "ends in .png, .svg or .pdf"),
        (["iris.boostbp", "-k", "residuals"], 2, "name a .csv or .parquet file"),
        (["iris.boostbp", "iris.csv"], 2, "leave out"),
        (["iris.boostbp", "iris.csv", "-k", "calibration"], 2, "needs --target"),
        (["iris.boostbp", "iris.csv", "-k", "residuals", "-t", "species"], 1, "needs a regressor"),
        (["diabetes.boostbp", "diabetes.parquet", "-k", "calibration", "-t", "target"], 1, "needs a classifier"),
        (["iris.csv"], 1, "not a file of boostbp"),
        (["iris.boostbp", "iris.csv", "-k", "representation", "--layer", "5"], 1, "layer=5"),
    ],
)
def test_error_is_one_line_with_its_code(models, arguments, code, message):
    with chdir(models):
        result = run("plot", *arguments, *([] if "-o" in arguments else ["-o", "out.png"]))
    assert result.exit_code == code
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert message in lines[0]
    assert not (models / "out.png").exists()


def test_picture_replaces_neither_model_nor_rows(here):
    (here / "m.svg").write_text("precious")
    for arguments, name in ((["m.svg"], "MODEL"), (["m", "m.svg", "-k", "representation"], "DATA")):
        result = run("plot", *arguments, "-o", "./m.svg")
        assert result.exit_code == 2
        assert f"--out 'm.svg' would replace {name} 'm.svg': give --out another name" in result.stderr
    assert [path.read_text() for path in here.iterdir()] == ["precious"]


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


@pytest.mark.filterwarnings("default:The model was fitted with an offset")
@pytest.mark.parametrize(("kind", "shown"), [("residuals", "predict"), ("calibration", "predict_proba")])
def test_pictures_of_predictions_have_the_offset(tmp_path, kind, shown):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "known": rng.normal(size=80)})
    frame["y"] = frame.x + frame.known if kind == "residuals" else np.where(frame.x + frame.known > 0, "a", "b")
    frame.to_csv(tmp_path / "table.csv", index=False)
    made = (BoostBPRegressor if kind == "residuals" else BoostBPClassifier)((), n_estimators=3, random_state=0)
    model = made.fit(frame[["x"]], frame.y, offset=frame.known)
    save(model, tmp_path / "model")
    arguments = [tmp_path / "model", tmp_path / "table.csv", "-k", kind, "-t", "y", "-o", tmp_path / "out.png"]
    result = run("plot", *arguments, "--offset", "known")
    assert result.exit_code == 0, result.output
    picture, (ax,) = figure()
    classes = {} if kind == "residuals" else {"classes": model.classes_}
    getattr(plots, kind)(frame.y, getattr(model, shown)(frame[["x"]], offset=frame.known), ax, **classes)
    picture.savefig(tmp_path / "expected.png", dpi=150)
    np.testing.assert_array_equal(imread(tmp_path / "out.png"), imread(tmp_path / "expected.png"))
    assert "fitted with an offset, but none was passed" in run("plot", *arguments).stderr
