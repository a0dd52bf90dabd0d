"""Layers over an additive base: derivatives, rounds, files and estimators."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BACKENDS, make_targets, make_X

from boostbp import BoostBPClassifier, BoostBPRegressor, Elementwise, fit_layer, load, save

X = make_X(400, missing=True)
Y = make_targets(X)


def composed(rows, seed=0):
    """A sum of relu of sums of waves: additive functions of additive functions."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows, 5))
    inner = np.sin(6 * X + np.arange(5)) @ rng.standard_normal((5, 3))
    return X, np.maximum(inner, 0) @ np.array([1.0, -1.0, 1.0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("basis", ["linear", "quadratic"])
@pytest.mark.parametrize("multi_strategy", ["one_output_per_tree", "multi_output_tree"])
def test_jacobian_is_that_of_finite_differences_and_of_the_trace(backend, basis, multi_strategy):
    layer = fit_layer(
        X,
        Y,
        {"base": "additive", "basis": basis, "n_estimators": 4, "max_depth": 3, "multi_strategy": multi_strategy},
        backend=backend,
    )
    fresh = X + 0.01 * np.random.default_rng(2).standard_normal(X.shape)  # no row at the end of a leaf's range
    output, trace = layer.forward(fresh)
    np.testing.assert_allclose(layer.predict(fresh), output, rtol=1e-9, atol=1e-9)
    J = trace.jacobian()
    G = np.random.default_rng(1).standard_normal(Y.shape)
    np.testing.assert_allclose(trace.vjp(G), np.einsum("roi,ro->ri", J, G), rtol=1e-7, atol=1e-8)
    step = 1e-7
    for j in range(X.shape[1]):
        move = step * (np.arange(X.shape[1]) == j)
        (up, above), (down, below) = (layer.forward(fresh + sign * move) for sign in (1, -1))
        same = (above.leaf == trace.leaf).all(0) & (below.leaf == trace.leaf).all(0)
        assert same.mean() > 0.95
        np.testing.assert_allclose((up - down)[same] / (2 * step), J[same, :, j], rtol=1e-4, atol=1e-5)


def test_rounds_go_on_where_the_base_ends():
    none, some = (fit_layer(X, Y, {"base": "additive", "n_estimators": n, "max_depth": 3}) for n in (0, 6))
    assert none.forest.n_trees == none.forest.n_base == X.shape[1]
    assert some.forest.n_base == X.shape[1]
    assert some.forest.n_trees == X.shape[1] + 6 * 3
    before, after = (np.square(Y - layer.predict(X)).mean() for layer in (none, some))
    assert after < 0.9 * before


def test_categories_have_no_function():
    table = make_X(400, categorical=True)
    layer = fit_layer(table, Y, {"base": "additive", "n_estimators": 0}, categorical=(4,))
    assert sorted(set(layer.forest.nodes.feature.tolist())) == [0, 1, 2, 3]


def test_outputs_do_not_depend_on_threads():
    one, two = (fit_layer(X, Y, {"base": "additive", "n_estimators": 3}, n_jobs=n).predict(X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_functions_of_ones_own_are_refused_beside_those_of_the_base():
    with pytest.raises(ValueError, match="base='additive' is not supported with functions of your own"):
        fit_layer(np.abs(Y), Y, {"base": "additive", "basis": Elementwise([np.sqrt], [lambda x: 0.5 / np.sqrt(x)])})


@pytest.mark.slow
def test_a_network_of_additive_layers_learns_what_a_linear_one_cannot():
    X, y = composed(900)
    errors = []
    for base in ("ridge", "additive"):
        model = BoostBPRegressor(
            (6,), **parameters(deep=True, base=base, n_estimators=[0, 40], epochs=60, random_state=0)
        )
        model.fit(X[:500], y[:500], eval_set=[(X[500:700], y[500:700])])
        errors.append(np.sqrt(np.mean((model.predict(X[700:]) - y[700:]) ** 2)) / y.std())
    assert errors[1] < 0.6 * errors[0]


@pytest.mark.parametrize("kind", [BoostBPRegressor, BoostBPClassifier])
def test_estimators_keep_their_base_in_a_file_and_explain_themselves(tmp_path, kind):
    y = Y[:, 0] if kind is BoostBPRegressor else np.digitize(Y[:, 0], [0.0, 1.0])
    model = kind(
        (3, 2), **parameters(deep=True, base="additive", n_estimators=5, epochs=6, structure_epochs=2, random_state=0)
    )
    model.set_params(early_stopping=False).fit(X[:300], y[:300])  # the network by itself
    save(model, tmp_path / "model.boostbp")
    back = load(tmp_path / "model.boostbp")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    kept = [layer.forest.n_base for layer in model.network_.layers]
    assert [layer.forest.n_base for layer in back.network_.layers] == kept == [4, 3, 2]
    found = model.attributions(X[:20])
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=2), found.outputs, atol=1e-9)
    report = [record for record in model.leaf_report(X[:1]) if record["layer"] == 2]
    assert sum(record["value"] for record in report) == pytest.approx(found.outputs[0].sum())
    knots = next(record for record in report if record["tree"] == 0)
    assert len(knots["path"]) == 1
    assert "h1_0" in knots["path"][0]
    assert model.importance("split").sum() == pytest.approx(1.0)
