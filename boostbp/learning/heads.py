"""Heads: an output layer boosted to its end, in pieces, until held-out rows see no more gain."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Table
from boostbp.learning import layer as layers
from boostbp.learning.bound import BoundInput, LayerSettings
from boostbp.learning.layer import Layer
from boostbp.learning.losses import Loss
from boostbp.learning.objective import BoostTo
from boostbp.trees.forest import Forest
from boostbp.trees.merging import Part, merged

__all__ = ["boost"]

Floats = NDArray[np.float64]
PIECE = 25  # rounds between looks at the held-out rows
PATIENCE = 3  # pieces without gain before the end
LEAST = 1e-4  # share of the loss of the baseline that counts as a gain
MOST = 160  # pieces


def boost(
    table: Table,
    y: Floats,
    weight: Floats,
    *,
    backend: Backend,
    settings: LayerSettings,
    loss: Loss,
    baseline: Floats,
    held_X: Floats,
    score: Callable[[Floats], float],
    n_threads: int = 1,
    seed: int = 0,
    over: Callable[[], bool] = bool,
) -> tuple[Layer, Floats]:
    """Boost an output layer until `score`, the held-out loss of a raw output, stops falling.

    Parameters
    ----------
    table : Table
        What the layer sees of the training rows.
    y : (rows, outputs), weight : (rows,) float64
    settings : LayerSettings
        Of the layer; its number of rounds is not looked at.
    baseline : (outputs,) float64
        Raw output that boosting starts from.
    held_X : (held-out rows, features) float64
        What the layer sees of them.
    over : callable
        ``over() -> bool``: whether time is up, and no new piece is to begin. Asked only where one would.

    Returns
    -------
    layer : Layer
    held : (held-out rows, outputs) float64
        Its raw output there, baseline included.
    """
    bound = BoundInput(backend, table, replace(settings, n_estimators=PIECE), weight)
    fit, raw = np.broadcast_to(baseline, y.shape), np.broadcast_to(baseline, (len(held_X), len(baseline)))
    pieces: list[Forest] = []
    best, best_score, held = 1, np.inf, raw
    least = LEAST * score(raw)
    while not pieces or (len(pieces) < min(MOST, best + PATIENCE) and not over()):
        fitted = layers.fit(bound, BoostTo(loss, y, weight, fit), n_threads=n_threads, seed=seed + len(pieces))
        pieces.append(fitted.layer.forest)
        fit = fit + fitted.output
        raw = raw + fitted.layer.predict(held_X, n_jobs=n_threads)
        now = score(raw)
        if now < best_score - least or len(pieces) == 1:
            best, best_score, held = len(pieces), now, raw
        bound = copy.copy(bound)
        bound.settings = replace(bound.settings, base=None)
    everything = np.arange(held_X.shape[1])
    parts = [Part(forest, everything) for forest in pieces[:best]]
    return Layer(merged(parts, n_features=held_X.shape[1], n_outputs=y.shape[1])), held
