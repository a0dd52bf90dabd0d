"""Duties of every backend, whatever it declares."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Grower, Table, TreeParams
from boostbp.backends.conformance.backend_trial import (
    Trial,
    adversarial,
    demand,
    gradient,
    loss_left,
    mixed,
    same,
    switches,
)
from boostbp.floats import Floats
from boostbp.trees.tree import Tree

SEEDED = "Let bind() and fork(outputs, seed) begin with a state of its own that nothing but `seed` decides."


def grows_a_tree_for_each_column(trial: Trial) -> None:
    """One round gives one well-formed tree for each column of the gradient; rows of hessian 0 do not count."""
    rng = np.random.default_rng(0)
    table = mixed(rng, 400, missing=trial.able.missing)
    grad = gradient(rng, table, 3)
    hess = np.ones_like(grad)
    trial.grow(table, grad, hess, max_depth=4)
    silent = rng.random(400) < 0.3
    grad[silent], hess[silent] = 0.0, 0.0
    trial.grow(table, grad, hess, max_depth=4, min_samples_leaf=5)


def keeps_to_the_sizes(trial: Trial) -> None:
    """Depth, leaves and rows per leaf are those that `TreeParams` asks for, on any number of rows."""
    rng = np.random.default_rng(1)
    sizes = product((1, 2, 300), (-1, 0, 4), (None, 2, 9), (1, 7, 40))
    for rows, depth, leaves, least in sizes:
        table = mixed(rng, rows, missing=trial.able.missing)
        trial.grow(table, gradient(rng, table), max_depth=depth, max_leaves=leaves, min_samples_leaf=least)


def counts_rows_and_not_hessians(trial: Trial) -> None:
    """A leaf of exactly `min_samples_leaf` rows is allowed, however small or large their hessians are."""
    for least, hessian in product((3, 7, 20, 49), (1.0, 0.1, 0.3, 0.7, 1e-3, 123.456)):
        X = np.repeat([0.0, 1.0], [least, 3 * least])[:, None]
        grad = np.where(X < 0.5, -hessian, hessian)
        [tree] = trial.grow(Table(X), grad, np.full_like(grad, hessian), max_depth=1, min_samples_leaf=least)
        demand(
            tree.n_leaves == 2,
            f"{least} rows were not split off with min_samples_leaf={least} and hessians of {hessian}.",
            "Count rows; a bound on the sum of hessians is `min_samples_leaf` times their mean, a little less for "
            "rounding.",
        )


def follows_the_gradient(trial: Trial) -> None:
    """A tree fits ``-grad / hess`` with weights `hess`: few heavy rows decide against many light ones."""
    rng = np.random.default_rng(2)
    table = switches(rng, 800, 3)
    heavy = np.arange(800) < 200
    sign = 2.0 * np.where(heavy, table.X[:, 0], table.X[:, 1]) - 1.0
    hess = np.where(heavy, 10.0, 0.1)[:, None]
    grad = -hess * sign[:, None]
    [tree] = trial.grow(table, grad, hess, max_depth=1)
    left = loss_left(tree, table.X, grad, hess)
    demand(
        left <= 0.5,
        f"a split of two features of 0 and 1 leaves {left:.3g} of the loss where the better one leaves 0.005.",
        "Fit the target -grad / hess by squared error with sample weights hess.",
    )


def tells_neighbours_apart(trial: Trial) -> None:
    """A split between two values sends each to its own side; values too close to be told apart may stay together."""
    far = [(0.0, 1.0), (-1.0, 0.0), (-0.0, 5.0), (-1e300, 1e300)]
    near = [(value, float(np.nextafter(np.float32(value), np.float32(np.inf)))) for value in (1.0, -1.0, 1e-3, 1e6)]
    for (low, high), rows in product([*far, *near, (1e-310, 2e-310)], (1, 20)):
        X = np.repeat([low, high], rows)[:, None]
        grad = np.repeat([-1.0, 1.0], rows)[:, None]
        [tree] = trial.grow(Table(X), grad, min_samples_leaf=1)
        sides = [set(tree.leaf_of(X)[part].tolist()) for part in (slice(rows), slice(rows, None))]
        demand(
            tree.n_leaves == 1 or not sides[0] & sides[1],
            f"a tree that was grown on {low!r} and {high!r} splits them at {tree.threshold.tolist()}, where "
            "Tree.leaf_of does not part them.",
            "x <= threshold goes left, in float64. For a library that compares float32(x) < t or float32(x) <= t, take "
            "boostbp.backends.dialects.largest_below(t) or largest_not_above(t).",
        )
        demand(
            tree.n_leaves == 2 or (low, high) not in far,
            f"{rows} rows of {low!r} and as many of {high!r} were not told apart with min_samples_leaf=1.",
            "Read the input as it is: boostbp.backends.dialects.representable brings it to float32.",
        )


def repeats_itself(trial: Trial) -> None:
    """The same seed gives the same trees of the same gradients, round by round."""
    rng = np.random.default_rng(4)
    table = mixed(rng, 300, missing=trial.able.missing)
    grad = gradient(rng, table)
    for how in _ways(trial):
        forks = [trial.fork(table, TreeParams(max_depth=4, **how), seed=5) for _ in range(2)]
        first, second = ([fork.grow(grad, np.ones_like(grad))[0] for _ in range(6)] for fork in forks)
        demand(
            all(map(same, first, second)),
            f"two forks with seed=5 gave different trees with {how or 'no draws'}.",
            SEEDED,
        )


def reads_any_memory_layout(trial: Trial) -> None:
    """Arrays in Fortran order, broadcast or read-only give the same trees."""
    rng = np.random.default_rng(4)
    table = mixed(rng, 300, missing=trial.able.missing)
    grad = gradient(rng, table, 3)
    trees = trial.grow(table, grad, max_depth=4)
    for array in (table.X, grad):
        array.flags.writeable = False
    other = trial.grow(table, np.asfortranarray(grad), np.broadcast_to(1.0, grad.shape), max_depth=4)
    demand(
        all(map(same, trees, other)),
        "gradients of another memory layout (Fortran order, a broadcast hessian) gave other trees.",
        "Read them by np.ascontiguousarray where the library wants one.",
    )


def serves_threads(trial: Trial) -> None:
    """Forks in threads grow the trees that they grow one after the other, on any number of native threads."""
    rng = np.random.default_rng(5)
    table = mixed(rng, 500, missing=trial.able.missing)
    grad = gradient(rng, table, 4)

    def rounds(grower: Grower, column: int) -> list[Tree]:
        fork, g = grower.fork(slice(column, column + 1), column), grad[:, [column]]
        return [fork.grow(g * (1 + number % 3), np.ones_like(g))[0] for number in range(4)]

    for how in _ways(trial):
        growth = TreeParams(max_depth=4, **how)
        grower = trial.backend.bind(table, growth)
        in_turn = [rounds(trial.backend.bind(table, growth), column) for column in range(4)]
        with ThreadPoolExecutor(4) as pool:
            side_by_side = list(pool.map(partial(rounds, grower), range(4)))
        demand(
            all(map(same, chain(*in_turn), chain(*side_by_side))),
            f"forks of one grower gave other trees in threads, with {how or 'no draws'}.",
            "Let forks share nothing that changes.",
        )
        native = rounds(trial.backend.bind(table, replace(growth, n_threads=2)), 0)
        demand(
            all(map(same, in_turn[0], native)),
            f"n_threads=2 gave other trees than n_threads=1, with {how or 'no draws'}.",
            "Choose the library's deterministic mode, or ignore n_threads.",
        )


def takes_one_column_for_all(trial: Trial) -> None:
    """With ``TreeParams.shared`` and one column, a projection of the gradients, the tree is that of the column."""
    rng = np.random.default_rng(6)
    table = mixed(rng, 300, missing=trial.able.missing)
    grad = gradient(rng, table)
    [separate], [joint] = (trial.grow(table, grad, max_depth=4, shared=shared) for shared in (False, True))
    demand(
        same(separate, joint),
        "shared=True gave another tree of a single column.",
        "There is nothing to share: ignore it.",
    )


def bears_nothing_to_split(trial: Trial) -> None:
    """Columns that do not vary give trees of one leaf, and so may gradients that are 0."""
    rng = np.random.default_rng(7)
    for X in (np.array([[1.5, 2.5]]), np.zeros((50, 2)), np.full((50, 2), 7.0)):
        grad = np.linspace(-1.0, 1.0, 2 * len(X)).reshape(len(X), 2)
        trial.grow(Table(X), grad, min_samples_leaf=1)
    table = mixed(rng, 200, missing=trial.able.missing)
    grad = gradient(rng, table)
    fork = trial.fork(table, TreeParams(max_depth=3))
    trees = [fork.grow(g, np.ones_like(g)) for g in (0 * grad, grad, 0 * grad, grad)]
    demand(
        all(len(round_) == 1 for round_ in trees) and trees[1][0].n_leaves > 1 and trees[3][0].n_leaves > 1,
        f"rounds without and with a gradient in turn gave trees of {[[t.n_leaves for t in r] for r in trees]} leaves.",
        "Return Tree.stump() where there is nothing to gain, and grow again in the next round.",
    )


def routes_as_the_library_does(trial: Trial, leaf_of: Callable[[Any, Floats], NDArray[Any]]) -> None:
    """`Tree.leaf_of` sends rows on which it is easy to go wrong where the library sends them."""
    able = trial.able
    kinds: list[tuple[int, ...]] = [(), (3, 40)] if able.categories else [()]
    for seed, categories in enumerate([*kinds, *kinds]):
        rng = np.random.default_rng(seed)
        table = mixed(rng, 1500, categories=categories, missing=able.missing)
        grad = gradient(rng, table)
        grower = trial.fork(table, TreeParams(max_depth=6, min_samples_leaf=5))
        [tree] = grower.grow(grad, np.ones_like(grad))
        rows = adversarial(tree, table, rng, missing=able.missing)
        wrong = np.flatnonzero(tree.leaf_of(rows) != leaf_of(grower, rows))
        demand(
            not len(wrong),
            f"Tree.leaf_of sends {len(wrong)} of {len(rows)} rows to other leaves than the library; the first is "
            f"{rows[wrong[:1]].tolist()}.",
            "Compare its way through tree.feature, threshold, missing_left and the category sets.",
        )


def _ways(trial: Trial) -> list[dict[str, Any]]:
    """Without draws, and with all that a backend says it can draw."""
    able = trial.able
    ways: list[dict[str, Any]] = [{}]
    ways += [{"extra_trees": True}] if able.extra_trees else []
    return ways + ([{"colsample_bytree": 0.5}] if able.colsample_bytree else [])


DUTIES = (
    grows_a_tree_for_each_column,
    keeps_to_the_sizes,
    counts_rows_and_not_hessians,
    follows_the_gradient,
    tells_neighbours_apart,
    repeats_itself,
    reads_any_memory_layout,
    serves_threads,
    takes_one_column_for_all,
    bears_nothing_to_split,
)
