"""Without a trace, rows are routed again: the same gradients and the same network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BACKENDS, WITH_NATIVE_LEAVES, make_X
from sklearn.datasets import load_diabetes

from boostbp import BoostBPRegressor, fit_layer
from boostbp.network.layers import fitting

X, Y = load_diabetes(return_X_y=True)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("options", [{}, {"basis": "linear", "multi_strategy": "multi_output_tree"}])
def test_gradients_are_the_same(options, n_jobs):
    Z = make_X(9000, missing=True)
    target = np.nan_to_num(Z) @ np.random.default_rng(0).standard_normal((Z.shape[1], 3))
    layer = fit_layer(Z, target, {"n_estimators": 3, **options})
    output, trace = layer.forward(Z, n_jobs=n_jobs)
    other_output, without = layer.predict(Z, n_jobs=n_jobs), replace(trace, kept=None)
    assert trace.kept is not None
    np.testing.assert_array_equal(other_output, output)
    np.testing.assert_array_equal(without.vjp(output), trace.vjp(output))
    np.testing.assert_array_equal(without.leaf, trace.leaf)
    np.testing.assert_array_equal(without.jacobian(), trace.jacobian())


NATIVE = [(name, {"leaves": "native", "basis": "linear"}) for name in WITH_NATIVE_LEAVES]
WAYS = [(name, {"refit_order": order}) for name, order in zip(BACKENDS, ("downward", "upward", "upward"), strict=False)]


@pytest.mark.parametrize(("backend", "options"), [*WAYS, *NATIVE])
def test_the_network_is_the_same(tune, backend, options):
    small = {"hidden_layer_sizes": (3, 2), "epochs": 3, "n_estimators": 4, "random_state": 0, "deep": True}
    small |= {"backend": backend, **options}
    expected = BoostBPRegressor(**parameters(**small)).fit(X, Y)
    tune(fitting, MOST_TRACE=0)
    found = BoostBPRegressor(**parameters(**small)).fit(X, Y)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
