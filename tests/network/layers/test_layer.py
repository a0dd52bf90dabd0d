"""A layer's forward pass and Jacobian, over the whole matrix of backends, bases and inputs."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from helpers import (
    BASES,
    MATRIX,
    NATIVE,
    REFIT,
    assert_close,
    categories_of,
    every,
    fit_case,
    fitted,
    fresh_rows,
    of_any_library,
    plain_forest,
    plain_leaf,
    settings_of,
    training_rows,
)

from boostbp.network.layers import Layer

matrix, whoever_grew = every(MATRIX), of_any_library(MATRIX)
clipping = pytest.mark.parametrize("clip", [True, False], ids=["clip", "free"])


def layer_of(case, clip=True):
    return Layer(replace(fitted(case).layer.forest, clip=clip))


@matrix
def test_training_output_and_trace_are_those_of_a_forward_pass(case):
    X, _, _ = training_rows(case)
    fit = fitted(case)
    output, trace = fit.layer.forward(X)
    assert_close(fit.output, output, 1e-12)
    np.testing.assert_array_equal(fit.trace.leaf, trace.leaf)
    np.testing.assert_array_equal(fit.trace.X, trace.X)
    assert fit.trace.forest is fit.layer.forest


@clipping
@matrix
def test_forward_predict_and_a_plain_evaluation_agree(case, clip):
    X, layer = fresh_rows(case), layer_of(case, clip)
    output, _ = layer.forward(X)
    expected, _ = plain_forest(layer.forest, X)
    assert output.shape == (len(X), 3)
    assert_close(output, expected, 1e-12)
    np.testing.assert_array_equal(layer.predict(X), output)


@clipping
@whoever_grew
def test_jacobian_matches_finite_differences(case, clip):
    X, layer, eps = fresh_rows(case, 16), layer_of(case, clip), 1e-5
    J, (_, state) = layer.jacobian(X), plain_forest(layer.forest, X)
    size, compared = np.abs(J).max(), 0
    for feature in range(4):
        step = np.zeros(X.shape[1])
        step[feature] = eps
        up, down = layer.predict(X + step), layer.predict(X - step)
        sides = zip(
            state, plain_forest(layer.forest, X + step)[1], plain_forest(layer.forest, X - step)[1], strict=True
        )
        kept = np.array([a == b == c for a, b, c in sides])  # the same leaves, the same inputs clipped
        numeric = (up - down)[kept] / (2 * eps)
        error = np.abs(J[kept, :, feature] - numeric).max()
        assert error <= 1e-6 * size, f"feature {feature}: error {error:.3g} of {size:.3g}"
        compared += kept.sum()
    assert compared > 2 * len(X)


@whoever_grew
def test_categories_and_missing_values_have_no_slope(case):
    X = fresh_rows(case)
    J = layer_of(case).jacobian(X)
    assert not J[:, :, list(categories_of(case))].any()
    assert not np.moveaxis(J, 1, 2)[np.isnan(X)].any()


@of_any_library([case for case in MATRIX if case.basis != "own"])
def test_jacobian_is_zero_where_clipped_and_only_there(case):
    far = fresh_rows(case)
    far[:, 0] = 1e6
    assert not layer_of(case).jacobian(far)[:, :, 0].any()
    assert layer_of(case, clip=False).jacobian(far)[:, :, 0].any()


@whoever_grew
def test_clipped_layer_stays_within_reach_far_outside(case):
    X, _, _ = training_rows(case)
    far = X.copy()
    far[:, :4] *= 1e9
    layer = layer_of(case)
    output = layer.predict(far)
    inside = layer.forest.leaves
    # Largest value that any leaf can take with |u| <= 1, summed over the trees.
    reach = 0.0
    for tree in range(layer.forest.n_trees):
        numbers = range(inside.tree_leaf[tree], inside.tree_leaf[tree + 1])
        weights = [inside.weight[inside.weight_start[n] : inside.weight_start[n + 1]] for n in numbers]
        reach += max(np.abs(w).sum() for w in weights)
    assert np.abs(output).max() <= reach


@pytest.mark.parametrize(("case", "n_threads"), list(zip(MATRIX, cycle([2, 4, 3]), strict=False)), ids=str)
def test_threads_change_nothing(case, n_threads):
    alone, many = fitted(case), fit_case(case, n_threads=n_threads)
    np.testing.assert_array_equal(many.output, alone.output)
    np.testing.assert_array_equal(many.trace.leaf, alone.trace.leaf)
    for name in ("scaling", "weight", "column"):
        one, other = getattr(many.layer.forest.leaves, name), getattr(alone.layer.forest.leaves, name)
        np.testing.assert_array_equal(one, other)
    X, G = fresh_rows(case), np.ones((60, 3))
    (out, trace), (out_alone, trace_alone) = many.layer.forward(X, n_jobs=n_threads), alone.layer.forward(X)
    np.testing.assert_array_equal(out, out_alone)
    np.testing.assert_array_equal(trace.vjp(G), trace_alone.vjp(G))
    np.testing.assert_array_equal(trace.jacobian(), trace_alone.jacobian())
    np.testing.assert_array_equal(many.layer.predict(X, n_jobs=n_threads), out_alone)


@every(REFIT)
def test_layer_is_plain_boosting_along_its_trees(case):
    """Each tree's leaves are the closed form on what the trees before it leave over."""
    X, Y, weight = training_rows(case)
    fit = fitted(case)
    Z, leaves, settings = BASES[case.basis].expand(X), fit.layer.forest.leaves, settings_of(case)
    running = np.zeros_like(Y)
    for tree in range(fit.layer.forest.n_trees):
        if tree == 0 and case.base:
            running += plain_forest(fit.layer.forest, X)[0] - trees_without_base(fit.layer.forest, X)
            continue
        first, outputs = leaves.tree_output[tree]
        served = slice(first, first + outputs)
        assert outputs == (3 if case.shared else 1)
        for number in np.unique(fit.trace.leaf[tree]):
            rows, at = fit.trace.leaf[tree] == number, leaves.tree_leaf[tree] + int(number)
            part = Z[rows][:, leaves.column[leaves.start[at] : leaves.start[at + 1]]]
            values = plain_leaf(part, (Y - running)[rows, served], weight[rows], settings.ridge, settings.basis.powers)(
                part
            )
            running[rows, served] += settings.learning_rate * values
    assert_close(fit.output, running, 1e-7)


