"""Splits taken out of a tree leave a tree of the splits that remain."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from boostbp.backends.dialects import without_small_leaves
from boostbp.backends.sklearn import read_tree
from boostbp.trees.tree import Tree


def grown(seed: int, rows: int = 200) -> tuple[Tree, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return read_tree(DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, rng.normal(size=rows)).tree_), X


def plainly(tree: Tree, X: np.ndarray, rows: np.ndarray, least: int, at: int, out: list[np.ndarray]) -> None:
    """The groups of rows that remain together, by the definition: written top down, with sets of rows."""

    def reach(node: int, rows: np.ndarray) -> int:
        return int(np.isin(original[rows], leaves_below(tree, node)).sum())

    original = tree.leaf_of(X)
    if at < 0:
        out.append(rows)
        return
    left, right = int(tree.left[at]), int(tree.right[at])
    n_left, n_right = (reach(child, np.arange(len(X))) for child in (left, right))
    if min(n_left, n_right) < least:
        plainly(tree, X, rows, least, left if n_left >= n_right else right, out)
        return
    goes_left = X[rows, tree.feature[at]] <= tree.threshold[at]
    plainly(tree, X, rows[goes_left], least, left, out)
    plainly(tree, X, rows[~goes_left], least, right, out)


def leaves_below(tree: Tree, node: int) -> list[int]:
    if node < 0:
        return [~node]
    return leaves_below(tree, int(tree.left[node])) + leaves_below(tree, int(tree.right[node]))


@given(seed=st.integers(0, 1000), least=st.integers(1, 120))
def test_what_remains_is_the_tree_without_the_splitsof_few_rows(seed: int, least: int) -> None:
    tree, X = grown(seed)
    ours = without_small_leaves(tree, X, least)
    groups: list[np.ndarray] = []
    plainly(tree, X, np.arange(len(X)), least, 0, groups)
    leaf = ours.leaf_of(X)
    assert ours.n_leaves == len(groups)
    for group in groups:
        assert len(set(leaf[group])) == 1
    assert min(np.bincount(leaf, minlength=ours.n_leaves)) >= least or ours.n_leaves == 1


def test_a_tree_of_large_leaves_is_left_as_it_is() -> None:
    tree, X = grown(0)
    assert without_small_leaves(tree, X, 1) is tree
    assert without_small_leaves(Tree.stump(), X[:1], 5).n_leaves == 1
