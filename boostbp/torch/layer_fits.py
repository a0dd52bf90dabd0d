"""Refits: one fit of a tree layer after another, with what the same input needs once kept between them."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from boostbp import backends, layers
from boostbp.backends.base import Table
from boostbp.floats import Floats
from boostbp.inputs import drop_zero_weight
from boostbp.layers import BoundInput, Layer, LayerSettings, LossObjective, Objective, SquaredObjective
from boostbp.losses import Loss, checked
from boostbp.network.starts import STARTS, start_of
from boostbp.single import check_codes
from boostbp.trees import interrupts, threads


def start_in(start: str, table: Table, weight: Floats, n_outputs: int, random: np.random.Generator) -> Floats:
    """Start by name, (rows, outputs): from the rows that have weight; 0 in the others."""
    target = np.zeros((len(table.X), n_outputs))
    table, _, used = drop_zero_weight(table, target, weight)
    target[weight > 0] = start_of(STARTS[start], table, used, n_outputs, random)
    return target


class Fitted(NamedTuple):
    """Trees, and what is added to their output, (outputs,) float64: 0 where they were fitted to a target."""

    layer: Layer
    baseline: Floats


class Refits:
    """Fits of trees to rows of a library.

    Parameters
    ----------
    backend : str or Backend

    Attributes
    ----------
    bound : BoundInput or None
        The input of the last fit, as long as it stays.
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.bound: BoundInput | None = None

    @interrupts.deferred()
    @threads.single_threaded_blas()
    def fit(
        self,
        table: Table,
        target: Floats,
        weight: Floats,
        loss: Loss | None,
        settings: LayerSettings,
        *,
        n_threads: int,
        seed: int,
    ) -> Fitted:
        """Fit trees to a target, (rows, outputs), or by boosting on a loss of it. Rows of weight 0 are none."""
        table, target, weight = drop_zero_weight(table, target, weight)
        baseline, objective = np.zeros(target.shape[1]), cast("Objective", SquaredObjective(target, weight))
        if loss is not None:
            baseline = checked.baseline(loss, target, weight)
            checked.check(loss, baseline, target)
            objective = LossObjective(loss, target, weight, baseline)
        bound = self._bind(table, weight, settings)
        layer = layers.fit(bound, objective, n_threads=n_threads, seed=seed).layer
        self.bound = bound
        return Fitted(layer, baseline)

    def _bind(self, table: Table, weight: Floats, settings: LayerSettings) -> BoundInput:
        bound = self.bound
        same = bound is not None and bound.settings is settings and np.array_equal(bound.weight, weight)
        if bound is not None and same and np.array_equal(bound.table.X, table.X, equal_nan=True):
            return bound
        check_codes(table.X, table.categorical)
        return BoundInput(backends.load(self.backend), table, settings, weight)
