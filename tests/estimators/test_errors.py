"""Bad input: an error that names the argument, the value and the cure."""

from __future__ import annotations

import re

import numpy as np
import pytest
from flat_parameters import parameters

from boostbp import BoostBPClassifier, BoostBPRegressor

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
Y = X @ [1.0, -2.0, 0.5]


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def fit(**words):
    of_fit = {name: words.pop(name) for name in ("callbacks", "keep_state") if name in words}
    return BoostBPRegressor(**parameters(**({"epochs": 1, "n_estimators": 2} | words))).fit(X, Y, **of_fit)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_target_that_is_not_finite(value):
    with pytest.raises(ValueError, match=r"(?is)y contains (NaN|infinity).*"):
        BoostBPRegressor().fit(X, changed(Y, 7, value))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_feature_that_is_infinite(value):
    with pytest.raises(ValueError, match=r"(?is)X contains infinity"):
        BoostBPRegressor().fit(changed(X, (4, 1), value), Y)


def test_feature_that_is_infinite_at_predict():
    model = fit()
    with pytest.raises(ValueError, match=r"(?is)X contains infinity"):
        model.predict(changed(X, (4, 1), np.inf))


def test_one_class_only():
    with pytest.raises(ValueError, match=r"y has only one class, .*1.*at least two"):
        BoostBPClassifier().fit(X, np.ones(60))


def test_rows_that_do_not_agree():
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples"):
        BoostBPRegressor().fit(X, Y[:-1])


def test_wrong_number_of_features_at_predict():
    model = fit()
    with pytest.raises(ValueError, match=r"X has 2 features, but BoostBPRegressor is expecting 3 features"):
        model.predict(X[:, :2])


def test_unknown_backend():
    with pytest.raises(ValueError, match=r"'catboost'.*lightgbm.*sklearn"):
        fit(backend="catboost")


@pytest.mark.parametrize(
    ("backend", "name", "value"),
    [
        ("lightgbm", "zero_as_missing", True),
        ("lightgbm", "use_quantized_grad", True),
        ("lightgbm", "linear_tree", True),
        ("lightgbm", "boosting", "dart"),
        ("lightgbm", "objective", "poisson"),
        ("lightgbm", "num_iterations", 7),
        ("lightgbm", "num_leafs", 7),
        ("xgboost", "booster", "dart"),
        ("xgboost", "objective", "count:poisson"),
        ("xgboost", "eta", 0.3),
        ("xgboost", "gama", 0.3),
    ],
)
def test_native_parameter_that_breaks_the_method(backend, name, value):
    with pytest.raises(ValueError, match=rf"{name}.*{value}") as caught:
        fit(backend=backend, backend_params={name: value})
    assert len(str(caught.value)) > 40  # says why, and what to do


PARAMETERS = [
    ("hidden_layer_sizes", 0),
    ("n_estimators", -1),
    ("learning_rate", -0.5),
    ("learning_rate", float("nan")),
    ("max_depth", -2),
    ("max_leaves", 1),
    ("min_samples_leaf", 0),
    ("multi_strategy", "vector"),
    ("leaves", "constant"),
    ("basis", "cubic"),
    ("reg_lambda", -1.0),
    ("base", "lasso"),
    ("epochs", -1),
    ("start", "zeros"),
    ("step", "adam"),
    ("step_size", 0.0),
    ("step_size", float("inf")),
    ("momentum", 1.0),
    ("refit_order", "sideways"),
    ("output_target", "keep"),
    ("early_stopping", "maybe"),
    ("validation", 1.0),
    ("n_iter_no_change", 0),
    ("n_jobs", 0),
    ("loss", "hinge"),
    ("structure_epochs", 0),
    ("epochs", "auto"),
    ("structure_samples", 0),
    ("structure_samples", 1.5),
]


@pytest.mark.parametrize(("name", "value"), PARAMETERS, ids=str)
def test_parameter_out_of_bounds(name, value):
    with pytest.raises(ValueError, match=name) as caught:
        fit(**{name: value})
    assert str(value) in str(caught.value) or repr(value) in str(caught.value)


