"""FixedStructure: kept structures are those of the earlier fit, and only leaves change."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters

from boostbp import BoostBPRegressor
from boostbp.backends import available, load_backend
from boostbp.backends.base import TreeParams
from boostbp.network import layers
from boostbp.network.layers import SquaredObjective
from boostbp.network.layers.cheaper_growth import FixedStructure
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
