"""The duties of every backend, with their names, and checks of declared capabilities, each with the field's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from boostbp.backends.base import LinearLeaves, TreeParams
from boostbp.backends.capabilities import check_streams
from boostbp.backends.conformance.backend_trial import (
    BackendTrial,
    adversarial,
    check_trees,
    demand,
    gradient,
    grow_rounds,
    loss_left,
    same,
    switches,
)
from boostbp.runtime.arrays import Floats
from boostbp.runtime.threads import parallel_map
from boostbp.trees.sparse import Sparse, Table
from boostbp.trees.tree import Tree


def grows_a_tree_for_each_column(trial: BackendTrial) -> None:
    """One round gives one well-formed tree for each column of the gradient; rows of hessian 0 do not count."""
    rng = np.random.default_rng(0)
    table = trial.mixed(rng, 400)
    grad = gradient(rng, table, 3)
    trial.grow(table, grad, max_depth=4)
    counts = rng.random((400, 1)) >= 0.3
    trial.grow(table, grad * counts, np.ones_like(grad) * counts, max_depth=4, min_samples_leaf=5)


def keeps_to_the_sizes(trial: BackendTrial) -> None:
    """Depth, leaves and rows per leaf respect `TreeParams`, on any number of rows."""
    rng = np.random.default_rng(1)
    for rows, depth, leaves, smallest in product((1, 2, 300), (-1, 0, 4), (None, 2, 9), (1, 7, 40)):
        table = trial.mixed(rng, rows)
        trial.grow(table, gradient(rng, table), max_depth=depth, max_leaves=leaves, min_samples_leaf=smallest)


def counts_rows_and_not_hessians(trial: BackendTrial) -> None:
    """A leaf of exactly `min_samples_leaf` rows is allowed, however small or large their hessians are."""
    for smallest, hessian in product((3, 7, 20, 49), (1.0, 0.1, 0.3, 0.7, 1e-3, 123.456)):
        X = np.repeat([0.0, 1.0], [smallest, 3 * smallest])[:, None]
        grad = np.where(X < 0.5, -hessian, hessian)
        [tree] = trial.grow(Table(X), grad, np.full_like(grad, hessian), max_depth=1, min_samples_leaf=smallest)
        fault = f"{smallest} rows were not split off with min_samples_leaf={smallest} and hessians of {hessian}."
        cure = "Count rows; a bound on the sum of hessians is a little less than `min_samples_leaf` times their mean."
        demand(tree.n_leaves == 2, fault, cure)


def follows_the_gradient(trial: BackendTrial) -> None:
    """A tree fits ``-grad / hess`` with weights `hess`: few heavy rows outweigh many light ones."""
    table = switches(np.random.default_rng(2), 800, 3)
    heavy = np.arange(800) < 200
    hess = np.where(heavy, 10.0, 0.1)[:, None]
    grad = -hess * (2.0 * np.where(heavy, table.X[:, 0], table.X[:, 1]) - 1.0)[:, None]
    [tree] = trial.grow(table, grad, hess, max_depth=1)
    left = loss_left(tree, table.X, grad, hess)
    fault = f"a split of two features of 0 and 1 leaves {left:.3g} of the loss where the better one leaves 0.005."
    demand(left <= 0.5, fault, "Fit the target -grad / hess by squared error with sample weights hess.")


def tells_neighbours_apart(trial: BackendTrial) -> None:
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
        fault = f"{rows} rows of {low!r} and as many of {high!r} were not told apart with min_samples_leaf=1."
        cure = "Read the input as it is: boostbp.backends.dialects.representable brings it to float32."
        demand(tree.n_leaves == 2 or (low, high) not in far, fault, cure)


def reads_any_memory_layout(trial: BackendTrial) -> None:
    """Gradients in Fortran order and broadcast hessians give the same trees; all arrays here are read-only."""
    rng = np.random.default_rng(4)
    table = trial.mixed(rng, 300)
    grad = gradient(rng, table, 3)
    trees = trial.grow(table, grad, max_depth=4)
    others = trial.grow(table, np.asfortranarray(grad), np.broadcast_to(1.0, grad.shape), max_depth=4)
    fault = "gradients of another memory layout (Fortran order, a broadcast hessian) gave other trees."
    demand(all(map(same, trees, others)), fault, "Read them by np.ascontiguousarray where the library wants one.")


def bears_nothing_to_split(trial: BackendTrial) -> None:
    """Constant columns give trees of one leaf, and gradients of 0 may."""
    for X in (np.array([[1.5, 2.5]]), np.zeros((50, 2)), np.full((50, 2), 7.0)):
        trial.grow(Table(X), np.linspace(-1.0, 1.0, 2 * len(X)).reshape(len(X), 2), min_samples_leaf=1)
    rng = np.random.default_rng(7)
    table = trial.mixed(rng, 200)
    grad = gradient(rng, table)
    fork = trial.fork(table, TreeParams(max_depth=3))
    leaves = [[tree.n_leaves for tree in fork.grow(g, np.ones_like(g))] for g in (0 * grad, grad, 0 * grad, grad)]
    fault = f"rounds without and with a gradient in turn gave trees of {leaves} leaves."
    cure = "Return Tree.stump() where there is nothing to gain, and grow again in the next round."
    demand(all(len(counts) == 1 for counts in leaves) and leaves[1][0] > 1 and leaves[3][0] > 1, fault, cure)


def grows_the_same_trees(trial: BackendTrial, cure: str, *, threads: int = 1, **changes: Any) -> None:
    """Forks with the same seeds grow the same trees in threads, or with parameters that must have no effect."""
    rng = np.random.default_rng(5)
    table, able = trial.mixed(rng, 400), trial.capabilities
    grad = gradient(rng, table, 4)

    def trees_of(growth: TreeParams, threads: int) -> list[Tree]:
        forks = [grower.fork(slice(j, j + 1), j) for grower in [trial.backend.bind(table, growth)] for j in range(4)]
        return list(chain(*parallel_map(lambda j: grow_rounds(forks[j], grad[:, [j]], 4), range(4), threads)))

    draws: dict[str, Any] = {"extra_trees": able.extra_trees, "colsample_bytree": able.colsample_bytree and 0.5}
    for drawn in ({}, *({name: value} for name, value in draws.items() if value)):
        growth = TreeParams(max_depth=4, **drawn)
        trees, others = trees_of(growth, 1), trees_of(replace(growth, **changes), threads)
        how = f"{drawn or 'no draws'}, and {changes or 'the same parameters'}"
        demand(all(map(same, trees, others)), f"forks with the same seeds grew other trees, with {how}.", cure)


def routes_as_the_library_does(trial: BackendTrial, leaf_of: Callable[[Any, Floats], NDArray[Any]]) -> None:
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
        fault = f"Tree.leaf_of sends {len(wrong)} of {len(rows)} rows elsewhere, such as {rows[wrong[:1]].tolist()}."
        cure = "Compare its way through tree.feature, threshold, missing_left and the category sets."
        demand(not len(wrong), fault, cure)


def _same_trees(cure: str, **changes: Any) -> Callable[[BackendTrial], None]:
    return partial(grows_the_same_trees, cure=cure, **changes)


_NAMED_ALIKE = (
    grows_a_tree_for_each_column, keeps_to_the_sizes, counts_rows_and_not_hessians, follows_the_gradient,
    tells_neighbours_apart, bears_nothing_to_split,
)  # fmt: skip
DUTIES: dict[str, Callable[[BackendTrial], None]] = {
    **{duty.__name__.replace("_", " "): duty for duty in _NAMED_ALIKE},
    "repeats itself": _same_trees("Let nothing but the seed of fork(outputs, seed) decide what a fork grows."),
    "serves threads": _same_trees("Let forks share nothing that changes.", threads=4),
    "grows the same trees with more native threads": _same_trees(
        "Choose the library's deterministic mode, or ignore n_threads.", n_threads=2
    ),
    "takes one column for all": _same_trees("One column has nothing to share: ignore it.", multi_output=True),
    "reads any memory layout": reads_any_memory_layout,
}


ROUNDS = 12  # rounds with one gradient; that 12 draws of a fifth of the features share one has a chance of 4e-9


def deterministic(trial: BackendTrial) -> None:
    """A tree depends only on its own column, not on earlier rounds, other columns, or the seed."""
    rng = np.random.default_rng(0)
    table = trial.mixed(rng, 400)
    grad, other_grad = gradient(rng, table, 2), gradient(rng, table, 2)
    hess = rng.uniform(0.5, 2.0, grad.shape)
    grower = trial.backend.bind(table, TreeParams(max_depth=4, min_samples_leaf=5))
    first = grower.fork(slice(0, 2), 0).grow(grad, hess)
    fork = grower.fork(slice(0, 2), 7)
    fork.grow(other_grad, hess)
    single = [grower.fork(slice(j, j + 1), j).grow(grad[:, [j]], hess[:, [j]])[0] for j in range(2)]
    for trees, where in ((fork.grow(grad, hess), "a second round, with another seed"), (single, "a call for a column")):
        demand(all(map(same, first, trees)), f"a gradient gave another tree in {where}.", "Fix the library's seeds.")


def missing(trial: BackendTrial) -> None:
    """NaN goes to the side of `Tree.missing_left`: leaves have the rows with NaN with which they were grown."""
    rng = np.random.default_rng(1)
    for share in (0.05, 0.5, 1.0):
        X = rng.normal(size=(400, 3))
        X[rng.random(400) < share, 1] = np.nan
        X[:, 2] = np.where(rng.random(400) < share, np.nan, 1.0)  # a single value, and gaps
        grad = (1.0 * np.isnan(X[:, 1]) - 1.0 * np.isnan(X[:, 2]) + 0.3 * X[:, 0])[:, None]
        trial.grow(Table(X), grad, max_depth=4, min_samples_leaf=10)
    trial.grow(Table(np.full((50, 2), np.nan)), np.linspace(-1.0, 1.0, 50)[:, None], min_samples_leaf=1)


def categories(trial: BackendTrial) -> None:
    """Categories with the same effect are split off together, for any codes."""
    rng = np.random.default_rng(2)
    for n_codes, codes_left in ((6, (1, 4)), (40, (0, 3, 31, 32, 39))):
        codes = rng.integers(0, n_codes, 200 * n_codes).astype(float)
        table = Table(np.column_stack([rng.normal(size=len(codes)), codes]), (1,))
        grad = np.where(np.isin(codes, codes_left), -1.0, 1.0)[:, None]
        [tree] = trial.grow(table, grad, max_depth=3)
        left = loss_left(tree, table.X, grad - grad.mean())
        fault = f"a tree of depth 3 leaves {left:.3g} of what the categories {codes_left} of {n_codes} explain."
        demand(left < 0.2, fault, "Let the set of a split hold the codes that go left, in bits of 32-bit words.")
    table = trial.mixed(rng, 1500, numeric=2, categories=(12, 3))
    trial.grow(table, gradient(rng, table), max_depth=5, min_samples_leaf=10)


def sparse(trial: BackendTrial) -> None:
    """A sparse table gives the trees of the dense one."""
    rng = np.random.default_rng(3)
    X = np.where(rng.random((600, 8)) < 0.2, rng.integers(-3, 9, (600, 8)) / 2, 0.0)
    X[:, 1], X[:, 2] = rng.standard_normal(600), 0.0
    grad = -(2 * X[:, :1] + X[:, 1:2] ** 2 + X[:, 3:4])
    [dense], [other] = [trial.grow(Table(Z), grad, max_depth=4) for Z in (X, Sparse.of(sp.csc_matrix(X)))]
    fault, cure = "a sparse table gave another tree than the dense one.", "An entry that is not stored is 0."
    demand(same(dense, other), fault, cure)


def vector_leaf(trial: BackendTrial) -> None:
    """One tree serves several columns with ``TreeParams.multi_output``."""
    table = switches(np.random.default_rng(4), 400, 4)
    grad = 1.0 - 2.0 * table.X[:, :2]
    [tree] = trial.grow(table, grad, max_depth=2, multi_output=True)
    left = [loss_left(tree, table.X, grad[:, [j]]) for j in range(2)]
    demand(max(left) < 0.1, f"one tree for two columns leaves {left} of their losses.", "Grow it on all columns.")


def extra_trees(trial: BackendTrial) -> None:
    """Thresholds are drawn anew for each tree, by the seed."""
    rng = np.random.default_rng(5)
    table = trial.mixed(rng, 500, numeric=8, missing=False)
    _check_draws(trial, table, gradient(rng, table), TreeParams(max_depth=3, extra_trees=True))


def colsample_bytree(trial: BackendTrial) -> None:
    """Features are drawn anew for each tree or node, by the seed; a tree with one draw respects the share."""
    rng = np.random.default_rng(6)
    table = switches(rng, 500, 10)
    grad = -(table.X @ np.r_[10.0, np.linspace(1.0, 2.0, 9)] + 0.1 * rng.normal(size=500))[:, None]
    growth = TreeParams(max_depth=4, min_samples_leaf=5, colsample_bytree=0.2)
    trees = _check_draws(trial, table, grad - grad.mean(), growth)
    n_features = max(len(np.unique(tree.feature)) for tree in trees)
    fault = f"its capabilities say colsample_bytree='tree', but a tree splits {n_features} of 10 features for a fifth."
    cure = "Draw features once for each tree, or say 'node' if they are drawn again within a tree."
    demand(trial.capabilities.colsample_bytree != "tree" or n_features <= 2, fault, cure)


def native_leaves(trial: BackendTrial) -> None:
    """The library's own linear leaves, as read here, sum to its own running prediction."""
    X = np.random.default_rng(7).normal(size=(500, 3))
    y = 2 * X[:, 0] + np.abs(X[:, 1])
    predictions: list[Floats] = []

    def derivatives(prediction: Floats) -> tuple[Floats, Floats]:
        predictions.append(prediction.copy())
        return prediction - y, np.ones_like(y)

    grower: Any = trial.fork(Table(X), TreeParams(max_depth=3))  # perhaps without the method `boost`
    leaves: list[LinearLeaves] = grower.boost(derivatives, 4, 0.5, 0.1)
    fault = f"boost() grew {len(leaves)} trees and asked for {len(predictions)} gradients in 4 rounds."
    demand(len(leaves) == len(predictions) == 4, fault, "Ask once in each round.")
    values = np.cumsum([_values(tree, X) for tree in leaves[:3]], axis=0)
    error = float(np.abs(values - predictions[1:]).max())
    fault = f"the predictions of its native leaves differ by {error:.3g} from the running prediction of the library."
    cure = "const and coeff are in the units of the input, shrinkage included."
    demand(error < 1e-5 * np.abs(y).max(), fault, cure)


