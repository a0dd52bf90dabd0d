"""What capabilities promise: each is tried where a backend declares it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from boostbp.backends.base import LinearLeaves, Table, TreeParams
from boostbp.backends.conformance.backend_trial import (
    Trial,
    demand,
    gradient,
    loss_left,
    mixed,
    same,
    sized,
    switches,
    well_formed,
)
from boostbp.floats import Floats
from boostbp.trees.sparse import Sparse
from boostbp.trees.tree import Tree

ROUNDS = 12  # of one gradient; 12 draws of a fifth of the features all hold the same one by a chance of 4e-9


def deterministic(trial: Trial) -> None:
    """A tree depends on its own column alone: not on rounds before, columns beside it, or the seed."""
    rng = np.random.default_rng(0)
    table = mixed(rng, 400, missing=trial.able.missing)
    grad, next_grad = gradient(rng, table, 2), gradient(rng, table, 2)
    hess = rng.uniform(0.5, 2.0, grad.shape)
    grower = trial.backend.bind(table, TreeParams(max_depth=4, min_samples_leaf=5))
    first = grower.fork(slice(0, 2), 0).grow(grad, hess)
    fork = grower.fork(slice(0, 2), 7)
    later = [fork.grow(g, hess) for g in (next_grad, grad)][1]
    alone = [grower.fork(slice(j, j + 1), j).grow(grad[:, [j]], hess[:, [j]])[0] for j in range(2)]
    for trees, what in ((later, "in a second round, with another seed"), (alone, "column by column")):
        demand(
            all(map(same, first, trees)),
            f"its capabilities say 'deterministic', but a gradient gave another tree {what}.",
            "Fix the library's seeds.",
        )


def missing(trial: Trial) -> None:
    """NaN goes where `Tree.missing_left` says: leaves of rows with gaps have the rows that they were grown with."""
    rng = np.random.default_rng(1)
    for share in (0.05, 0.5, 1.0):
        X = rng.normal(size=(400, 3))
        X[rng.random(400) < share, 1] = np.nan
        X[rng.random(400) < share, 2] = np.nan
        X[~np.isnan(X[:, 2]), 2] = 1.0  # a single value, and gaps
        grad = (1.0 * np.isnan(X[:, 1]) - 1.0 * np.isnan(X[:, 2]) + 0.3 * X[:, 0])[:, None]
        trial.grow(Table(X), grad, max_depth=4, min_samples_leaf=10)
    trial.grow(Table(np.full((50, 2), np.nan)), np.linspace(-1.0, 1.0, 50)[:, None], min_samples_leaf=1)


def categories(trial: Trial) -> None:
    """Categories that act alike are split off together, whatever their codes are."""
    rng = np.random.default_rng(2)
    for n_codes, alike in ((6, (1, 4)), (40, (0, 3, 31, 32, 39))):
        codes = rng.integers(0, n_codes, 200 * n_codes).astype(float)
        table = Table(np.column_stack([rng.normal(size=len(codes)), codes]), (1,))
        grad = np.where(np.isin(codes, alike), -1.0, 1.0)[:, None]
        [tree] = trial.grow(table, grad, max_depth=3)
        left = loss_left(tree, table.X, grad - grad.mean(), np.ones_like(grad))
        demand(
            left < 0.2,
            f"its capabilities say 'categories', but a tree of depth 3 leaves {left:.3g} of what the categories "
            f"{alike} of {n_codes} explain.",
            "Let the set of a split hold the codes that go left, in bits of 32-bit words.",
        )
    table = mixed(rng, 1500, numeric=2, categories=(12, 3), missing=trial.able.missing)
    trial.grow(table, gradient(rng, table), max_depth=5, min_samples_leaf=10)


def sparse(trial: Trial) -> None:
    """A sparse table gives the trees of the dense one."""
    rng = np.random.default_rng(3)
    X = np.where(rng.random((600, 8)) < 0.2, rng.integers(-3, 9, (600, 8)) / 2, 0.0)
    X[:, 1], X[:, 2] = rng.standard_normal(600), 0.0
    grad = -(2 * X[:, :1] + X[:, 1:2] ** 2 + X[:, 3:4])
    [dense], [other] = (
        trial.grow(table, grad, max_depth=4) for table in (Table(X), Table(Sparse.of(sp.csc_matrix(X))))
    )
    demand(
        same(dense, other),
        "its capabilities say 'sparse', but a sparse table gave another tree than the dense one.",
        "What is not held is 0, not missing.",
    )


def vector_leaf(trial: Trial) -> None:
    """One tree serves several columns with ``TreeParams.shared``."""
    rng = np.random.default_rng(4)
    table = switches(rng, 400, 4)
    grad = 1.0 - 2.0 * table.X[:, :2]
    [tree] = trial.grow(table, grad, max_depth=2, shared=True)
    left = [loss_left(tree, table.X, grad[:, [j]], np.ones((400, 1))) for j in range(2)]
    demand(
        max(left) < 0.1,
        f"its capabilities say 'vector_leaf', but one tree for two columns leaves {left} of their losses.",
        "Grow it on all columns.",
    )


def extra_trees(trial: Trial) -> None:
    """Thresholds are drawn anew for each tree, by the seed."""
    rng = np.random.default_rng(5)
    table = mixed(rng, 500, numeric=8, missing=False)
    grad = gradient(rng, table)
    _draws(trial, "extra_trees", table, grad, TreeParams(max_depth=3, extra_trees=True))


def colsample_bytree(trial: Trial) -> None:
    """Features are drawn anew for each tree or node, by the seed; a tree that draws once keeps to its share."""
    rng = np.random.default_rng(6)
    table = switches(rng, 500, 10)
    grad = -(table.X @ np.r_[10.0, np.linspace(1.0, 2.0, 9)] + 0.1 * rng.normal(size=500))[:, None]
    grad -= grad.mean()
    growth = TreeParams(max_depth=4, min_samples_leaf=5, colsample_bytree=0.2)
    trees = _draws(trial, "colsample_bytree", table, grad, growth)
    most = max(len(np.unique(tree.feature)) for tree in trees)
    demand(
        trial.able.colsample_bytree != "tree" or most <= 2,
        f"its capabilities say colsample_bytree='tree', but a tree splits {most} of 10 features where a fifth of them "
        "was asked for.",
        "Draw features once for each tree, or say 'node' if they are drawn again within a tree.",
    )


def native_leaves(trial: Trial) -> None:
    """The library's own linear leaves are read to its own running prediction."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(500, 3))
    y = 2 * X[:, 0] + np.abs(X[:, 1])
    predictions: list[Floats] = []

    def derivatives(prediction: Floats) -> tuple[Floats, Floats]:
        predictions.append(prediction.copy())
        return prediction - y, np.ones_like(y)

    grower: Any = trial.fork(Table(X), TreeParams(max_depth=3))  # with a method that not all have
    leaves: list[LinearLeaves] = grower.boost(derivatives, 4, 0.5, 0.1)
    demand(
        len(leaves) == len(predictions) == 4,
        f"boost() grew {len(leaves)} trees and asked for {len(predictions)} gradients in 4 rounds.",
        "Ask once in each round.",
    )
    for number in range(1, 4):
        expected = sum((_values(tree, X) for tree in leaves[:number]), np.zeros(len(X)))
        error = float(np.abs(expected - predictions[number]).max())
        demand(
            error < 1e-5 * np.abs(y).max(),
            f"after {number} trees with native leaves, our prediction and the library's differ by {error:.3g}.",
            "const and coeff are in the units of the input, shrinkage included.",
        )


