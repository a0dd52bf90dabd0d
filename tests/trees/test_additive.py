"""Spline columns of an additive base: what their trees compute, against scipy and closed-form ridge."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from boostbp.trees import sparse
from boostbp.trees.additive import INTERVALS, SplineTerms
from boostbp.trees.basis import Polynomial
from boostbp.trees.forest import Forest
from boostbp.trees.linear import RidgeBase
from boostbp.trees.sparse import Sparse

BASES = {1: Polynomial(1), 2: Polynomial(2)}


def make(rows=300, columns=3, *, missing=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 3, (rows, columns))
    X[:, -1] = np.exp(2 * X[:, -1])  # skewed
    if missing:
        X[rng.uniform(size=X.shape) < 0.1] = np.nan
    weight = rng.integers(1, 4, rows).astype(float)
    return X, weight, rng.standard_normal((rows, 2))


def smooth(X, weight, degree=2, most=1000):
    return SplineTerms.of(X, np.arange(X.shape[1]), weight, degree=degree, most=most)


def forest_of(U, leaves, X, degree=2, *, clip=True):
    return Forest(U.trees, leaves, X.shape[1], int(leaves.tree_output[0, 1]), BASES[degree], clip)


def fitted(base, y, reg_lambda, X, degree=2, *, clip=True):
    return forest_of(base.U, base.fit(y, reg_lambda), X, degree, clip=clip)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("missing", [False, True])
def test_products_are_those_of_the_columns_written_down(degree, missing):
    X, weight, G = make(missing=missing)
    U = smooth(X, weight, degree)
    V = np.random.default_rng(1).standard_normal((U.n_columns, 2))
    whole = U.block(slice(0, len(X)))
    assert whole.shape == (300, U.n_columns)
    np.testing.assert_allclose(U.times(V), whole @ V, atol=1e-10)
    np.testing.assert_allclose(U.moment(G), whole.T @ G, atol=1e-9)
    np.testing.assert_array_equal(U.block(slice(50, 60), slice(3, 7)), whole[50:60, 3:7])
    expected = np.array([0.5, -1.0]) + whole @ V
    np.testing.assert_allclose(
        forest_of(U, U.leaves_for(np.array([0.5, -1.0]), V), X, degree).predict(X), expected, atol=1e-10
    )


@pytest.mark.parametrize("missing", [False, True])
def test_a_sparse_input_gives_the_same_bits(missing, tune):
    tune(sparse, CELLS=50)
    X, weight, y = make(missing=missing)
    X = np.ascontiguousarray(np.where(np.abs(X) < 1, 0.0, X))
    dense, narrow = (RidgeBase.additive(Z, np.arange(3), weight, degree=2) for Z in (X, Sparse.of(sp.csr_array(X))))
    np.testing.assert_array_equal(narrow.U.leaf, dense.U.leaf)
    np.testing.assert_array_equal(narrow.U.moment(y), dense.U.moment(y))
    np.testing.assert_array_equal(narrow.fit(y).weight, dense.fit(y).weight)


@pytest.mark.parametrize("degree", [1, 2])
def test_columns_are_centred_uncorrelated_and_smoother_first(degree):
    X, weight, _ = make()
    U = smooth(X, weight, degree)
    share = weight / weight.sum()
    for number, first in enumerate(U.start[:-1]):
        part = U.block(slice(0, 300), slice(first, U.start[number + 1]))
        np.testing.assert_allclose(share @ part, 0, atol=1e-10)
        covariance = part.T @ (share[:, None] * part)
        std = np.sqrt(np.diag(covariance))
        np.testing.assert_allclose(covariance / np.outer(std, std), np.eye(len(std)), atol=1e-7)
        np.testing.assert_allclose(std[1:], std[0] / np.arange(1, len(std)) ** 2, rtol=1e-6)
        line = np.polyfit(X[:, number], part[:, 0], 1)
        np.testing.assert_allclose(part[:, 0], np.polyval(line, X[:, number]), atol=1e-9)
        assert np.abs(part[:, 0]).max() == pytest.approx(1)


@pytest.mark.parametrize("degree", [1, 2])
def test_any_spline_with_these_knots_is_reproduced(degree):
    X, weight, _ = make(columns=1)
    U = smooth(X, weight, degree)
    knots = np.unique(np.concatenate([U.trees[0].threshold[1:], X.min(0), X.max(0)]))
    assert len(knots) == INTERVALS + 1
    padded = np.concatenate([[knots[0]] * degree, knots, [knots[-1]] * degree])
    spline = BSpline(padded, np.random.default_rng(2).standard_normal(len(padded) - degree - 1), degree)
    base = RidgeBase.additive(X, np.array([0]), weight, degree=degree)
    forest = fitted(base, spline(X), 0.0, X, degree)
    fresh = np.linspace(knots[0], knots[-1], 400)[:, None]
    np.testing.assert_allclose(forest.predict(fresh), spline(fresh), rtol=1e-6, atol=1e-6)
    slope = forest.jacobian(fresh[1:-1], forest.route(fresh[1:-1]))[:, 0]
    apart = np.abs(fresh[1:-1] - knots).min(axis=1) > 1e-3
    np.testing.assert_allclose(slope[apart], spline.derivative()(fresh[1:-1])[apart], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [300, 12])  # 12: more columns than rows
def test_fit_is_the_ridge_regression_on_the_columns(rows):
    X, weight, y = make(rows)
    base = RidgeBase.additive(X, np.arange(3), weight, degree=2)
    U = base.U.block(slice(0, rows))
    mean = weight @ y / weight.sum()
    coefficients = np.linalg.solve(
        U.T @ (weight[:, None] * U) + 0.3 * np.eye(U.shape[1]), U.T @ (weight[:, None] * (y - mean))
    )
    got = fitted(base, y, 0.3, X).predict(X)
    np.testing.assert_allclose(got, mean + U @ coefficients, atol=1e-8)


def test_weights_count_as_rows():
    X, weight, y = make(missing=True)
    times = weight.astype(int)
    again, ones = np.repeat(X, times, axis=0), np.ones(times.sum())
    got = fitted(RidgeBase.additive(X, np.arange(3), weight, degree=2), y, None, X)
    of_repeated = RidgeBase.additive(again, np.arange(3), ones, degree=2)
    expected = fitted(of_repeated, np.repeat(y, times, axis=0), None, X)
    np.testing.assert_allclose(got.predict(X), expected.predict(X), rtol=1e-6, atol=1e-8)


def test_a_missing_value_counts_as_the_average():
    X, weight, y = make(missing=True)
    forest = fitted(RidgeBase.additive(X, np.arange(3), weight, degree=2), y, None, X)
    nothing = np.full((1, 3), np.nan)
    np.testing.assert_allclose(forest.predict(nothing)[0], weight @ y / weight.sum(), atol=1e-9)
    assert not forest.jacobian(nothing, forest.route(nothing)).any()


def test_beyond_the_training_range_a_clipped_function_stays_and_an_unclipped_one_goes_on():
    X, weight, _ = make(columns=1)
    base = RidgeBase.additive(X, np.array([0]), weight, degree=2)
    line = 3.0 * X + 1.0
    ends, beyond = np.array([X.min(0), X.max(0)]), np.array([X.min(0) - 5, X.max(0) + 5])
    clipped, free = (fitted(base, line, 0.0, X, clip=clip) for clip in (True, False))
    np.testing.assert_allclose(clipped.predict(beyond), clipped.predict(ends), rtol=1e-6)
    np.testing.assert_allclose(free.predict(beyond), 3.0 * beyond + 1.0, rtol=1e-3)


def test_a_straight_target_stays_straight_and_a_wave_is_found():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(2000, 4))
    weight, fresh = np.ones(2000), rng.uniform(0.01, 0.99, (500, 4))
    base = RidgeBase.additive(X, np.arange(4), weight, degree=2)
    for truth, error in ((lambda X: X @ np.array([1.0, -2.0, 0.5, 0.0]), 0.01), (lambda X: np.sin(6 * X).sum(1), 0.05)):
        y = truth(X) + 0.1 * rng.standard_normal(2000)
        found = fitted(base, y[:, None], None, X).predict(fresh)[:, 0]
        assert np.sqrt(np.mean((found - truth(fresh)) ** 2)) < error


def test_features_without_two_values_get_no_function():
    X, weight, y = make()
    X = np.column_stack([X, np.ones(300), np.full(300, np.nan), X[:, 0] > 0])
    U = smooth(X, weight)
    assert [int(U.trees[k].feature[0]) for k in range(len(U.trees))] == [0, 1, 2, 5]
    assert np.diff(U.start)[-1] == 1  # of two values only a line is known
    constant = fitted(RidgeBase.additive(X[:, 3:5], np.arange(2), weight, degree=2), y, None, X[:, 3:5])
    np.testing.assert_allclose(constant.predict(X[:, 3:5]), np.tile(weight @ y / weight.sum(), (300, 1)))


@pytest.mark.parametrize(("most", "per_feature"), [(1000, INTERVALS + 1), (15, 5), (4, 1)])
def test_many_features_get_few_functions(most, per_feature):
    X, weight, _ = make()
    U = smooth(X, weight, most=most)
    assert np.diff(U.start).tolist() == [per_feature] * 3
    with pytest.raises(ValueError, match="base='additive' is for 2 features at most, not 3"):
        smooth(X, weight, most=2)


@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(2, 60),
    distinct=st.integers(1, 30),
    scale=st.sampled_from([1e-300, 1e-12, 1.0, 1e12, 1e300]),
    shift=st.sampled_from([0.0, 1.0, 1e6]),
    degree=st.sampled_from([1, 2]),
)
def test_any_column_gives_finite_functions_and_agrees_with_its_trees(seed, rows, distinct, scale, shift, degree):
    rng = np.random.default_rng(seed)
    values = rng.standard_cauchy(distinct)
    X = scale * np.clip(rng.choice(values, (rows, 2)) + shift, -1e8, 1e8)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    weight = rng.integers(0, 3, rows).astype(float)
    if not weight.any():
        weight[0] = 1.0
    y = rng.standard_normal((rows, 1))
    found = fitted(RidgeBase.additive(X, np.arange(2), weight, degree=degree), y, 1.0, X, degree).predict(X)
    assert np.isfinite(found).all()
    loss = float(weight @ np.square(found - y)[:, 0])
    mean = weight @ y / weight.sum()
    assert loss <= float(weight @ np.square(y - mean)[:, 0]) * (1 + 1e-6) + 1e-9
