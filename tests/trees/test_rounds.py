"""Rounds in one call of the core have the bits of separate rounds."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp.backends import load_backend
from boostbp.backends.base import TreeParams
from boostbp.losses.residuals import SquaredError
from boostbp.network import layers
from boostbp.network.layers import LossObjective, SquaredObjective, boosting, fitting
from boostbp.network.layers.cheaper_growth import FixedStructure
from boostbp.trees.basis import BASES
from boostbp.trees.sparse import Table

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (500, 4))
y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("of", ["target", "loss"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_rounds_in_one_call_have_the_bits_of_separate_rounds(basis, n_outputs, of, in_memory, monkeypatch, tune):
    table = Table(np.where(rng.random(X.shape) < 0.1, np.nan, X))
    Y, weight = rng.normal(size=(len(X), n_outputs)) + y[:, None], rng.integers(0, 3, len(X)).astype(float)
    if of == "target":
        first = second = SquaredObjective(Y, weight)
    else:
        first, second = (
            LossObjective.of(SquaredError(), Y + shift, weight, rng.normal(size=(len(X), n_outputs)))
            for shift in (0.0, rng.normal(size=n_outputs))
        )
    growth = TreeParams(max_depth=3, min_samples_leaf=5)
    settings = layers.LayerSettings(n_estimators=9, growth=growth, base="ridge", basis=BASES[basis])
    grown = layers.fit(layers.BoundInput(load_backend("lightgbm"), table, settings, weight), first)
    replay = FixedStructure.of(grown.layer.forest, shared=False)
    if not in_memory:  # nor all rounds in one call
        tune(fitting, MOST_TRACE=0)
        tune(boosting, TREE_ROWS=4 * n_outputs * len(X))
    calls, boost_rounds = [], boosting.boost_rounds
    monkeypatch.setattr(boosting, "boost_rounds", lambda *args, **kw: calls.append(1) or boost_rounds(*args, **kw))
    together = layers.fit(layers.BoundInput(replay, table, settings, weight), second)
    assert len(calls) == (1 if in_memory else 3)
    monkeypatch.setattr(boosting.Boosting, "boost_in_core", lambda _: False)
    apart = layers.fit(layers.BoundInput(replay, table, settings, weight), second)
    np.testing.assert_array_equal(together.output, apart.output)
    np.testing.assert_array_equal(together.trace.leaf, apart.trace.leaf)
    for one, other in zip(together.layer.forest.leaves, apart.layer.forest.leaves, strict=True):
        np.testing.assert_array_equal(one, other)
    assert together.layer.forest.runs == apart.layer.forest.runs
