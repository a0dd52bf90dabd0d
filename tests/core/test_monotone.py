"""Leaves of any tree, grown for constraints or not, make it monotone, and change no more than that needs."""

from __future__ import annotations

import numpy as np
import pytest
from monotone import thresholds_of, violations
from scipy.optimize import minimize

from boostbp.trees.basis import BASES
from boostbp.trees.forest import Forest
from boostbp.trees.leaves import ColumnBins
from boostbp.trees.ridge import Ridge
from boostbp.trees.rounds import fit_round
from boostbp.trees.tree import Tree
from boostbp.trees.tree_fits import NOT_MONOTONE, LeafFits

RIDGE = Ridge(1.0)


def random_tree(rng, n_leaves, n_features):
    """A tree that was grown for nothing: random splits, children in no order, missing values sent anywhere."""
    left, right = np.full((2, n_leaves - 1), ~0)
    low, high = np.full((2, n_leaves - 1, n_features), -2.0)
    high[:] = 2.0
    feature, threshold = np.zeros(n_leaves - 1, int), np.zeros(n_leaves - 1)
    ends = [(None, 0)]  # places for a child: split and side
    for split in range(n_leaves - 1):
        above, side = ends.pop(rng.integers(len(ends)))
        if above is not None:
            low[split], high[split] = low[above], high[above]
            (low if side else high)[split, feature[above]] = threshold[above]
            (right if side else left)[above] = split
        feature[split] = rng.integers(n_features)
        threshold[split] = rng.uniform(low[split, feature[split]], high[split, feature[split]])
        ends += [(split, 0), (split, 1)]
    for leaf, (above, side) in zip(rng.permutation(n_leaves), ends, strict=True):
        (right if side else left)[above] = ~leaf
    return Tree.of(feature, threshold, left, right, rng.random(n_leaves - 1) < 0.5)


def fitted(tree, X, y, sign, basis="quadratic", ridge=RIDGE, weight=None):
    """The leaves of a tree, and the forest of this tree."""
    leaf, hess = np.empty((1, len(X)), np.int32), np.ones((1, len(X))) if weight is None else weight[None]
    Z = X if basis != "constant" else np.empty((len(X), 0))
    fits = LeafFits(X, Z, ColumnBins.of(X), BASES[basis], ridge, 1.0, np.array(sign, np.int64))
    leaves = fit_round(tree, fits, -y[None] * hess, hess, leaf=leaf, out=np.zeros((1, len(X))))
    return leaves, Forest(tree, leaves, X.shape[1], 1, BASES[basis])


def table(rng, rows, missing=0.0):
    X = rng.uniform(-2, 2, (rows, 3))
    X[rng.random(X.shape) < missing] = np.nan
    return X


@pytest.mark.parametrize("basis", ["constant", "linear", "quadratic"])
@pytest.mark.parametrize("n_leaves", [2, 3, 8, 30])
@pytest.mark.parametrize("seed", range(4))
def test_any_tree_becomes_monotone(seed, n_leaves, basis):
    rng = np.random.default_rng([seed, n_leaves])
    X = table(rng, 40 * n_leaves, missing=0.1 * (seed % 2))
    y = rng.normal(size=len(X)) + np.nan_to_num(X @ rng.normal(size=(3, 3)) * X).sum(1)
    tree, sign = random_tree(rng, n_leaves, 3), [(1, 0, -1), (1, 1, 1), (-1, 0, 0), (0, 1, -1)][seed]
    _, forest = fitted(tree, X, y, sign, basis, Ridge(0.1))
    assert violations(forest.predict, X, sign, thresholds_of(forest), seed=seed) == 0
    if n_leaves == 30:
        _, free = fitted(tree, X, y, NOT_MONOTONE, basis, Ridge(0.1))
        assert violations(free.predict, X, sign, thresholds_of(free), seed=seed) > 0


