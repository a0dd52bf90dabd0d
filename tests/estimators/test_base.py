"""Notebooks, debuggers and scikit-learn look at every attribute of an estimator, in whatever state it is."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
import sklearn
from helpers import interrupted_fit
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, load, save

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + RNG.normal(size=60)
FEW = {"n_estimators": 2, "epochs": 2, "random_state": 0}
MODELS = {
    "default": BoostBPRegressor(**FEW),
    "one_layer": BoostBPRegressor((), **FEW),
    "shallow": BoostBPRegressor(deep=False, **FEW),
    "no_networks": BoostBPRegressor(quality=1, **FEW),
    "deep": BoostBPRegressor((2, 2), deep=True, **FEW),
    "nothing_watched": BoostBPRegressor((2,), early_stopping=False, **FEW),
    "classifier": BoostBPClassifier(deep=False, **FEW),
    "deep_classifier": BoostBPClassifier((2,), deep=True, **FEW),
    "autoencoder": BoostBPAutoencoder((2,), **FEW),
}
SINGLE = {"one_layer", "shallow", "classifier"}


def fitted(name):
    return sklearn.clone(MODELS[name]).fit(X, Y > 0 if "classifier" in name else Y)


def interrupted(name):
    def stop(progress):
        raise KeyboardInterrupt

    return interrupted_fit(sklearn.clone(MODELS[name]), X, Y, callbacks=[stop])


def look_at(thing):
    """Ask for every attribute, those of the class's properties too, which `dir` leaves out where they raise."""
    names = set(dir(thing)) | {name for kind in type(thing).__mro__ for name in vars(kind)}
    for name in names:
        hasattr(thing, name)  # what is no AttributeError comes out of it
        getattr(thing, name, None)
    inspect.getmembers(thing)
    repr(thing)
    str(thing)


def look_at_estimator(model):
    look_at(model)
    for value in vars(model).values():
        if type(value).__module__.startswith("boostbp"):
            look_at(value)
    for display in ("diagram", "text"):
        with sklearn.config_context(display=display):
            assert type(model).__name__ in repr(model)
            bundle = model._repr_mimebundle_()
            assert ("text/html" in bundle) == (display == "diagram")
    assert type(model).__name__ in model._repr_html_()


@pytest.mark.parametrize("name", MODELS)
def test_every_attribute_can_be_asked_for(name, tmp_path):
    unfitted, model = MODELS[name], fitted(name)
    save(model, tmp_path / "model")
    for state in (unfitted, model, load(tmp_path / "model"), sklearn.clone(model)):
        look_at_estimator(state)
    look_at_estimator(make_pipeline(StandardScaler(), unfitted))
    look_at_estimator(make_pipeline(StandardScaler(), model))
    assert not hasattr(unfitted, "_n_features_out")
    assert hasattr(model, "_n_features_out") == (name not in SINGLE)


@pytest.mark.parametrize("name", ["default", "deep", "autoencoder"])
def test_every_attribute_of_an_interrupted_fit_can_be_asked_for(name):
    look_at_estimator(interrupted(name))


@pytest.mark.parametrize("attribute", ["model_", "network_", "history_", "n_iter_", "feature_importances_"])
def test_attributes_of_an_estimator_that_only_looks_fitted_are_absent(attribute):
    estimator = BoostBPRegressor()
    with pytest.raises(NotFittedError, match="This BoostBPRegressor instance is not fitted yet"):
        getattr(estimator, attribute)
    estimator.anything_ = 1  # as a subclass may set
    with pytest.raises(AttributeError, match="model_"):
        getattr(estimator, attribute)


@pytest.mark.parametrize("name", sorted(SINGLE))
def test_names_of_units_that_are_not_there_are_refused_and_others_are_not_fitted(name):
    with pytest.raises(NotFittedError):
        MODELS[name].get_feature_names_out()
    model = fitted(name)
    check_is_fitted(model)
    with pytest.raises(ValueError, match="This model has no hidden layer, so there are no units to name"):
        model.get_feature_names_out()


def test_no_property_of_the_package_is_left_out():
    """Estimators that are derived elsewhere in the package have properties of the same kinds."""
    from boostbp.dask import DaskBoostBPClassifier, DaskBoostBPRegressor

    for kind in (DaskBoostBPClassifier, DaskBoostBPRegressor):
        model = kind(deep=False)
        look_at(model)
        vars(model).update(vars(fitted("classifier" if kind is DaskBoostBPClassifier else "shallow")))
        look_at(model)
        assert isinstance(model, BaseEstimator)


def test_every_method_takes_the_frame_that_the_fit_took():
    """None reads a table again without its names, of which scikit-learn warns: warnings are errors here."""
    frame = pd.DataFrame(X, columns=list("abc"))
    without = {"fit", "fit_more", "inverse_transform", "explain", "predict_interval", "predict_set", "calibrate"}
    called = []
    for name in ("deep", "deep_classifier", "autoencoder"):
        y = Y > 0 if "classifier" in name else Y
        model = sklearn.clone(MODELS[name]).fit(frame, y)
        public = [name for name in dir(model) if not name.startswith("_") and name not in without]
        for method in [name for name in public if callable(getattr(model, name))]:
            if "X" not in inspect.signature(getattr(model, method)).parameters:
                continue
            found = getattr(model, method)(
                X=frame, **({"y": y} if method in ("score", "fit_transform", "refit") else {})
            )
            if inspect.isgenerator(found):
                list(found)
            called.append(method)
        if name != "autoencoder":
            model.calibrate(frame, y)
            (model.predict_set if "classifier" in name else model.predict_interval)(frame, 0.5)
    assert {"predict", "predict_proba", "score", "transform", "jacobian", "apply", "importance"} <= set(called)


def test_the_score_of_an_autoencoder_is_r2_of_the_reconstruction():
    frame = pd.DataFrame(X, columns=list("abc"))
    model = sklearn.clone(MODELS["autoencoder"]).fit(frame)
    expected = r2_score(X, model.predict(frame), multioutput="variance_weighted")
    assert model.score(frame) == pytest.approx(expected)
