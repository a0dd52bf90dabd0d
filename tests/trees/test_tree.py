"""A tree routes by the words of its record."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from helpers import plain_leaf_of, random_tree
from hypothesis import given
from hypothesis import strategies as st

from boostbp.trees.tree import Tree, Trees, as_trees


@given(seed=st.integers(0, 2**20), n_splits=st.integers(0, 12), categorical=st.sets(st.integers(0, 3)))
def test_leaf_of_matches_plain_routing(seed, n_splits, categorical):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_splits, categorical=tuple(categorical))
    X = rng.standard_normal((40, 4)).round(1)
    codes = list(categorical)
    X[:, codes] = rng.integers(-2, 70, (40, len(codes)))
    X[rng.random(X.shape) < 0.2] = np.nan
    leaf = tree.leaf_of(X)
    assert leaf.dtype == np.int32
    assert leaf.tolist() == [plain_leaf_of(tree, x) for x in X]


@given(threshold=st.floats(-1e308, 1e308))
def test_threshold_itself_goes_left_and_its_upper_neighbour_right(threshold):
    tree = Tree.of([0], [threshold], [~0], [~1], [False])
    X = np.array([[threshold], [np.nextafter(threshold, np.inf)], [np.nextafter(threshold, -np.inf)]])
    assert tree.leaf_of(X).tolist() == [0, 1, 0]


def test_both_zeros_go_the_same_way():
    X = np.array([[0.0], [-0.0]])
    for threshold in (0.0, -0.0):
        assert Tree.of([0], [threshold], [~0], [~1], [False]).leaf_of(X).tolist() == [0, 0]


def test_infinities_are_larger_and_smaller_than_any_threshold():
    tree = Tree.of([0], [1e300], [~0], [~1], [True])
    assert tree.leaf_of(np.array([[np.inf], [-np.inf], [np.nan]])).tolist() == [1, 0, 0]


def test_codes_outside_the_set_go_right():
    tree = Tree.of([0], [np.nan], [~0], [~1], [True], cat_start=[0], cat_words=[1], categories=[0b101])
    X = np.array([[0.0], [1.0], [2.0], [31.0], [32.0], [-1.0], [1e300], [np.inf], [-np.inf], [np.nan]])
    assert tree.leaf_of(X).tolist() == [0, 1, 0, 1, 1, 1, 1, 1, 1, 0]


def test_stump_is_one_leaf_without_path():
    tree = Tree.stump()
    start, features = tree.paths()
    assert tree.n_leaves == 1
    assert tree.leaf_of(np.full((3, 2), np.nan)).tolist() == [0, 0, 0]
    assert (start.tolist(), features.tolist()) == ([0, 0], [])


def paths_by_walking(tree):
    found = {}

    def walk(node, seen):
        if node < 0:
            found[~node] = sorted(seen)
            return
        numeric = {int(tree.feature[node])} if tree.cat_start[node] < 0 else set()
        walk(int(tree.left[node]), seen | numeric)
        walk(int(tree.right[node]), seen | numeric)

    walk(0, set())
    return [found[leaf] for leaf in range(tree.n_leaves)]


@given(seed=st.integers(0, 2**20), n_splits=st.integers(1, 20), categorical=st.sets(st.integers(0, 5)))
def test_path_features_are_the_numeric_features_met_on_the_way(seed, n_splits, categorical):
    tree = random_tree(np.random.default_rng(seed), n_splits, features=6, categorical=tuple(categorical))
    start, features = tree.paths()
    assert [features[a:b].tolist() for a, b in pairwise(start)] == paths_by_walking(tree)


def test_long_path_keeps_all_features():
    n = 300
    chain = Tree.of(np.arange(n)[::-1], np.zeros(n), ~np.arange(n), [*range(1, n), ~n], np.zeros(n, bool))
    start, features = chain.paths()
    assert features[start[n] : start[n + 1]].tolist() == list(range(n))
    assert features[start[0] : start[1]].tolist() == [n - 1]


@given(seed=st.integers(0, 2**20), sizes=st.lists(st.integers(0, 9), max_size=5), data=st.data())
def test_trees_in_flat_arrays_are_the_trees_that_were_put_there(seed, sizes, data):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, n_splits, categorical=(1, 3)) for n_splits in sizes]
    flat = as_trees(trees)
    assert as_trees(flat) is flat
    assert len(flat.nodes.categories) == sum(len(tree.categories) for tree in trees)
    first = data.draw(st.integers(0, len(trees)))
    last = data.draw(st.integers(0, len(trees)))
    for some, expected in ((flat, trees), (flat[first:last], trees[first:last]), (flat[-2:], trees[-2:])):
        assert len(some) == len(expected)
        for one, other in zip(some, expected, strict=True):
            for name in Tree.__dataclass_fields__:
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    numbers = data.draw(st.lists(st.integers(0, len(trees) - 1), max_size=6)) if trees else []
    some = flat.take(np.array(numbers, int))
    assert len(some) == len(numbers)
    for one, number in zip(some, numbers, strict=True):
        for name in Tree.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(one, name), getattr(trees[number], name), err_msg=name)
    # cut out and put together again: no set is there twice
    again = as_trees([flat[k] for k in range(len(flat))])
    assert len(again.nodes.categories) == len(flat.nodes.categories)
    assert flat.tree_split.tolist() == again.tree_split.tolist()


def test_trees_are_asked_for_like_items_of_a_list():
    trees = as_trees([Tree.stump(), Tree.of([2], [0.5], [~0], [~1], [True])])
    assert trees[-1].feature.tolist() == [2]
    assert trees[-1].n_leaves == 2
    with pytest.raises(IndexError):
        trees[2]
    assert [tree.n_leaves for tree in trees[::-1]] == [2, 1]
    assert [tree.n_leaves for tree in Trees.stumps(3)] == [1, 1, 1]