def test_trees_of_more_leaves_than_are_compared_in_pairs_become_monotone():
    rng = np.random.default_rng(0)
    X, tree = table(rng, 6000), random_tree(rng, 600, 3)
    y = X[:, 0] * X[:, 1] + rng.normal(size=len(X))
    _, forest = fitted(tree, X, y, (1, 1, -1))
    assert violations(forest.predict, X, (1, 1, -1), thresholds_of(forest)) == 0


def halves(x0=0.0):
    return Tree.of([0], [x0], [~0], [~1], [True])


@pytest.mark.parametrize("basis", ["constant", "linear", "quadratic"])
def test_leaves_in_order_are_those_of_a_free_tree(basis):
    rng = np.random.default_rng(0)
    X = table(rng, 400)
    y = 3 * X[:, 0] + 0.1 * rng.normal(size=len(X)) + 2 * (X[:, 0] > 0)
    weight = rng.exponential(size=len(X))
    free, constrained = (fitted(halves(), X, y, sign, basis, weight=weight)[0] for sign in (NOT_MONOTONE, (1, 0, -1)))
    np.testing.assert_allclose(constrained.weight, free.weight, rtol=1e-13)
    np.testing.assert_array_equal(constrained.scaling, free.scaling)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize(
    "f",
    [lambda x: np.sin(1.5 * x), lambda x: x - 0.4 * x**2, lambda x: x**2, lambda x: -x, lambda x: -(x**3) - x**2],
    ids=["sine", "top inside", "parabola", "falling", "falling more"],
)
def test_a_leaf_has_the_least_squares_of_all_that_rise(f, degree):
    rng = np.random.default_rng(0)
    X = table(rng, 300)
    y = f(X[:, 0]) + 0.1 * rng.normal(size=len(X))
    _, forest = fitted(halves(9.0), X, y, (1, 0, 0), ["linear", "quadratic"][degree - 1], Ridge(0.0))
    powers = X[:, :1] ** np.arange(degree + 1)
    ends = X[:, 0].min(), X[:, 0].max()
    rises = [{"type": "ineq", "fun": lambda w, x=x: w[1:] @ [x**0, 2 * x][:degree]} for x in ends]
    best = minimize(
        lambda w: np.square(y - powers @ w).mean(),
        np.ones(degree + 1),
        jac=lambda w: -2 * powers.T @ (y - powers @ w) / len(y),
        constraints=rises,
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(forest.predict(X)[:, 0], powers @ best.x, atol=1e-5)


def test_two_constants_out_of_order_meet_in_the_middle():
    X, y = np.array([[-1.0], [1.0]]).repeat(5, axis=0), np.array([3.0, 1.0]).repeat(5)
    leaves, _ = fitted(halves(), X, y, (1,), "constant", Ridge(0.0))
    np.testing.assert_allclose(leaves.weight, [2.0, 2.0])


def test_lines_that_cross_at_a_split_are_parted_at_the_least_cost():
    """Two lines of one slope with a step down: a share of the slopes, a distance, or some of both costs least."""
    X = np.concatenate([np.linspace(-1, -1e-9, 200), np.linspace(1e-9, 1, 200)])[:, None]
    y = np.where(X[:, 0] < 0, X[:, 0] + 1.5, X[:, 0] - 0.5) + 2 * X[:, 0]
    _, forest = fitted(halves(), X, y, (1,), "linear", Ridge(0.0))
    found = np.square(y - forest.predict(X)[:, 0]).mean()
    shares = np.linspace(0, 1, 17)
    line = [np.polyfit(X[part, 0], y[part], 1) for part in (slice(0, 200), slice(200, 400))]
    costs = []
    for share in shares:
        values = []
        for part, (slope, constant) in zip((slice(0, 200), slice(200, 400)), line, strict=True):
            mean = y[part].mean()
            values.append((1 - share) * (slope * X[part, 0] + constant) + share * mean)
        gap = values[1][0] - values[0][-1]
        values = values[0] + min(gap, 0) / 2, values[1] - min(gap, 0) / 2
        costs.append(np.square(y - np.concatenate(values)).mean())
    np.testing.assert_allclose(found, min(costs), rtol=1e-6)
