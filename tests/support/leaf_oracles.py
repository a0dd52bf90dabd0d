"""Each library's own leaf assignment, by the name of its backend."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from boostbp.backends.conformance.backend_trial import adversarial
from boostbp.backends.conformance.backend_trial import gradient as target
from boostbp.backends.conformance.backend_trial import mixed as table
from boostbp.backends.dialects import Numbering

__all__ = ["LARGEST", "ORACLES", "adversarial", "library_leaf", "nodes_of_leaves", "table", "target"]

LARGEST = float(np.finfo(np.float32).max)


def library_leaf(grower: Any, rows: np.ndarray) -> np.ndarray:
    """The leaf that the library gives each row under the tree that `grower` grew last, from one column."""
    ranks = grower.bins.ranks if hasattr(grower, "bins") else grower.ranks
    return ORACLES[type(grower).__module__.rpartition(".")[2]](grower, ranks.encode(rows))


def _lightgbm(grower: Any, rows: np.ndarray) -> np.ndarray:
    last = grower.booster.current_iteration() - 1
    leaf = grower.booster.predict(rows, start_iteration=last, num_iteration=1, pred_leaf=True, num_threads=1)
    return leaf.astype(int).ravel()


def _xgboost(grower: Any, rows: np.ndarray) -> np.ndarray:
    import xgboost

    [(kind, run)] = grower.running.items()
    booster = run.booster[run.rounds - 1 : run.rounds]
    booster.set_param({"device": "cpu"})  # on a card XGBoost 3.2 sends single rows elsewhere than on the CPU
    categorical = grower.table.categorical
    types = ["c" if j in categorical else "q" for j in range(rows.shape[1])]
    seen = xgboost.DMatrix(np.clip(rows, -LARGEST, LARGEST), feature_types=types, enable_categorical=True, nthread=1)
    node = booster.predict(seen, pred_leaf=True).astype(int).ravel()
    [nodes] = nodes_of_leaves(booster)
    assert kind[0] == 1
    return np.searchsorted(nodes, node)


def nodes_of_leaves(booster: Any) -> list[np.ndarray]:
    """XGBoost's node number of each leaf, as ``pred_leaf`` gives it, for each tree of a booster."""
    model = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]
    return [Numbering.of(np.array(of_tree["left_children"])).leaves for of_tree in model["trees"]]


def _sklearn(grower: Any, rows: np.ndarray) -> np.ndarray:
    [model] = grower.models
    with np.errstate(over="ignore", invalid="ignore"):  # its check of the input sums large numbers
        node = model.apply(np.clip(rows, -LARGEST, LARGEST))
    return np.searchsorted(Numbering.of(model.tree_.children_left).leaves, node)


ORACLES = {"lightgbm": _lightgbm, "xgboost": _xgboost, "sklearn": _sklearn}
