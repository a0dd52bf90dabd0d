"""The ridge base agrees with scikit-learn and with the hat matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.linear_model import Ridge as SKRidge

from boostbp import losses
from boostbp.trees import sparse
from boostbp.trees.leaves import add_to
from boostbp.trees.linear import RidgeBase


def standardised(Z, weight):
    """Weighted mean 0, largest size 1; a missing value is the mean."""
    present = np.where(np.isnan(Z), 0.0, weight[:, None])
    U = Z
    for _ in range(2):  # a second time for what rounding left of the first
        U = U - (present * np.nan_to_num(U)).sum(0) / present.sum(0)
    U = np.where(np.isnan(U), 0.0, U)
    return U / np.abs(U).max(0)


def bind(Z, weight, columns=None, least=0.0):
    columns = np.arange(Z.shape[1]) if columns is None else columns
    return RidgeBase.bind(np.ascontiguousarray(Z), np.array(columns, np.int32), weight, least=least)


def predict(model, Z):
    out = np.zeros((len(Z), model.tree_output[0, 1]))
    add_to(out, model, np.zeros((1, len(Z)), np.int32), np.ascontiguousarray(Z))
    return out


def make(rows, columns, *, missing=False, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((rows, columns)) * 10.0 ** rng.integers(-3, 4, columns) + rng.integers(-5, 5, columns)
    if missing:
        Z[rng.random(Z.shape) < 0.15] = np.nan
    weight = rng.integers(0, 4, rows) / 2.0 if weighted else np.ones(rows)
    y = standardised(Z, weight)[:, :3] @ rng.standard_normal((min(columns, 3), 2)) + 0.5 * rng.standard_normal(
        (rows, 2)
    )
    return Z, y + 7.0, weight


def gcv_score(U, y, weight, reg_lambda):
    """Golub, Heath and Wahba's score by the hat matrix of the weighted problem.

    A weight counts as so many rows, unless all weights together say less than one row each.
    """
    root, n = np.sqrt(weight)[:, None], max(weight.sum(), np.count_nonzero(weight))
    A, b = root * U, root * y
    one = root / np.linalg.norm(root)
    left, s, _ = np.linalg.svd(A, full_matrices=False)
    kept = s > 1e-6 * s[0]
    left, s = left[:, kept], s[kept]
    hat = one @ one.T + (left * (s**2 / (s**2 + reg_lambda))) @ left.T
    rest = np.eye(len(y)) - hat
    freedom = (n - len(y) + np.trace(rest)) / n
    return np.square(rest @ b).sum() / freedom**2


shapes = pytest.mark.parametrize(("rows", "columns"), [(60, 5), (30, 30), (20, 50), (2, 3)])


@shapes
@pytest.mark.parametrize("reg_lambda", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_is_ridge_on_standardised_columns(rows, columns, reg_lambda, missing, weighted):
    if rows == 2 and (missing or weighted):
        rows = 6
    Z, y, weight = make(rows, columns, missing=missing, weighted=weighted)
    U = standardised(Z, weight)
    expected = SKRidge(reg_lambda, solver="cholesky").fit(U, y, sample_weight=weight).predict(U)
    got = predict(bind(Z, weight).fit(y, reg_lambda), Z)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rows", [60, 20])
def test_fresh_rows_are_standardised_as_the_training_rows(rows):
    Z, y, weight = make(rows, 30)
    fresh = make(40, 30, seed=1)[0] * 2.0
    mean, size = Z.mean(0), np.abs(Z - Z.mean(0)).max(0)
    expected = SKRidge(0.5, solver="cholesky").fit((Z - mean) / size, y).predict((fresh - mean) / size)
    np.testing.assert_allclose(predict(bind(Z, weight).fit(y, 0.5), fresh), expected, rtol=1e-9, atol=1e-9)


@given(
    seed=st.integers(0, 2**16),
    shape=st.sampled_from([(60, 5), (40, 30), (31, 30), (30, 30), (20, 50), (8, 3)]),
    missing=st.booleans(),
    weighted=st.booleans(),
)
def test_penalty_has_the_least_gcv_score_of_the_grid(seed, shape, missing, weighted):
    Z, y, weight = make(*shape, missing=missing, weighted=weighted, seed=seed)
    U = standardised(Z, weight)
    base = bind(Z, weight)
    largest = np.linalg.eigvalsh((U * weight[:, None]).T @ U)[-1]
    grid = largest * np.logspace(-9, 2, 45)
    got = predict(base.fit(y), Z)
    same = [np.abs(got - predict(base.fit(y, one), Z)).max() for one in grid]
    chosen = int(np.argmin(same))
    assert same[chosen] <= 1e-8 * np.abs(y).max(), "the choice is a point of the grid"
    score = np.array([gcv_score(U, y, weight, one) for one in grid])
    reached = score[np.array(same) <= 1e-8 * np.abs(y).max()].min()  # tiny penalties give the same fit
    assert reached <= score.min() * (1 + 1e-5), f"score {reached}, best {score.min()}"


@shapes
@pytest.mark.parametrize("weighted", [False, True])
def test_least_penalty_is_a_share_of_the_mean_sum_of_squares_of_a_column(rows, columns, weighted):
    Z, _, weight = make(rows, columns, weighted=weighted)
    U = standardised(Z, weight)
    y = U[:, :1] + U[:, -1:]  # a plain line: cross-validation alone takes next to no penalty
    share = 0.3 * float(weight @ np.square(U).mean(axis=1))
    expected = SKRidge(share, solver="cholesky").fit(U, y, sample_weight=weight).predict(U).reshape(-1, 1)
    base = bind(Z, weight, least=0.3)
    np.testing.assert_allclose(predict(base.fit(y), Z), expected, rtol=1e-9, atol=1e-9)
    given_one = predict(base.fit(y, 1e-6), Z)
    np.testing.assert_allclose(given_one, predict(bind(Z, weight).fit(y, 1e-6), Z), rtol=1e-12)
    assert np.abs(given_one - expected).max() > 1e-3


def test_least_penalty_leaves_a_larger_one_as_it_is():
    rng = np.random.default_rng(0)
    Z, noise = rng.standard_normal((200, 40)), rng.standard_normal((200, 1))
    free, bounded = (predict(bind(Z, np.ones(200), least=least).fit(noise), Z) for least in (0.0, 0.15))
    np.testing.assert_array_equal(bounded, free)


def test_columns_left_out_have_no_part():
    Z, y, weight = make(60, 5)
    model = bind(Z, weight, [0, 2, 3]).fit(y, 0.5)
    assert model.column.tolist() == [0, 2, 3]
    np.testing.assert_allclose(predict(model, Z), predict(bind(Z[:, [0, 2, 3]], weight).fit(y, 0.5), Z[:, [0, 2, 3]]))


@pytest.mark.parametrize("reg_lambda", [None, 0.0, 1.0])
def test_without_columns_the_fit_is_the_mean(reg_lambda):
    Z, y, weight = make(60, 5, weighted=True)
    expected = np.average(y, axis=0, weights=weight)
    for columns, table in (([], Z), (None, np.ones((60, 2))), (None, np.full((60, 2), np.nan))):
        got = predict(bind(table, weight, columns).fit(y, reg_lambda), table)
        np.testing.assert_allclose(got, np.broadcast_to(expected, got.shape), rtol=1e-12)


@pytest.mark.parametrize("reg_lambda", [None, 0.0, 1.0])
def test_one_row_gives_its_target(reg_lambda):
    Z, y = np.array([[1.0, 2.0]]), np.array([[3.0]])
    np.testing.assert_allclose(predict(bind(Z, np.ones(1)).fit(y, reg_lambda), Z), y)


def test_constant_and_repeated_columns_change_nothing_but_the_share():
    Z, y, weight = make(60, 3)
    more = np.column_stack([Z, Z[:, 0], np.full(60, 1e7)])
    expected = predict(bind(Z, weight).fit(y, 0.0), Z)
    np.testing.assert_allclose(predict(bind(more, weight).fit(y, 0.0), more), expected, rtol=1e-8)


@pytest.mark.parametrize("shape", [(60, 5), (20, 50)])
def test_blocks_of_rows_change_nothing(shape, tune):
    Z, y, weight = make(*shape, missing=True, weighted=True)
    whole = predict(bind(Z, weight).fit(y), Z)
    tune(sparse, CELLS=7 * min(shape))
    np.testing.assert_allclose(predict(bind(Z, weight).fit(y), Z), whole, rtol=1e-9)


def test_one_base_serves_many_targets():
    Z, y, weight = make(60, 5)
    base = bind(Z, weight)
    first = predict(base.fit(y, 1.0), Z)
    base.fit(-3.0 * y)
    np.testing.assert_array_equal(predict(base.fit(y, 1.0), Z), first)
    assert replace(base).fit(y, 1.0).tree_output.tolist() == [[0, 2]]


def curved(loss, y, weight):
    """`loss(fit) -> (value, gradient)` and the hessian at 0."""

    def value_and_gradient(fit):
        return float(weight @ loss.value(fit, y)), weight[:, None] * loss.gradient(fit, y)

    return value_and_gradient


@pytest.mark.parametrize("name", ["logistic", "softmax", "poisson"])
def test_curved_losses_reach_the_minimum_that_scikit_learn_finds(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3)) * [1.0, 5.0, 0.2] + [0.0, 10.0, 3.0]
    U = (X - X.mean(0)) / X.std(0)
    weight = rng.uniform(0.5, 2.0, 400)
    score = U @ rng.standard_normal((3, 3))
    n_outputs = 3 if name == "softmax" else 1
    if name == "softmax":
        labels = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
        y = np.eye(3)[labels]
    elif name == "logistic":
        labels = (rng.uniform(size=400) < 1 / (1 + np.exp(-score[:, 0]))).astype(int)
        y = labels[:, None].astype(float)
    else:
        labels = rng.poisson(np.exp(np.clip(score[:, 0], -2, 2)))
        y = labels[:, None].astype(float)
    loss = losses.load_loss(name, n_outputs=n_outputs)
    base = RidgeBase.bind(np.ascontiguousarray(X), np.arange(3, dtype=np.int32), weight)
    hess = weight[:, None] * loss.hessian(np.zeros(y.shape), y)
    model = base.minimise(curved(loss, y, weight), hess, 1e-4)
    out = np.zeros(y.shape)
    add_to(out, model, np.zeros((1, 400), np.int32), np.ascontiguousarray(X))
    if name == "poisson":
        peer = PoissonRegressor(alpha=0, tol=1e-8, max_iter=1000).fit(U, labels, weight)
        expected = np.log(peer.predict(U))[:, None]
    else:
        peer = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(U, labels, weight)
        expected = peer.decision_function(U).reshape(400, -1)
    ours, theirs = (float(weight @ loss.value(h, y) / weight.sum()) for h in (out, expected))
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_curved_loss_with_rare_and_separable_classes_stays_finite():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    labels = np.where(X[:, 0] > 2.2, 2, (X[:, 1] > 0).astype(int))
    y, weight = np.eye(3)[labels], np.ones(300)
    loss = losses.load_loss("softmax", n_outputs=3)
    base = RidgeBase.bind(X, np.arange(4, dtype=np.int32), weight)
    out = np.zeros((300, 3))
    add_to(out, base.minimise(curved(loss, y, weight), loss.hessian(out, y)), np.zeros((1, 300), np.int32), X)
    assert np.abs(out).max() < 100
    assert loss.value(out, y).mean() < 0.3