def row_subsets(trial: Trial) -> None:
    """A tree of some rows depends on their gradients alone, and counts them alone."""
    rng = np.random.default_rng(9)
    table = switches(rng, 400, 4)
    grad = 1.0 - 2.0 * table.X[:, [1]]
    rows = np.flatnonzero(rng.random(400) < 0.25)
    grower: Any = trial.backend.bind(table, TreeParams(max_depth=2, min_samples_leaf=20))
    [tree] = grower.take(rows).fork(slice(0, 1), 0).grow(grad[rows], np.ones((len(rows), 1)))
    some = table.take(rows)
    well_formed(tree, some)
    sized(tree, some, TreeParams(max_depth=2, min_samples_leaf=20))
    left = loss_left(tree, some.X, grad[rows], np.ones((len(rows), 1)))
    demand(
        left < 0.1,
        f"its capabilities say 'row_subsets', but a tree of {len(rows)} rows leaves {left:.3g} of their loss.",
        "take(rows) gives a grower whose gradients are those of these rows, in their order.",
    )


def params(trial: Trial) -> None:
    """Native parameters that are not known are refused by name, not ignored."""
    try:
        trial.backend.bind(switches(np.random.default_rng(8), 50, 2), TreeParams(params={"no_such_parameter": 1}))
    except ValueError as error:
        demand("no_such_parameter" in str(error), f"an unknown parameter is refused by {error}.", "Name it there.")
        return
    demand(
        False,
        "its capabilities say 'params', but bind() took TreeParams(params={'no_such_parameter': 1}) without a word.",
        "Check the names; boostbp.backends.native_params.Natives does so with the kinds of their values.",
    )


