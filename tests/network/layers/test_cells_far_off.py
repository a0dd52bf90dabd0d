"""Layers on columns with a few cells that are far off."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import (
    REFIT,
    assert_close,
    categories_of,
    every,
    fresh_rows,
    of_any_library,
    plain_forest,
    settings_of,
    training_rows,
)

from boostbp.backends import load_backend
from boostbp.network import layers
from boostbp.network.layers import BoundInput, SquaredObjective
from boostbp.trees.sparse import Sparse, Table

WRONG = {3: 300.0, 8: -40.0, 11: 0.0}  # row: what became of a value of about 3


def mistyped(case):
    """The rows of a case, with some cells of its second feature off by much."""
    X, Y, weight = training_rows(case)
    X[:, 1] = np.where(np.isnan(X[:, 1]), np.nan, X[:, 1].clip(2, 4))
    X[list(WRONG), 1] = list(WRONG.values())
    weight[list(WRONG)] = 0.8
    return X, Y, weight


def fit(case, X, Y, weight, n_threads=1, **changes):
    table = Table(X, categories_of(case))
    bound = BoundInput(load_backend(case.backend), table, settings_of(case, **changes), weight)
    return layers.fit(bound, SquaredObjective(Y, weight), seed=3, n_threads=n_threads)


@cache
def fitted(case):
    """A case fitted once for all tests, which must not change it."""
    X, Y, weight = mistyped(case)
    return fit(case, X, Y, weight)


@every(REFIT)
def test_training_output_and_trace_are_those_of_a_forward_pass(case):
    X, Y, _ = mistyped(case)
    found = fitted(case)
    output, trace = found.layer.forward(X)
    assert_close(found.output, output, 1e-12)
    np.testing.assert_array_equal(found.trace.leaf, trace.leaf)
    np.testing.assert_array_equal(found.trace.vjp(Y), trace.vjp(Y))


@of_any_library(REFIT)
def test_jacobian_matches_finite_differences(case):
    layer, X = fitted(case).layer, fresh_rows(case, 24)
    X[:3, 1] = 250.0, -50.0, 0.1
    step = np.zeros(X.shape[1])
    step[1] = 1e-5
    J, sides = layer.jacobian(X)[:, :, 1], (X, X + step, X - step)
    numeric = (layer.predict(X + step) - layer.predict(X - step)) / 2e-5
    states = zip(*(plain_forest(layer.forest, side)[1] for side in sides), strict=True)
    kept = np.array([here == up == down for here, up, down in states])  # the same leaves, the same inputs clipped
    assert kept[:3].all()
    assert kept.sum() > len(X) / 2
    np.testing.assert_allclose(J[kept], numeric[kept], rtol=0, atol=1e-6 * np.abs(J).max())


@every([case for case in REFIT if case.base and not case.missing])
def test_threads_change_nothing(case):
    X, Y, weight = mistyped(case)
    alone, many = fitted(case), fit(case, X, Y, weight, n_threads=2)
    np.testing.assert_array_equal(many.output, alone.output)
    np.testing.assert_array_equal(many.layer.predict(X, n_jobs=2), alone.layer.predict(X))


@pytest.mark.parametrize("base", ["ridge", "additive", None])
def test_a_sparse_input_gives_the_layer_of_the_dense_one(base):
    case = REFIT[0]
    X, Y, weight = mistyped(case)
    X[:, 2] *= np.abs(X[:, 2]) > 1
    X[5, 2] = 90.0
    dense, held = (fit(case, Z, Y, weight, base=base) for Z in (X, Sparse.of(sp.csr_array(X))))
    np.testing.assert_array_equal(held.output, dense.output)
    np.testing.assert_array_equal(held.layer.predict(Sparse.of(sp.csr_array(X))), dense.layer.predict(X))


@pytest.mark.parametrize("clip", [True, False])
def test_regressions_are_fitted_to_inputs_as_they_are(clip):
    case = REFIT[0]
    X, _, weight = mistyped(case)
    assert BoundInput(load_backend(case.backend), Table(X), settings_of(case, clip=clip), weight).Z is X
