"""The command line: from a file to a model to predictions, and errors of one line."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import QUICK, error_of, run
from pyarrow import csv, parquet

import boostbp
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, storage
from boostbp.cli.assignments import settings
from boostbp.cli.predict import write_tables
from boostbp.inputs.files.reading import read_table
from boostbp.network.trainer import Trainer


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


@pytest.mark.parametrize("read_from", ["csv", "parquet"])
@pytest.mark.parametrize("write_to", ["csv", "parquet"])
def test_predictions_are_those_of_the_estimator(folder, model, tmp_path, read_from, write_to):
    out = tmp_path / f"out.{write_to}"
    result = run("predict", folder / f"iris.{read_from}", "-m", model, "-o", out, "--proba", "--keep", "key")
    assert result.exit_code == 0, result.output
    written = pd.read_csv(out, dtype={"key": str}) if write_to == "csv" else pd.read_parquet(out)
    estimator = storage.load(model)
    X = pd.read_parquet(folder / "iris.parquet").drop(columns=["key", "species"])
    expected = estimator.predict_proba(X)
    names = [f"probability_{name}" for name in ("setosa", "versicolor", "virginica")]
    assert list(written.columns) == ["key", "prediction", *names]
    np.testing.assert_array_equal(written[names].to_numpy(), expected)
    np.testing.assert_array_equal(written["prediction"], estimator.predict(X))
    assert written["key"].tolist() == [f"{row:03d}" for row in range(150)]


def test_chunks_change_nothing(folder, model, tmp_path):
    """Files are read in chunks of 16,384 rows."""
    source, out = tmp_path / "many.parquet", tmp_path / "out.parquet"
    rows = pd.concat([pd.read_parquet(folder / "iris.parquet")] * 120, ignore_index=True)
    rows.to_parquet(source)
    assert run("transform", source, "-m", model, "-o", out).exit_code == 0
    expected = storage.load(model).transform(rows.drop(columns=["key", "species"]))  # units of all networks in the sum
    written = pd.read_parquet(out)
    assert list(written.columns) == [f"h{k}" for k in range(expected.shape[1])]
    np.testing.assert_array_equal(written, expected)


def test_column_order_of_the_file_does_not_matter(folder, model, tmp_path):
    shuffled = pd.read_parquet(folder / "iris.parquet").iloc[:, ::-1]
    shuffled.to_parquet(tmp_path / "shuffled.parquet")
    for source, out in ((folder / "iris.parquet", "a.csv"), (tmp_path / "shuffled.parquet", "b.csv")):
        assert run("predict", source, "-m", model, "-o", tmp_path / out, "--proba").exit_code == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


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


def test_failed_prediction_leaves_the_old_file(folder, model, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("precious")
    lacking = tmp_path / "lacking.csv"
    lacking.write_text("sepal_length,colour\n1,blue\n")
    assert "lacking.csv has no column 'sepal_width'" in error_of(run("predict", lacking, "-m", model, "-o", out), 1)
    text = (
        folder.joinpath("iris.csv").read_text().replace("\n5.1,3.5", "\nlong,3.5", 1).replace("\n4.9,3", "\nlong,3", 1)
    )
    broken = tmp_path / "broken.csv"
    broken.write_text(text)
    assert "long" in error_of(run("predict", broken, "-m", model, "-o", out), 1)
    assert out.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.csv", "lacking.csv", "out.csv"]


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


def test_earlier_output_is_replaced(folder, model, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("old")
    assert run("predict", folder / "iris.csv", "-m", model, "-o", out).exit_code == 0
    assert len(pd.read_csv(out)) == 150


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_kept_column_with_the_name_of_an_output_is_refused(folder, model, tmp_path, form):
    table = pd.read_csv(folder / "iris.csv").assign(prediction="old", probability_setosa=0.5, h0=1, hi=2)
    source, out = tmp_path / "clash.parquet", tmp_path / f"out.{form}"
    table.to_parquet(source)
    for command, clash in (
        ("predict --keep prediction", "'prediction'"),
        ("predict --proba --keep probability_setosa --keep prediction", "'prediction', 'probability_setosa'"),
        ("transform --keep h0", "'h0'"),
    ):
        message = error_of(run(*command.split(), "--keep", "hi", source, "-m", model, "-o", out), 1)
        assert f"--keep {clash}: " in message
        assert "rename it in clash.parquet" in message
        assert not out.exists()
    # what is not written may be kept
    kept = ["--keep", "probability_setosa", "--keep", "h0"]
    assert run("predict", source, "-m", model, "-o", out, *kept).exit_code == 0
    written = pd.read_csv(out) if form == "csv" else pd.read_parquet(out)
    assert list(written.columns) == ["probability_setosa", "h0", "prediction"]


def test_header_that_is_not_utf8_names_its_file(model, tmp_path):
    source = tmp_path / "latin.csv"
    source.write_bytes("Länge,y\n1,2\n3,4\n".encode("latin-1"))
    for arguments in (
        ["fit", source, "-t", "y", "-m", tmp_path / "m"],
        ["predict", source, "-m", model, "-o", tmp_path / "o.csv"],
        ["compare", source, "-t", "y"],
    ):
        message = error_of(run(*arguments), 1)
        assert "header of latin.csv holds bytes that are not UTF-8: save the file in UTF-8" in message
    assert [path.name for path in tmp_path.iterdir()] == ["latin.csv"]


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
        (["compare", "iris", "--test-size", "1.5"], 2, "--test-size 1.5 is not between 0 and 1"),
        (["compare", "iris", "-s", "epoch=3"], 2, "did you mean 'epochs'?"),
    ],
)
def test_error_is_one_line_with_its_code(folder, here, arguments, code, message):
    result = run(*(argument.format(folder=folder) for argument in arguments))
    assert message in error_of(result, code)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("arguments", [["fit"], ["nonsense"], ["compare", "iris", "--seed", "x"]])
def test_wrong_command_line_ends_with_2(arguments):
    assert run(*arguments).exit_code == 2


def test_help_and_version():
    result = run("--help")
    assert result.exit_code == 0
    assert all(command in result.output for command in ("fit", "predict", "transform", "compare"))
    assert run("--version").output.split() == ["boostbp", boostbp.__version__]


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


def test_tables_take_their_place_only_when_all_is_well(tmp_path):
    path = tmp_path / "out.parquet"
    table = pa.table({"x": [1.5, 2.5]})

    def tables():
        yield table
        assert not path.exists()
        yield table

    write_tables(path, tables())
    assert parquet.read_table(path)["x"].to_pylist() == [1.5, 2.5, 1.5, 2.5]

    def half():
        yield table
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_tables(path, half())
    with pytest.raises(ValueError, match="no rows to write"):
        write_tables(path, iter([]))
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.parquet"]
    assert parquet.read_table(path).num_rows == 4


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


def test_kept_identifier_that_is_a_feature_too_is_not_rounded(folder, tmp_path):
    table = parquet.read_table(folder / "diabetes.parquet")
    ids = pa.array([1234567890123456789 + k for k in range(len(table))])
    parquet.write_table(table.append_column("id", ids), tmp_path / "people.parquet")
    where, out = tmp_path / "model", tmp_path / "out.parquet"
    assert run("fit", tmp_path / "people.parquet", "-t", "target", "-m", where, *QUICK).exit_code == 0
    assert run("predict", tmp_path / "people.parquet", "-m", where, "-o", out, "--keep", "id").exit_code == 0
    assert parquet.read_table(out)["id"].combine_chunks() == ids


def test_quantiles_are_named_by_their_levels(folder, tmp_path):
    file, out = tmp_path / "levels.model", tmp_path / "levels.csv"
    options = ["-s", "loss=quantile", "-s", "alpha=[0.1, 0.5]", "-s", "deep=false", "-s", "quality=1"]
    assert run("fit", folder / "diabetes.csv", "-t", "target", "-m", file, *options, "-q").exit_code == 0
    assert run("predict", folder / "diabetes.csv", "-m", file, "-o", out, "-q").exit_code == 0
    found = pd.read_csv(out)
    assert list(found) == ["quantile_0.1", "quantile_0.5"]
    expected = storage.load(file).predict(read_table(folder / "diabetes.csv", "target")[0])
    np.testing.assert_array_equal(found, expected)
