"""Saved models: predictions to the bit, and the refusal of files that do not fit together."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import few_rounds
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

import boostbp
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, Elementwise
from boostbp.inputs.files.options import FileOptions
from boostbp.losses import Huber, Tweedie
from boostbp.network.steps import Plain
from boostbp.runtime import archive, plain
from boostbp.storage import OLDEST, VERSION
from boostbp.trees.basis import Polynomial
from tests.support.flat_parameters import parameters
from tests.support.helpers import BACKENDS

TINY = {"hidden_layer_sizes": (3,), "n_estimators": 3, "epochs": 1, "min_samples_leaf": 5, "random_state": 0}
X, Y = load_diabetes(return_X_y=True)
X, Y = X[:120], Y[:120]
FLOWERS, SPECIES = load_iris(return_X_y=True)


class Shifted(BoostBPRegressor):
    """An estimator that the format does not know."""


class OwnLoss(Huber):
    """A loss that the format does not know."""


class OwnStep(Plain):
    """A rule that the format does not know."""


def table(rows=120):
    """Numbers with gaps, text, and categories that are numbers and truth values."""
    frame = pd.DataFrame(X[:rows, :4], columns=["ä", "b", "c", "d"])
    frame.iloc[::9, 1] = np.nan
    frame["text"] = pd.Categorical(np.array(["x", "y", None, "z"], object)[np.arange(rows) % 4])
    frame["code"] = pd.Categorical(np.arange(rows) % 3 * 0.5)
    return frame


def regressor(y=Y, inputs=X, **changes):
    return BoostBPRegressor(**parameters(**(TINY | changes))).fit(inputs, y)


def classifier(labels, inputs=FLOWERS, **changes):
    return BoostBPClassifier(**parameters(**(TINY | changes))).fit(inputs, labels)


def means_of_levels():
    """A model whose hidden layer holds the means of the levels of a category, some of them missing in training."""
    model = BoostBPRegressor(quality=1, categorical_features=[2], random_state=0).fit(*LEVELS)
    assert [part.name for part in model.history_.choice.parts] == ["means of levels"]
    return model


def levels():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 130, 900)
    y = rng.normal(size=130)[code] + 0.1 * rng.normal(size=900)
    code = np.where(rng.random(900) < 0.05, np.nan, code)
    return np.column_stack([rng.normal(size=(900, 2)), code]), y


LEVELS = levels()
MODELS = {
    **{f"regressor {backend}": (lambda b=backend: regressor(backend=b), X) for backend in BACKENDS},
    "two outputs": (lambda: regressor(np.c_[Y, -Y], hidden_layer_sizes=[4, 2], n_estimators=(2, 3, 4)), X),
    "column": (lambda: regressor(Y[:, None].repeat(2, 1)), X),
    "poisson": (lambda: regressor(loss="poisson"), X),
    "quantiles": (lambda: regressor(loss="quantile", alpha=[0.2, 0.45, 0.5, 0.55]), X),
    "gamma": (lambda: regressor(1.0 + Y**2, loss="gamma"), X),
    "tweedie": (lambda: regressor(Y**2, loss=Tweedie(power=1.3)), X),
    "huber": (lambda: regressor(loss=Huber(delta=0.7), basis=Polynomial(1), clip=False), X),
    "step": (lambda: regressor(step=Plain(0.1, 0.7, decay=0.5)), X),
    "shared trees": (lambda: regressor(multi_strategy="multi_output_tree", backend="xgboost"), X),
    "native leaves": (lambda: regressor(leaves="native", basis="linear"), X),
    "table": (lambda: regressor(inputs=table(), max_depth=3), table()),
    "polars": (lambda: regressor(inputs=pl.from_pandas(table())), pl.from_pandas(table())),
    "pandas out": (lambda: regressor(inputs=table()).set_output(transform="pandas"), table()),
    "paper": (lambda: regressor(**boostbp.paper_settings(epochs=1, n_estimators=2)), X),
    "no splits": (lambda: regressor(n_estimators=0), X),
    "no base": (lambda: regressor(base="zero", n_estimators=0), X),
    "monotone": (lambda: regressor(hidden_layer_sizes=(), output={"monotone_constraints": [0, 0, 1] + 7 * [-1]}), X),
    "calibrated": (lambda: regressor(calibration=0.3), X),
    "early stopping": (lambda: regressor(early_stopping=True, epochs=3, eval_metric="mae"), X),
    "classes": (lambda: classifier(SPECIES), FLOWERS),
    "two classes": (lambda: classifier(SPECIES == 1, calibration=0.3), FLOWERS),
    "text": (lambda: classifier(np.array(["sété", "b", "c"])[SPECIES], class_weight="balanced"), FLOWERS),
    "objects": (lambda: classifier(np.array(["b", "a", "c"], object)[SPECIES]), FLOWERS),
    "weights": (lambda: classifier(SPECIES.astype(np.int16), class_weight={0: 1.0, 1: 2.5, 2: 1}), FLOWERS),
    "reals": (lambda: classifier(np.array([0.0, 2.0, 7.0], np.float32)[SPECIES]), FLOWERS),
    "means of levels": (means_of_levels, LEVELS[0]),
    "autoencoder": (lambda: BoostBPAutoencoder(**parameters(**TINY)).fit(FLOWERS), FLOWERS),
}
# What differs in these does not reach an exported model, or reaches it in another of them too.
LIKE_OTHERS = {"column", "step", "polars", "pandas out", "paper", "calibrated", "early stopping", "objects"}
EXPORTED = [pytest.param(kind, marks=pytest.mark.slow if kind in LIKE_OTHERS else ()) for kind in MODELS]


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    make, inputs = MODELS[request.param]
    with few_rounds():  # as in the tests
        return make(), inputs


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    with few_rounds():  # as in the tests
        model = classifier(np.array(["b", "a", "c"])[SPECIES], early_stopping=True, deep=True)
    boostbp.save(model, path)
    return path


def outputs(model, inputs):
    """All that a model says of some rows, as bytes."""
    names = ["predict", "predict_proba", "decision_function", "jacobian"]
    names += ["transform"] if len(model.network_.layers) > 1 else []
    made = [getattr(model, name)(inputs) for name in names if hasattr(model, name)]
    return [(type(part), np.asarray(part).dtype, np.asarray(part).tolist()) for part in made]


def saved_and_loaded(model, folder):
    boostbp.save(model, folder / "model")
    return boostbp.load(folder / "model")


def pickled(protocol):
    def way(model, folder):
        return pickle.loads(pickle.dumps(model, protocol=protocol))

    way.__name__ = f"pickled_{protocol}"
    return way


def cloudpickled(model, folder):
    return pickle.loads(pytest.importorskip("cloudpickle").dumps(model))


def copied(model, folder):
    return copy.deepcopy(copy.copy(model))


def joblibbed(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


def skopsed(model, folder):
    skops = pytest.importorskip("skops.io")
    data = skops.dumps(model)
    return skops.loads(data, trusted=skops.get_untrusted_types(data=data))


def test_skops_asks_for_trust_in_the_estimator_alone_and_its_numbers_are_checked(fitted):
    skops = pytest.importorskip("skops.io")
    model, _ = fitted
    kind = f"{type(model).__module__}.{type(model).__name__}"
    data = skops.dumps(model)
    objects = {type(value) for value in model.get_params(deep=False).values()} - {dict, list, tuple, str, int, float}
    trusted = skops.get_untrusted_types(data=data)
    assert [name for name in trusted if name.startswith("boostbp")][:1] == [kind]
    assert len(trusted) <= 1 + len(objects)
    state = model.__getstate__()
    [name] = [name for name, value in state.items() if isinstance(value, bytes)]
    changed = bytearray(state[name])
    changed[len(changed) // 2] ^= 1
    with pytest.raises(ValueError, match="corrupted"):
        type(model)().__setstate__(state | {name: bytes(changed)})


@pytest.mark.filterwarnings("ignore:transform returns no columns")
@pytest.mark.parametrize("way", [saved_and_loaded, pickled(0), pickled(pickle.HIGHEST_PROTOCOL), skopsed])
def test_model_comes_back_to_the_bit(fitted, tmp_path, way):
    assert_comes_back(*fitted, tmp_path, way)


@pytest.mark.parametrize("way", [*map(pickled, range(1, pickle.HIGHEST_PROTOCOL)), cloudpickled, copied, joblibbed])
@pytest.mark.parametrize("fitted", ["step", "table", "text"], indirect=True)
def test_other_ways_that_ask_for_the_same_state_bring_it_back_too(fitted, tmp_path, way):
    assert_comes_back(*fitted, tmp_path, way)


def assert_comes_back(model, inputs, folder, way):
    again = way(model, folder)
    assert type(again) is type(model)
    assert outputs(again, inputs) == outputs(model, inputs)
    assert vars(again).keys() == vars(model).keys()
    assert repr(again.get_params()) == repr(model.get_params())
    assert repr(plain.encode(again.history_, records=True)) == repr(plain.encode(model.history_, records=True))
    assert again.schema_ == model.schema_
    assert again.n_iter_ == model.n_iter_
    for name in ("feature_names_in_", "classes_"):
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
            assert getattr(again, name).dtype == getattr(model, name).dtype
    if hasattr(model, "inverse_transform"):
        hidden = model.transform(inputs)
        np.testing.assert_array_equal(again.inverse_transform(hidden), model.inverse_transform(hidden))


def test_loaded_model_can_be_fitted_again(stored):
    again = boostbp.load(stored)
    inputs, labels = FLOWERS, np.array(["b", "a", "c"])[SPECIES]
    assert outputs(clone(again).fit(inputs, labels), inputs) == outputs(again, inputs)


def test_saving_again_gives_the_same_bytes(stored, tmp_path):
    boostbp.save(boostbp.load(stored), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == stored.read_bytes()


@pytest.mark.slow
def test_loads_and_predicts_without_a_boosting_library(stored):
    code = """