def row_subsets(trial: BackendTrial) -> None:
    """A tree of some rows depends only on their gradients, and counts only these rows."""
    rng = np.random.default_rng(9)
    table, growth = switches(rng, 400, 4), TreeParams(max_depth=2, min_samples_leaf=20)
    rows = np.flatnonzero(rng.random(400) < 0.25)
    subset, grad = table.take(rows), 1.0 - 2.0 * table.X[rows][:, [1]]
    grower: Any = trial.backend.bind(table, growth)  # perhaps without the method `take`
    [tree] = grower.take(rows).fork(slice(0, 1), 0).grow(grad, np.ones_like(grad))
    check_trees([tree], 1, subset, growth)
    left = loss_left(tree, subset.X, grad)
    cure = "take(rows) gives a grower whose gradients are those of these rows, in their order."
    demand(left < 0.1, f"a tree of {len(rows)} rows leaves {left:.3g} of their loss.", cure)


def params(trial: BackendTrial) -> None:
    """Native parameters that are not known are refused by name, not ignored."""
    answer, unknown = "no error", {"no_such_parameter": 1}
    try:
        trial.backend.bind(switches(np.random.default_rng(8), 50, 2), TreeParams(params=unknown))
    except ValueError as error:
        answer = str(error)
    cure = "Refuse unknown names in a ValueError with the name; boostbp.backends.native_params.Natives does so."
    demand("no_such_parameter" in answer, f"bind() with TreeParams(params={unknown}) raised {answer}.", cure)


