"""A model of iris, with the networks of two epochs, and axes to draw on."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

from boostbp import BoostBPClassifier, callbacks

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
NETWORKS = {}  # of epochs 0 and 2, from the fit of `model`
TINY = {"n_estimators": 3, "min_samples_leaf": 5, "early_stopping": False, "random_state": 0}


@pytest.fixture(scope="package")
def model():
    record = callbacks.record_networks(NETWORKS, epochs=[0, 2])
    return BoostBPClassifier((4, 2), **parameters(epochs=3, **TINY)).fit(X, NAMES[Y], callbacks=[record])


@pytest.fixture
def ax():
    return Figure().subplots()
