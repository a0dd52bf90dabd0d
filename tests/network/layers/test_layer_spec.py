"""Specs of layers: values that are refused by the names of their fields."""

from __future__ import annotations

import re

import numpy as np
import pytest
from flat_parameters import parameters

from boostbp import BoostBPRegressor

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
Y = X @ [1.0, -2.0, 0.5]


def fit(**words):
    of_fit = {name: words.pop(name) for name in ("callbacks", "keep_state") if name in words}
    return BoostBPRegressor(**parameters(**({"epochs": 1, "n_estimators": 2} | words))).fit(X, Y, **of_fit)


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
