"""What numpy is told to do with floating-point errors changes nothing here."""

from __future__ import annotations

import inspect
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from flat_parameters import parameters
from helpers import WITH_CATEGORIES, needs_torch

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, fit_layer, load, plots, save
from boostbp.runtime.arrays import errstate_in_methods, numpy_errstate

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what shap asks of other packages is not ours
    import shap  # noqa: F401

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 5))
X[:, 1] *= 1e-200  # whose squares are 0
X[:, 2] *= 1e-310
X[rng.random((120, 5)) < 0.1] = np.nan
Y = np.nan_to_num(X[:, 0]) * 1e-90 + 1e-95 * rng.normal(size=120)
LABELS = np.where(np.nan_to_num(X[:, 0]) > 0, "a", np.where(np.nan_to_num(X[:, 3]) > 0, "b", "c"))
COUNTS = rng.poisson(2.0, 120)
WEIGHT = np.where(LABELS == "b", 0.0, 1e-25)
WILD = np.where(rng.random((60, 5)) < 0.5, 1e300, 1e-300)
SMALL = {"hidden_layer_sizes": (3,), "n_estimators": 4, "epochs": 3, "random_state": 0}
MODES = ("raise", "call", "print", "log", "warn", "ignore")


def complain(*_):
    raise AssertionError("numpy called its handler")


def under(mode, work):
    """What `work` gives where numpy is told to do so with all floating-point errors, and that it is told so still."""
    with np.errstate(all=mode, call=complain if mode == "call" else None):
        before = np.geterr()
        found = work()
        assert np.geterr() == before
    return found


def same(found, expected):
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    else:
        np.testing.assert_array_equal(found, expected)


def calls_of(model):
    """Public method -> its calls on ordinary and on wild rows."""
    coder = isinstance(model, BoostBPAutoencoder)
    rows = (np.nan_to_num(X), WILD[:, :5] * 1e-150) if coder else (X, WILD)
    calls = {
        "predict": model.predict,
        "transform": model.transform,
        "jacobian": model.jacobian,
        "hidden_representation": model.hidden_representation,
        "importance": lambda X: model.importance("jacobian", X=X),
        "attributions": lambda X: model.attributions(X).values,
        "explain": lambda X: model.explain(X).values,
        "apply": model.apply,
        "leaf_report": lambda X: [pd.DataFrame(model.leaf_report(X[:3])).astype(str).to_numpy()],
    }
    for name in ("predict_proba", "predict_log_proba", "decision_function"):
        if hasattr(model, name):
            calls[name] = getattr(model, name)
    for name in ("staged_predict", "staged_predict_proba"):
        if hasattr(model, name):
            calls[name] = lambda X, name=name: list(getattr(model, name)(X))[-1]
    y = Y
    if hasattr(model, "classes_"):
        y = LABELS if len(model.classes_) > 2 else LABELS == "a"
    for name in ("predict_interval", "predict_set"):
        if hasattr(model, name):
            calls[name] = lambda X, name=name: getattr(model.calibrate(rows[0], y), name)(X, 0.5)
    if coder:
        calls["score"] = model.score
        calls["inverse_transform"] = lambda X: model.inverse_transform(X[:, : model.transform(rows[0]).shape[1]])
    found = {name: [lambda call=call, part=part: call(part) for part in rows] for name, call in calls.items()}
    if not coder:
        found["calibrate"] = [lambda: model.calibrate(rows[0], y).model_.calibration.scores]
        found["score"] = [lambda: model.score(rows[0], y)]
        found["refit"] = [lambda: model.refit(rows[0], COUNTS if y is Y else y, decay_rate=0.5).predict(rows[0])]
    for name in ("health", "summary", "output_names", "hidden_names", "get_feature_names_out"):
        found[name] = [lambda name=name: re.sub(r" in .* s\.|Training took .*", "", str(getattr(model, name)()))]
    found["layer_names"] = [lambda: model.layer_names(0)]
    found["trees_to_dataframe"] = [lambda: [model.trees_to_dataframe().astype(str).to_numpy()]]
    return found


FITS = {
    "regressor": lambda **how: BoostBPRegressor(**parameters(**SMALL, **how)).fit(X, Y),
    "poisson": lambda **how: BoostBPRegressor(**parameters(loss="poisson", **SMALL, **how)).fit(X, COUNTS),
    "classifier": lambda **how: BoostBPClassifier(**parameters(**SMALL, **how)).fit(X, LABELS, sample_weight=WEIGHT),
    "two classes": lambda **how: BoostBPClassifier(**parameters(**SMALL, **how)).fit(
        X, LABELS == "a", eval_set=(X, LABELS == "a")
    ),
    "auto-encoder": lambda **how: BoostBPAutoencoder(**parameters(**SMALL, **how)).fit(
        np.nan_to_num(X) * [1, 1e150, 1e250, 1, 1]
    ),
}


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=() if name == "lightgbm" else pytest.mark.slow) for name in WITH_CATEGORIES]
)
@pytest.mark.parametrize("kind", FITS)
def test_models_and_all_that_they_tell_are_the_same(backend, kind):
    how = {} if kind == "auto-encoder" else {"deep": True}
    usual = FITS[kind](backend=backend, **how)
    model = under("raise", lambda: FITS[kind](backend=backend, **how))
    calls = calls_of(usual)
    told = {
        name
        for name, member in inspect.getmembers(type(usual), inspect.isfunction)
        if not name.startswith("_") and inspect.unwrap(member).__module__.startswith("boostbp")
    }
    assert told - {"fit", "fit_more", "get_params", "set_params"} == set(calls), "a method without a call here"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of wild rows, which are infinite here and there
        for name, each in calls.items():
            for mode in ("raise", "call"):
                for mine, expected in zip(calls_of(model)[name], each, strict=True):
                    same(under(mode, mine), expected())


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_an_average_of_models_is_the_same_on_several_threads(backend):
    def fit():
        return BoostBPClassifier(**parameters(backend=backend, n_jobs=2, **SMALL)).fit(X, LABELS).predict_proba(X)

    np.testing.assert_array_equal(under("raise", fit), fit())


