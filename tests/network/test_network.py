"""A network is the composition of its layers."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BACKENDS, BASES, Case, every, fresh_rows, make_targets, make_X, plain_forest, settings_of

from boostbp import backends
from boostbp.network import layers
from boostbp.network.layers import BoundInput, SquaredObjective
from boostbp.network.network import Network, chain
from boostbp.trees.sparse import Table

cases = every([Case(backend, basis) for backend in BACKENDS for basis in BASES])


def make(case):
    """Layers 4 -> 3 -> 2 -> 2, each fitted to functions of the one below."""
    h, fitted, weight = make_X(300), [], np.ones(300)
    for units in (3, 2, 2):
        bound = BoundInput(
            backends.load_backend(case.backend), Table(np.ascontiguousarray(h)), settings_of(case), weight
        )
        target = make_targets(h, units) if h.shape[1] == 4 else np.tanh(h[:, :units]) + h[:, ::-1][:, :units] ** 2
        fit = layers.fit(bound, SquaredObjective(target, weight))
        fitted.append(fit.layer)
        h = fit.output
    return Network(tuple(fitted), np.array([10.0, -20.0]))


@cases
def test_forward_passes_through_the_layers_and_adds_the_baseline(case):
    network, X = make(case), fresh_rows(case)
    h, traces = network.forward(X)
    assert [part.shape[1] for part in h] == [4, 3, 2, 2]
    expected = X
    for i, layer in enumerate(network.layers):
        np.testing.assert_array_equal(traces[i].X, h[i])
        expected = plain_forest(layer.forest, expected)[0]
        np.testing.assert_allclose(h[i + 1], expected + (network.baseline if i == 2 else 0.0), rtol=1e-9, atol=1e-9)


@cases
def test_predict_and_representations_are_those_of_the_forward_pass(case):
    network, X = make(case), fresh_rows(case)
    h, _ = network.forward(X)
    np.testing.assert_array_equal(network.predict(X), h[-1])
    for layer in range(-4, 4):
        np.testing.assert_array_equal(network.representation(X, layer), h[layer])
    np.testing.assert_array_equal(network.predict(X, n_jobs=4), h[-1])


@pytest.mark.parametrize("layer", [4, -5])
def test_layer_that_does_not_exist_is_refused(layer):
    network = make(Case(BACKENDS[0]))
    with pytest.raises(ValueError, match=rf"layer={layer} does not exist: a network of 3 layers has h_0 to h_3"):
        network.representation(fresh_rows(Case(BACKENDS[0])), layer)


@cases
def test_jacobian_is_the_product_of_the_layers_jacobians(case):
    network, X = make(case), fresh_rows(case)
    _, traces = network.forward(X)
    J = network.jacobian(X)
    product = traces[2].jacobian() @ traces[1].jacobian() @ traces[0].jacobian()
    assert J.shape == (60, 2, 4)
    np.testing.assert_allclose(J, product, rtol=0, atol=1e-12 * np.abs(product).max())
    np.testing.assert_array_equal(chain(traces), J)


@cases
def test_jacobian_matches_finite_differences(case):
    network, X, eps = make(case), fresh_rows(case), 1e-6
    J, compared = network.jacobian(X), 0

    def states(X):
        h, _ = network.forward(X)
        parts = [plain_forest(layer.forest, x)[1] for layer, x in zip(network.layers, h[:-1], strict=True)]
        return [b"".join(row) for row in zip(*parts, strict=True)]

    here = states(X)
    for feature in range(4):
        step = np.zeros(4)
        step[feature] = eps
        sides = zip(here, states(X + step), states(X - step), strict=True)
        kept = np.array([a == b == c for a, b, c in sides])
        numeric = (network.predict(X + step) - network.predict(X - step))[kept] / (2 * eps)
        error, size = np.abs(J[kept, :, feature] - numeric).max(), np.abs(J).max()
        assert error <= 1e-6 * size, f"feature {feature}: error {error:.3g} of {size:.3g}"
        compared += kept.sum()
    assert compared > 2 * len(X)