def test_eval_metric_and_eval_set():
    with pytest.raises(ValueError, match=r"eval_metric='gini'"):
        BoostBPRegressor(epochs=1, eval_metric="gini").fit(X, Y, eval_set=[(X, Y)])
    with pytest.raises(ValueError, match=r"eval_set\[0\]"):
        BoostBPRegressor(epochs=1).fit(X, Y, eval_set=[X])
    with pytest.raises(ValueError, match=r"eval_set\[0\]: y has classes that it did not have at fit: \[2\]"):
        BoostBPClassifier(epochs=1).fit(X, Y > 0, eval_set=[(X, np.where(Y > 0, 1, 2))])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_time": -1}, "max_time=-1 is not allowed: give a number of seconds above 0, or None"),
        ({"max_time": "1m"}, "max_time='1m' is not allowed"),
        ({"skip": "False"}, "skip='False' is not known: use one of True, False"),
        ({"quality": "high"}, "quality='high' is not known: use one of 1, 2, 3, 4, 5"),
        ({"quality": True}, "quality=True is not known: use one of 1, 2, 3, 4, 5"),
        ({"keep_state": 0}, "keep_state=0 is not known: use one of True, False"),
        ({"clip": "no"}, "clip='no' is not known"),
        ({"standardize": 1}, "standardize=1 is not known"),
        ({"extra_trees": 2}, "extra_trees=2 is not known"),
        ({"epochs": 2.5}, "epochs=2.5 is not allowed: give a whole number"),
        ({"structure_epochs": 1.9}, "structure_epochs=1.9 is not allowed: give a whole number"),
        ({"n_iter_no_change": True}, "n_iter_no_change=True is not allowed"),
        ({"structure_samples": True}, "structure_samples=True is not allowed"),
        ({"max_bins": 1}, "max_bins=1 is not allowed: give a whole number of at least 2"),
        ({"max_depth": 2.5}, "max_depth=2.5 is not allowed: give a whole number"),
        ({"n_estimators": [2, True]}, "output: n_estimators=True is not allowed"),
        ({"n_estimators": [True, 2]}, "hidden[0]: n_estimators=True is not allowed"),
        ({"output": {"num_leaves": 3}}, "output has no parameter 'num_leaves': did you mean 'max_leaves'?"),
        ({"backprop": {"stepsize": 3}}, "backprop has no parameter 'stepsize': did you mean 'step_size'?"),
        ({"callbacks": print}, "is a single function: give a list"),
        ({"hidden_layer_sizes": None}, "hidden_layer_sizes=None is not allowed: give a whole number"),
        ({"hidden_layer_sizes": (4, 0)}, "hidden_layer_sizes[1]=0 is not allowed: give a whole number of at least 1"),
    ],
)
def test_parameter_of_another_kind(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fit(**parameters)


@pytest.mark.parametrize("quality", [1, 3])
@pytest.mark.parametrize(("callbacks", "message"), [(print, "is a single function: give a list"), (3, "not allowed")])
def test_callbacks_of_another_kind_at_any_quality(quality, callbacks, message):
    with pytest.raises(ValueError, match=message):
        BoostBPRegressor(quality=quality).fit(X, Y, callbacks=callbacks)


def test_whole_floats_are_whole_numbers_everywhere():
    whole = {"n_estimators": 2, "max_depth": 2, "min_samples_leaf": 3, "random_state": 0, "n_jobs": 1, "verbose": 0}
    whole |= {"quality": 1, "epochs": 1, "hidden": {"n_estimators": 1}, "backprop": {"structure_epochs": 1}}
    for kind in (float, np.float32):
        floats = {name: kind(value) for name, value in whole.items() if not isinstance(value, dict)}
        for deep in (True, False):
            expected = BoostBPRegressor(deep=deep, **whole).fit(X, Y).predict(X)
            np.testing.assert_array_equal(BoostBPRegressor(deep=deep, **whole | floats).fit(X, Y).predict(X), expected)
    for name in ("quality", "n_jobs", "verbose", "random_state"):
        with pytest.raises(ValueError, match=rf"^{name}=1.5 is not"):
            BoostBPRegressor(**whole | {name: 1.5}).fit(X, Y)


def test_names_of_units_that_are_not_there():
    model = fit(hidden_layer_sizes=())
    with pytest.raises(ValueError, match="This model has no hidden layer, so there are no units to name"):
        model.get_feature_names_out()