import io, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("lightgbm", "xgboost"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import numpy as np
import boostbp
from sklearn.datasets import load_iris
model, X = boostbp.load(sys.argv[1]), load_iris().data
model.leaf_report(X[:2]), model.health(), model.hidden_representation(X)
found = [model.predict_proba(X), model.attributions(X, steps=2).values, model.importance("gain")]
np.save(sys.stdout.buffer, np.concatenate([part.ravel() for part in found]))
"""
    run = subprocess.run([sys.executable, "-c", code, str(stored)], check=True, capture_output=True)
    model = boostbp.load(stored)
    found = [model.predict_proba(FLOWERS), model.attributions(FLOWERS, steps=2).values, model.importance("gain")]
    np.testing.assert_array_equal(np.load(io.BytesIO(run.stdout)), np.concatenate([part.ravel() for part in found]))


def test_arrays_are_those_of_the_model(stored):
    model = boostbp.load(stored)
    arrays = archive.read(stored, archive.Archive, kind="model", version=VERSION).arrays
    np.testing.assert_array_equal(arrays["layer1.weight"], model.network_.layers[1].forest.leaves.weight)
    np.testing.assert_array_equal(arrays["baseline"], model.network_.baseline)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"basis": Elementwise([np.sin], [np.cos])}, r"^(hidden|basis).*Elementwise"),
        ({"loss": OwnLoss()}, "^loss cannot be stored: OwnLoss"),
        ({"step": OwnStep()}, "^backprop cannot be stored: OwnStep.* is a step of your own"),
        ({"eval_metric": lambda y, p: 0.0}, "^eval_metric cannot be stored"),
        ({"random_state": np.random.RandomState(0)}, "^random_state cannot be stored"),
    ],
)
def test_parameter_that_is_code_is_named(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        boostbp.save(regressor(**change), tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_own_backend_is_named(tmp_path):
    from boostbp import backends

    with pytest.raises(ValueError, match=r"^backend cannot be stored"):
        boostbp.save(regressor(backend=backends.load_backend("sklearn")), tmp_path / "model")


def test_only_fitted_estimators_of_the_package_are_saved(tmp_path):
    with pytest.raises(NotFittedError):
        boostbp.save(BoostBPRegressor(), tmp_path / "model")
    for other in (Shifted(**TINY).fit(X, Y), {"a": 1}):
        with pytest.raises(TypeError, match="cannot be stored: give a fitted BoostBPAutoencoder, "):
            boostbp.save(other, tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_open_files_are_written_and_read(tmp_path):
    model, buffer = regressor(), io.BytesIO()
    boostbp.save(model, buffer)
    boostbp.save(model, tmp_path / "model")
    assert buffer.getvalue() == (tmp_path / "model").read_bytes()
    for source in (io.BytesIO(buffer.getvalue()), open(tmp_path / "model", "rb")):  # noqa: SIM115
        with source as file:
            np.testing.assert_array_equal(boostbp.load(file).predict(X), model.predict(X))
    with open(tmp_path / "other", "wb") as file:
        boostbp.save(model, file)
    np.testing.assert_array_equal(boostbp.load(tmp_path / "other").predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"'BytesIO' is truncated or was changed"):
        boostbp.load(io.BytesIO(buffer.getvalue()[:-9]))
    with (
        open(tmp_path / "model", encoding="latin-1") as file,
        pytest.raises(TypeError, match=r"returns a str, not bytes"),
    ):
        boostbp.load(file)


@pytest.mark.parametrize(
    ("path", "cure"), [(b"PK", r"io.BytesIO\(data\) for the bytes"), (bytearray(9), "io.BytesIO"), (3, "an open file")]
)
def test_what_is_no_path_is_refused(path, cure):
    for use in (lambda: boostbp.load(path), lambda: boostbp.save(regressor(), path)):
        with pytest.raises(TypeError, match=rf"path is a \w+: give the name of a file, or {cure}"):
            use()


def test_an_estimator_of_dask_is_told_what_to_save(tmp_path):
    pytest.importorskip("dask")
    from boostbp.dask import DaskBoostBPRegressor

    model = DaskBoostBPRegressor(**regressor().get_params(deep=False))
    with pytest.raises(
        TypeError, match=r"DaskBoostBPRegressor cannot be stored: store the local estimator, .*to_local\(\)"
    ):
        boostbp.save(model, tmp_path / "model")
    vars(model).update(vars(regressor()))
    boostbp.save(model.to_local(), tmp_path / "model")
    np.testing.assert_array_equal(boostbp.load(tmp_path / "model").predict(X), regressor().predict(X))


def test_a_state_that_lacks_a_parameter_is_refused_by_name():
    model = regressor()
    state = model.__getstate__()
    for name in ("n_jobs", "hidden"):
        damaged = {key: value for key, value in state.items() if key != name}
        with pytest.raises(
            ValueError, match=rf"The stored BoostBPRegressor has no {name}: it is damaged, or of another"
        ):
            BoostBPRegressor.__new__(BoostBPRegressor).__setstate__(damaged)


def replaced(value, *path, by):
    """A copy of nested content with one part replaced; None takes the part out."""
    copy = json.loads(json.dumps(value))
    part = copy
    for key in path[:-1]:
        part = part[key]
    if by is None:
        del part[path[-1]]
    else:
        part[path[-1]] = by
    return copy


@pytest.mark.parametrize(
    ("path", "by"),
    [
        (["estimator"], "OrderedDict"),
        (["estimator"], "BoostBPRegressor"),
        (["estimator"], ["BoostBPClassifier"]),
        (["parameters", "no_such"], 1),
        (["parameters", "loss"], {"loss": {"name": "os.system", "parameters": {"dict": []}}}),
        (["parameters", "loss"], {"loss": {"name": "huber", "parameters": {"dict": [["x", 1]]}}}),
        (["parameters", "step"], {"step": {"name": "os.system", "parameters": {"dict": []}}}),
        (["parameters", "step"], {"step": {"name": "plain", "parameters": {"dict": [["alpha", "x"]]}}}),
        (["parameters", "step"], {"step": {"name": "plain", "parameters": {"dict": [["alpha", -1.0]]}}}),
        (["parameters", "basis"], {"basis": ["linear"]}),
        (["parameters", "basis"], {"call": "print"}),
        (["parameters"], 3),
        (["network", "layers"], None),
        (["network", "layers", 0], None),
        (["network", "layers", 0, "n_outputs"], 4),
        (["network", "layers", 0, "n_features"], 3),
        (["network", "layers", 1, "basis"], "elementwise"),
        (["schema", "n_features"], 5),
        (["schema", "n_features"], "4"),
        (["schema", "names"], ["a", "b"]),
        (["schema", "names"], [1, 2, 3, 4]),
        (["one_dimensional"], 1),
        (["with_offset"], "yes"),
        (["is_input"], True),
        (["schema", "dtypes"], "abcd"),
        (["schema", "names"], "abcd"),
        (["classes", "values"], ["a", "b"]),
        (["classes", "values"], ["a", "b", 3]),
        (["classes", "dtype"], "<i8"),
        (["classes", "dtype"], "V8"),
        (["classes", "dtype"], "<U2000000000"),
        (["loss"], None),
        (["loss", "name"], "elsewhere"),
        (["history", "stop"], "__class__"),
        (["history", "best_epoch"], 7),
        (["history", "epochs", 0, "loss"], "low"),
        (["history", "epochs", 0, "drift"], 3),
        (["history", "epochs", 0, "epoch"], 1),
        (["history", "epochs", 0, "more"], 1),
        (["set_output"], [1]),
        (["set_output"], {"transform": "/tmp/x"}),
        (["more"], 1),
        (["parameters", "checkpoint"], "/tmp/elsewhere"),
        (["parameters", "callbacks"], []),
        (["parameters", "n_jobs"], "all"),
        (["parameters", "n_jobs"], 0),
        (["parameters", "max_depth"], -3),
        (["parameters", "hidden_layer_sizes"], {"tuple": [2.5]}),
        (["classes", "dtype"], "<U65536"),
        (["classes", "dtype"], "<c16"),
        (["classes", "more"], 1),
        (["classes", "values"], ["b", "a", "c"]),
        (["history", "epochs"], []),
        (["history", "best_epoch"], True),
        (["history", "metric"], 3),
        (["history", "stop"], ["EPOCHS"]),
        (["history", "refitted"], 1),
        (["history", "choice"], {"candidates": []}),
        (["history", "epochs", 0, "stds"], {"tuple": []}),
        (["history", "epochs", 0, "dead"], {"tuple": [0.1, 0.2]}),
        (["history", "epochs", 0, "explained"], {"tuple": ["all"]}),
        (["history", "epochs", 0, "r2"], {"tuple": [0.1, 0.2]}),
        (["history", "epochs", 1, "r2"], {"tuple": []}),
        (["history", "epochs", 1, "metrics"], {"dict": [["other", 0.5]]}),
        (["history", "epochs", 1, "metrics"], {"dict": [["valid", "low"]]}),
        (["history", "epochs", 1, "loss"], 10**400),
    ],
    ids=lambda value: str(value)[:40],
)
def test_content_that_does_not_fit_is_refused(stored, tmp_path, path, by):
    content, arrays = archive.read(stored, archive.Archive, kind="model", version=VERSION)
    changed = replaced(content, *path, by=by)
    archive.write(tmp_path / "model", kind="model", version=VERSION, content=changed, arrays=arrays)
    with pytest.raises(ValueError, match="model' is not consistent: "):
        boostbp.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["baseline", "layer0.column", "layer1.left"])
def test_arrays_that_do_not_fit_are_refused(stored, tmp_path, name):
    content, arrays = archive.read(stored, archive.Archive, kind="model", version=VERSION)
    for wrong in ({**arrays, name: arrays[name][:-1]}, {k: v for k, v in arrays.items() if k != name}):
        archive.write(tmp_path / "model", kind="model", version=VERSION, content=content, arrays=wrong)
        with pytest.raises(ValueError, match="model' is not consistent: "):
            boostbp.load(tmp_path / "model")


@pytest.mark.parametrize("version", [0, -7, True, 1.0, "1", None])
def test_versions_that_never_were_are_refused(stored, tmp_path, version):
    content, arrays = archive.read(stored, archive.Archive, kind="model", version=VERSION)
    archive.write(tmp_path / "model", kind="model", version=version, content=content, arrays=arrays)
    with pytest.raises(ValueError, match=r"model' (is not consistent: versions count|has version)"):
        boostbp.load(tmp_path / "model")


def test_arrays_that_nobody_asked_for_are_refused(stored, tmp_path):
    content, arrays = archive.read(stored, archive.Archive, kind="model", version=VERSION)
    more = arrays | {"layer2.left": np.zeros(3, np.int32)}
    archive.write(tmp_path / "model", kind="model", version=VERSION, content=content, arrays=more)
    with pytest.raises(ValueError, match=r"are not used: layer2\.left"):
        boostbp.load(tmp_path / "model")


def test_classes_of_text_are_stored_as_long_as_the_longest(tmp_path):
    model = classifier(np.array(["b", "a", "longest"], "U999")[SPECIES])
    boostbp.save(model, tmp_path / "model")
    again = boostbp.load(tmp_path / "model")
    assert again.classes_.dtype == np.dtype("U7")
    assert again.classes_.tolist() == model.classes_.tolist()


def test_parameter_that_was_set_wrongly_after_the_fit_is_named(tmp_path):
    model = regressor()
    model.n_jobs = "all"
    with pytest.raises((ValueError, TypeError), match="n_jobs"):
        boostbp.save(model, tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_native_parameter_of_a_file_leads_to_no_other_file(stored, tmp_path):
    """What a stranger's file says of native parameters is checked by the next fit as the user's own are."""
    content, arrays = archive.read(stored, archive.Archive, kind="model", version=VERSION)
    target = tmp_path / "target"
    for name in ("output_model", "forcedsplits_filename", "forcedbins_filename", "machine_list_filename"):
        content["parameters"]["backend_params"] = {"dict": [[name, str(target)]]}
        archive.write(tmp_path / "model", kind="model", version=VERSION, content=content, arrays=arrays)
        with pytest.raises(ValueError, match=name):
            boostbp.load(tmp_path / "model").fit(FLOWERS, SPECIES)
    assert not target.exists()


def test_later_and_earlier_files_are_refused(stored, tmp_path):
    copy = tmp_path / "copy"
    content, arrays = archive.read(stored, archive.Archive, kind="model", version=VERSION)
    archive.write(copy, kind="model", version=VERSION + 1, content=content, arrays=arrays)
    told = rf"version {VERSION + 1} of the model format .* reads up to version {VERSION}: update it"
    with pytest.raises(ValueError, match=told):
        boostbp.load(copy)
    archive.write(copy, kind="model", version=5, content=content, arrays=arrays)
    with pytest.raises(
        ValueError, match=rf"version 5 of the model format .* from version {OLDEST} on: fit and save it anew"
    ):
        boostbp.load(copy)
    with pytest.raises(FileNotFoundError):
        boostbp.load(tmp_path / "none")


def test_files_of_earlier_versions_have_no_options_of_files(stored, tmp_path):
    content, arrays = archive.read(stored, archive.Archive, kind="model", version=VERSION)
    assert content["schema"].pop("file_options") is None
    archive.write(tmp_path / "copy", kind="model", version=10, content=content, arrays=arrays)
    assert boostbp.load(tmp_path / "copy").schema_ == boostbp.load(stored).schema_
    content["schema"]["file_options"] = {**plain.encode(FileOptions(dates=("day",)), records=True), "sep": ";;"}
    archive.write(tmp_path / "copy", kind="model", version=VERSION, content=content, arrays=arrays)
    with pytest.raises(ValueError, match="is not consistent"):
        boostbp.load(tmp_path / "copy")


@pytest.mark.slow
def test_mlflow_keeps_models_as_it_keeps_those_of_scikit_learn(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, of other packages
        skops, mlflow = (pytest.importorskip(name) for name in ("skops.io", "mlflow.sklearn"))
        model = regressor()
        trusted = skops.get_untrusted_types(data=skops.dumps(model))
        for options in ({"skops_trusted_types": trusted}, {"serialization_format": "cloudpickle"}):
            path = tmp_path / "_".join(options)
            mlflow.save_model(model, path, pip_requirements=["boostbp"], **options)
            assert outputs(mlflow.load_model(str(path)), X) == outputs(model, X)


@pytest.mark.parametrize("kind", [ValueError, TimeoutError])
def test_what_a_handler_raises_is_no_fault_of_the_file(stored, monkeypatch, kind):
    """The signal comes while the file is read, where whatever is raised becomes a ValueError about the file."""
    mine = kind("time is up")

    def rebuilt(*args, **options):
        signal.raise_signal(signal.SIGINT)
        return True

    def handler(*_):
        raise mine

    monkeypatch.setattr(boostbp.storage, "_rebuilt", rebuilt)
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(kind) as caught:
            boostbp.load(stored)
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught.value is mine
