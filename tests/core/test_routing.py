"""Rows are routed to the leaves that each tree sends them to."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BASES, forest_of, random_tree, unfitted
from known_leaves import fit_leaves

from boostbp.trees.ridge import Ridge
from tests.trees.test_forest import make_members

N_OUTPUTS = 4


def pack(members, basis, clip=True):
    return forest_of(members, 4, N_OUTPUTS, basis, clip)


@pytest.mark.parametrize("name", BASES)
def test_route_is_leaf_of_of_each_tree(name):
    X, members = make_members(BASES[name])
    leaf = pack(members, BASES[name]).route(X)
    np.testing.assert_array_equal(leaf, [tree.leaf_of(X) for tree, _ in members])


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
