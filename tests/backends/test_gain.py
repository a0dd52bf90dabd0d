"""Gains of splits as the libraries state them, against sums over the rows of both sides."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp import backends
from boostbp.backends.base import TreeParams
from boostbp.trees.sparse import Table
from tests.support.helpers import BACKENDS, make_targets, make_X

PENALTY = {"xgboost": 1.0}  # reg_lambda that the library uses by default
OURS = ("lightgbm", "sklearn", "xgboost")


def rows_below(tree, leaf, node):
    """Whether each row passes a split, or ends in a leaf, of number `node`."""
    if node < 0:
        return leaf == ~node
    return rows_below(tree, leaf, tree.left[node]) | rows_below(tree, leaf, tree.right[node])


@pytest.mark.parametrize("backend", BACKENDS)
def test_gain_is_what_a_split_takes_from_the_newton_loss(backend):
    X = make_X(400)
    grad, hess = -make_targets(X, outputs=1), np.random.default_rng(0).uniform(0.5, 2.0, (400, 1))
    growth = TreeParams(max_depth=3, min_samples_leaf=10)
    [tree] = backends.load_backend(backend).bind(Table(X), growth).fork(slice(0, 1), 0).grow(grad, hess)
    if backend not in OURS and np.isnan(tree.gain).all():
        pytest.skip("a backend may leave gains out")
    leaf, penalty = tree.leaf_of(X), PENALTY.get(backend, 0.0)

    def score(node):
        rows = rows_below(tree, leaf, node)
        return grad[rows].sum() ** 2 / (hess[rows].sum() + penalty)

    expected = [
        score(left) + score(right) - score(node)
        for node, (left, right) in enumerate(zip(tree.left, tree.right, strict=True))
    ]
    assert len(expected) > 3
    np.testing.assert_allclose(tree.gain, expected, rtol=1e-3, atol=1e-3 * max(expected))
