"""Leaf regressions agree with closed forms, whole and in parts."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BASES, assert_close, at, one_leaf, plain_leaf, plain_terms, random_tree, unfitted, values
from hypothesis import given
from hypothesis import strategies as st
from known_leaves import blocks, fit_leaves, grouped

from boostbp.trees.basis import Polynomial
from boostbp.trees.leaves import coefficients, leaves_on_paths
from boostbp.trees.ridge import LeafRanges, LeafSums, Ridge, solve
from boostbp.trees.tree import Tree

ridges = st.builds(Ridge, st.sampled_from([1e-2, 1.0, 30.0]), st.booleans(), st.booleans())


@given(
    seed=st.integers(0, 2**20),
    settings=ridges,
    basis=st.sampled_from(sorted(BASES)),
    n_splits=st.integers(0, 4),
    outputs=st.integers(1, 3),
    missing=st.booleans(),
)
def test_leaves_match_closed_form(seed, settings, basis, n_splits, outputs, missing):
    rng, phi = np.random.default_rng(seed), BASES[basis]
    X = rng.standard_normal((600, 4))
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    tree = random_tree(rng, n_splits)
    leaf, paths, Z = tree.leaf_of(X), leaves_on_paths(tree, phi, outputs), phi.expand(X)
    y, h = rng.standard_normal((600, outputs)), rng.uniform(0.5, 2.0, 600)
    got = values(fit_leaves(leaf, paths, Z, -h[:, None] * y, h, settings, 0.7), leaf, Z)
    for number in range(tree.n_leaves):
        rows, columns = leaf == number, paths.column[paths.start[number] : paths.start[number + 1]]
        if rows.sum() < 30:  # well-conditioned leaves only
            continue
        part = Z[rows][:, columns]
        assert_close(got[rows], 0.7 * plain_leaf(part, y[rows], h[rows], settings, phi.powers)(part), 1e-9)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("penalize_constant", [True, False])
def test_fresh_rows_match_closed_form(degree, standardize, penalize_constant):
    rng = np.random.default_rng(0)
    Z, y, h = rng.uniform(-2, 5, (80, 3)), rng.standard_normal((80, 2)), rng.uniform(0.1, 3, 80)
    settings = Ridge(2.0, penalize_constant, standardize)
    fresh = rng.uniform(-6, 9, (50, 3))
    fresh[::7, 1] = np.nan
    expected = plain_leaf(Z, y, h, settings, degree)(fresh)
    assert_close(at(one_leaf(Z, y, settings, h=h, degree=degree), fresh), expected, 1e-9)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("penalize_constant", [True, False])
def test_coefficients_are_the_printed_solution_of_the_paper(degree, penalize_constant):
    rng = np.random.default_rng(1)
    Z, y = rng.uniform(-1, 2, (60, 3)), rng.standard_normal((60, 2))
    Phi = plain_terms(Z, degree)
    penalty = 0.7 * np.eye(Phi.shape[1])
    penalty[0, 0] *= penalize_constant
    expected = np.linalg.solve(Phi.T @ Phi + penalty, Phi.T @ y)
    model = one_leaf(Z, y, Ridge(0.7, penalize_constant, standardize=False), degree=degree)
    assert_close(coefficients(model, 0), expected, 1e-9)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("standardize", [True, False])
def test_without_penalty_leaves_are_least_squares(degree, standardize):
    rng = np.random.default_rng(2)
    Z, y = rng.standard_normal((60, 3)), rng.standard_normal((60, 2))
    expected = np.linalg.lstsq(plain_terms(Z, degree), y, rcond=None)[0]
    model = one_leaf(Z, y, Ridge(0.0, standardize=standardize), degree=degree)
    assert_close(coefficients(model, 0), expected, 1e-9)
    assert_close(at(model, Z), plain_terms(Z, degree) @ expected, 1e-9)


@pytest.mark.parametrize("basis", [Polynomial(1), Polynomial(2)])
def test_coefficients_predict_in_the_users_units(basis):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 4)) * [1e-3, 1.0, 50.0, 1e4] + [0.0, 5.0, -100.0, 3e4]
    tree = Tree.of([0, 1, 3], [0.0, 5.0, 3e4], [1, ~0, ~2], [2, ~1, ~3], [False] * 3)
    leaf, paths = tree.leaf_of(X), leaves_on_paths(tree, basis, 2)
    y = rng.standard_normal((400, 2))
    model = fit_leaves(leaf, paths, X, -y, np.ones(400), Ridge(0.5))
    got = values(model, leaf, X)
    for number in range(4):
        rows, columns = leaf == number, paths.column[paths.start[number] : paths.start[number + 1]]
        assert rows.any()
        expected = plain_terms(X[rows][:, columns], basis.powers) @ coefficients(model, number)
        np.testing.assert_allclose(got[rows], expected, rtol=1e-9, atol=1e-9)


@given(seed=st.integers(0, 2**20), basis=st.sampled_from(sorted(BASES)), cut=st.integers(0, 200))
def test_sums_and_ranges_of_two_parts_add_up_to_those_of_the_whole(seed, basis, cut):
    rng, phi = np.random.default_rng(seed), BASES[basis]
    X = rng.standard_normal((200, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    tree = random_tree(rng, 5)
    leaf, paths, Z = tree.leaf_of(X), leaves_on_paths(tree, phi, 2), phi.expand(X)
    grad, h = rng.standard_normal((200, 2)), rng.uniform(0.5, 2.0, 200)
    unit = np.repeat([[0.0], [1.0], [0.5]], len(paths.column), axis=1)

    def of(begin, end):
        rows = grouped(begin, leaf[begin:end], paths, Z[begin:end])
        return LeafRanges.of(rows, paths, h), LeafSums.of(rows, paths, np.ascontiguousarray(grad.T), h, unit)

    (ranges, sums), first, second = of(0, 200), of(0, cut), of(cut, 200)
    np.testing.assert_allclose((first[0] + second[0]).values, ranges.values, rtol=1e-12, atol=1e-12)
    together = first[1] + second[1]
    np.testing.assert_allclose(together.gram, sums.gram, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(together.moment, sums.moment, rtol=1e-12, atol=1e-12)
    assert together.n_outputs == 2


def test_sums_are_the_normal_equations():
    rng = np.random.default_rng(4)
    Z, grad, h = rng.standard_normal((300, 2)), rng.standard_normal((300, 3)), rng.uniform(0.5, 2.0, 300)
    paths = unfitted([0, 2], [0, 1], degree=2, outputs=3)
    [rows] = blocks(np.zeros(300, np.int32), paths, Z)
    sums = LeafSums.of(rows, paths, np.ascontiguousarray(grad.T), h, np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]))
    Phi = plain_terms(Z, 2)
    gram = Phi.T @ (h[:, None] * Phi)
    np.testing.assert_allclose(np.tril(sums.gram.reshape(5, 5)), np.tril(gram), rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(sums.moment.reshape(5, 3), -Phi.T @ grad, rtol=1e-12, atol=1e-11)
    expected = 0.5 * np.linalg.solve(gram + np.diag([0.0, 1, 1, 1, 1]), -Phi.T @ grad)
    got = solve(sums, paths, Ridge(1.0, penalize_constant=False), 0.5).reshape(5, 3)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)
