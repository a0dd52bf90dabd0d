"""Few rows get the bits from the walk through a flat layout that they get among many rows."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import forest_of, serving, unfitted
from known_leaves import fit_leaves

from boostbp.core import AT_ONCE, LOCKSTEP
from boostbp.network.layers import Layer
from boostbp.network.network import Network
from boostbp.trees.basis import BASES
from boostbp.trees.ridge import Ridge
from boostbp.trees.tree import Tree
from tests.trees.test_flat import assert_few_like_many, forest, rows


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("name", BASES)
def test_rows_of_one_layer(name, clip):
    sizes = (7, 0, 12, 3, 1, 0, 30, 2, 5, 5, 5, 5, 5, 5, 5, 5, 5, 19)
    assert len(sizes) > LOCKSTEP
    network = Network((Layer(forest(BASES[name], sizes=sizes, clip=clip)),), np.array([1.0, -2.0, 0.5]))
    assert_few_like_many(network, rows())
    assert_few_like_many(network, rows(1))


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("name", BASES)
def test_rows_of_several_layers(name, skip):
    basis = BASES[name]
    lower = forest(basis, n_outputs=5, sizes=(6, 3, 0, 9), seed=1)
    middle = forest(basis, n_features=9 if skip else 5, n_outputs=2, sizes=(4, 4, 12), seed=2)
    upper = forest(basis, n_features=6 if skip else 2, n_outputs=3, sizes=(8, 1), seed=3)
    network = Network(tuple(map(Layer, (lower, middle, upper))), np.array([1.0, -2.0, 0.5]), skip)
    assert_few_like_many(network, rows(2))


def test_missing_values_go_where_a_split_sends_them_whatever_its_threshold():
    ends = [-np.inf, -1e308, 0.0, 1e308, np.inf]
    members = []
    for threshold in ends:
        for missing_left in (False, True):
            tree = Tree.of([0], [threshold], [~0], [~1], [missing_left])
            constant, Z, grad = unfitted([0, 0, 0], []), np.zeros((2, 0)), -np.eye(2)[:, :1]
            leaves = fit_leaves(np.array([0, 1]), constant, Z, grad, np.ones(2), Ridge(0.5))
            members.append((tree, serving(leaves, len(members))))
    layer = forest_of(members, 1, len(members), BASES["constant"])
    X = np.array([np.nan, -1e308, -1.0, 0.0, -0.0, 1.0, 1e308, 5.0, 6.0])[:, None]
    assert_few_like_many(Network((Layer(layer),), np.zeros(len(members))), X)


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("n_outputs", [2, 4, 9])
def test_trees_of_any_number_of_outputs(n_outputs, clip):
    one = forest(BASES["quadratic"], n_outputs=n_outputs, sizes=range(2 * n_outputs), clip=clip)
    assert set(one.leaves.tree_output[:, 1]) >= {1, n_outputs}
    assert_few_like_many(Network((Layer(one),), np.linspace(-1, 1, n_outputs)), rows(4))


def test_more_trees_than_are_walked_at_once():
    network = Network((Layer(forest(BASES["quadratic"], sizes=(3, 2) * (AT_ONCE // 2 + LOCKSTEP))),), np.zeros(3))
    assert_few_like_many(network, rows(5)[:20])
