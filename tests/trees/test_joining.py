"""Joined forests are the same functions with one tree where several were alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import plain_forest, random_tree
from known_leaves import fit_leaves

from boostbp.trees.basis import BASES
from boostbp.trees.forest import Forest, TreeBatch
from boostbp.trees.leaves import LeafColumns, stacked
from boostbp.trees.merging import joined
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
            paths = LeafColumns.of(tree, basis)
            model = fit_leaves(tree.leaf_of(X), paths, basis.expand(X), grad, weight, Ridge(0.1))
            leaves.append(model.leaves(output))
        of_round = Trees.of(trees[:1]).repeated(N_OUTPUTS) if alike else Trees.of(trees)
        parts.append(TreeBatch(of_round, stacked(leaves)))
    forest = Forest.of(parts, n_features=4, n_outputs=N_OUTPUTS, basis=basis)
    return replace(forest, n_base=base * N_OUTPUTS)


@pytest.mark.parametrize("name", BASES)
def test_it_is_the_same_function_of_rows_that_miss_nothing(name):
    forest, X = rounds(BASES[name]), training_rows()
    one = joined(forest)
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
    assert joined(forest).predict(X).tobytes() == forest.predict(X).tobytes()


def test_a_row_that_misses_a_column_gets_the_value_at_the_mean_of_the_centers():
    forest = rounds(BASES["linear"], n_rounds=1, seed=1)
    X = np.full((1, 4), np.nan)
    leaf = int(forest.route(X)[0, 0])
    models = [forest.tree_with_leaves(k).model for k in range(N_OUTPUTS)]
    paths = models[0].paths
    columns = paths.column[paths.start[leaf] : paths.start[leaf + 1]]
    centers = np.mean([model.scaling[paths.start[leaf] : paths.start[leaf + 1], 0] for model in models], axis=0)
    assert len(columns)
    expected = [model.coefficients(leaf)[:, 0] @ [1.0, *centers] for model in models]
    np.testing.assert_allclose(joined(forest).predict(X)[0], expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["linear", "quadratic"])
def test_a_column_that_is_clipped_to_one_value_keeps_it(name):
    forest, X = rounds(BASES[name]), training_rows()
    some = (forest.leaves.column == 1) & (forest.leaves.scaling[:, 1] != 0)
    forest.leaves.scaling[some, 0], forest.leaves.scaling[some, 2:] = 0.25, 0.0
    one = joined(forest)
    expected = forest.predict(X)
    assert one.n_trees < forest.n_trees
    np.testing.assert_allclose(one.predict(X), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_bounds_hold_what_each_tree_saw():
    forest = rounds(BASES["quadratic"])

    def ends(of):
        center, inverse, lower, upper = of.leaves.scaling.T
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.column_stack([center + lower / inverse, center + upper / inverse])

    whole, parts, at = ends(joined(forest)), ends(forest), 0
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
    one = joined(forest)
    served = one.leaves.tree_output[:, 1].tolist()
    assert served == [1, 1, 1, 3, 1, 1, 1, 3, 3, 1, 1, 1, 3]
    assert one.n_base == 3
    expected = forest.predict(X)
    np.testing.assert_allclose(one.predict(X), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_nothing_to_join_is_nothing_done():
    for forest in (rounds(BASES["linear"], own=range(6)), rounds(BASES["linear"], n_rounds=0)):
        assert joined(forest) is forest
    one = joined(rounds(BASES["linear"]))
    assert joined(one) is one


def test_gains_are_those_of_all():
    forest = rounds(BASES["linear"])
    forest = replace(forest, gain=np.random.default_rng(0).random(len(forest.gain)))
    size = np.diff(forest.tree_split)[::N_OUTPUTS]
    firsts = np.concatenate(
        [forest.gain[at : at + n] for at, n in zip(forest.tree_split[:-1:N_OUTPUTS], size, strict=True)]
    )
    np.testing.assert_allclose(joined(forest).gain, N_OUTPUTS * firsts)


@pytest.mark.parametrize("far", [1e14, 1e301])
def test_columns_far_from_their_scale_are_left_alone(far):
    forest = rounds(BASES["linear"], n_rounds=1, seed=1)
    scaling = forest.leaves.scaling.copy()
    scaling[-1] = far, 1.0, -1.0, 1.0
    odd = replace(forest, leaves=forest.leaves._replace(scaling=scaling))
    assert joined(odd).leaves.tree_output[:, 1].tolist() == [2, 1]
