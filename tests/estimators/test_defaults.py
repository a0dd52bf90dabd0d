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