@pytest.mark.parametrize("mode", MODES)
def test_whatever_numpy_does_with_errors_nothing_is_said(mode, capsys):
    found = under(mode, lambda: FITS["regressor"](deep=True).predict(X))
    np.testing.assert_array_equal(found, FITS["regressor"](deep=True).predict(X))
    assert capsys.readouterr().out == ""


def test_threads_that_were_told_are_as_usual():
    model = FITS["two classes"](deep=True)
    with np.errstate(all="raise"), ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda told: told.run(model.predict_proba, X), [copy_context() for _ in range(4)]))
    same(found, [model.predict_proba(X)] * 4)


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_layers_files_and_pictures_too(tmp_path, backend):
    mpl.use("Agg")
    targets = np.nan_to_num(X[:, [0, 3]]) * [1.0, 1e-90]
    made = fit_layer(X, targets, {"n_estimators": 4}, backend=backend)

    def layer():
        fitted = fit_layer(X, targets, {"n_estimators": 4}, backend=backend)
        output, trace = fitted.forward(X)
        return output, trace.vjp(output), fitted.jacobian(X), fitted.predict(X)

    output, trace = made.forward(X)
    same(under("raise", layer), (output, trace.vjp(output), made.jacobian(X), made.predict(X)))
    model = FITS["two classes"](backend=backend, deep=True)
    under("raise", lambda: save(model, tmp_path / "model"))
    same(under("raise", lambda: load(tmp_path / "model")).predict_proba(X), model.predict_proba(X))
    draw = (
        lambda: plots.training_curves(model),
        lambda: plots.layer_health(model),
        lambda: plots.importances(model),
        lambda: plots.calibration(LABELS == "a", model.predict_proba(X)),
        lambda: plots.residuals(np.nan_to_num(X[:, 0]), np.nan_to_num(X[:, 3])),
        lambda: plots.representation(model.transform(X)),
    )
    for each in draw:
        under("raise", each)


def test_training_that_goes_on_is_the_same(tmp_path):
    def more():
        model = BoostBPRegressor(**parameters(deep=True, **SMALL)).fit(
            X, Y, keep_state=True, checkpoint=tmp_path / "state"
        )
        told = model.fit_more(2).predict(X)
        (tmp_path / "state").unlink()
        return told

    same(under("raise", more), more())


@needs_torch
def test_mixtures_and_layers_in_torch_are_the_same():
    import torch

    from benchmarks.mixtures import GBDTNNClassifier, NNGBDTRegressor
    from boostbp.torch import GBDTModule, GBDTStep

    def mixtures():
        how = {"n_estimators": 4, "epochs": 2, "random_state": 0}
        present = np.nan_to_num(X)
        one = GBDTNNClassifier((3,), **parameters(**how)).fit(X, LABELS)
        other = NNGBDTRegressor((3,), **parameters(**how)).fit(present, present[:, 0])
        return one.predict_proba(X), other.predict(present), other.jacobian(present)

    def layer():
        torch.manual_seed(0)
        x, y = torch.rand(100, 3), torch.rand(100, 1) * 1e-30
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), GBDTModule(4, 2), torch.nn.Linear(2, 1))
        step = GBDTStep(model, n_rows=100)
        for _ in range(2):
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            step.step(loss=loss)
        return model(x).detach().numpy()

    same(under("raise", mixtures), mixtures())
    same(under("raise", layer), layer())


def test_silence_stays_silence():
    with np.errstate(all="ignore"), numpy_errstate():
        np.float64(1e300) * np.float64(1e300)
    with pytest.warns(RuntimeWarning, match="overflow"), numpy_errstate():
        np.float64(1e300) * np.float64(1e300)


def test_methods_keep_their_names_and_signatures():
    @errstate_in_methods
    class Tells:
        def states(self, of=1):
            """Say."""
            return np.geterr()

        def _private(self):
            return np.geterr()

    with np.errstate(all="raise"):
        assert Tells().states()["over"] == "warn"
        assert Tells()._private()["over"] == "raise"
    assert Tells.states.__doc__ == "Say."
    assert str(inspect.signature(Tells.states)) == "(self, of=1)"
