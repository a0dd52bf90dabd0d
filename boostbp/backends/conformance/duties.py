"""The duties of every backend, with their names and checks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import TreeParams
from boostbp.backends.conformance.backend_trial import (
    Trial,
    adversarial,
    demand,
    gradient,
    grow_rounds,
    loss_left,
    same,
    switches,
)
from boostbp.runtime.arrays import Floats
from boostbp.trees.sparse import Table
from boostbp.trees.tree import Tree


def grows_a_tree_for_each_column(trial: Trial) -> None:
    """One round gives one well-formed tree for each column of the gradient; rows of hessian 0 do not count."""
    rng = np.random.default_rng(0)
    table = trial.mixed(rng, 400)
    grad = gradient(rng, table, 3)
    trial.grow(table, grad, max_depth=4)
    counts = rng.random((400, 1)) >= 0.3
    trial.grow(table, grad * counts, np.ones_like(grad) * counts, max_depth=4, min_samples_leaf=5)


def keeps_to_the_sizes(trial: Trial) -> None:
    """Depth, leaves and rows per leaf respect `TreeParams`, on any number of rows."""
    rng = np.random.default_rng(1)
    for rows, depth, leaves, smallest in product((1, 2, 300), (-1, 0, 4), (None, 2, 9), (1, 7, 40)):
        table = trial.mixed(rng, rows)
        trial.grow(table, gradient(rng, table), max_depth=depth, max_leaves=leaves, min_samples_leaf=smallest)


def counts_rows_and_not_hessians(trial: Trial) -> None:
    """A leaf of exactly `min_samples_leaf` rows is allowed, however small or large their hessians are."""
    for smallest, hessian in product((3, 7, 20, 49), (1.0, 0.1, 0.3, 0.7, 1e-3, 123.456)):
        X = np.repeat([0.0, 1.0], [smallest, 3 * smallest])[:, None]
        grad = np.where(X < 0.5, -hessian, hessian)
        [tree] = trial.grow(Table(X), grad, np.full_like(grad, hessian), max_depth=1, min_samples_leaf=smallest)
        fault = f"{smallest} rows were not split off with min_samples_leaf={smallest} and hessians of {hessian}."
        cure = "Count rows; a bound on the sum of hessians is a little less than `min_samples_leaf` times their mean."
        demand(tree.n_leaves == 2, fault, cure)


def follows_the_gradient(trial: Trial) -> None:
    """A tree fits ``-grad / hess`` with weights `hess`: few heavy rows outweigh many light ones."""
    table = switches(np.random.default_rng(2), 800, 3)
    heavy = np.arange(800) < 200
    hess = np.where(heavy, 10.0, 0.1)[:, None]
    grad = -hess * (2.0 * np.where(heavy, table.X[:, 0], table.X[:, 1]) - 1.0)[:, None]
    [tree] = trial.grow(table, grad, hess, max_depth=1)
    left = loss_left(tree, table.X, grad, hess)
    fault = f"a split of two features of 0 and 1 leaves {left:.3g} of the loss where the better one leaves 0.005."
    demand(left <= 0.5, fault, "Fit the target -grad / hess by squared error with sample weights hess.")


def tells_neighbours_apart(trial: Trial) -> None:
    """A split between two values sends each to its own side; values that are too close may stay together."""
    far = [(0.0, 1.0), (-1.0, 0.0), (-0.0, 5.0), (-1e300, 1e300)]
    near = [(value, float(np.nextafter(np.float32(value), np.float32(np.inf)))) for value in (1.0, -1.0, 1e-3, 1e6)]
    for (low, high), rows in product([*far, *near, (1e-310, 2e-310)], (1, 20)):
        X = np.repeat([low, high], rows)[:, None]
        [tree] = trial.grow(Table(X), np.repeat([-1.0, 1.0], rows)[:, None], min_samples_leaf=1)
        leaf = tree.leaf_of(X)
        demand(
            tree.n_leaves == 1 or not np.isin(leaf[:rows], leaf[rows:]).any(),
            f"the threshold {tree.threshold.tolist()} does not separate {low!r} from {high!r}, on which it was grown.",
            "x <= threshold goes left, in float64. For a library that compares float32(x) < t or float32(x) <= t, take "
            "boostbp.backends.dialects.largest_below(t) or largest_not_above(t).",
        )
        demand(
            tree.n_leaves == 2 or (low, high) not in far,
            f"{rows} rows of {low!r} and as many of {high!r} were not told apart with min_samples_leaf=1.",
            "Read the input as it is: boostbp.backends.dialects.representable brings it to float32.",
        )


def reads_any_memory_layout(trial: Trial) -> None:
    """Gradients in Fortran order and broadcast hessians give the same trees; all arrays here are read-only."""
    rng = np.random.default_rng(4)
    table = trial.mixed(rng, 300)
    grad = gradient(rng, table, 3)
    trees = trial.grow(table, grad, max_depth=4)
    others = trial.grow(table, np.asfortranarray(grad), np.broadcast_to(1.0, grad.shape), max_depth=4)
    fault = "gradients of another memory layout (Fortran order, a broadcast hessian) gave other trees."
    demand(all(map(same, trees, others)), fault, "Read them by np.ascontiguousarray where the library wants one.")


def bears_nothing_to_split(trial: Trial) -> None:
    """Constant columns give trees of one leaf, and gradients of 0 may."""
    for X in (np.array([[1.5, 2.5]]), np.zeros((50, 2)), np.full((50, 2), 7.0)):
        trial.grow(Table(X), np.linspace(-1.0, 1.0, 2 * len(X)).reshape(len(X), 2), min_samples_leaf=1)
    rng = np.random.default_rng(7)
    table = trial.mixed(rng, 200)
    grad = gradient(rng, table)
    fork = trial.fork(table, TreeParams(max_depth=3))
    leaves = [[tree.n_leaves for tree in fork.grow(g, np.ones_like(g))] for g in (0 * grad, grad, 0 * grad, grad)]
    demand(
        all(len(counts) == 1 for counts in leaves) and leaves[1][0] > 1 and leaves[3][0] > 1,
        f"rounds without and with a gradient in turn gave trees of {leaves} leaves.",
        "Return Tree.stump() where there is nothing to gain, and grow again in the next round.",
    )


def grows_the_same_trees(trial: Trial, cure: str, *, threads: int = 1, **changes: Any) -> None:
    """Forks with the same seeds grow the same trees in threads, or with parameters that must have no effect."""
    rng = np.random.default_rng(5)
    table, able = trial.mixed(rng, 400), trial.capabilities
    grad = gradient(rng, table, 4)

    def trees_of(growth: TreeParams, threads: int) -> list[Tree]:
        forks = [grower.fork(slice(j, j + 1), j) for grower in [trial.backend.bind(table, growth)] for j in range(4)]
        with ThreadPoolExecutor(threads) as pool:
            return list(chain(*pool.map(lambda j: grow_rounds(forks[j], grad[:, [j]], 4), range(4))))

    draws: dict[str, Any] = {"extra_trees": able.extra_trees, "colsample_bytree": able.colsample_bytree and 0.5}
    for drawn in ({}, *({name: value} for name, value in draws.items() if value)):
        growth = TreeParams(max_depth=4, **drawn)
        trees, others = trees_of(growth, 1), trees_of(replace(growth, **changes), threads)
        how = f"{drawn or 'no draws'}, and {changes or 'the same parameters'}"
        demand(all(map(same, trees, others)), f"forks with the same seeds grew other trees, with {how}.", cure)


def routes_as_the_library_does(trial: Trial, leaf_of: Callable[[Any, Floats], NDArray[Any]]) -> None:
    """`Tree.leaf_of` sends difficult rows to the same leaves as the library does."""
    kinds: list[tuple[int, ...]] = [(), (3, 40)] if trial.capabilities.categories else [()]
    for seed, categories in enumerate([*kinds, *kinds]):
        rng = np.random.default_rng(seed)
        table = trial.mixed(rng, 1500, categories=categories)
        grad = gradient(rng, table)
        grower = trial.fork(table, TreeParams(max_depth=6, min_samples_leaf=5))
        [tree] = grower.grow(grad, np.ones_like(grad))
        rows = adversarial(tree, table, rng, missing=trial.capabilities.missing)
        wrong = np.flatnonzero(tree.leaf_of(rows) != leaf_of(grower, rows))
        demand(
            not len(wrong),
            f"Tree.leaf_of sends {len(wrong)} of {len(rows)} rows to other leaves, such as {rows[wrong[:1]].tolist()}.",
            "Compare its way through tree.feature, threshold, missing_left and the category sets.",
        )


def _same_trees(cure: str, **changes: Any) -> Callable[[Trial], None]:
    return partial(grows_the_same_trees, cure=cure, **changes)


DUTIES: dict[str, Callable[[Trial], None]] = {
    "grows a tree for each column": grows_a_tree_for_each_column,
    "keeps to the sizes": keeps_to_the_sizes,
    "counts rows and not hessians": counts_rows_and_not_hessians,
    "follows the gradient": follows_the_gradient,
    "tells neighbours apart": tells_neighbours_apart,
    "bears nothing to split": bears_nothing_to_split,
    "repeats itself": _same_trees("Let nothing but the seed of fork(outputs, seed) decide what a fork grows."),
    "serves threads": _same_trees("Let forks share nothing that changes.", threads=4),
    "grows the same trees with more native threads": _same_trees(
        "Choose the library's deterministic mode, or ignore n_threads.", n_threads=2
    ),
    "takes one column for all": _same_trees("One column has nothing to share: ignore it.", multi_output=True),
    "reads any memory layout": reads_any_memory_layout,
}
