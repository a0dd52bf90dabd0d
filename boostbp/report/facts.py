"""Facts of a fitted model: what it is, settings, layers, training, health and importances, as plain values."""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import asdict
from typing import Any

import numpy as np


def facts_of(model: Any) -> dict[str, Any]:
    """What there is to say of a fitted estimator, as values that JSON holds.

    Returns
    -------
    dict
        ``estimator``, ``features`` and ``outputs`` (names), ``settings`` (those that are not the
        defaults), ``layers`` (see below), ``training``, ``health`` and ``importances`` (by feature).
        A layer has its number of ``inputs`` and ``outputs``, of ``trees`` that split and their ``leaves``,
        of trees without splits (``ridge``), and the ``coefficients`` of all.
    """
    features = model.layer_names(0)
    return {
        "estimator": type(model).__name__,
        "features": features,
        "outputs": model.output_names(),
        "settings": _settings(model),
        "layers": [_layer(layer.forest) for layer in model.network_.layers],
        "training": _training(model.history_),
        "health": model.health().to_dict(),
        "importances": dict(zip(features, model.feature_importances_.tolist(), strict=True)),
    }


def _settings(model: Any) -> dict[str, Any]:
    params = {name: _spelled(value) for name, value in model.get_params(deep=False).items()}
    defaults = {name: _spelled(p.default) for name, p in inspect.signature(type(model)).parameters.items()}
    return {name: value for name, value in params.items() if value != defaults[name]}


def _spelled(value: Any) -> Any:
    """A value as JSON reads it back; of an object, what `repr` says."""
    return json.loads(json.dumps(value, default=lambda other: getattr(other, "tolist", other.__repr__)()))


def _layer(forest: Any) -> dict[str, int]:
    splits = np.diff(forest.tree_split)
    return {
        "inputs": forest.n_features,
        "outputs": forest.n_outputs,
        "trees": int((splits > 0).sum()),
        "leaves": int((splits + 1)[splits > 0].sum()),
        "ridge": int((splits == 0).sum()),
        "coefficients": len(forest.leaves.weight),
    }


def _choice(choice: Any) -> dict[str, Any]:
    facts = asdict(choice)
    del facts["metrics"]  # the scores of the training
    return facts


def _training(history: Any) -> dict[str, Any]:
    best = history[history.best_epoch]
    return {
        "epochs": len(history) - 1,
        "kept": best.epoch,
        "loss": best.loss,
        "metric": history.metric,
        "metrics": best.metrics,
        "scores": history.scores,
        "seconds": math.fsum(epoch.seconds for epoch in history.epochs),
        "stop": history.stop.value,
        "weight_of_networks": history.weight(),
        "choice": None if history.choice is None else _choice(history.choice),
        "refitted": history.refitted,
    }
