"""fit_layer: a layer without an estimator checks its parameters as estimators do."""

from __future__ import annotations

import re

import numpy as np
import pytest
from flat_parameters import layer_of, parameters

from boostbp import BoostBPRegressor, fit_layer

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


def test_one_layer_takes_none_for_the_penalty_by_cross_validation():
    made = [fit_layer(X, Y, {"n_estimators": 2, "base_lambda": by}) for by in (None, "gcv")]
    np.testing.assert_array_equal(made[0].predict(X), made[1].predict(X))
