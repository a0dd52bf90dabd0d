"""Checks of declared capabilities: each function has the name of a field of `Capabilities`, and checks it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from boostbp.backends.base import LinearLeaves, TreeParams
from boostbp.backends.capabilities import check_streams
from boostbp.backends.conformance.backend_trial import (
    Trial,
    check_trees,
    demand,
    gradient,
    grow_rounds,
    loss_left,
    same,
    switches,
)
from boostbp.runtime.arrays import Floats
from boostbp.trees.sparse import Sparse, Table
from boostbp.trees.tree import Tree

ROUNDS = 12  # rounds with one gradient; that 12 draws of a fifth of the features share one has a chance of 4e-9


def deterministic(trial: Trial) -> None:
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


def missing(trial: Trial) -> None:
    """NaN goes to the side of `Tree.missing_left`: leaves have the rows with NaN with which they were grown."""
    rng = np.random.default_rng(1)
    for share in (0.05, 0.5, 1.0):
        X = rng.normal(size=(400, 3))
        X[rng.random(400) < share, 1] = np.nan
        X[:, 2] = np.where(rng.random(400) < share, np.nan, 1.0)  # a single value, and gaps
        grad = (1.0 * np.isnan(X[:, 1]) - 1.0 * np.isnan(X[:, 2]) + 0.3 * X[:, 0])[:, None]
        trial.grow(Table(X), grad, max_depth=4, min_samples_leaf=10)
    trial.grow(Table(np.full((50, 2), np.nan)), np.linspace(-1.0, 1.0, 50)[:, None], min_samples_leaf=1)


def categories(trial: Trial) -> None:
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


def sparse(trial: Trial) -> None:
    """A sparse table gives the trees of the dense one."""
    rng = np.random.default_rng(3)
    X = np.where(rng.random((600, 8)) < 0.2, rng.integers(-3, 9, (600, 8)) / 2, 0.0)
    X[:, 1], X[:, 2] = rng.standard_normal(600), 0.0
    grad = -(2 * X[:, :1] + X[:, 1:2] ** 2 + X[:, 3:4])
    [dense], [other] = (trial.grow(Table(Z), grad, max_depth=4) for Z in (X, Sparse.of(sp.csc_matrix(X))))
    fault, cure = "a sparse table gave another tree than the dense one.", "An entry that is not stored is 0."
    demand(same(dense, other), fault, cure)


def vector_leaf(trial: Trial) -> None:
    """One tree serves several columns with ``TreeParams.multi_output``."""
    table = switches(np.random.default_rng(4), 400, 4)
    grad = 1.0 - 2.0 * table.X[:, :2]
    [tree] = trial.grow(table, grad, max_depth=2, multi_output=True)
    left = [loss_left(tree, table.X, grad[:, [j]]) for j in range(2)]
    demand(max(left) < 0.1, f"one tree for two columns leaves {left} of their losses.", "Grow it on all columns.")


def extra_trees(trial: Trial) -> None:
    """Thresholds are drawn anew for each tree, by the seed."""
    rng = np.random.default_rng(5)
    table = trial.mixed(rng, 500, numeric=8, missing=False)
    _check_draws(trial, table, gradient(rng, table), TreeParams(max_depth=3, extra_trees=True))


def colsample_bytree(trial: Trial) -> None:
    """Features are drawn anew for each tree or node, by the seed; a tree with one draw respects the share."""
    rng = np.random.default_rng(6)
    table = switches(rng, 500, 10)
    grad = -(table.X @ np.r_[10.0, np.linspace(1.0, 2.0, 9)] + 0.1 * rng.normal(size=500))[:, None]
    growth = TreeParams(max_depth=4, min_samples_leaf=5, colsample_bytree=0.2)
    trees = _check_draws(trial, table, grad - grad.mean(), growth)
    n_features = max(len(np.unique(tree.feature)) for tree in trees)
    demand(
        trial.capabilities.colsample_bytree != "tree" or n_features <= 2,
        f"its capabilities say colsample_bytree='tree', but a tree splits {n_features} of 10 features for a fifth.",
        "Draw features once for each tree, or say 'node' if they are drawn again within a tree.",
    )


def native_leaves(trial: Trial) -> None:
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


def row_subsets(trial: Trial) -> None:
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


def params(trial: Trial) -> None:
    """Native parameters that are not known are refused by name, not ignored."""
    answer, unknown = "no error", {"no_such_parameter": 1}
    try:
        trial.backend.bind(switches(np.random.default_rng(8), 50, 2), TreeParams(params=unknown))
    except ValueError as error:
        answer = str(error)
    cure = "Refuse unknown names in a ValueError with the name; boostbp.backends.native_params.Natives does so."
    demand("no_such_parameter" in answer, f"bind() with TreeParams(params={unknown}) raised {answer}.", cure)


def streams(trial: Trial) -> None:
    """Outputs have at least one stream of random numbers, and at most one for each of them."""
    for n_rows, n_outputs in ((10, 1), (10, 30), (5000, 9), (10**6, 9)):
        check_streams(trial.capabilities.streams(n_rows, n_outputs, TreeParams(extra_trees=True)), n_outputs)


def _check_draws(trial: Trial, table: Table, grad: Floats, growth: TreeParams) -> list[Tree]:
    """Demand that draws differ between rounds and columns, and depend on the seed; return the trees of the rounds."""
    side_by_side = np.repeat(grad, ROUNDS, axis=1)
    columns = trial.fork(table, growth, ROUNDS, seed=5).grow(side_by_side, np.ones_like(side_by_side))
    rounds, others = (grow_rounds(trial.fork(table, growth, seed=seed), grad, ROUNDS) for seed in (5, 6))
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
