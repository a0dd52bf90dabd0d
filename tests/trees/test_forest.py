"""A forest is the sum of its trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import BASES, forest_of, plain_forest, random_tree, serving, unfitted
from known_leaves import fit_leaves

from boostbp.trees.forest import CHUNK
from boostbp.trees.leaves import leaves_on_paths
from boostbp.trees.ridge import Ridge
from boostbp.trees.tree import Tree

N_OUTPUTS = 4


def make_members(basis, *, seed=0, rows=400, sizes=(7, 0, 12, 3, 1)):
    """Trees of different sizes, with one or more outputs, some on categories."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 4)).round(1)
    X[:, 3] = rng.integers(0, 40, rows)
    X[rng.random(X.shape) < 0.1] = np.nan
    members = []
    for i, size in enumerate(sizes):
        tree = random_tree(rng, size, categorical=(3,))
        outputs = 1 + i % 3
        first = int(rng.integers(N_OUTPUTS - outputs + 1))
        Y = rng.standard_normal((rows, outputs))
        unfitted = leaves_on_paths(tree, basis, outputs)
        leaves = fit_leaves(tree.leaf_of(X), unfitted, basis.expand(X), -Y, np.ones(rows), Ridge(0.1))
        members.append((tree, serving(leaves, first)))
    return X, members


def pack(members, basis, clip=True):
    return forest_of(members, 4, N_OUTPUTS, basis, clip)


@pytest.mark.parametrize("name", BASES)
def test_route_is_leaf_of_of_each_tree(name):
    X, members = make_members(BASES[name])
    leaf = pack(members, BASES[name]).route(X)
    np.testing.assert_array_equal(leaf, [tree.leaf_of(X) for tree, _ in members])


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("name", BASES)
def test_values_are_those_of_a_plain_evaluation(name, clip):
    X, members = make_members(BASES[name])
    forest = pack(members, BASES[name], clip)
    wide = X * 2.0
    wide[:, 3] = X[:, 3]
    expected, _ = plain_forest(forest, wide)
    got = forest.evaluate(wide, forest.route(wide))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


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


def test_leaf_numbers_take_the_smallest_type_that_holds_them():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4))
    stump = make_members(BASES["linear"])[1][1]
    for n_splits, dtype in ((255, np.uint8), (256, np.uint16), (65536, np.int32)):
        tree = random_tree(rng, n_splits, features=1)
        constant = unfitted(np.zeros(tree.n_leaves + 1), [])
        leaves = fit_leaves(tree.leaf_of(X), constant, X, X[:, :1], np.ones(500), Ridge())
        forest = pack([(tree, leaves), stump], BASES["linear"])
        leaf = forest.route(X)
        assert leaf.dtype == dtype
        np.testing.assert_array_equal(leaf[0], tree.leaf_of(X))


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


def test_clipped_inputs_keep_the_value_of_the_edge_of_the_training_range():
    x = np.linspace(-1.0, 2.0, 50)[:, None]
    tree = Tree.of([0], [10.0], [~0], [~1], [False])
    unfitted = leaves_on_paths(tree, BASES["quadratic"])
    leaves = fit_leaves(tree.leaf_of(x), unfitted, x, -(x + x**2), np.ones(50), Ridge(0.0))
    clipped = forest_of([(tree, leaves)], 1, 1, BASES["quadratic"])
    free = replace(clipped, clip=False)
    X = np.array([[-5.0], [-1.0], [2.0], [7.0]])
    leaf = clipped.route(X)
    np.testing.assert_allclose(clipped.predict(X).ravel(), [0.0, 0.0, 6.0, 6.0], atol=1e-12)
    np.testing.assert_allclose(free.predict(X).ravel(), [20.0, 0.0, 6.0, 56.0], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(clipped.jacobian(X, leaf).ravel(), [0.0, -1.0, 5.0, 0.0], rtol=1e-11)
    np.testing.assert_allclose(free.jacobian(X, leaf).ravel(), [-9.0, -1.0, 5.0, 15.0], rtol=1e-11)
