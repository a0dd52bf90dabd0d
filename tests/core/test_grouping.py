"""Bins route every row as its value does, and rows are grouped by leaf with the columns that it reads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from helpers import plain_leaf_of, random_tree
from hypothesis import given
from hypothesis import strategies as st

from boostbp import core
from boostbp.core import LeafRows
from boostbp.trees.leaves import ColumnBins
from boostbp.trees.tree import Tree


def grouped(tree, X, first=0, last=None):
    """Leaf of each row from `first` on, and the rows of each leaf, by bins."""
    last = len(X) if last is None else last
    bins = ColumnBins.of(X)
    leaf, order = np.empty((1, len(X)), np.uint8), np.empty(last - first, np.uint16)
    start, column = tree.paths()
    values = np.empty((last - first) * max(1, len(column)))
    row_start = np.empty(tree.n_leaves + 1, np.int64)
    rows = LeafRows(first, row_start, order, start, values)
    core.group_block(tree.nodes, bins.with_input(X, X), column, leaf, rows)
    return leaf[0, first:last], [first + order[a:b] for a, b in pairwise(row_start)], values


@given(
    seed=st.integers(0, 2**20),
    n_splits=st.integers(0, 12),
    categorical=st.sets(st.integers(0, 3)),
    digits=st.sampled_from([0, 1, 15]),
)
def test_rows_reach_the_leaves_of_plain_routing(seed, n_splits, categorical, digits):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_splits, categorical=tuple(categorical))
    X = rng.standard_normal((60, 4)).round(digits)
    X[:, list(categorical)] = rng.integers(-2, 70, (60, len(categorical)))
    X[rng.random(X.shape) < 0.2] = np.nan
    expected = np.array([plain_leaf_of(tree, x) for x in X])
    leaf, rows, values = grouped(tree, X, 7, 55)
    np.testing.assert_array_equal(leaf, expected[7:55])
    start, column = tree.paths()
    at = 0
    for number, own in enumerate(rows):
        np.testing.assert_array_equal(own, 7 + np.flatnonzero(expected[7:55] == number))
        for j in column[start[number] : start[number + 1]]:
            np.testing.assert_array_equal(values[at : at + len(own)], X[own, j])
            at += len(own)


@pytest.mark.parametrize("parents_first", [True, False])
@pytest.mark.parametrize("n_splits", [127, 128, 250])
def test_rows_of_large_trees_reach_the_leaves_of_plain_routing(n_splits, parents_first):
    """Rows pass the first 127 splits together; a child may have a smaller number than its parent."""
    rng = np.random.default_rng(n_splits)
    tree = random_tree(rng, n_splits, categorical=(3,))
    if not parents_first:
        number = np.append(0, 1 + rng.permutation(n_splits - 1))  # of each split; the root stays the first one
        old = np.argsort(number)
        left, right = (np.where(child < 0, child, number[child.clip(0)])[old] for child in (tree.left, tree.right))
        names = ("feature", "threshold", "missing_left", "cat_start", "cat_words", "gain")
        others = {name: getattr(tree, name)[old] for name in names}
        tree = Tree.of(left=left, right=right, categories=tree.categories, **others)
    X = rng.standard_normal((700, 4))
    X[:, 3] = rng.integers(-2, 70, 700)
    X[rng.random(X.shape) < 0.1] = np.nan
    leaf, _, _ = grouped(tree, X)
    np.testing.assert_array_equal(leaf, [plain_leaf_of(tree, x) for x in X])


def test_thresholds_on_values_their_neighbours_and_between_them_are_exact():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(6000)  # more values than buckets
    for value in rng.choice(x, 60):
        for threshold in (value, np.nextafter(value, np.inf), np.nextafter(value, -np.inf), value + 1e-4):
            leaf, _, _ = grouped(Tree.of([0], [threshold], [~0], [~1], [False]), x[:, None])
            np.testing.assert_array_equal(leaf == 0, x <= threshold)


def test_categories_that_share_a_bucket_are_told_apart():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2000, 9000).astype(float)
    words = rng.integers(0, 2**32, 63, dtype=np.uint32)
    tree = Tree.of([0], [np.nan], [~0], [~1], [True], cat_start=[0], cat_words=[63], categories=words)
    leaf, _, _ = grouped(tree, x[:, None])
    np.testing.assert_array_equal(leaf, tree.leaf_of(x[:, None]))
    assert 0 < leaf.mean() < 1


def test_a_column_without_values_is_missing_everywhere():
    X = np.full((5, 1), np.nan)
    for left in (True, False):
        leaf, _, _ = grouped(Tree.of([0], [0.0], [~0], [~1], [left]), X)
        assert (leaf == (0 if left else 1)).all()


def test_path_columns_of_a_table_that_exceeds_the_caches_of_a_core():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((9000, 40))  # more numbers than `NEAR` in grouping.c
    tree = random_tree(rng, 30, features=40)
    leaf, rows, values = grouped(tree, X)
    np.testing.assert_array_equal(leaf, tree.leaf_of(X))
    start, column = tree.paths()
    expected = [X[own, j] for own, a, b in zip(rows, start, start[1:], strict=False) for j in column[a:b]]
    np.testing.assert_array_equal(values[: sum(map(len, expected))], np.concatenate(expected))
