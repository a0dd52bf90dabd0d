"""The models that a deep model is measured against, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from boostbp.report.contenders import MIXTURES, SINGLE_LAYER, Contender

__all__ = ["CONTROLS", "RIVALS", "average", "rival"]

RIVALS = {
    **dict(zip(("lightgbm", "linear_tree", "xgboost"), SINGLE_LAYER, strict=True)),
    "hist": Contender("HistGradientBoosting", "hist"),
    "single": Contender("single layer", "deep", {"hidden_layer_sizes": (), "backend": "lightgbm"}, "single"),
    "single-xgboost": Contender(
        "single layer (xgboost)", "deep", {"hidden_layer_sizes": (), "backend": "xgboost"}, "single"
    ),
    "mlp": Contender("MLP", "mlp"),
    **MIXTURES,
}
# What of a gain is owed to depth, and to back-propagation.
CONTROLS = {
    "linear-hidden": Contender("linear hidden layer", "deep", {"hidden_n_estimators": 0}),
    "before": Contender("before back-propagation", "deep", {"epochs": 0}),
}


def rival(name: str, **params: Any) -> Contender:
    """One of `RIVALS` or `CONTROLS`, with parameters that are given and hence not searched.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    known = RIVALS | CONTROLS
    if name not in known:
        raise ValueError(f"rival {name!r} is not known: use one of {', '.join(map(repr, known))}.")
    return replace(known[name], params={**known[name].params, **params})


def average(trees: int) -> Contender:
    """Single-layer LightGBM models with so many trees in all: what averaging alone gains."""
    return Contender("average of LightGBM", "average", {"trees": trees}, "lightgbm")
