"""A kept layer, fitted again from its moments, is the layer fitted in full on the same structures."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp.backends import load
from boostbp.backends.base import Growth, Table
from boostbp.learning import layers
from boostbp.learning.layers import SquaredTo
from boostbp.learning.layers.kept import Kept
from boostbp.learning.replay import Replay
from boostbp.trees.kernels import kept as kernels
from boostbp.trees.ridge import Ridge
from tests.helpers import BASES, make_targets, make_X


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("base", ["ridge", "additive", None])
@pytest.mark.parametrize("weighted", [True, False])
def test_fit_from_moments_is_the_fit_in_full(basis, standardize, base, weighted):
    X = make_X(400, missing=True, categorical=True)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 400) if weighted else np.ones(400)
    if base == "additive" and basis == "own":
        pytest.skip("an additive base has functions of its own")
    settings = layers.LayerSettings(
        n_estimators=4, growth=Growth(max_depth=3, min_samples_leaf=10), basis=BASES[basis],
        ridge=Ridge(0.5, standardize=standardize), base=base,
    )  # fmt: skip
    bound = layers.BoundInput(load("lightgbm"), Table(X, (4,)), settings, weight)
    Y = make_targets(X)
    first = layers.fit(bound, SquaredTo(Y, weight))
    moved = SquaredTo(Y + 0.3 * np.sin(Y), weight)
    kept = Kept(bound, first, 1)
    again = kept.fit(bound, moved, 1)
    replay = Replay.of(first.layer.forest, shared=False, vector_leaf=False, seed=3)
    full = layers.fit(layers.BoundInput(replay, Table(X, (4,)), settings, weight), moved, seed=3)
    np.testing.assert_allclose(again.output, full.output, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(again.trace.leaf, full.trace.leaf)
    np.testing.assert_allclose(again.layer.predict(X), again.layer.forward(X)[0])
    np.testing.assert_allclose(again.trace.vjp(Y), full.trace.vjp(Y), rtol=1e-5, atol=1e-6)
    two = Kept(bound, first, 2).fit(bound, moved, 2)
    np.testing.assert_array_equal(two.output, again.output)


def test_rows_beyond_one_group_change_nothing():
    X = make_X(kernels.ROWS + 500)
    weight = np.ones(len(X))
    settings = layers.LayerSettings(n_estimators=2, growth=Growth(max_depth=3))
    bound = layers.BoundInput(load("lightgbm"), Table(X), settings, weight)
    goal = SquaredTo(make_targets(X, 2), weight)
    first = layers.fit(bound, goal)
    np.testing.assert_allclose(Kept(bound, first, 1).fit(bound, goal, 1).output, first.output, rtol=1e-9, atol=1e-10)
