"""Rounds of a layer: stages add up, and the first rounds are those a shorter fit would have grown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import layer_of, parameters

from boostbp import BoostBPClassifier
from boostbp.network.layers.layer import first_rounds, round_of, stage_forests, stages

rng = np.random.default_rng(0)
H = rng.uniform(-1, 1, (400, 4))
TARGETS = np.column_stack([np.sin(3 * H[:, 0]) + H[:, 1], H[:, 2] * H[:, 3]])


def layer(n_estimators, base, **more):
    return layer_of(H, TARGETS, n_estimators=n_estimators, max_depth=3, base=base, **more).forest


@pytest.mark.parametrize("base", ["ridge", "additive", "zero"])
@pytest.mark.parametrize("multi_strategy", ["one_output_per_tree", "multi_output_tree"])
def test_first_rounds_are_a_shorter_fit(base, multi_strategy):
    long, short = (layer(n, base, multi_strategy=multi_strategy) for n in (12, 5))
    cut = first_rounds(long, 5)
    assert cut.n_trees == short.n_trees
    np.testing.assert_array_equal(cut.predict(H), short.predict(H))


def test_a_tree_of_several_outputs_waits_for_those_before_it():
    one = layer(4, "zero", multi_strategy="one_output_per_tree")
    served = np.array([[0, 1], [1, 1], [0, 2], [0, 1], [0, 1], [1, 1], [0, 2], [1, 1]])
    mixed = replace(one, leaves=one.leaves._replace(tree_output=served))
    np.testing.assert_array_equal(round_of(mixed), [0, 0, 1, 2, 3, 2, 4, 5])


@pytest.mark.parametrize("base", ["ridge", "additive", "zero"])
def test_stages_are_the_predictions_of_the_first_rounds(base):
    forest = layer(10, base)
    numbers = [1, 4, 10]
    raw = 0.0
    for number, part in zip(numbers, stage_forests(forest, numbers), strict=True):
        raw, cut = raw + part.predict(H), first_rounds(forest, number)
        np.testing.assert_allclose(raw, cut.predict(H), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(raw, forest.predict(H), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_rounds", [0, 1, 7, 100, 1000])
def test_stages_end_with_all_rounds(n_rounds):
    numbers = stages(n_rounds)
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == n_rounds


def test_rounds_of_a_coupled_loss_are_counted_for_each_class():
    y = np.digitize(TARGETS[:, 0], [-0.5, 0.5])
    model = BoostBPClassifier(
        (4,), **parameters(epochs=0, n_estimators=[3, 6], early_stopping=False, random_state=0)
    ).fit(H, y)
    numbers = round_of(model.network_.layers[-1].forest)
    assert sorted(numbers.tolist()) == [-1, *sorted(list(range(6)) * 3)]
