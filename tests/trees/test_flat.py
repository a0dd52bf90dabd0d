"""The flat layout of a forest: its nodes and numbers, what it does not hold, and when it is made."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers import BASES as ALL_BASES
from helpers import forest_of, random_members

from boostbp.core import LOCKSTEP
from boostbp.network.layers import Layer
from boostbp.network.network import Network
from boostbp.trees.basis import BASES
from boostbp.trees.flat import Flat
from boostbp.trees.forest import AT_MOST_ROWS
from boostbp.trees.leaves import leaves_on_paths
from boostbp.trees.tree import Tree


def rows(seed=0, n=300):
    """Rows of three numbers and a column of categories, some missing, some far out, some of no known category."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)).round(1)
    X[:, 3] = rng.integers(-2, 90, n)
    X[::7, :3] *= 1e3
    X[::11, 0] = [1e300, -1e300, 0.0][seed % 3]
    X[rng.random(X.shape) < 0.15] = np.nan
    return X


def forest(basis, *, n_features=4, n_outputs=3, sizes=(), clip=True, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, n_features)).round(1)
    X[:, -1] = rng.integers(0, 60, 200)
    X[rng.random(X.shape) < 0.1] = np.nan
    members = random_members(rng, X, basis, sizes, n_outputs, categorical=(n_features - 1,))
    return forest_of(members, n_features, n_outputs, basis, clip)


def assert_few_like_many(network, X):
    many = network.predict(X)
    assert len(X) > AT_MOST_ROWS
    for n_rows in (1, AT_MOST_ROWS):
        for first in range(0, len(X) - n_rows + 1, n_rows):
            few = slice(first, first + n_rows)
            assert network.predict(X[few]).tobytes() == many[few].tobytes(), X[few]


def chain(count, sides):
    """A tree whose every split has a leaf, on the right side or on the left one."""
    split = np.arange(count)
    onward, leaf = np.append(split[1:], ~count), ~split
    to_left = np.resize(sides, count)
    threshold = np.where(to_left, split[::-1], split) + 0.5
    left, right = np.where(to_left, onward, leaf), np.where(to_left, leaf, onward)
    tree = Tree.of(np.where(to_left, 0, 1), threshold, left, right, np.zeros(count, bool))
    leaves = leaves_on_paths(tree, BASES["constant"])
    return forest_of([(tree, leaves._replace(weight=np.arange(count + 1.0)))], 2, 1, BASES["constant"])


@pytest.mark.parametrize("sides", [[True], [False], [True, False], [True, True, False, True]])
def test_chains_of_splits(sides):
    layer = Layer(chain(300, sides))
    X = np.random.default_rng(0).uniform(-1, 301, (40, 2))
    assert_few_like_many(Network((layer,), np.zeros(1)), X)
    assert Flat.of([layer.forest]).steps.tolist() == [300]


def test_the_layout_of_a_chain_takes_no_more_steps_of_python_for_more_levels():
    def lines_of(forest):
        count = 0

        def trace(frame, event, argument):
            nonlocal count
            count += 1
            return trace

        sys.settrace(trace)
        try:
            Flat.of([forest])
        finally:
            sys.settrace(None)
        return count

    short, long = chain(500, [True]), chain(8000, [True])
    assert lines_of(long) < lines_of(short) + 100


def test_a_layer_without_trees_is_the_baseline():
    network = Network((Layer(forest(BASES["linear"])),), np.array([1.0, -2.0, 0.5]))
    np.testing.assert_array_equal(network.predict(rows()[:2]), [network.baseline] * 2)


def test_functions_of_ones_own_take_the_other_way():
    basis = next(basis for basis in ALL_BASES.values() if basis.has_functions)
    network = Network((Layer(forest(basis, sizes=(5, 2))),), np.zeros(3))
    assert_few_like_many(network, np.nan_to_num(rows()).clip(-3, 3))
    assert network._few_rows is False


def test_numbers_that_float32_holds_are_kept_in_it():
    long = Network((Layer(forest(BASES["quadratic"], n_outputs=5, sizes=(7, 12, 3, 0, 30, 9))),), np.zeros(5))
    for network, size in ((long, 8), (long.rounded(), 4)):
        assert Flat.of([network.layers[0].forest]).table.itemsize == size
        assert_few_like_many(network, rows(3))


def test_more_columns_than_a_node_can_name_take_the_other_way():
    one = forest(BASES["linear"], sizes=(5, 2))
    wide = Network((Layer(replace(one, n_features=1 << 15)),), np.zeros(3))
    X = np.zeros((20, 1 << 15))
    X[:, :4] = rows()[:20]
    assert_few_like_many(wide, X)
    assert wide._few_rows is False
    np.testing.assert_array_equal(wide.predict(X), Network((Layer(one),), np.zeros(3)).predict(X[:, :4].copy()))


def test_rows_of_another_width_are_refused():
    network = Network((Layer(forest(BASES["linear"], sizes=(5,))),), np.zeros(3))
    with pytest.raises(ValueError, match=r"H has shape \(1, 3\)"):
        network.predict(np.zeros((1, 3)))


def test_copies_do_not_hold_the_layout():
    network = Network((Layer(forest(BASES["linear"], sizes=(5,))),), np.zeros(3), skip=True)
    before = len(pickle.dumps(network))
    network.predict(rows()[:1])
    assert network._few_rows is not None
    again = pickle.loads(pickle.dumps(network))
    assert len(pickle.dumps(network)) == before
    assert again.skip
    np.testing.assert_array_equal(again.predict(rows()[:1]), network.predict(rows()[:1]))


def test_nodes_of_a_split_lie_side_by_side():
    one = forest(BASES["quadratic"], sizes=(7, 0, 12, 3))
    flat = Flat.of([one])
    assert len(flat.trees) == LOCKSTEP
    n_splits = len(one.trees.gain)
    is_leaf = flat.nodes["step"] == 0
    assert is_leaf.sum() == n_splits + one.n_trees + 1
    children = (np.arange(len(is_leaf)) + flat.nodes["step"])[~is_leaf]
    assert sorted([*children, *(children + 1), *flat.trees[: one.n_trees, 0]]) == list(range(len(flat.nodes) - 1))
