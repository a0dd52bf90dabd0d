"""What None stands for."""

from __future__ import annotations

import pytest

from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.estimators.parameters import settings_of


@pytest.mark.parametrize(
    ("model", "n_outputs", "rounds"),
    [
        (BoostBPRegressor(), 1, [20, 100]),
        (BoostBPRegressor(), 10, [20, 100]),
        (BoostBPClassifier(), 1, [20, 100]),
        (BoostBPClassifier(), 4, [20, 100]),
        (BoostBPClassifier(), 10, [20, 40]),
        (BoostBPClassifier(), 300, [20, 20]),
        (BoostBPClassifier((8, 8)), 10, [20, 20, 40]),
        (BoostBPClassifier(()), 10, [100]),
        (BoostBPClassifier(n_estimators=[None, 70]), 10, [20, 70]),
        (BoostBPClassifier(n_estimators=70), 10, [70, 70]),
    ],
)
def test_output_layers_of_many_classes_have_fewer_rounds(model, n_outputs, rounds):
    layers = settings_of(model, 1000, n_outputs, seed=0).layers
    assert [layer.n_estimators for layer in layers] == rounds


def test_the_ridge_base_above_hidden_units_has_a_least_penalty_and_that_of_features_none():
    for sizes in ((), (8,), (8, 8)):
        first, *above = settings_of(BoostBPRegressor(sizes), 1000, 1, seed=0).layers
        assert first.base_least == 0.0
        assert all(layer.base_least > 0 for layer in above)
