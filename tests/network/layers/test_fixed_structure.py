"""FixedStructure: kept structures are those of the earlier fit, and only leaves change."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters

from boostbp import BoostBPRegressor
from boostbp.backends import available, load_backend
from boostbp.backends.base import TreeParams
from boostbp.losses.residuals import SquaredError
from boostbp.network import layers
from boostbp.network.layers import LossObjective, SquaredObjective, core_rounds, fitting
from boostbp.network.layers.cheaper_growth import FixedStructure
from boostbp.trees.basis import BASES
from boostbp.trees.sparse import Table

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (500, 4))
y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("multi_strategy", ["one_output_per_tree", "multi_output_tree"])
def test_structures_change_only_at_regrowth(backend, multi_strategy):
    seen = []
    BoostBPRegressor(
        (5, 3),
        **parameters(
            backend=backend,
            multi_strategy=multi_strategy,
            structure_epochs=3,
            epochs=6,
            n_estimators=4,
            max_depth=3,
            early_stopping=False,
            random_state=0,
        ),
    ).fit(X, y, callbacks=[lambda progress: seen.append(progress.network)])
    for epoch in range(1, 7):
        for before, after in zip(seen[epoch - 1].layers, seen[epoch].layers, strict=True):
            same = np.array_equal(before.forest.nodes.threshold, after.forest.nodes.threshold)
            assert same == ((epoch - 1) % 3 != 0)
            assert not np.array_equal(before.forest.leaves.weight, after.forest.leaves.weight)


def test_kept_structures_give_the_same_trees_as_the_fit_they_come_from():
    """Without a move, leaves fitted again on kept structures are the leaves that were there."""
    settings = layers.LayerSettings(n_estimators=6, growth=TreeParams(max_depth=3), base="ridge")
    weight = np.ones(len(X))
    objective = SquaredObjective(np.column_stack([y, y**2]), weight)
    first = layers.fit(layers.BoundInput(load_backend("lightgbm"), Table(X), settings, weight), objective, seed=3)
    replay = FixedStructure.of(first.layer.forest, shared=False)
    again = layers.fit(layers.BoundInput(replay, Table(X), settings, weight), objective, seed=9)
    np.testing.assert_array_equal(first.output, again.output)
    np.testing.assert_array_equal(first.trace.leaf, again.trace.leaf)


def test_kept_category_sets_are_there_once():
    rng = np.random.default_rng(0)
    table = Table(np.column_stack([rng.integers(0, 5, 900), rng.standard_normal(900)]).astype(float), (0,))
    settings = layers.LayerSettings(n_estimators=5, growth=TreeParams(max_depth=3, min_samples_leaf=5))
    objective = SquaredObjective(np.sin(table.X[:, :1]) + [[0.0, 1.0]] * table.X[:, 1:], np.ones(900))
    forest = layers.fit(
        layers.BoundInput(load_backend("lightgbm"), table, settings, np.ones(900)), objective
    ).layer.forest
    replay = FixedStructure.of(forest, shared=False)
    again = layers.fit(layers.BoundInput(replay, table, settings, np.ones(900)), objective).layer.forest
    assert len(forest.nodes.categories) > 5
    for one, other in zip(forest.nodes, again.nodes, strict=True):
        np.testing.assert_array_equal(one, other)


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
        tune(core_rounds, TREE_ROWS=4 * n_outputs * len(X))
    calls, boost_rounds = [], core_rounds.boost_rounds
    monkeypatch.setattr(core_rounds, "boost_rounds", lambda *args, **kw: calls.append(1) or boost_rounds(*args, **kw))
    together = layers.fit(layers.BoundInput(replay, table, settings, weight), second)
    assert len(calls) == (1 if in_memory else 3)
    monkeypatch.setattr(fitting, "boosted_in_core", lambda *args: [])
    apart = layers.fit(layers.BoundInput(replay, table, settings, weight), second)
    np.testing.assert_array_equal(together.output, apart.output)
    np.testing.assert_array_equal(together.trace.leaf, apart.trace.leaf)
    for one, other in zip(together.layer.forest.leaves, apart.layer.forest.leaves, strict=True):
        np.testing.assert_array_equal(one, other)
    assert together.layer.forest.runs == apart.layer.forest.runs


def test_kept_trees_of_more_leaves_than_numbers_are_refused():
    x = np.arange(1500.0)[:, None]
    growth = TreeParams(max_leaves=300, max_depth=-1, min_samples_leaf=1, max_bins=1500)
    settings = layers.LayerSettings(n_estimators=1, growth=growth)
    objective, weight = SquaredObjective(np.sin(x), np.ones(1500)), np.ones(1500)
    grown = layers.fit(layers.BoundInput(load_backend("lightgbm"), Table(x), settings, weight), objective)
    replay = FixedStructure.of(grown.layer.forest, shared=False)
    shallow = layers.LayerSettings(n_estimators=1, growth=TreeParams(max_depth=3))
    with pytest.raises(ValueError, match=r"grew \d+ leaves: `TreeParams.leaves` allows 8"):
        layers.fit(layers.BoundInput(replay, Table(x), shallow, weight), objective)
