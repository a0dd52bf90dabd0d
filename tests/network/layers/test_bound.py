"""A layer under other objectives, other inputs, and inputs that it refuses."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from helpers import BACKENDS, NATIVE, Case, fit_case, fitted, fresh_rows, settings_of, training_rows

from boostbp import backends
from boostbp.backends.base import TreeParams
from boostbp.network import layers
from boostbp.network.layers import BoundInput, LayerSettings, SquaredObjective, Trace
from boostbp.trees.basis import Elementwise
from boostbp.trees.ridge import Ridge
from boostbp.trees.sparse import Table


class Coupled:
    """A loss whose outputs depend on each other: half the squared distance after a mixing of the outputs."""

    separable = False
    curved = False
    n_outputs = 3

    def __init__(self, Y):
        self.Y, self.calls = Y, []
        self.mix = np.eye(3) + 0.3

    def gradient(self, fit, outputs):
        self.calls.append(outputs)
        return (fit @ self.mix - self.Y) @ self.mix.T, np.full(fit.shape, (self.mix @ self.mix.T)[0, 0])

    def check(self, *_):
        pass

    def squared(self, outputs):
        return None


@pytest.mark.parametrize("backend", BACKENDS)
def test_outputs_that_depend_on_each_other_are_boosted_round_by_round(backend):
    case = Case(backend)
    X, Y, weight = training_rows(case)
    results = []
    for n_threads in (1, 4):
        objective = Coupled(Y)
        bound = BoundInput(backends.load_backend(backend), Table(X), settings_of(case, n_estimators=20), weight)
        results.append(layers.fit(bound, objective, n_threads=n_threads))
        assert objective.calls == [slice(0, 3)] * 20
    fit = results[0]
    np.testing.assert_array_equal(fit.output, results[1].output)
    np.testing.assert_array_equal(fit.output, fit.layer.predict(X))
    assert np.square(fit.output @ objective.mix - Y).mean() < 0.2 * Y.var()


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_binding_serves_many_fits(backend):
    case = Case(backend, base=True)
    X, Y, weight = training_rows(case)
    bound = BoundInput(backends.load_backend(backend), Table(X), settings_of(case), weight)
    first = layers.fit(bound, SquaredObjective(Y, weight), seed=3)
    layers.fit(bound, SquaredObjective(-(Y**2), weight), seed=3)
    again = layers.fit(bound, SquaredObjective(Y, weight), seed=3)
    np.testing.assert_array_equal(first.output, again.output)
    np.testing.assert_array_equal(first.output, fitted(case).output)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("base", [None, "ridge"])
def test_input_without_a_split_gives_the_shrunk_mean(backend, base):
    X, Y, weight = np.ones((50, 2)), np.random.default_rng(0).standard_normal((50, 2)), np.ones(50)
    settings = settings_of(Case(backend), base=base, ridge=Ridge(0.0), n_estimators=3)
    bound = BoundInput(backends.load_backend(backend), Table(X), settings, weight)
    fit = layers.fit(bound, SquaredObjective(Y, weight))
    share = 1.0 if base else 1.0 - 0.5**3
    np.testing.assert_allclose(fit.output, np.broadcast_to(share * Y.mean(0), Y.shape), rtol=1e-9)
    assert not fit.layer.jacobian(X).any()


@pytest.mark.parametrize("case", [Case(name, "linear") for name in BACKENDS] + NATIVE[:1], ids=str)
def test_depth_zero_gives_no_more_than_the_base(case):
    case = replace(case, base=True)
    X, _, _ = training_rows(case)
    fit = fit_case(case, growth=TreeParams(max_depth=0))
    assert np.isfinite(fit.output).all()
    slope = fit.layer.jacobian(X)
    np.testing.assert_allclose(slope, np.broadcast_to(slope[:1], slope.shape), rtol=1e-12)


def own(functions, derivatives, **changes):
    X, Y = np.column_stack([np.linspace(0.0, 3.0, 60), np.arange(60.0) % 5]), np.ones((60, 1))
    settings = LayerSettings(basis=Elementwise(functions, derivatives), n_estimators=1, **changes)
    return X, Y, settings


@pytest.mark.parametrize("n_functions", [1, 2])
def test_basis_that_is_not_finite_on_the_input_is_refused(n_functions):
    X, _, settings = own([np.log, np.sin][:n_functions], [np.reciprocal, np.cos][:n_functions])
    with pytest.raises(ValueError, match=r"basis function 0 gave -inf for the value 0.0 of feature 0"):
        BoundInput(backends.load_backend("lightgbm"), Table(X), settings, np.ones(60))


def test_basis_need_not_be_finite_on_codes():
    X, Y, settings = own([np.log], [np.reciprocal], base="ridge")
    bound = BoundInput(backends.load_backend("lightgbm"), Table(X + np.array([1.0, 0.0]), (1,)), settings, np.ones(60))
    fit = layers.fit(bound, SquaredObjective(Y, np.ones(60)))
    np.testing.assert_array_equal(fit.output, fit.layer.predict(X + np.array([1.0, 0.0])))


def test_native_leaves_are_refused_where_the_library_has_none():
    for backend in BACKENDS:
        case = Case(backend, "linear", leaves="native")
        if case not in NATIVE:
            with pytest.raises(ValueError, match=r"leaves='native' is not supported.* Use leaves='refit'"):
                fit_case(case)


@pytest.mark.parametrize("case", NATIVE[:1], ids=str)
def test_native_leaves_are_refused_where_they_cannot_be_meant(case):
    with pytest.raises(ValueError, match="one tree for all outputs"):
        fit_case(replace(case, shared=True))
    with pytest.raises(ValueError, match=r"leaves on \[1, x\] only"):
        fit_case(replace(case, basis="own"))
    X, Y, weight = training_rows(case)
    bound = BoundInput(backends.load_backend(case.backend), Table(X), settings_of(case), weight)
    with pytest.raises(ValueError, match="outputs depend on each other"):
        layers.fit(bound, Coupled(Y))


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 5), (2, 5, 4)])
def test_input_of_another_shape_is_refused(shape):
    layer = fitted(Case(BACKENDS[0])).layer
    for read in (layer.forward, layer.predict, layer.jacobian):
        with pytest.raises(ValueError, match=r"H has shape .*: this layer was fitted to \(rows, 4\)"):
            read(np.zeros(shape))


@pytest.mark.parametrize("shape", [(3,), (5, 2), (4, 3), (5, 4)])
def test_gradient_of_another_shape_is_refused(shape):
    _, trace = fitted(Case(BACKENDS[0])).layer.forward(np.zeros((5, 4)))
    with pytest.raises(ValueError, match=r"G has shape .*: give \(rows, outputs\), \(5, 3\)"):
        trace.vjp(np.zeros(shape))


def test_input_may_lie_in_memory_in_any_way():
    X, layer = fresh_rows(Case(BACKENDS[0])), fitted(Case(BACKENDS[0])).layer
    expected, trace = layer.forward(X)
    G = np.random.default_rng(0).standard_normal((len(X), 3))
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        out, other_trace = layer.forward(other)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(other_trace.vjp(np.asfortranarray(G)), trace.vjp(G))
    assert isinstance(trace, Trace)


@pytest.mark.parametrize(("backend", "binning"), [("lightgbm", "_construct"), ("xgboost", "_binned")])
def test_layers_on_one_table_share_its_bins(backend, binning, monkeypatch):
    """Trees may differ in all but the parameters of bins, and are those of a table of their own."""
    X, Y, weight = training_rows(Case(backend))
    module, calls = import_module(f"boostbp.backends.{backend}"), []
    real = getattr(module, binning)
    monkeypatch.setattr(module, binning, lambda *args, **how: calls.append(1) or real(*args, **how))
    growths = TreeParams(max_depth=3), TreeParams(max_leaves=7, min_samples_leaf=5), TreeParams(max_bins=20)
    table, outputs = Table(X), []
    for of in (table, None):
        for growth in growths:
            settings = LayerSettings(n_estimators=3, growth=growth)
            bound = BoundInput(backends.load_backend(backend), of or Table(X), settings, weight)
            outputs.append(layers.fit(bound, SquaredObjective(Y, weight)).output)
        assert len(calls) == (2 if of is table else 2 + len(growths))
    np.testing.assert_array_equal(outputs[:3], outputs[3:])
    assert not np.array_equal(outputs[0], outputs[1])
