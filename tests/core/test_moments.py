"""Sums over columns: the same bits for dense and sparse input."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp.trees.linear import Standardised
from tests.trees.test_sparse import make


@pytest.mark.parametrize("missing", [False, True])
def test_standardised_columns_are_those_of_the_dense_input_to_the_bit(missing):
    X, S, weight = make(missing=missing)
    rng = np.random.default_rng(1)
    V, G, chosen = rng.standard_normal((5, 3)), rng.standard_normal((300, 2)), np.array([0, 1, 4, 6, 11])
    dense, held = (Standardised.of(Z, weight).take(chosen) for Z in (X, S))
    for name in ("scaling", "zero", "variance"):
        np.testing.assert_array_equal(getattr(dense, name), getattr(held, name))
    for name, argument in (("times", V), ("moment", G), ("project", V), ("block", slice(20, 60))):
        np.testing.assert_array_equal(getattr(dense, name)(argument), getattr(held, name)(argument))


@pytest.mark.parametrize("missing", [False, True])
def test_standardised_columns_are_what_they_say(missing):
    X, S, weight = make(missing=missing)
    present = ~np.isnan(X)
    with np.errstate(invalid="ignore"):
        mean = (weight @ np.nan_to_num(X)) / (weight @ present)
        U = np.nan_to_num(X - mean)
        size = np.abs(U).max(0)
        U = U / np.where(size > 1e-12, size, np.inf)
    got = Standardised.of(S, weight)
    np.testing.assert_allclose(got.block(slice(0, 300)), U, atol=1e-12)
    np.testing.assert_allclose(got.variance, weight @ np.square(U) / weight.sum(), atol=1e-12)
    rng = np.random.default_rng(1)
    V, G = rng.standard_normal((12, 3)), rng.standard_normal((300, 2))
    np.testing.assert_allclose(got.times(V), U @ V, atol=1e-11)
    np.testing.assert_allclose(got.moment(G), U.T @ G, atol=1e-10)
