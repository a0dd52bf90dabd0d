"""Fitted models and their tables for the tests of this folder, each fitted once."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from flat_parameters import parameters
from helpers import WITH_CATEGORIES
from sklearn.datasets import load_iris

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, Elementwise

ROWS = 400
SMALL = {
    "hidden_layer_sizes": (4, 3),
    "n_estimators": [4, 4, 12],
    "epochs": 2,
    "deep": True,
    "early_stopping": False,
    "random_state": 0,
}
FLOWERS, SPECIES = load_iris(return_X_y=True)


@cache
def table():
    """Numbers, categories and gaps, and a target that uses all of them but `noise`."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=ROWS),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], ROWS)),
            "weight": 50.0 + 9.0 * rng.normal(size=ROWS),
            "noise": rng.normal(size=ROWS),
        }
    )
    y = 30.0 + 5.0 * frame["size"] * (frame["colour"] == "red") + np.abs(frame["weight"] - 50.0)
    frame.loc[rng.choice(ROWS, 40, replace=False), "weight"] = np.nan
    frame.loc[rng.choice(ROWS, 40, replace=False), "colour"] = None
    return frame, y.to_numpy()


def regressor(backend, **changes):
    frame, y = table()
    return BoostBPRegressor(**parameters(backend=backend, **(SMALL | changes))).fit(frame, y), frame


def two_outputs(backend, **changes):
    frame, y = table()
    target = np.column_stack([y, -0.1 * y + frame["size"]])
    return BoostBPRegressor(**parameters(backend=backend, **(SMALL | changes))).fit(frame, target), frame


def classifier(backend, **changes):
    return BoostBPClassifier(**parameters(backend=backend, **(SMALL | changes))).fit(FLOWERS, SPECIES), FLOWERS


def two_classes(backend, **changes):
    frame, y = table()
    labels = np.where(y > np.median(y), "high", "low")
    return BoostBPClassifier(**parameters(backend=backend, **(SMALL | changes))).fit(frame, labels), frame


def autoencoder(backend, **changes):
    small = SMALL | {"hidden_layer_sizes": (2,), "n_estimators": [4, 6]}
    del small["deep"]
    return BoostBPAutoencoder(**parameters(backend=backend, **(small | changes))).fit(FLOWERS), FLOWERS


KINDS = {
    "regressor": regressor,
    "two outputs": two_outputs,
    "classifier": classifier,
    "two classes": two_classes,
    "autoencoder": autoencoder,
    "skip": lambda backend: regressor(backend, skip=True),
    "shared trees": lambda backend: two_outputs(backend, multi_strategy="multi_output_tree"),
    "no base, no clip": lambda backend: regressor(backend, base="zero", clip=False),
    "no hidden layer": lambda backend: regressor(backend, hidden_layer_sizes=(), n_estimators=12),
    "held-out rows": lambda backend: regressor(backend, early_stopping=True),
    "native leaves": lambda backend: regressor(backend, leaves="native"),
    "own basis": lambda backend: regressor(backend, basis=Elementwise([np.positive, np.sin], [np.ones_like, np.cos])),
}
OF_LIGHTGBM = ("native leaves", "own basis")
# What is told of a forest is the same whoever grew it: LightGBM's at once, the others slow.
MARKS = {backend: () if backend == "lightgbm" else pytest.mark.slow for backend in WITH_CATEGORIES}
LIBRARIES = [pytest.param(backend, marks=marks) for backend, marks in MARKS.items()]
CASES = [
    pytest.param(kind, backend, marks=marks)
    for kind in KINDS
    for backend, marks in MARKS.items()
    if kind not in OF_LIGHTGBM or backend == "lightgbm"
]


@cache
def fitted(kind, backend):
    """A model and rows for it; nobody may change them."""
    return KINDS[kind](backend)


def raw_output(model, X):
    """What attributions are of, (rows, outputs), by the estimator's own methods."""
    raw = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return raw.reshape(len(X), -1)
