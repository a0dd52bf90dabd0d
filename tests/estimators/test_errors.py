"""Bad input: an error that names the argument, the value and the cure."""

from __future__ import annotations

import re

import numpy as np
import pytest
from flat_parameters import layer_of, parameters

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, fit_layer

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


def test_auto_encoder_checks_early_stopping():
    with pytest.raises(ValueError, match=r"early_stopping='maybe'"):
        BoostBPAutoencoder(epochs=1, early_stopping="maybe").fit(X)


def test_auto_encoder_takes_numbers_only():
    with pytest.raises(ValueError, match=r"NaN"):
        BoostBPAutoencoder().fit(changed(X, (0, 0), np.nan))


def test_layer_that_does_not_exist():
    with pytest.raises(ValueError, match=r"layer=1 does not exist: this model has 1 hidden layers"):
        fit(deep=True).transform(X, layer=1)


@pytest.mark.parametrize(
    ("H", "targets", "message"),
    [
        (X[0], Y, r"H has shape \(3,\)"),
        (changed(X, (0, 0), np.inf), Y, r"H has infinite values"),
        (X, Y[:-1], r"targets has 59 rows and H has 60"),
        (X, changed(Y, 3, np.nan), r"targets has 1 values that are not finite"),
    ],
)
def test_fit_layer(H, targets, message):
    with pytest.raises(ValueError, match=message):
        fit_layer(H, targets)


def test_hidden_layers_without_a_derivative_are_refused():
    with pytest.raises(ValueError, match="basis='constant' with hidden layers"):
        fit(basis="constant")
    with pytest.raises(ValueError, match="basis='constant' with hidden layers"):
        BoostBPRegressor(output={"basis": "constant"}).fit(X, Y)


@pytest.mark.parametrize("how", [{"quality": 1}, {"deep": False, "quality": 2}])
def test_layers_without_networks_may_have_constant_leaves(how):
    model = BoostBPRegressor(output={"basis": "constant", "n_estimators": 20}, random_state=0, **how).fit(X, Y)
    assert not len(model.network_.layers[-1].forest.leaves.column)
    assert model.score(X, Y) > 0.5


def test_structures_are_not_kept_under_native_leaves():
    with pytest.raises(ValueError, match=r"structure_epochs=3 is not supported with leaves='native'.*leaves='refit'"):
        fit(leaves="native", structure_epochs=3)


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


@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        (3, "hidden=3 is not allowed: give a dict"),
        ([{}, {}], "hidden=[{}, {}] has 2 specs for 1 hidden layers: give one, or as many"),
        ([{"max_depth": -2}], "hidden[0]: max_depth=-2 is not allowed"),
    ],
)
def test_specs_of_hidden_layers(hidden, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        BoostBPRegressor((2,), hidden=hidden).fit(X, Y)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"multi_strategy": "multi_output"}, "multi_strategy='multi_output' is not known"),
        ({"base": "Ridge"}, "base='Ridge' is not known: use one of 'ridge', 'additive', 'zero'"),
        ({"leaves": "natve"}, "leaves='natve' is not known"),
        ({"clip": "x"}, "clip='x' is not known"),
        ({"extra_trees": "x"}, "extra_trees='x' is not known"),
        ({"learning_rate": np.nan}, "learning_rate=nan is not allowed"),
        ({"reg_lambda": -5.0}, "reg_lambda=-5.0 is not allowed"),
        ({"base_lambda": -1}, "base_lambda=-1 is not allowed"),
        ({"min_samples_leaf": 0}, "min_samples_leaf=0 is not allowed"),
        ({"n_estimators": -3}, "n_estimators=-3 is not allowed"),
        ({"n_estimators": "3"}, "n_estimators='3' is not allowed"),
        ({"random_state": None}, "random_state=None is not allowed"),
    ],
)
def test_one_layer_checks_its_parameters_as_estimators_do(words, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        layer_of(X, Y, **words)


def test_one_layer_without_rows():
    with pytest.raises(ValueError, match="targets has no rows"):
        fit_layer(X[:0], Y[:0])


def test_names_of_units_that_are_not_there():
    model = fit(hidden_layer_sizes=())
    with pytest.raises(ValueError, match="This model has no hidden layer, so there are no units to name"):
        model.get_feature_names_out()


def test_one_layer_takes_none_for_the_penalty_by_cross_validation():
    made = [fit_layer(X, Y, {"n_estimators": 2, "base_lambda": by}) for by in (None, "gcv")]
    np.testing.assert_array_equal(made[0].predict(X), made[1].predict(X))
