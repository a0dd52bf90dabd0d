"""A forest is the sum of its trees."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BASES, forest_of, random_members

from boostbp.trees.forest import CHUNK

N_OUTPUTS = 4


def make_members(basis, *, seed=0, rows=400, sizes=(7, 0, 12, 3, 1)):
    """Trees of different sizes, with one or more outputs, some on categories."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 4)).round(1)
    X[:, 3] = rng.integers(0, 40, rows)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, random_members(rng, X, basis, sizes, N_OUTPUTS, categorical=(3,))


def pack(members, basis, clip=True):
    return forest_of(members, 4, N_OUTPUTS, basis, clip)


@pytest.mark.parametrize("name", BASES)
def test_forest_is_the_sum_of_forests_of_one_tree(name):
    X, members = make_members(BASES[name])
    G = np.random.default_rng(1).standard_normal((len(X), N_OUTPUTS))
    whole, parts = pack(members, BASES[name]), [pack([member], BASES[name]) for member in members]
    for read in (
        lambda f: f.evaluate(X, f.route(X)),
        lambda f: f.vjp(X, f.route(X), G),
        lambda f: f.jacobian(X, f.route(X)),
    ):
        expected = sum(read(part) for part in parts)
        np.testing.assert_allclose(read(whole), expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("name", BASES)
def test_predict_in_chunks_is_evaluate(name):
    X, members = make_members(BASES[name])
    X = np.resize(X, (2 * CHUNK + 37, X.shape[1]))
    forest = pack(members, BASES[name])
    expected = forest.evaluate(X, forest.route(X))
    for n_threads in (1, 2, 4):
        np.testing.assert_array_equal(forest.predict(X, n_threads), expected)


@pytest.mark.parametrize("name", BASES)
def test_threads_change_nothing(name):
    X, members = make_members(BASES[name])
    forest = pack(members, BASES[name])
    G = np.random.default_rng(1).standard_normal((len(X), N_OUTPUTS))
    leaf = forest.route(X)
    alone = leaf, forest.evaluate(X, leaf), forest.vjp(X, leaf, G), forest.jacobian(X, leaf)
    for n in (2, 4):
        side_by_side = (
            forest.route(X, n), forest.evaluate(X, leaf, n), forest.vjp(X, leaf, G, n), forest.jacobian(X, leaf, n),
        )  # fmt: skip
        for one, many in zip(alone, side_by_side, strict=True):
            np.testing.assert_array_equal(one, many)


def test_forest_without_trees_is_zero():
    forest = pack([], BASES["quadratic"])
    X = np.ones((5, 4))
    leaf = forest.route(X)
    assert leaf.shape == (0, 5)
    assert not forest.predict(X).any()
    assert not forest.vjp(X, leaf, np.ones((5, N_OUTPUTS))).any()
    assert not forest.jacobian(X, leaf).any()


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("name", BASES)
def test_no_rows_give_no_rows(name, n_threads):
    _, members = make_members(BASES[name])
    forest, X = pack(members, BASES[name]), np.empty((0, 4))
    leaf = forest.route(X, n_threads)
    assert leaf.shape == (5, 0)
    assert forest.predict(X, n_threads).shape == (0, N_OUTPUTS)
    assert forest.vjp(X, leaf, np.empty((0, N_OUTPUTS)), n_threads).shape == (0, 4)
    assert forest.jacobian(X, leaf, n_threads).shape == (0, N_OUTPUTS, 4)