def trees_without_base(forest, X):
    leaf = forest.route(X)
    base = forest.leaves.weight_start[1]
    weight = forest.leaves.weight.copy()
    weight[:base] = 0.0
    return replace(forest, leaves=forest.leaves._replace(weight=weight)).evaluate(X, leaf)


@every(REFIT)
def test_more_rounds_fit_better(case):
    _, Y, weight = training_rows(case)

    def loss(output):
        return float(weight @ np.square(output - Y).sum(1))

    none = fit_case(replace(case, base=False), n_estimators=0).output
    assert not none.any()
    assert loss(fitted(case).output) < 0.25 * loss(np.average(Y, axis=0, weights=weight))
    assert loss(fit_case(case, n_estimators=9).output) < loss(fitted(case).output)


@every(NATIVE)
def test_native_leaves_predict_as_the_library_does(case, monkeypatch):
    lightgbm = pytest.importorskip("lightgbm")
    if case.backend != "lightgbm":
        pytest.skip("the test below reads LightGBM's own boosters")
    kept = []

    class Kept(lightgbm.Booster):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            kept.append(self)

    fitted(case)  # the first fit of a process looks at the library's threads by a booster of its own
    monkeypatch.setattr(lightgbm, "Booster", Kept)
    layer = fit_case(replace(case, base=False), clip=False).layer
    assert len(kept) == 3
    X, (train, _, _) = fresh_rows(case, 200), training_rows(case)
    for rows in (X, train):
        expected = np.column_stack([booster.predict(rows, raw_score=True, num_threads=1) for booster in kept])
        assert_close(layer.predict(rows), expected, 1e-9)


@every(NATIVE)
def test_native_leaves_with_a_learning_rate_of_0_leave_the_base(case):
    native, refitted = (fit_case(one, learning_rate=0.0).output for one in (case, replace(case, leaves="refit")))
    np.testing.assert_array_equal(native, refitted)


@every(NATIVE)
def test_native_leaves_fit_the_targets(case):
    _, Y, weight = training_rows(case)
    error = weight @ np.square(fitted(case).output - Y).sum(1)
    assert error < 0.25 * (weight @ np.square(Y - np.average(Y, axis=0, weights=weight)).sum(1))
