"""Shared structure: the trees of a round, one per output, split alike and have leaves of their own."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BACKENDS
from scipy.special import log_softmax
from sklearn.datasets import load_iris

from boostbp import BoostBPClassifier
from boostbp.backends import load_backend
from boostbp.backends.base import TreeParams
from boostbp.backends.capabilities import capabilities_of
from boostbp.ensemble.budget import round_work
from boostbp.losses import LOSSES
from boostbp.network import layers
from boostbp.network.layers import BoundInput, LayerSettings, LossObjective
from boostbp.network.layers.cheaper_growth import SharedStructure, random_direction
from boostbp.trees.basis import Polynomial
from boostbp.trees.leaves import BLOCK_ROWS
from boostbp.trees.sparse import Table

rng = np.random.default_rng(0)
X = np.column_stack([rng.uniform(-1, 1, (400, 3)), rng.integers(0, 6, 400)])
labels = (X[:, 0] > 0) + 2 * ((X[:, 3] % 2 > 0) ^ (X[:, 1] * X[:, 2] > 0.1))
Y = np.eye(4)[labels.astype(int)]
GROWTH = TreeParams(max_depth=3, min_samples_leaf=10)


def fitted(backend, *, X=X, Y=Y, rounds=12, degree=2, n_threads=1, categorical=(), seed=3):
    settings = LayerSettings(n_estimators=rounds, growth=GROWTH, basis=Polynomial(degree))
    bound = BoundInput(SharedStructure(load_backend(backend)), Table(X, categorical), settings, np.ones(len(X)))
    goal = LossObjective.of(LOSSES["softmax"](), Y, np.ones(len(X)), np.zeros(4))
    return layers.fit(bound, goal, n_threads=n_threads, seed=seed)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("categorical", [(), (3,)])
def test_trees_of_a_round_split_alike_and_have_leaves_of_their_own(backend, categorical):
    if categorical and not capabilities_of(load_backend(backend)).categories:
        pytest.skip("it takes no categories")
    fit = fitted(backend, categorical=categorical)
    forest, structures = fit.layer.forest, set()
    assert forest.n_trees == 48
    np.testing.assert_array_equal(forest.leaves.tree_output[:, 0], np.tile(range(4), 12))
    for number in range(0, 48, 4):
        one, *others = (forest.trees[number + k] for k in range(4))
        structures.add(one.threshold.tobytes())
        for other in others:
            for name in ("feature", "threshold", "left", "right", "missing_left", "cat_words", "categories"):
                np.testing.assert_array_equal(getattr(other, name), getattr(one, name), err_msg=name)
        assert (fit.trace.leaf[number : number + 4] == one.leaf_of(X)).all()
    assert len(structures) > 6
    weights = forest.leaves.weight
    assert len(np.unique(weights[weights != 0])) > 0.9 * np.count_nonzero(weights)
    np.testing.assert_allclose(fit.layer.predict(X), fit.output, atol=1e-12)
    loss = -(Y * log_softmax(fit.output, axis=1)).sum(1).mean()
    assert loss < 0.6 * np.log(4)


def test_it_is_grown_on_the_gradients_along_a_random_direction():
    """That of the seed of the fork; the hessian is the curvature of the loss in that direction."""
    grad, hess = rng.standard_normal((400, 5)), rng.uniform(0.5, 2, (400, 5))
    shared = SharedStructure(load_backend("lightgbm")).bind(Table(X), GROWTH).fork(slice(0, 5), 7)
    draws, alone = np.random.default_rng(7), load_backend("lightgbm").bind(Table(X), GROWTH).fork(slice(0, 1), 7)
    for _ in range(3):
        direction = random_direction(5, draws)
        [expected] = alone.grow((grad @ direction)[:, None], (hess @ direction**2)[:, None])
        for tree in shared.grow(grad, hess):
            np.testing.assert_array_equal(tree.feature, expected.feature)
            np.testing.assert_array_equal(tree.threshold, expected.threshold)


def test_leaves_are_newton_steps_of_each_class():
    """Of constant leaves: minus the sum of gradients over that of hessians and the penalty, times the shrinkage."""
    fit = fitted("lightgbm", rounds=1, degree=0)
    p, leaf = np.full(4, 0.25), fit.trace.leaf[0]
    grad, hess = p - Y, np.broadcast_to(4 / 3 * p * (1 - p), Y.shape)
    for number in range(leaf.max() + 1):
        rows = leaf == number
        step = -0.1 * grad[rows].sum(0) / (hess[rows].sum(0) + 1.0)
        np.testing.assert_allclose(fit.output[rows], np.tile(step, (rows.sum(), 1)), atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_do_not_change_it(backend):
    some = {"X": np.resize(X, (BLOCK_ROWS + 400, 4)), "Y": np.resize(Y, (BLOCK_ROWS + 400, 4)), "rounds": 3}
    one, two = (fitted(backend, n_threads=n_threads, **some) for n_threads in (1, 2))
    assert one.output.tobytes() == two.output.tobytes()
    assert one.output.tobytes() != fitted(backend, seed=4, **some).output.tobytes()


def test_one_structure_costs_less_than_one_for_each_output():
    own, alike = (round_work(LayerSettings(growth=GROWTH), 5000, 20, 26, 1.0, shared) for shared in (False, True))
    assert alike < own / 2


@pytest.mark.parametrize("quality", [1, 3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_of_the_default_model_share_structures(quality, n_classes):
    flowers, y = load_iris(return_X_y=True)
    model = BoostBPClassifier(quality=quality, deep=False, random_state=0).fit(flowers[y < n_classes], y[y < n_classes])
    trees = [tree for tree in model.network_.layers[-1].forest.trees if tree.n_leaves > 1]
    served = model.network_.layers[-1].forest.leaves.tree_output
    np.testing.assert_array_equal(served, [[0, 1 if n_classes == 2 else n_classes]] * len(served))
    assert len({tree.threshold.tobytes() for tree in trees}) > 5
    assert model.score(flowers[y < n_classes], y[y < n_classes]) > 0.9
