"""Search spaces of all rivals, and of the deep models that they are measured against."""

from __future__ import annotations

from collections.abc import Mapping

from boostbp import search
from boostbp.search import Choice, Integer, Number, Space

__all__ = ["SPACES"]

_LIGHTGBM: Space = {
    "num_leaves": Integer(4, 128, log=True),
    "learning_rate": Number(0.02, 0.2, log=True),
    "min_child_samples": Integer(5, 100, log=True),
    "subsample": Number(0.5, 1.0),
    "colsample_bytree": Number(0.1, 1.0),
    "extra_trees": Choice((False, True)),
    "reg_lambda": Number(1e-3, 30.0, log=True),
}

SPACES: Mapping[str, Space] = {
    **search.SPACES,
    "gbdt-nn": {
        "units": Choice((16, 32, 64)),
        "layers": Integer(1, 2),
        "hidden__n_estimators": Choice((5, 20, 40)),
        "hidden__max_depth": Integer(2, 6),
        "min_samples_leaf": Integer(5, 50, log=True),
        "network_learning_rate": Number(1e-3, 3e-2, log=True),
        "network_steps": Choice((15, 60)),
        "backprop__step_size": Number(0.05, 0.5, log=True),
    },
    "nn-gbdt": {
        "units": Choice((16, 32, 64)),
        "layers": Integer(1, 2),
        "output__n_estimators": Choice((50, 100, 200)),
        "output__max_depth": Integer(2, 6),
        "min_samples_leaf": Integer(5, 50, log=True),
        "network_learning_rate": Number(1e-3, 3e-2, log=True),
        "network_steps": Choice((15, 60)),
    },
    "lightgbm": _LIGHTGBM,
    "linear_tree": {**_LIGHTGBM, "linear_lambda": Number(1e-3, 10.0, log=True)},
    "xgboost": {
        "max_depth": Integer(2, 10),
        "learning_rate": Number(0.02, 0.2, log=True),
        "min_child_weight": Number(1.0, 50.0, log=True),
        "subsample": Number(0.5, 1.0),
        "colsample_bytree": Number(0.1, 1.0),
        "reg_lambda": Number(0.1, 30.0, log=True),
    },
    "hist": {
        "max_leaf_nodes": Integer(4, 128, log=True),
        "learning_rate": Number(0.02, 0.2, log=True),
        "min_samples_leaf": Integer(5, 100, log=True),
        "l2_regularization": Number(1e-3, 30.0, log=True),
        "max_features": Number(0.1, 1.0),
    },
    "mlp": {
        "layers": Integer(1, 3),
        "units": Choice((16, 32, 64, 128, 256)),
        "dropout": Choice((0.0, 0.0, 0.1, 0.3)),  # which smooth targets do without
        "learning_rate": Number(3e-4, 1e-2, log=True),
        "weight_decay": Number(1e-6, 1e-1, log=True),
        "batch_size": Choice((32, 128, 512)),
    },
}
