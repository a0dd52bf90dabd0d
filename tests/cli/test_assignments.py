"""Values of --set and of a configuration file have the types of their parameters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from command_line import error_of, run

from boostbp import BoostBPClassifier, BoostBPRegressor, storage
from boostbp.cli.assignments import settings


def test_regression_by_config_file(folder, tmp_path):
    config = tmp_path / "model.toml"
    config.write_text(
        "epochs = 1\nhidden_layer_sizes = [2]\nn_estimators = 9\n[hidden]\nn_estimators = 2\n"
        "[backend_params]\nlambda_l1 = 0.5\n"
    )
    where = tmp_path / "diabetes.model"
    run("fit", folder / "diabetes.csv", "-t", "target", "-m", where, "--config", config, "-s", "n_estimators=5", "-q")
    estimator = storage.load(where)
    assert isinstance(estimator, BoostBPRegressor)
    params = estimator.get_params()
    assert (params["hidden__n_estimators"], params["n_estimators"]) == (2, 5)
    out = tmp_path / "out.csv"
    assert run("predict", folder / "diabetes.parquet", "-m", where, "-o", out, "-q").stderr == ""
    X = pd.read_parquet(folder / "diabetes.parquet").drop(columns="target")
    np.testing.assert_array_equal(pd.read_csv(out)["prediction"], estimator.predict(X))
    assert "--proba needs a classifier" in error_of(
        run("predict", folder / "diabetes.csv", "-m", where, "-o", out, "--proba"), 1
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("epochs=7", 7),
        ("max_time=1", 1),
        ("deep=false", False),
        ("quality=2", 2),
        ("max_depth=none", None),
        ("max_depth=9", 9),
        ("hidden_layer_sizes=8", (8,)),
        ("hidden_layer_sizes=8,4", (8, 4)),
        ("hidden_layer_sizes=[8, 4]", (8, 4)),
        ("hidden.max_depth=2", {"max_depth": 2}),
        ("backprop__step_size=1", {"step_size": 1}),
        ("output.backend_params.lambda_l1=0.5", {"backend_params": {"lambda_l1": 0.5}}),
        ("backend_params.lambda_l1=0.5", {"lambda_l1": 0.5}),
    ],
)
def test_set_gives_a_value_of_the_right_type(text, value):
    (got,) = settings(BoostBPClassifier, assigned=[text]).values()
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    "text", ["clip=1", "clip=maybe", "epochs=1.5", "epochs=true", "step_size=true", "backend_params=3"]
)
def test_set_refuses_a_value_of_the_wrong_type(text):
    key, _, value = text.partition("=")
    with pytest.raises(ValueError, match=f"(?i)(^|: ){key}=.*{value}.*: (give|use) "):
        settings(BoostBPRegressor, assigned=[text])


def test_command_line_wins_over_the_config(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("epochs = 3\nbackend = 'sklearn'\nclip = false\n[backend_params]\na = 1\nb = 2\n")
    given = settings(BoostBPRegressor, config=config, assigned=["epochs=4", "backend_params.b=5"], backend="xgboost")
    of_layers = {"hidden": {"clip": False}, "output": {"clip": False}}
    assert given == {"epochs": 4, "backend": "xgboost", "backend_params": {"a": 1, "b": 5}, **of_layers}
    config.write_text("epochs = = 3")
    with pytest.raises(ValueError, match=r"c\.toml' is not a TOML file"):
        settings(BoostBPRegressor, config=config)
