"""The backward pass through a layer is its Jacobian, transposed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import (
    MATRIX,
    assert_close,
    every,
    fitted,
    fresh_rows,
    of_any_library,
)

from boostbp.network.layers import Layer

matrix, whoever_grew = every(MATRIX), of_any_library(MATRIX)
clipping = pytest.mark.parametrize("clip", [True, False], ids=["clip", "free"])


def layer_of(case, clip=True):
    return Layer(replace(fitted(case).layer.forest, clip=clip))


@clipping
@whoever_grew
def test_vjp_is_the_transposed_jacobian(case, clip):
    rng = np.random.default_rng(0)
    X, layer = fresh_rows(case), layer_of(case, clip)
    _, trace = layer.forward(X)
    J, G, V = trace.jacobian(), rng.standard_normal((len(X), 3)), rng.standard_normal(X.shape)
    assert J.shape == (len(X), 3, X.shape[1])
    assert J.any()
    assert_close(trace.vjp(G), np.einsum("nkd,nk->nd", J, G), 1e-12)
    forth, back = (np.einsum("nkd,nd->nk", J, V) * G).sum(1), (V * trace.vjp(G)).sum(1)
    assert_close(back, forth, 1e-12)
    np.testing.assert_array_equal(layer.jacobian(X), J)