def streams(trial: Trial) -> None:
    """Outputs are shared out among at least one stream of random numbers, and at most one for each of them."""
    for n_rows, n_outputs in ((10, 1), (10, 30), (5000, 9), (10**6, 9)):
        count = trial.able.streams(n_rows, n_outputs, TreeParams(extra_trees=True))
        demand(
            1 <= count <= n_outputs and count == int(count),
            f"streams({n_rows}, {n_outputs}, growth) is {count!r}.",
            "Let it be a whole number from 1 to the number of outputs.",
        )


def _draws(trial: Trial, word: str, table: Table, grad: Floats, growth: TreeParams) -> list[Tree]:
    """Trees of one gradient, by rounds and then beside each other, demanded to be drawn anew and by the seed."""

    def rounds(seed: int) -> list[Tree]:
        fork = trial.fork(table, growth, seed=seed)
        return [fork.grow(grad, np.ones_like(grad))[0] for _ in range(ROUNDS)]

    together = np.repeat(grad, ROUNDS, axis=1)
    beside = list(trial.fork(table, growth, ROUNDS, seed=5).grow(together, np.ones_like(together)))
    trees = rounds(5)
    for some, what in ((trees, "rounds of one gradient"), (beside, "equal columns in one round")):
        roots = {(int(tree.feature[0]), float(tree.threshold[0])) for tree in some if tree.n_leaves > 1}
        demand(
            len(roots) > 1,
            f"its capabilities say {word!r}, but {ROUNDS} {what} gave trees with the same root.",
            "Draw anew for each tree; a library that begins with the same seed at each call needs another each time.",
        )
    demand(
        not all(map(same, trees, rounds(6))),
        f"its capabilities say {word!r}, but forks with other seeds grew the same trees.",
        "Let the seed of fork(outputs, seed) decide what is drawn.",
    )
    return trees


def _values(leaves: LinearLeaves, X: Floats) -> Floats:
    """What linear leaves say of rows without gaps."""
    leaf = leaves.tree.leaf_of(X)
    values = leaves.const[leaf].copy()
    for number in range(leaves.tree.n_leaves):
        rows, terms = leaf == number, slice(leaves.start[number], leaves.start[number + 1])
        values[rows] += X[np.ix_(rows, leaves.features[terms])] @ leaves.coeff[terms]
    return values


CAPABILITIES = (
    deterministic,
    missing,
    categories,
    sparse,
    vector_leaf,
    extra_trees,
    colsample_bytree,
    native_leaves,
    row_subsets,
    params,
    streams,
)
