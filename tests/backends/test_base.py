"""TreeParams: values that compiled code cannot bear are refused by name, whoever passes them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from boostbp import BoostBPRegressor, fit_layer
from boostbp.backends.base import TreeParams
from boostbp.network.layers import LayerSpec

NAN, INF = float("nan"), float("inf")
NOT_NUMBERS: list[Any] = [
    NAN,
    INF,
    -INF,
    True,
    np.bool_(False),
    "3",
    "",
    b"3",
    [3],
    {},
    1j,
    object(),
    np.zeros(2),
    10**400,
]
NOT_WHOLE = [*NOT_NUMBERS, 2.5, 2**31, 2**40, 2**63, 10**5000, Fraction(5, 2), -(2**31)]
WRONG: dict[str, list[Any]] = {
    "max_depth": [*NOT_WHOLE, None, -2],
    "max_leaves": [*NOT_WHOLE, 0, -1, 2**17 + 1],
    "min_samples_leaf": [*NOT_WHOLE, None, 0, -1],
    "max_bins": [*NOT_WHOLE, None, 1, 0, -1],
    "n_threads": [*NOT_WHOLE, None, 0, -1, 100_000],
    "random_state": [*NOT_NUMBERS[:-1], None, -1, 2.5],
    "colsample_bytree": [*NOT_NUMBERS, None, 0, -0.5, 1.5, 2**40],
    "multi_output": [None, "yes", 2, 0.0, [True]],
    "extra_trees": [None, "auto", 2, 0.0, [True]],
    "is_whole_model": [None, "yes", 2, 0.0, [True]],
    "monotone": [None, 1, "1", b"1", [2], [0.5], [True], [NAN], [None], [[1]], {0: 1}, {1}],
}


@pytest.mark.parametrize("name", WRONG)
def test_what_compiled_code_cannot_bear_is_refused_by_name(name):
    for value in WRONG[name]:
        with pytest.raises(ValueError, match=rf"^{name}=.* is not (allowed|known)"):
            TreeParams(**{name: value})
        with pytest.raises(ValueError, match=rf"^{name}="):
            replace(TreeParams(), **{name: value})


def test_values_become_python_s_own():
    growth = TreeParams(
        max_depth=np.int64(3), max_leaves=7.0, min_samples_leaf=np.float32(5), max_bins=Fraction(16),
        n_threads=np.int8(2), random_state=np.uint64(2**63), colsample_bytree=Fraction(1, 2), multi_output=np.True_,
    )  # fmt: skip
    assert repr(growth) == (
        "TreeParams(max_depth=3, max_leaves=7, min_samples_leaf=5, max_bins=16, n_threads=2, "
        "random_state=9223372036854775808, multi_output=True, colsample_bytree=0.5, extra_trees=False, "
        "is_whole_model=True, monotone=(), params={})"
    )


# Of one layer: the same words in estimators and in `fit_layer`.
WRONG_OF_A_LAYER = {
    name: values for name, values in WRONG.items() if name in LayerSpec.__dataclass_fields__ and name != "extra_trees"
} | {
    "max_leaves": [*WRONG["max_leaves"], 1],
    "n_estimators": [*NOT_WHOLE, -1],
    "learning_rate": [*NOT_NUMBERS, -0.5, 2.5, 2**40, 1e300],
    "reg_lambda": [*NOT_NUMBERS, -1.0],
    "base_lambda": [*NOT_NUMBERS, -1.0],
}
X = np.random.default_rng(0).normal(size=(40, 2))


@pytest.mark.parametrize("name", WRONG_OF_A_LAYER)
def test_layers_and_estimators_refuse_them_too(name):
    for value in WRONG_OF_A_LAYER[name]:
        if value is not None:  # the default of each
            for model in (BoostBPRegressor((2,), hidden={name: value}), BoostBPRegressor((), output={name: value})):
                with pytest.raises(ValueError, match=rf"^(hidden|output): {name}="):
                    model.fit(X, X[:, 0])
            with pytest.raises(ValueError, match=rf"^layer: {name}="):
                fit_layer(X, X[:, 0], {name: value})


@pytest.mark.parametrize("name", ["reg_lambda", "base_lambda"])
@pytest.mark.parametrize("value", [2**63, Fraction(1, 2), np.float32(0.5), np.int8(1), 1e-320])
def test_any_real_number_is_a_penalty(name, value):
    layer = fit_layer(X, X[:, 0], {"n_estimators": 2, name: value})
    expected = fit_layer(X, X[:, 0], {"n_estimators": 2, name: float(value)})
    np.testing.assert_array_equal(layer.predict(X), expected.predict(X))
