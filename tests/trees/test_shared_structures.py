"""Forests of shared structures are the same functions with one tree where several were alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import plain_forest, random_tree, serving
from known_leaves import fit_leaves

from boostbp.trees.basis import BASES
from boostbp.trees.compact import share_structures
from boostbp.trees.forest import Forest
from boostbp.trees.leaves import coefficients, concat_leaves, leaves_on_paths, take_leaves
from boostbp.trees.ridge import Ridge
from boostbp.trees.tree import Trees

N_OUTPUTS = 3


def training_rows(seed=0, n=500):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)).round(1)
    X[:, 3] = rng.integers(0, 40, n)
    return X


def rounds(basis, *, n_rounds=6, seed=0, own=(), base=0):
    """A forest of rounds whose trees share a structure, and have leaves by weights of their own; but those of `own`."""
    rng, X = np.random.default_rng(seed), training_rows()
    parts = []
    for number in range(base + n_rounds):
        trees = [random_tree(rng, 1 + 3 * number, categorical=(3,)) for _ in range(N_OUTPUTS)]
        alike = number - base not in own
        leaves = []
        for output, tree in enumerate(trees):
            tree = trees[0] if alike else tree
            weight = rng.uniform(0.1, 3.0, len(X)) * (rng.random(len(X)) < 0.9)
            grad = -rng.standard_normal((len(X), 1)) * weight[:, None]
            of_tree = fit_leaves(
                tree.leaf_of(X), leaves_on_paths(tree, basis), basis.expand(X), grad, weight, Ridge(0.1)
            )
            leaves.append(serving(of_tree, output))
        of_round = trees[0].take(np.zeros(N_OUTPUTS, int)) if alike else Trees.concat(trees)
        parts.append(Forest(of_round, concat_leaves(leaves), 4, N_OUTPUTS, basis))
    empty = Forest(Trees.stumps(0), concat_leaves([]), 4, N_OUTPUTS, basis)
    return replace(Forest.concat([empty, *parts]), n_base=base * N_OUTPUTS)


@pytest.mark.parametrize("name", BASES)
def test_it_is_the_same_function_of_rows_that_miss_nothing(name):
    forest, X = rounds(BASES[name]), training_rows()
    one = share_structures(forest)
    assert one.n_trees == 6
    np.testing.assert_array_equal(one.leaves.tree_output, [[0, N_OUTPUTS]] * 6)
    expected = plain_forest(forest, X)[0]
    close = {"rtol": 0, "atol": 1e-9 * np.abs(expected).max()}
    np.testing.assert_allclose(plain_forest(one, X)[0], expected, **close)
    np.testing.assert_allclose(one.predict(X), expected, **close)
    leaf = one.route(X)
    np.testing.assert_array_equal(np.repeat(leaf, N_OUTPUTS, axis=0), forest.route(X))


def test_constant_leaves_keep_their_bits():
    forest, X = rounds(BASES["constant"]), training_rows(1)
    X[::3] = np.nan
    assert share_structures(forest).predict(X).tobytes() == forest.predict(X).tobytes()


def test_a_row_that_misses_a_column_gets_the_value_at_the_mean_of_the_centers():
    forest = rounds(BASES["linear"], n_rounds=1, seed=1)
    X = np.full((1, 4), np.nan)
    leaf = int(forest.route(X)[0, 0])
    models = [take_leaves(forest.leaves, np.array([k])) for k in range(N_OUTPUTS)]
    begin, end = models[0].start[leaf : leaf + 2]
    centers = np.mean([leaves.scaling[begin:end, 0] for leaves in models], axis=0)
    assert len(centers)
    expected = [coefficients(leaves, leaf)[:, 0] @ [1.0, *centers] for leaves in models]
    np.testing.assert_allclose(share_structures(forest).predict(X)[0], expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["linear", "quadratic"])
def test_a_column_that_is_clipped_to_one_value_keeps_it(name):
    forest, X = rounds(BASES[name]), training_rows()
    some = (forest.leaves.column == 1) & (forest.leaves.scaling[:, 1] != 0)
    forest.leaves.scaling[some, 0], forest.leaves.scaling[some, 2:] = 0.25, 0.0
    one = share_structures(forest)
    expected = forest.predict(X)
    assert one.n_trees < forest.n_trees
    np.testing.assert_allclose(one.predict(X), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_bounds_hold_what_each_tree_saw():
    forest = rounds(BASES["quadratic"])

    def ends(of):
        center, inverse, lower, upper = of.leaves.scaling.T
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.column_stack([center + lower / inverse, center + upper / inverse])

    whole, parts, at = ends(share_structures(forest)), ends(forest), 0
    assert N_OUTPUTS * len(whole) == len(parts)
    for tree in range(0, forest.n_trees, N_OUTPUTS):
        begin, end = forest.leaves.start[forest.leaves.tree_leaf[[tree, tree + 1]]]
        size = end - begin
        of_members = np.stack([parts[begin + k * size : begin + (k + 1) * size] for k in range(N_OUTPUTS)])
        common = whole[at : at + size]
        np.testing.assert_allclose(common[:, 0], np.fmin.reduce(of_members[..., 0]), atol=1e-12)
        np.testing.assert_allclose(common[:, 1], np.fmax.reduce(of_members[..., 1]), atol=1e-12)
        at += size


def test_trees_that_are_not_alike_and_those_of_the_base_stay_apart():
    forest, X = rounds(BASES["quadratic"], own=(1, 4), base=1), training_rows()
    one = share_structures(forest)
    served = one.leaves.tree_output[:, 1].tolist()
    assert served == [1, 1, 1, 3, 1, 1, 1, 3, 3, 1, 1, 1, 3]
    assert one.n_base == 3
    expected = forest.predict(X)
    np.testing.assert_allclose(one.predict(X), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_nothing_to_join_is_nothing_done():
    for forest in (rounds(BASES["linear"], own=range(6)), rounds(BASES["linear"], n_rounds=0)):
        assert share_structures(forest) is forest
    one = share_structures(rounds(BASES["linear"]))
    assert share_structures(one) is one


def test_gains_are_those_of_all():
    forest = rounds(BASES["linear"])
    gain = np.random.default_rng(0).random(len(forest.trees.gain))
    forest = replace(forest, trees=replace(forest.trees, gain=gain))
    size = np.diff(forest.tree_split)[::N_OUTPUTS]
    firsts = np.concatenate(
        [forest.trees.gain[at : at + n] for at, n in zip(forest.tree_split[:-1:N_OUTPUTS], size, strict=True)]
    )
    np.testing.assert_allclose(share_structures(forest).trees.gain, N_OUTPUTS * firsts)


@pytest.mark.parametrize("far", [1e14, 1e301])
def test_columns_far_from_their_scale_are_left_alone(far):
    forest = rounds(BASES["linear"], n_rounds=1, seed=1)
    scaling = forest.leaves.scaling.copy()
    scaling[-1] = far, 1.0, -1.0, 1.0
    odd = replace(forest, leaves=forest.leaves._replace(scaling=scaling))
    assert share_structures(odd).leaves.tree_output[:, 1].tolist() == [2, 1]