def streams(trial: BackendTrial) -> None:
    """Outputs have at least one stream of random numbers, and at most one for each of them."""
    for n_rows, n_outputs in ((10, 1), (10, 30), (5000, 9), (10**6, 9)):
        check_streams(trial.capabilities.streams(n_rows, n_outputs, TreeParams(extra_trees=True)), n_outputs)


def _check_draws(trial: BackendTrial, table: Table, grad: Floats, growth: TreeParams) -> list[Tree]:
    """Demand that draws differ between rounds and columns, and depend on the seed; return the trees of the rounds."""
    side_by_side = np.repeat(grad, ROUNDS, axis=1)
    columns = trial.fork(table, growth, ROUNDS, seed=5).grow(side_by_side, np.ones_like(side_by_side))
    rounds, others = [grow_rounds(trial.fork(table, growth, seed=seed), grad, ROUNDS) for seed in (5, 6)]
    for trees, where in ((rounds, "rounds of one gradient"), (columns, "equal columns in one round")):
        roots = {(int(tree.feature[0]), float(tree.threshold[0])) for tree in trees if tree.n_leaves > 1}
        cure = "Draw anew for each tree; a library that begins with the same seed at each call needs another each time."
        demand(len(roots) > 1, f"{ROUNDS} {where} gave trees with the same root.", cure)
    fault, cure = "forks with other seeds grew the same trees.", "Let the seed of fork(outputs, seed) decide the draws."
    demand(not all(map(same, rounds, others)), fault, cure)
    return rounds


def _values(leaves: LinearLeaves, X: Floats) -> Floats:
    """Return the predictions of linear leaves for rows without missing values."""
    leaf = leaves.tree.leaf_of(X)
    terms = [slice(*leaves.start[number : number + 2]) for number in leaf]
    slopes = [x[leaves.features[of_leaf]] @ leaves.coeff[of_leaf] for x, of_leaf in zip(X, terms, strict=True)]
    return leaves.const[leaf] + slopes
