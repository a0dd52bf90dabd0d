"""Settings of back-propagation: layers and steps."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from sklearn.datasets import make_friedman1

from boostbp import BoostBPRegressor

X, Y = make_friedman1(120, n_features=5, random_state=0)
FAST = {"hidden_layer_sizes": (3,), "n_estimators": 3, "epochs": 1, "deep": True, "random_state": 0}


def test_layers_and_steps_are_whole_numbers():
    model = BoostBPRegressor(**parameters(**FAST)).fit(X, Y)
    for layer in ("x", 0.0, True, 1):
        with pytest.raises(ValueError, match=r"layer=.* does not exist"):
            model.hidden_representation(X, layer=layer)
    np.testing.assert_array_equal(model.hidden_representation(X, layer=np.int64(-1)), model.transform(X))
    steps = model.attributions(X[:5], steps=np.int64(4))
    np.testing.assert_array_equal(steps.values, model.attributions(X[:5], steps=4).values)
