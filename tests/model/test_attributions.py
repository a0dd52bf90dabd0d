"""Attributions: complete to rounding, and given to the features that a brute-force reading of the trees names."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp.model import attributions
from boostbp.model.attributions import _pushes, attribute
from boostbp.network.layers import Layer
from boostbp.network.network import Network
from boostbp.trees.basis import Polynomial
from boostbp.trees.leaves import leaves_of_tree
from boostbp.trees.tree import Tree
from tests.model.models import CASES, LIBRARIES, fitted, raw_output, regressor, table
from tests.support.helpers import MATRIX, assert_close, forest_of, fresh_rows, of_any_library, plain_forest
from tests.support.helpers import fitted as fitted_layer


@pytest.mark.parametrize(("kind", "backend"), CASES)
@pytest.mark.parametrize("steps", [1, 9])
def test_base_value_and_attributions_sum_to_the_output(kind, backend, steps):
    model, X = fitted(kind, backend)
    X = X[:60]
    found = model.attributions(X, steps=steps)
    expected = raw_output(model, X)
    assert found.values.shape == (60, expected.shape[1], X.shape[1])
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=2), expected, rtol=1e-9)
    assert found.error < 1e-9 * np.abs(expected).max()
    assert found.outputs.shape == found.base_values.shape == expected.shape


@pytest.mark.parametrize("backend", LIBRARIES)
def test_base_value_is_the_output_of_the_baseline(backend):
    model, frame = fitted("regressor", backend)
    start = frame.iloc[[5]]
    found = model.attributions(frame[:20], baseline=start, steps=3)
    np.testing.assert_allclose(found.base_values, np.full((20, 1), model.predict(start)[0]))
    by_row = model.attributions(frame[:20], baseline=frame[20:40], steps=3)
    np.testing.assert_allclose(by_row.base_values[:, 0], model.predict(frame[20:40]))
    assert by_row.error < 1e-9 * 100


def test_the_baseline_is_the_mean_or_the_most_frequent_category():
    model, frame = fitted("no base, no clip", "lightgbm")
    center = model.feature_summary_.center
    np.testing.assert_allclose(center[[0, 2, 3]], frame.drop(columns="colour").mean())
    assert frame["colour"].cat.categories[int(center[1])] == frame["colour"].value_counts().idxmax()


@of_any_library(MATRIX)
def test_change_of_a_forest_is_told_apart_as_by_hand(case):
    """A tree whose leaf stays changes column by column; one whose leaf changes jumps where the rows part."""
    forest = fitted_layer(case).layer.forest
    A, B = fresh_rows(case)[:20], fresh_rows(case)[20:40]
    B[:5] = A[:5] + 1e-3  # many trees keep their leaf
    smooth, jump = forest.changes(A, B, forest.route(A), forest.route(B))
    total = plain_forest(forest, B)[0] - plain_forest(forest, A)[0]
    assert_close((smooth + jump).sum(axis=2), total, 1e-10)
    expected_jump, expected_smooth = np.zeros_like(jump), np.zeros_like(smooth)
    for number in range(forest.n_trees):
        tree, alone = forest.trees[number], forest.take(np.array([number]))
        a, b = tree.leaf_of(A), tree.leaf_of(B)
        for row in range(len(A)):
            change = (plain_forest(alone, B[[row]])[0] - plain_forest(alone, A[[row]])[0])[0]
            within = 0.5 * (columns_alone(alone, a[row], A[row], B[row]) + columns_alone(alone, b[row], A[row], B[row]))
            expected_smooth[row] += within
            if a[row] != b[row]:
                expected_jump[row, :, parting(tree, A[row], B[row])] += change - within.sum(axis=1)
    assert_close(smooth, expected_smooth, 1e-9)
    assert_close(jump, expected_jump, 1e-9)


def columns_alone(forest, leaf, a, b):
    """Changes of one leaf's regression when a column alone goes from `a` to `b`, (outputs, columns)."""
    moved = np.where(np.eye(len(a), dtype=bool), b, a)
    leaf = np.full((1, len(a) + 1), leaf, np.int32)
    values = forest.evaluate(np.vstack([a, moved]), leaf)
    return (values[1:] - values[0]).T


def parting(tree, a, b):
    """Feature of the first split that sends two rows different ways, by walking all leaves below each side."""
    node = 0
    while True:
        sides = [{leaf for leaf in leaves_below(tree, child)} for child in (tree.left[node], tree.right[node])]
        leaf_a, leaf_b = tree.leaf_of(a[None])[0], tree.leaf_of(b[None])[0]
        if (leaf_a in sides[0]) != (leaf_b in sides[0]):
            return tree.feature[node]
        node = tree.left[node] if leaf_a in sides[0] else tree.right[node]


def leaves_below(tree, node):
    return [~node] if node < 0 else [*leaves_below(tree, tree.left[node]), *leaves_below(tree, tree.right[node])]


