"""A sparse input says the same as the dense one, of which few cells are ever written down."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import forest_of, plain_leaf_of, random_tree, serving
from known_leaves import fit_leaves
from sklearn.linear_model import Ridge as SKRidge

from boostbp.trees import linear, sparse
from boostbp.trees.basis import Elementwise, Polynomial
from boostbp.trees.leaves import add_to, leaves_on_paths
from boostbp.trees.linear import RidgeBase, Standardised
from boostbp.trees.ridge import Ridge
from boostbp.trees.sparse import Sparse


def make(rows=300, columns=12, *, missing=True, seed=0):
    """Mostly zeros; one column without zeros, one of nothing but zeros, one constant, one wide."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((rows, columns)) < 0.15, rng.standard_normal((rows, columns)), 0.0)
    X[:, 1] = 5.0 + rng.standard_normal(rows)
    X[:, 2], X[:, 3] = 0.0, 2.5
    X[:, 4] *= 1e200
    if missing:
        X[rng.random(X.shape) < 0.04] = np.nan
        X[:, 5] = np.where(X[:, 5] == 0.0, 0.0, np.nan)
    return X, Sparse.of(sp.csr_array(X)), rng.uniform(0.5, 2.0, rows)


@pytest.fixture
def small_blocks(tune):
    tune(sparse, CELLS=50)


def test_rows_and_columns_are_those_of_the_dense_input():
    X, S, _ = make()
    assert (len(S), S.shape) == (300, (300, 12))
    np.testing.assert_array_equal(S.toarray(), X)
    np.testing.assert_array_equal(S.dense(np.array([7, 1, 1]), slice(40, 77)), X[40:77, [7, 1, 1]])
    np.testing.assert_array_equal(S.without([0, 3]).toarray(), np.delete(X, [0, 3], axis=1))
    for rows in (slice(3, 50), np.array([9, 2, 2, 299]), X[:, 0] > 0):
        np.testing.assert_array_equal(S[rows].toarray(), X[rows])
    expected = X.copy()
    expected[:, 2], expected[:, 11] = 7.0, np.arange(300)
    np.testing.assert_array_equal(S.replaced({11: expected[:, 11], 2: expected[:, 2]}).toarray(), expected)


def test_zeros_that_are_held_are_zeros():
    X, S, weight = make(missing=False)
    S.entries.data[::3] = 0.0
    X = S.toarray()
    dense, held = Standardised.of(X, weight), Standardised.of(S, weight)
    np.testing.assert_array_equal(dense.scaling, held.scaling)
    np.testing.assert_array_equal(dense.times(np.ones((12, 2))), held.times(np.ones((12, 2))))


def test_row_blocks_are_small_and_cover_all_rows(small_blocks):
    parts = sparse.row_blocks(3, 40, 12)
    assert [part.start for part in parts] == [3, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == 40
    assert max((part.stop - part.start) * 12 for part in parts) <= 50
    assert len(sparse.row_blocks(0, 3, 1000)) == 3


def test_leaves_of_a_tree(small_blocks):
    rng = np.random.default_rng(3)
    X, _, _ = make()
    X[:, 8] = rng.integers(0, 40, 300)
    S = Sparse.of(sp.csc_array(X))
    for n_splits in (0, 1, 9):
        tree = random_tree(rng, n_splits, features=12, categorical=(8,))
        np.testing.assert_array_equal(tree.leaf_of(S), [plain_leaf_of(tree, x) for x in X])


@pytest.mark.parametrize(
    "basis", [Polynomial(1), Polynomial(2), Elementwise([np.cos, np.sin], [lambda x: -np.sin(x), np.cos])]
)
def test_a_forest_gives_the_same_bits(basis, small_blocks):
    rng = np.random.default_rng(4)
    X, S, weight = make()
    X[:, 4] = np.sign(X[:, 4])
    S = Sparse.of(sp.csr_array(X))
    members = []
    for first in (0, 1, 0):
        tree = random_tree(rng, 5, features=12)
        outputs = 2 if first == 0 else 1
        grad, unfitted = rng.standard_normal((300, outputs)), leaves_on_paths(tree, basis, outputs)
        leaves = fit_leaves(tree.leaf_of(X), unfitted, basis.expand(X), grad, weight, Ridge(0.5))
        members.append((tree, serving(leaves, first)))
    forest = forest_of(members, 12, 2, basis)
    leaf = forest.route(X)
    np.testing.assert_array_equal(forest.route(S, 2), leaf)
    np.testing.assert_array_equal(forest.evaluate(S, leaf), forest.evaluate(X, leaf))
    np.testing.assert_array_equal(forest.predict(S, 2), forest.predict(X))
    np.testing.assert_array_equal(forest.jacobian(S, leaf), forest.jacobian(X, leaf))
    G = rng.standard_normal((300, 2))
    np.testing.assert_array_equal(forest.vjp(S, leaf, G), forest.vjp(X, leaf, G))


def test_numbers_of_rows_may_take_eight_bytes():
    _, S, weight = make()
    wide = Sparse(S.entries.copy())
    wide.entries.indptr, wide.entries.indices = S.entries.indptr.astype(np.int64), S.entries.indices.astype(np.int64)
    V = np.random.default_rng(3).standard_normal((12, 2))
    found, expected = Standardised.of(wide, weight), Standardised.of(S, weight)
    np.testing.assert_array_equal(found.scaling, expected.scaling)
    np.testing.assert_array_equal(found.times(V), expected.times(V))
    np.testing.assert_array_equal(wide.dense(np.arange(12), slice(3, 200)), S.toarray()[3:200])


@pytest.mark.parametrize(("rows", "columns"), [(300, 12), (9, 12)])
def test_a_ridge_base_gives_the_same_bits(rows, columns, small_blocks):
    X, S, weight = make(rows, columns)
    y = np.random.default_rng(5).standard_normal((rows, 2))
    models = [RidgeBase.bind(Z, np.arange(columns, dtype=np.int32), weight).fit(y) for Z in (X, S)]
    np.testing.assert_array_equal(models[0].weight, models[1].weight)
    values = [np.zeros((rows, 2)) for _ in models]
    for Z, model, out in zip((X, S), models, values, strict=True):
        add_to(out, model, np.zeros((1, rows), np.int32), Z)
    np.testing.assert_array_equal(*values)


@pytest.mark.parametrize("sparsely", [False, True])
def test_a_ridge_base_of_many_rows_and_columns_reads_those_of_largest_variance(sparsely, tune):
    tune(linear, MAX_DECOMPOSED=4)
    X, S, weight = make(missing=False)
    X = np.delete(X, 4, axis=1)
    S = Sparse.of(sp.csr_array(X))
    y = X[:, [0]] + np.random.default_rng(6).standard_normal((300, 1))
    U = X - weight @ X / weight.sum()
    variance = weight @ np.square(U / np.where(np.ptp(X, axis=0) > 0, np.abs(U).max(0), np.inf))
    chosen = np.sort(np.argsort(variance)[-4:])
    model = RidgeBase.bind(S if sparsely else X, np.arange(11, dtype=np.int32), weight).fit(y, 1e-9)
    np.testing.assert_array_equal(model.column, chosen)
    out = np.zeros((300, 1))
    add_to(out, model, np.zeros((1, 300), np.int32), S)
    expected = SKRidge(1e-9).fit(X[:, chosen], y[:, 0], weight).predict(X[:, chosen])
    np.testing.assert_allclose(out[:, 0], expected, atol=1e-7)
