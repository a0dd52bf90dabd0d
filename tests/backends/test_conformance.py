"""What every backend in the folder promises: found by walking the folder, so that a new file is tested too."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from leaf_oracles import table, target

from boostbp.backends import available, load
from boostbp.backends.base import Growth, Table
from boostbp.trees.tree import Tree

EVERY = pytest.mark.parametrize("name", available())
VECTOR = pytest.mark.parametrize("name", [name for name in available() if load(name).vector_leaf])


def gradient(data: Table, columns: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.hstack([target(rng, data) for _ in range(columns)])


def same(a: Tree, b: Tree) -> bool:
    return all(np.array_equal(getattr(a, f.name), getattr(b, f.name), equal_nan=True) for f in fields(Tree))


def numeric(rows: int = 600, columns: int = 4, seed: int = 0) -> Table:
    return table(np.random.default_rng(seed), rows, numeric=columns)


def depth_of(tree: Tree, split: int = 0) -> int:
    if tree.n_leaves == 1:
        return 0
    return 1 + max(depth_of(tree, int(c)) if c >= 0 else 0 for c in (tree.left[split], tree.right[split]))


@EVERY
def test_a_round_gives_one_well_formed_tree_per_column(name: str) -> None:
    data = numeric()
    grad = gradient(data, 3)
    trees = load(name).bind(data, Growth(max_depth=4)).grow(grad, np.ones_like(grad))
    assert len(trees) == 3
    for tree in trees:
        children = np.sort(np.concatenate([tree.left, tree.right]))
        assert np.array_equal(children, np.r_[-tree.n_leaves : 0, 1 : len(tree.feature)]), "a child is used once"
        assert np.all((tree.feature >= 0) & (tree.feature < 4))
        assert np.all(tree.gain > 0)


@EVERY
@settings(max_examples=25)
@given(
    rows=st.integers(1, 300),
    depth=st.integers(-1, 6),
    leaves=st.none() | st.integers(1, 20),
    least=st.integers(1, 60),
    weight=st.sampled_from([1.0, 0.3, 1e-3, 7.0]),
    shared=st.booleans(),
    seed=st.integers(0, 5),
)
def test_trees_keep_to_the_sizes_asked_for(
    name: str, rows: int, depth: int, leaves: int | None, least: int, weight: float, shared: bool, seed: int
) -> None:
    data = numeric(max(rows, 2), seed=seed)
    data = Table(data.X[:rows])
    backend = load(name)
    growth = Growth(max_depth=depth, max_leaves=leaves, min_samples_leaf=least, shared=shared)
    grad = gradient(data, 2 if shared and backend.vector_leaf else 1, seed) * weight
    [tree] = backend.bind(data, growth).grow(grad, np.full_like(grad, weight))
    in_leaf = np.bincount(tree.leaf_of(data.X), minlength=tree.n_leaves)
    assert tree.n_leaves == 1 or in_leaf.min() >= least
    assert tree.n_leaves <= max(growth.leaves, 1)
    assert depth < 0 or depth_of(tree) <= depth


@EVERY
def test_a_step_is_found_where_it_is(name: str) -> None:
    x = np.arange(100.0)
    X = np.column_stack([np.zeros(100), x])
    grad = np.where(x < 37, -1.0, 2.0)[:, None]
    [tree] = load(name).bind(Table(X), Growth(max_depth=1, min_samples_leaf=5)).grow(grad, np.ones_like(grad))
    assert tree.feature.tolist() == [1]
    assert 36 <= tree.threshold[0] < 37
    assert tree.leaf_of(X).tolist() == [tree.leaf_of(X)[0]] * 37 + [tree.leaf_of(X)[-1]] * 63


@EVERY
@pytest.mark.parametrize("weight", [1.0, 0.1, 0.3, 0.7, 1e-3, 123.456])
@pytest.mark.parametrize("least", [3, 7, 20, 49])
def test_a_leaf_of_exactly_the_rows_asked_for_is_allowed(name: str, least: int, weight: float) -> None:
    X = np.repeat([0.0, 1.0], [least, 3 * least])[:, None]
    grad = np.where(X < 0.5, -weight, weight)
    hess = np.full_like(grad, weight)
    sizes = [
        load(name).bind(Table(X), Growth(max_depth=1, min_samples_leaf=rows)).grow(grad, hess)[0].n_leaves
        for rows in (least, least + 1)
    ]
    assert sizes == [2, 1]


DRAWING = pytest.mark.parametrize(
    ("name", "how"),
    [(name, {"colsample_bytree": 0.2}) for name in available()]
    + [(name, {"extra_trees": True}) for name in available() if load(name).extra_trees],
)


@DRAWING
def test_what_is_drawn_is_drawn_anew_for_each_tree_and_decided_by_the_seed(name: str, how: dict) -> None:
    data = numeric(columns=10)
    grad = gradient(data, 1)
    bound = load(name).bind(data, Growth(max_depth=3, **how))
    assert not getattr(bound, "pure", False)

    def rounds(seed: int) -> list[Tree]:
        grower = bound.fork(seed)
        return [grower.grow(grad, np.ones_like(grad))[0] for _ in range(12)]

    one = rounds(5)
    assert len({(tree.feature[0], tree.threshold[0]) for tree in one}) > 3
    assert all(same(a, b) for a, b in zip(one, rounds(5), strict=True))
    assert not all(same(a, b) for a, b in zip(one, rounds(6), strict=True))


@DRAWING
def test_columns_that_go_together_draw_each_for_itself(name: str, how: dict) -> None:
    data = numeric(columns=10)
    grad = np.repeat(gradient(data, 1), 8, axis=1)
    trees = load(name).bind(data, Growth(max_depth=3, **how)).fork(5).grow(grad, np.ones_like(grad))
    assert len(trees) == 8
    assert len({(tree.feature[0], tree.threshold[0]) for tree in trees}) > 2


@pytest.mark.parametrize("name", available())
def test_native_parameters_win_over_the_features_that_a_layer_draws(name: str) -> None:
    params = {"lightgbm": {"feature_fraction": 1.0}, "xgboost": {"colsample_bytree": 1.0}}
    params["sklearn"] = {"max_features": None}
    data = numeric(columns=10)
    grad = gradient(data, 1)
    plain, drawn = Growth(max_depth=3), Growth(max_depth=3, params=params[name], colsample_bytree=0.2)
    trees = [load(name).bind(data, growth).grow(grad, np.ones_like(grad))[0] for growth in (plain, drawn)]
    assert same(*trees)


@pytest.mark.parametrize("name", [name for name in available() if name != "sklearn"])  # which draws at each node
def test_a_tree_splits_on_its_share_of_the_features(name: str) -> None:
    data = numeric(columns=10)
    grad = gradient(data, 1)
    grower = load(name).bind(data, Growth(max_depth=4, colsample_bytree=0.2))
    used = [set(grower.grow(grad, np.ones_like(grad))[0].feature.tolist()) for _ in range(12)]
    assert max(map(len, used)) == 2
    assert len(set.union(*used)) > 5


@EVERY
def test_growing_is_a_function_of_the_gradient_alone(name: str) -> None:
    data = numeric()
    one, two = gradient(data, 2, 1), gradient(data, 2, 2)
    grower = load(name).bind(data, Growth(max_depth=4, min_samples_leaf=1))
    first, between, again = (grower.grow(g, np.ones_like(g)) for g in (one, two, one))
    assert all(map(same, first, again))
    assert not any(map(same, first, between))


@EVERY
def test_growing_is_a_function_of_the_gradient_alone_beyond_the_life_of_a_booster(name: str) -> None:
    data = numeric(60)
    grad = gradient(data, 1)
    grower = load(name).bind(data, Growth(max_depth=2, min_samples_leaf=5))
    trees = [grower.grow(grad, np.ones_like(grad))[0] for _ in range(600)]
    assert all(same(tree, trees[0]) for tree in trees)


@EVERY
def test_gradients_and_input_are_left_as_they_are(name: str) -> None:
    data = numeric()
    grad, hess = gradient(data, 2), np.ones((600, 2))
    before = [a.copy() for a in (data.X, grad, hess)]
    load(name).bind(data, Growth()).grow(grad, hess)
    for array, copy in zip((data.X, grad, hess), before, strict=True):
        assert np.array_equal(array, copy, equal_nan=True)


@EVERY
def test_any_memory_layout_gives_the_same_trees(name: str) -> None:
    data = numeric()
    grad = gradient(data, 3)
    grower = load(name).bind(data, Growth(max_depth=4))
    trees = grower.grow(grad, np.ones_like(grad))
    assert all(map(same, trees, grower.grow(np.asfortranarray(grad), np.broadcast_to(1.0, grad.shape))))


@EVERY
@pytest.mark.parametrize("different", [False, True], ids=["equal hessians", "unequal hessians"])
def test_columns_grown_together_are_the_columns_grown_alone(name: str, different: bool) -> None:
    data = numeric()
    grad = gradient(data, 3)
    hess = np.ones_like(grad)
    if different:
        hess *= np.random.default_rng(0).uniform(0.1, 2.0, grad.shape)
    grower = load(name).bind(data, Growth(max_depth=4))
    together = grower.grow(grad, hess)
    alone = [grower.grow(grad[:, [j]], hess[:, [j]])[0] for j in range(3)]
    assert all(map(same, together, alone))


@EVERY
def test_forks_give_the_same_trees_without_sampling(name: str) -> None:
    data = numeric()
    grad = gradient(data, 2)
    grower = load(name).bind(data, Growth(max_depth=5, min_samples_leaf=1))
    expected = grower.grow(grad, np.ones_like(grad))
    for seed in (0, 1, 12345, 2**31 - 1):
        assert all(map(same, expected, grower.fork(seed).grow(grad, np.ones_like(grad))))


@EVERY
def test_forks_in_threads_give_the_trees_of_forks_in_turn(name: str) -> None:
    data = numeric(1500)
    grad = gradient(data, 6)
    grower = load(name).bind(data, Growth(max_depth=5))

    def rounds(column: int) -> list[Tree]:
        fork, g = grower.fork(column), grad[:, [column]]
        return [fork.grow(g * (1 + r % 3), np.ones_like(g))[0] for r in range(12)]

    expected = [rounds(column) for column in range(6)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(rounds, range(6)))
    assert all(
        same(a, b) for ours, theirs in zip(expected, found, strict=True) for a, b in zip(ours, theirs, strict=True)
    )


@EVERY
def test_native_threads_do_not_change_the_trees(name: str) -> None:
    data = numeric(3000)
    grad = gradient(data, 2)
    growth = Growth(max_depth=5, min_samples_leaf=3)
    one, two = (load(name).bind(data, replace(growth, n_threads=n)).grow(grad, np.ones_like(grad)) for n in (1, 2))
    assert all(map(same, one, two))


@EVERY
def test_rows_without_weight_do_not_count_in_the_fit(name: str) -> None:
    X = np.repeat(np.arange(40.0), 5)[:, None]
    grad = np.where(X < 20, -1.0, 1.0)
    hess = np.ones_like(grad)
    silent = np.arange(200) % 5 > 2
    noise = np.where(X < 7, 1.0, -1.0)
    grad = np.where(silent[:, None], 0.0 * noise, grad)
    hess[silent] = 0.0
    [tree] = load(name).bind(Table(X), Growth(max_depth=1)).grow(grad, hess)
    assert 19 <= tree.threshold[0] < 20


@EVERY
@pytest.mark.parametrize(
    "X",
    [
        np.array([[1.5, np.nan]]),
        np.zeros((50, 2)),
        np.full((50, 2), 7.0),
        np.full((50, 2), np.nan),
        np.random.default_rng(0).normal(size=(50, 1)) * 1e-310,
    ],
    ids=["one row", "zeros", "constant columns", "all missing", "tiny numbers"],
)
def test_nothing_to_split_on_gives_trees_of_one_leaf(name: str, X: np.ndarray) -> None:
    grad = np.linspace(-1.0, 1.0, 2 * len(X)).reshape(len(X), 2)
    grower = load(name).bind(Table(X), Growth(min_samples_leaf=1))
    for _ in range(3):
        assert [tree.n_leaves for tree in grower.grow(grad, np.ones_like(grad))] == [1, 1]


@EVERY
def test_a_round_without_gradient_gives_trees_of_one_leaf_and_later_rounds_grow(name: str) -> None:
    data = numeric()
    grad = gradient(data, 1)
    grower = load(name).bind(data, Growth())
    sizes = [grower.grow(g, np.ones_like(g))[0].n_leaves for g in (0 * grad, grad, 0 * grad, 0 * grad, grad)]
    assert sizes[0] == sizes[2] == sizes[3] == 1
    assert sizes[1] == sizes[4] > 1


@EVERY
def test_two_rows_can_be_told_apart(name: str) -> None:
    X = np.array([[0.0], [1.0]])
    [tree] = load(name).bind(Table(X), Growth(min_samples_leaf=1)).grow(np.array([[-1.0], [1.0]]), np.ones((2, 1)))
    assert len(set(tree.leaf_of(X))) == 2


@EVERY
def test_nothing_is_printed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    data = numeric(100)
    grad = gradient(data, 1)
    grower = load(name).bind(data, Growth())
    grower.grow(grad, np.ones_like(grad))
    with ThreadPoolExecutor(1) as pool:  # another thread than that of the first round, and a round without a split
        pool.submit(grower.grow, grad, np.ones_like(grad)).result()
        pool.submit(grower.grow, 0 * grad, np.ones_like(grad)).result()
    assert capfd.readouterr() == ("", "")


@VECTOR
def test_one_tree_can_serve_all_columns(name: str) -> None:
    x = np.linspace(0.0, 1.0, 200)
    grad = np.column_stack([np.where(x < 0.25, -1.0, 1.0), np.where(x < 0.75, -1.0, 1.0)])
    grower = load(name).bind(Table(x[:, None]), Growth(max_depth=2, shared=True))
    [tree] = grower.grow(grad, np.ones_like(grad))
    assert np.allclose(np.sort(tree.threshold), [0.25, 0.75], atol=0.01)
    assert same(tree, grower.fork(3).grow(grad, np.ones_like(grad))[0])


@EVERY
def test_one_tree_for_one_column_is_the_tree_of_that_column(name: str) -> None:
    data = numeric()
    grad = gradient(data, 1)
    one, other = (
        load(name).bind(data, Growth(max_depth=4, shared=shared)).grow(grad, np.ones_like(grad))[0]
        for shared in (False, True)
    )
    assert same(one, other)


@pytest.mark.parametrize("name", [name for name in available() if not load(name).vector_leaf])
def test_several_columns_in_one_tree_are_refused_where_leaves_hold_one_number(name: str) -> None:
    data = numeric()
    grower = load(name).bind(data, Growth(shared=True))
    with pytest.raises(ValueError, match=r"shared=True .* one column .* got 2"):
        grower.grow(gradient(data, 2), np.ones((600, 2)))


@pytest.mark.parametrize("name", [name for name in available() if name != "sklearn"])
def test_gradients_beyond_float32_are_refused(name: str) -> None:
    data = numeric()
    grad = gradient(data, 1)
    with pytest.raises(ValueError, match=r"of size 1e\+39 exceeds the range of float32"):
        load(name).bind(data, Growth()).grow(np.full_like(grad, 1e39), np.ones_like(grad))
