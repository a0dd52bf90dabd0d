"""Values of a forest's leaf regressions are those of a plain evaluation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import BASES, forest_of, plain_forest
from known_leaves import fit_leaves

from boostbp.trees.leaves import leaves_on_paths
from boostbp.trees.ridge import Ridge
from boostbp.trees.tree import Tree
from tests.trees.test_forest import make_members

N_OUTPUTS = 4


def pack(members, basis, clip=True):
    return forest_of(members, 4, N_OUTPUTS, basis, clip)


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
