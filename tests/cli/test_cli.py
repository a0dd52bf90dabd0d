"""The command line: from a file to a model to predictions, and errors of one line."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from command_line import QUICK, error_of, run

import boostbp
from boostbp import BoostBPAutoencoder, BoostBPRegressor, storage
from tests.cli.conftest import POISSON, read_claims


def test_single_layers_alone_from_file_to_predictions(folder, tmp_path):
    where, out = tmp_path / "model", tmp_path / "out.csv"
    result = run("fit", folder / "diabetes.csv", "-t", "target", "-m", where, *QUICK, "-s", "deep=false")
    assert result.exit_code == 0, result.output
    estimator = storage.load(where)
    assert estimator.summary() in result.stderr
    assert "No network was trained" in result.stderr
    assert result.stderr.endswith(f" s and saved to {where}.\n")
    assert estimator.deep is False
    assert run("predict", folder / "diabetes.csv", "-m", where, "-o", out).exit_code == 0
    X = pd.read_csv(folder / "diabetes.csv").drop(columns="target")
    np.testing.assert_array_equal(pd.read_csv(out)["prediction"], estimator.predict(X))
    inspected = " ".join(run("inspect", where).output.split())
    assert "No network was trained" in inspected
    assert not any(word in inspected for word in ("Depth lowers", "hidden layers are of a network", "warning"))
    message = error_of(run("transform", folder / "diabetes.csv", "-m", where, "-o", out), 1)
    assert "this model has no hidden layer (deep=False" in message


@pytest.fixture
def inputs(folder, here):
    """A folder to work in, with a table, two more ways to it, a second table and settings."""
    (here / "t.csv").write_bytes((folder / "iris.csv").read_bytes())
    (here / "link.csv").symlink_to("t.csv")
    (here / "hard.csv").hardlink_to("t.csv")
    (here / "v.csv").write_bytes((folder / "iris.csv").read_bytes())
    (here / "c.toml").write_text("epochs = 1\n")
    (here / "sub").mkdir()
    return here


def contents(where):
    return {path.name: path.read_bytes() for path in where.iterdir() if path.is_file()}


# The model is not there and no table has a column z: were anything read first, the exit code would be 1.
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("predict t.csv -m m -o t.csv", "--out 't.csv' would replace DATA 't.csv': give --out another name"),
        ("transform t.csv -m m -o t.csv", "--out 't.csv' would replace DATA 't.csv'"),
        ("predict t.csv -m m -o sub/../t.csv", "--out 'sub/../t.csv' would replace DATA 't.csv'"),
        ("predict {inputs}/t.csv -m m -o t.csv", "--out 't.csv' would replace DATA '{inputs}/t.csv'"),
        ("predict link.csv -m m -o t.csv", "--out 't.csv' would replace DATA 'link.csv'"),
        ("predict t.csv -m m -o link.csv", "--out 'link.csv' would replace DATA 't.csv'"),
        ("predict hard.csv -m m -o t.csv", "--out 't.csv' would replace DATA 'hard.csv'"),
        ("predict t.csv -m v.csv -o v.csv", "--out 'v.csv' would replace --model 'v.csv'"),
        ("transform t.csv -m v.csv -o ./sub/../v.csv", "would replace --model 'v.csv'"),
        ("predict none.csv -m m -o sub/../none.csv", "--out 'sub/../none.csv' would replace DATA 'none.csv'"),
        ("fit t.csv -t z -m t.csv", "--model 't.csv' would replace DATA 't.csv': give --model another name"),
        ("fit t.csv -t z -m link.csv", "--model 'link.csv' would replace DATA 't.csv'"),
        ("fit t.csv -t z -m v.csv --valid v.csv", "--model 'v.csv' would replace --valid 'v.csv'"),
        ("fit t.csv -t z -m c.toml --config c.toml", "--model 'c.toml' would replace --config 'c.toml'"),
        ("compare v.csv t.csv -t z --json t.csv", "--json 't.csv' would replace DATA 't.csv'"),
        ("compare t.csv -t z --html link.csv", "--html 'link.csv' would replace DATA 't.csv'"),
        ("compare t.csv -t z --json r --html r", "--html 'r' would replace --json 'r'"),
    ],
)
def test_file_that_the_command_reads_is_not_replaced(inputs, arguments, message):
    before = contents(inputs)
    assert message.format(inputs=inputs) in error_of(run(*arguments.format(inputs=inputs).split()), 2)
    assert contents(inputs) == before
    assert (inputs / "link.csv").is_symlink()


@pytest.mark.parametrize(
    ("arguments", "option", "path"),
    [
        ("predict t.csv -m m -o", "--out", "nodir/x.csv"),
        ("transform t.csv -m m -o", "--out", "nodir/x.parquet"),
        ("plot m -o", "--out", "nodir/x.svg"),
        ("fit t.csv -t z -m", "--model", "nodir/m"),
        ("compare t.csv -t z --json", "--json", "nodir/x.json"),
        ("compare t.csv -t z --html", "--html", "nodir/x.html"),
    ],
)
def test_folder_that_is_not_there_is_said_before_the_work(inputs, arguments, option, path):
    message = f"{option} {path!r}: there is no folder 'nodir': create it first"
    assert message in error_of(run(*arguments.split(), path), 2)


@pytest.mark.parametrize("arguments", ["predict t.csv -m m -o x.csv", "fit t.csv -t z -m x.csv", "plot m -o x.svg"])
def test_folder_in_the_place_of_a_file_is_said_before_the_work(inputs, arguments):
    name = arguments.split()[-1]
    (inputs / name).mkdir()
    assert f"{name!r} is a folder: give the name of a file in it" in error_of(run(*arguments.split()), 2)


def test_header_that_is_not_utf8_names_its_file(model, tmp_path):
    source = tmp_path / "latin.csv"
    source.write_bytes("Länge,y\n1,2\n3,4\n".encode("latin-1"))
    for arguments in (
        ["fit", source, "-t", "y", "-m", tmp_path / "m"],
        ["predict", source, "-m", model, "-o", tmp_path / "o.csv"],
        ["compare", source, "-t", "y"],
    ):
        message = error_of(run(*arguments), 1)
        assert "latin.csv cannot be used as it is: its text is in cp1252. Add --encoding cp1252." in message
    assert [path.name for path in tmp_path.iterdir()] == ["latin.csv"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "{folder}/iris.csv", "-t", "petals", "-m", "m"], 1, "iris.csv has no column 'petals'"),
        (["fit", "{folder}/none.csv", "-t", "species", "-m", "m"], 1, "none.csv' is neither a file nor a folder"),
        (["fit", "{folder}/iris.csv", "-t", "species", "-m", "no/such/m"], 2, "there is no folder"),
        (["fit", "{folder}/iris.csv", "-t", "species", "-m", "m", "-s", "epoch=3"], 2, "did you mean 'epochs'?"),
        (["fit", "{folder}/iris.csv", "-t", "species", "-m", "m", "-s", "epochs"], 2, "not of the form key=value"),
        (["fit", "{folder}/iris.csv", "-t", "species", "-m", "m", "-s", "epochs=few"], 2, "give a whole number"),
        (["fit", "{folder}/iris.csv", "-t", "species", "-m", "m", "-b", "catboost"], 1, "catboost"),
        (["fit", "{folder}/iris.csv", "-t", "species", "-m", "m", "-s", "epochs=-1"], 1, "epochs=-1"),
        (["fit", "{folder}/iris.csv", "-t", "species", "-m", "m", "--task", "regression"], 1, "must hold numbers"),
        (["compare", "no_such"], 1, "source='no_such' is not a data set"),
        (["compare", "iris", "--with", "random_forest"], 1, "model 'random_forest' is not known: use one of lightgbm"),
        (["compare", "iris", "--metric", "gini"], 1, "metric='gini' is not known: give one of log_loss"),
        (
            ["compare", "iris", "--reference", "ridge"],
            1,
            "reference='ridge' is not one of the models: give one of Light",
        ),
        (["compare", "iris", "--folds", "weeks"], 1, "folds='weeks': give a whole number, 'time'"),
        (["compare", "iris", "-s", "quality=2"], 2, "--set quality is --quality here"),
        (["compare", "iris", "--groups", "who"], 1, "'iris' has no columns ['who'] of groups"),
        (["compare", "iris", "-s", "epoch=3"], 2, "did you mean 'epochs'?"),
    ],
)
def test_error_is_one_line_with_its_code(folder, here, arguments, code, message):
    result = run(*(argument.format(folder=folder) for argument in arguments))
    assert message in error_of(result, code)
    assert list(here.iterdir()) == []


def test_help_and_version():
    result = run("--help")
    assert result.exit_code == 0
    assert all(command in result.output for command in ("fit", "predict", "transform", "compare"))
    assert run("--version").output.split() == ["boostbp", boostbp.__version__]


@pytest.mark.parametrize("valid", [False, True])
@pytest.mark.parametrize("source", ["train.csv", "train"])
def test_offset_is_a_column_that_is_no_feature(claims, tmp_path, source, valid):
    X, y, offset = read_claims(claims, "train")
    how = {"loss": "poisson", "quality": 1, "n_estimators": 20, "random_state": 0}
    X_valid, y_valid, offset_valid = read_claims(claims, "valid")
    held = {"eval_set": [(X_valid, y_valid)], "eval_offset": offset_valid} if valid else {}
    expected = BoostBPRegressor(**how).fit(X, y, offset=offset, **held).predict(X_valid, offset=offset_valid)
    more = ["--valid", claims / "valid.csv"] if valid else []
    where, out = tmp_path / "model", tmp_path / "out.csv"
    made = run("fit", claims / source, "-t", "claims", "-m", where, "--offset", "log_exposure", *more, *POISSON)
    assert made.exit_code == 0, made.output
    assert "2 features" in made.stderr
    made = run("predict", claims / "valid.csv", "-m", where, "-o", out, "--offset", "log_exposure", "--keep", "age")
    assert made.exit_code == 0, made.output
    written = pd.read_csv(out)
    assert list(written) == ["age", "prediction"]
    np.testing.assert_allclose(written.prediction, expected, rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # a warning is a line of the output, as for users
        made = run("predict", claims / "valid.csv", "-m", where, "-o", out)
    assert made.exit_code == 0
    assert "none was passed" in " ".join(made.stderr.split())
    np.testing.assert_allclose(pd.read_csv(out).prediction * np.exp(offset_valid), expected, rtol=1e-9)


def test_offset_and_earlier_model_that_do_not_fit_are_refused(claims, folder, model, tmp_path):
    fit = ["fit", claims / "train.csv", "-t", "claims", "-m", tmp_path / "model", *POISSON]
    assert "train.csv: Column 'area' must hold numbers" in error_of(run(*fit, "--offset", "area"), 1)
    assert "has no column 'exposure'" in error_of(run(*fit, "--offset", "exposure"), 1)
    assert "train.csv has no column 'sepal_length'" in error_of(run(*fit, "--init-model", model), 1)
    later = ["fit", folder / "iris.csv", "-t", "species", "-m", tmp_path / "model", "--init-model", model, *QUICK]
    assert run(*later).exit_code == 0
    assert storage.load(tmp_path / "model").classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert "--init-model is a BoostBPClassifier, and --task" in error_of(run(*later, "--task", "regression"), 2)
    assert "--init-model says how columns are read" in error_of(run(*later, "--numeric", "sepal_length"), 2)
    X = pd.read_csv(claims / "train.csv")[["age"]]
    storage.save(BoostBPAutoencoder((2,), epochs=1, n_estimators=2).fit(X), tmp_path / "coder")
    assert "give the model of a regressor" in error_of(run(*fit, "--init-model", tmp_path / "coder"), 2)
    assert "would replace --init-model" in error_of(run(*fit[:5], model, "--init-model", model), 2)
