"""boostbp inspect and transform: what a model is."""

from __future__ import annotations

import json
from contextlib import chdir
from dataclasses import replace

import pytest
from command_line import error_of, run
from flat_parameters import parameters
from sklearn.datasets import load_diabetes, load_iris

from boostbp import BoostBPRegressor, load, save
from boostbp.network.history import REFITTED
from tests.cli.conftest import DEEP, TINY
from tests.support.studies import weighed_at


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
    assert message in error_of(result, code)
    assert not (models / "out.png").exists()
