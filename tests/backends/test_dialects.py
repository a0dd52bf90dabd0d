"""Trees of libraries in our words: exact thresholds, numbers of nodes, and no leaves of few rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from boostbp.backends.dialects import (
    Numbering,
    gradients,
    largest_below,
    largest_not_above,
    representable,
    without_small_leaves,
)
from boostbp.backends.sklearn import read_tree
from boostbp.trees.tree import Tree

LARGEST = float(np.finfo(np.float32).max)
SINGLE = st.floats(width=32, allow_nan=False).filter(lambda t: t > -LARGEST)
DOUBLE = st.floats(allow_nan=False, min_value=-LARGEST, max_value=LARGEST)


def rounded(x: float) -> float:
    """As a library sees the number: in float32, and at an end of its range if beyond it."""
    with np.errstate(over="ignore"):
        return float(np.clip(np.float64(x).astype(np.float32), -LARGEST, LARGEST))


def after(bound: float) -> float:
    """What the next number is seen as; infinite if there is none."""
    with np.errstate(over="ignore"):
        following = np.nextafter(bound, np.inf)
    return rounded(following) if following < np.inf else np.inf


@given(SINGLE)
@example(0.0)
@example(-0.0)
@example(1.401298464324817e-45)
@example(1.1754943508222875e-38)
@example(1.0)
@example(16777216.0)
@example(LARGEST)
@example(float("inf"))
def test_largest_below_is_the_last_number_that_rounds_below(threshold: float) -> None:
    [bound] = largest_below(np.array([threshold], np.float32))
    assert rounded(bound) < threshold <= after(bound)


@given(DOUBLE)
@example(0.0)
@example(0.1)
@example(-1e-46)
@example(1e-46)
@example(-LARGEST)
@example(LARGEST)
def test_largest_not_above_is_the_last_number_that_rounds_to_at_most_the_threshold(threshold: float) -> None:
    [bound] = largest_not_above(np.array([threshold]))
    assert rounded(bound) <= threshold < after(bound)


def test_nothing_lies_below_the_least_threshold() -> None:
    assert largest_below(np.array([-LARGEST], np.float32)) < -1e300


@given(st.lists(st.floats(allow_infinity=False), min_size=1))
def test_representable_is_finite_and_keeps_the_order(values: list[float]) -> None:
    x = np.sort(np.array(values))
    z = representable(x)
    assert z.dtype == np.float32
    assert np.array_equal(np.isnan(x), np.isnan(z))
    assert np.all(np.isfinite(z) | np.isnan(x))
    assert np.all(np.diff(z[~np.isnan(z)].astype(float)) >= 0)


def test_gradients_say_what_exceeds_float32() -> None:
    assert gradients("XGBoost", np.array([[1.0], [LARGEST]]))[0].dtype == np.float32
    with pytest.raises(ValueError, match=r"size 4e\+38 .* XGBoost grows trees: standardise the targets"):
        gradients("XGBoost", np.array([[1.0], [-4e38]]))


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


def test_a_numbering_is_in_the_order_of_the_nodes() -> None:
    numbering = Numbering.of(np.array([1, 3, -1, -1, 5, -1, -1]))
    assert numbering.splits.tolist() == [0, 1, 4]
    assert numbering.leaves.tolist() == [2, 3, 5, 6]
    assert numbering.number.tolist() == [0, 1, ~0, ~1, 2, ~2, ~3]