@pytest.mark.parametrize("backend", LIBRARIES)
@pytest.mark.parametrize("kind", ["regressor", "skip", "no base, no clip"])
def test_a_feature_that_alone_differs_gets_everything(kind, backend):
    model, frame = fitted(kind, backend)
    rows = frame[:30]
    for j, column in enumerate(frame.columns):
        start = rows.copy()
        start[column] = frame[column].iloc[::-1].iloc[:30].to_numpy()
        found = model.attributions(rows, baseline=start, steps=4)
        difference = model.predict(rows) - model.predict(start)
        np.testing.assert_allclose(found.values[:, 0, j], difference, atol=1e-9 * 100)
        assert not np.delete(found.values, j, axis=2).any()


def test_layers_without_trees_are_attributed_in_closed_form():
    """Ridge regressions on one another are linear: weight times difference, for any number of steps."""
    model, _ = regressor("lightgbm", n_estimators=0, clip=False, epochs=0)
    frame = table()[0].dropna()[:50]
    X = np.column_stack([frame["size"], np.zeros(50), frame["weight"], frame["noise"]])
    slope = model.jacobian(frame)[:, 0]
    expected = np.where([True, False, True, True], slope * (X - model.feature_summary_.center), 0.0)
    for steps in (1, 5):
        np.testing.assert_allclose(model.attributions(frame, steps=steps).values[:, 0], expected, atol=1e-9)


def test_integrated_gradients_of_smooth_layers_are_the_integral():
    """Two layers of one-leaf trees, quadratic in their inputs, against quadrature of the Jacobian."""
    rng = np.random.default_rng(0)
    network = quadratic_network(rng)
    X, start = rng.uniform(-1, 1, (8, 3)), rng.uniform(-1, 1, (1, 3))
    points, weights = np.polynomial.legendre.leggauss(8)
    integral = sum(
        0.5 * w * network.jacobian(start + 0.5 * (1 + p) * (X - start)) for p, w in zip(points, weights, strict=True)
    )
    expected = integral * (X - start)[:, None]
    errors = [np.abs(attribute(network, X, start, steps=steps).values - expected).max() for steps in (4, 16, 64)]
    assert errors[0] > 8 * errors[1] > 64 * errors[2]  # of second order in the step
    assert errors[2] < 1e-3 * np.abs(expected).max()


def quadratic_network(rng):
    def layer(n_features, n_outputs):
        scaling = np.tile([0.0, 1.0, -1e9, 1e9], (n_features, 1))
        weight = rng.normal(size=(1 + 2 * n_features) * n_outputs)
        leaves = leaves_of_tree([0, n_features], np.arange(n_features), scaling, weight, degree=2)
        return Layer(forest_of([(Tree.stump(), leaves)], n_features, n_outputs, Polynomial(2)))

    return Network((layer(3, 2), layer(2, 2)), np.array([1.0, -1.0]))


def test_pushes_share_out_one_among_those_that_push_the_way_it_went():
    shares = np.array([[[3.0, -1.0, 1.0], [-2.0, 0.5, 0.0], [0.0, 0.0, 0.0]]])
    move = shares.sum(axis=2)
    expected = [[[0.75, 0.0, 0.25], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]
    np.testing.assert_array_equal(_pushes(shares, move), expected)


@pytest.mark.parametrize("backend", LIBRARIES)
def test_gradient_times_input_is_the_jacobian_times_the_difference(backend):
    model, frame = fitted("regressor", backend)
    found = model.attributions(frame[:40], "gradient_x_input")
    slope, center = model.jacobian(frame[:40])[:, 0], model.feature_summary_.center
    for j, column in enumerate(frame.columns):
        if column == "colour":
            assert not found.values[:, 0, j].any()
        else:
            x = frame[column][:40].to_numpy()
            expected = np.where(np.isnan(x), 0.0, slope[:, j] * (x - center[j]))
            np.testing.assert_allclose(found.values[:, 0, j], expected)
    assert found.error > 0.1  # it does not see the jumps, and says so


def test_more_steps_than_memory_holds_change_nothing(tune):
    model, frame = fitted("regressor", "lightgbm")
    whole = model.attributions(frame[:50], steps=2).values
    tune(attributions, ROOM=100)
    np.testing.assert_array_equal(model.attributions(frame[:50], steps=2).values, whole)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "shap"}, "method='shap' is not known: use one of 'integrated_gradients', 'gradient_x_input'"),
        ({"steps": 0}, "steps=0 is not allowed: give a whole number of at least 1"),
        ({"steps": 2.5}, "steps=2.5 is not allowed: give a whole number of at least 1"),
        ({"baseline": table()[0][:3]}, "baseline has 3 rows: give one, or one for each of the 10 rows of X"),
    ],
)
def test_errors_name_the_cure(arguments, message):
    model, frame = fitted("regressor", "lightgbm")
    with pytest.raises(ValueError, match=message):
        model.attributions(frame[:10], **arguments)
