"""A leaf's constant for missing values becomes splits and leaves, and the tree predicts the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import forest_of, random_tree, unfitted

from boostbp.trees.basis import Polynomial
from boostbp.trees.leaves import leaves_of_tree, with_missing_leaves
from boostbp.trees.tree import Tree

N_FEATURES = 4


def random_leaves(rng, tree):
    """Linear leaves on some of the numeric features, and what each predicts for a missing one."""
    columns = [np.flatnonzero(rng.uniform(size=3) < 0.6) for _ in range(tree.n_leaves)]
    start = np.cumsum([0, *map(len, columns)])
    scaling = np.column_stack([rng.normal(size=(start[-1], 2)), np.full(start[-1], -0.5), np.full(start[-1], 0.5)])
    weight = rng.normal(size=start[-1] + tree.n_leaves)
    return leaves_of_tree(start, np.concatenate(columns), scaling, weight), rng.normal(size=tree.n_leaves)


def forest_of_one(tree, leaves, clip):
    return forest_of([(tree, leaves)], N_FEATURES, 1, Polynomial(1), clip)


def rows_of(rng):
    X = rng.normal(size=(300, N_FEATURES))
    X[:, 3] = rng.integers(0, 6, 300)
    X[rng.uniform(size=X.shape) < 0.25] = np.nan
    return X


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("n_splits", [0, 1, 2, 7, 30])
@pytest.mark.parametrize("seed", range(5))
def test_rows_that_miss_a_column_get_the_constant_and_no_slope_the_others_the_same_bits(seed, n_splits, clip):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_splits, features=N_FEATURES, categorical=(3,))
    model, constant = random_leaves(rng, tree)
    before, X = forest_of_one(tree, model, clip), rows_of(rng)
    after = forest_of_one(*with_missing_leaves(tree, model, constant), clip)
    leaf, at = before.route(X), after.route(X)
    columns = [model.column[model.start[n] : model.start[n + 1]] for n in range(tree.n_leaves)]
    missing = np.array([np.isnan(X[row, columns[number]]).any() for row, number in enumerate(leaf[0])])
    assert missing.any() == (n_splits > 0 or len(columns[0]) > 0)
    np.testing.assert_array_equal(at[0, ~missing], leaf[0, ~missing])
    assert (at[0, missing] >= tree.n_leaves).all()
    expected = np.where(missing, constant[leaf[0]], before.evaluate(X, leaf)[:, 0])
    np.testing.assert_array_equal(after.evaluate(X, at)[:, 0], expected)
    G = rng.normal(size=(300, 1))
    for backward in (lambda forest, leaf: forest.vjp(X, leaf, G), lambda forest, leaf: forest.jacobian(X, leaf)[:, 0]):
        np.testing.assert_array_equal(backward(after, at), np.where(missing[:, None], 0.0, backward(before, leaf)))


def test_only_columns_that_a_row_may_miss_in_the_leaf_are_asked_for():
    tree = Tree.of([0, 1], [0.0, 0.5], [~0, ~1], [1, ~2], [True, False], gain=[3.0, 2.0])
    model = unfitted([0, 1, 3, 5], [0, 0, 1, 0, 1])
    rewritten, leaves = with_missing_leaves(tree, model, np.array([1.0, 2.0, 3.0]))
    # NaN of feature 0 goes to leaf 0, that of feature 1 to leaf 2: each asks for one column, and leaf 1 for none
    assert rewritten.feature.tolist() == [0, 1, 0, 1]
    assert rewritten.threshold.tolist() == [0.0, 0.5, np.inf, np.inf]
    assert rewritten.left.tolist() == [2, ~1, ~0, ~2]
    assert rewritten.right.tolist() == [1, 3, ~3, ~4]
    assert rewritten.gain.tolist() == [3.0, 2.0, 0.0, 0.0]
    assert leaves.weight.tolist() == [0.0] * 8 + [1.0, 3.0]
