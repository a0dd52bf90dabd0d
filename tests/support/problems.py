"""Small problems of the ensemble: what candidates are trained on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.datasets import make_friedman1

from boostbp import backends, metrics
from boostbp.ensemble.problem import Problem
from boostbp.inputs.rows import Rows
from boostbp.losses import SquaredError
from boostbp.network.layers import LayerSettings
from boostbp.network.monitor import EvalSet, Evaluation, NetworkTask
from boostbp.network.settings import Settings
from boostbp.trees.sparse import Table

GROWTH = replace(LayerSettings().growth, max_depth=3, min_samples_leaf=10)
LAYER = LayerSettings(n_estimators=5, learning_rate=0.3, growth=GROWTH)


def scaled(rows, seed):
    """Friedman's first function of five features, with noise, standardised: X and (rows, 1) targets."""
    X, y = make_friedman1(rows, n_features=5, noise=1.0, random_state=seed)
    return np.ascontiguousarray(X), ((y - 14.4) / 5.0)[:, None]


def watched(X, y, name="held_out", metric=None):
    """Rows that are watched, by squared error if by a metric at all."""
    return Evaluation((EvalSet(name, Rows(Table(X), y, np.ones(len(y)))),), metric)


def problem_of(
    train=None, held_out=None, *, backend="lightgbm", loss=None, layer=LAYER, categorical=(), weight=None, **changes
):
    """Training rows and held-out rows, 240 and 120 of `scaled` if left out, and a network of three units."""
    X, y = scaled(240, 0) if train is None else train
    rows, targets = scaled(120, 1) if held_out is None else held_out
    given = {"layers": (layer, layer), "units": (3,), "epochs": 4}
    task = NetworkTask(
        rows=Rows(Table(X, categorical), y, np.ones(len(y)) if weight is None else weight),
        backend=backends.load_backend(backend),
        loss=SquaredError() if loss is None else loss,
        settings=Settings(**given | changes),
        evaluation=watched(rows, targets, metric=metrics.default_metric(SquaredError())),
    )
    return Problem.of(task)
