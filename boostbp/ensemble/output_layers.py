"""Heads: an output layer boosted to its end, in pieces, until held-out rows see no more gain; and on all rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boostbp import layers
from boostbp.backends.base import Backend, Table
from boostbp.layers import BoundInput, Layer, LayerSettings, LossObjective
from boostbp.losses import Loss
from boostbp.trees.merging import PlacedForest, merged

__all__ = ["OutputLayerPlan", "Rows", "again", "boost"]

Floats = NDArray[np.float64]
PIECE = 25  # rounds between looks at the held-out rows
PATIENCE = 3  # pieces without gain before the end
LEAST = 1e-4  # share of what the first piece gains that counts as a gain: losses may be known but for a constant
CLOSE = 0.05  # share of what is left that always does: one easy split may take all but a thousandth of the loss
MOST = 160  # pieces


@dataclass(frozen=True, slots=True)
class OutputLayerPlan:
    """How an output layer was boosted, to do it again: `pieces` fits of the layer's rounds, the base in the first."""

    settings: LayerSettings
    pieces: int = 1


@dataclass(frozen=True, slots=True)
class Rows:
    """What output layers are boosted on.

    Attributes
    ----------
    table : Table
        What the layer sees of the training rows.
    y : (rows, outputs), weight : (rows,) float64
    backend : Backend
    loss : Loss
    baseline : (outputs,) float64
        Raw output that boosting starts from.
    n_threads, seed : int
    """

    table: Table
    y: Floats
    weight: Floats
    backend: Backend
    loss: Loss
    baseline: Floats
    n_threads: int = 1
    seed: int = 0

    def pieces(self, settings: LayerSettings) -> Iterator[Layer]:
        """Layers boosted one after the other without end, each on what those before have left; one base for all."""
        bound = BoundInput(self.backend, self.table, settings, self.weight)
        fit = np.broadcast_to(self.baseline, self.y.shape)
        for number in itertools.count():
            goal = LossObjective(self.loss, self.y, self.weight, fit)
            fitted = layers.fit(bound, goal, n_threads=self.n_threads, seed=self.seed + number)
            yield fitted.layer
            fit = fit + fitted.output
            if number == 0:
                bound = bound.without_base()


def boost(
    rows: Rows,
    settings: LayerSettings,
    *,
    held_X: Floats,
    score: Callable[[Floats], float],
    over: Callable[[], bool] = bool,
) -> tuple[Layer, Floats, OutputLayerPlan]:
    """Boost an output layer until `score`, the held-out loss of a raw output, stops falling.

    Parameters
    ----------
    rows : Rows
    settings : LayerSettings
        Of the layer; its number of rounds is not looked at.
    held_X : (held-out rows, features) float64
        What the layer sees of them.
    over : callable
        ``over() -> bool``: whether time is up, and no new piece is to begin. Asked only where one would.

    Returns
    -------
    layer : Layer
    held : (held-out rows, outputs) float64
        Its raw output there, baseline included.
    head : OutputLayerPlan
    """
    settings = replace(settings, n_estimators=PIECE)
    growing = rows.pieces(settings)
    raw = np.broadcast_to(rows.baseline, (len(held_X), len(rows.baseline)))
    pieces: list[Layer] = []
    constant = score(raw)
    best, best_score, held, least = 1, np.inf, raw, 0.0
    while not pieces or (len(pieces) < min(MOST, best + PATIENCE) and not over()):
        pieces.append(next(growing))
        raw = raw + pieces[-1].predict(held_X, n_jobs=rows.n_threads)
        now = score(raw)
        if len(pieces) == 1:
            least = LEAST * max(constant - now, 0.0)
        if now < best_score - min(least, CLOSE * abs(best_score)) or len(pieces) == 1:
            best, best_score, held = len(pieces), now, raw
    return _together(pieces[:best]), held, OutputLayerPlan(settings, best)


def again(rows: Rows, head: OutputLayerPlan, *, over: Callable[[], bool] = bool) -> Layer | None:
    """Boost an output layer by as many rounds on other rows; None if time is up before."""
    growing = rows.pieces(head.settings)
    pieces: list[Layer] = []
    while len(pieces) < head.pieces:
        if over():
            return None
        pieces.append(next(growing))
    return _together(pieces)


def _together(pieces: Sequence[Layer]) -> Layer:
    """The sum of layers on one input."""
    n_features, n_outputs = pieces[0].forest.n_features, pieces[0].forest.n_outputs
    parts = [PlacedForest(piece.forest, np.arange(n_features)) for piece in pieces]
    whole = merged(parts, n_features=n_features, n_outputs=n_outputs)
    return Layer(replace(whole, n_base=pieces[0].forest.n_base))
