"""The pool: single layers, and networks under output layers grown to their end, for a model to be made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Table
from boostbp.backends.capabilities import capabilities_of
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.options import Option
from boostbp.ensemble.output_layers import OutputLayerPlan, Rows, boost
from boostbp.ensemble.parallel import waves_left
from boostbp.layers import Layer, LayerSettings
from boostbp.layers.rounds import rounds_of
from boostbp.losses import Loss
from boostbp.network.monitor import EvalSet
from boostbp.network.network import Network, output_table
from boostbp.network.settings import Settings
from boostbp.trees.basis import Polynomial
from boostbp.trees.ridge import Ridge

__all__ = ["Pool"]

Floats = NDArray[np.float64]
# Shares of `max_time` by which single layers, and output layers grown to their end, are done
FOR_SINGLES, FOR_HEADS = 0.7, 0.95
RATE = 0.04  # shrinkage of output layers that are grown anew: slower than in an epoch, as they are grown once
MOST_FEATURES = 200  # of which smooth functions are taken: more have too few knots each
LARGER = 3  # times the rows per leaf, of single layers with large leaves
SHALLOW = 2  # depth of single layers with shallow trees: few features act together
HALF = 0.5  # share of the features that each tree sees, of single layers with plain regressions
FEW = 0.2  # of single layers that see few
# of trees with constant leaves, which must be more of them and larger than those with regressions
PLAIN_DEPTH, PLAIN_LEAVES = 8, 48
PLAIN_LAMBDA = 1.0


@dataclass(frozen=True, slots=True)
class Pool:
    """What options are grown from and scored on."""

    table: Table
    y: Floats
    weight: Floats
    backend: Backend
    loss: Loss
    settings: Settings
    baseline: Floats
    held: EvalSet
    target: Floats

    def row_losses(self, raw: Floats) -> Floats:
        """Loss of each held-out row for a raw output."""
        return self.loss.value(raw, self.target)

    def score(self, raw: Floats) -> float:
        """Their weighted mean."""
        return float(self.held.weight @ self.row_losses(raw) / self.held.weight.sum())

    @property
    def smooth(self) -> LayerSettings:
        """The output layer, grown more slowly."""
        return replace(self.settings.layers[-1], learning_rate=RATE)

    @property
    def plain(self) -> LayerSettings:
        """An output layer of trees with constant leaves."""
        large = grown(self.smooth, max_depth=PLAIN_DEPTH, max_leaves=PLAIN_LEAVES)
        return replace(large, basis=Polynomial(0), base=None, ridge=Ridge(PLAIN_LAMBDA, True, True))

    @property
    def fits_leaves(self) -> bool:
        """Whether leaves are fitted by us: libraries' own are never constant."""
        return self.settings.layers[-1].leaves == "refit"

    def bends(self, table: Table) -> bool:
        """Whether a layer above may start from smooth functions of single columns: of all numeric ones, if few."""
        functions = any(layer.basis.has_functions for layer in self.settings.layers)
        return not functions and 0 < table.X.shape[1] - len(table.categorical) <= MOST_FEATURES

    def on(self, n_threads: int) -> Pool:
        """The same on so many threads, and the library as well."""
        layers = (grown(each, n_threads=min(each.growth.n_threads, n_threads)) for each in self.settings.layers)
        return replace(self, settings=replace(self.settings, n_threads=n_threads, layers=tuple(layers)))

    def singles(self, budget: Budget, n_at_once: int = 1) -> Iterator[Iterator[Option]]:
        """Single layers, of which so many are grown at a time: one option of each, of the first whatever the time."""
        kinds = [(kind, layer) for kind, layer in self._kinds() if self._can_grow(layer)]
        for number, (kind, layer) in enumerate(kinds):
            name = f"single layer, {kind}" if kind else "single layer"
            yield self._single(name, layer, budget, waves_left(len(kinds), number, n_at_once), must=number == 0)

    def _can_grow(self, layer: LayerSettings) -> bool:
        """Whether the backend draws features, if the layer needs it: without, it would be another candidate again."""
        return layer.growth.colsample_bytree == 1.0 or bool(capabilities_of(self.backend).colsample_bytree)

    def _single(
        self, name: str, layer: LayerSettings, budget: Budget, left: int, *, must: bool = False
    ) -> Iterator[Option]:
        if not must and budget.over():
            return
        fitted, raw, head = self._head(self.table, self.held.X, layer, budget, budget.until(FOR_SINGLES, left))
        yield Option(name, None, Network((fitted,), self.baseline), raw, head)

    def _kinds(self) -> Iterator[tuple[str, LayerSettings]]:
        """What is special about a single layer, and its settings."""
        typed = None if self.smooth.clip else 0.0  # features are not alike as hidden units are
        smooth, plain = replace(self.smooth, min_base_lambda=typed), self.plain
        if not self.fits_leaves:
            yield "", smooth
            return
        best, drawn = grown(smooth, extra_trees=False), smooth.growth.extra_trees
        large = LARGER * smooth.growth.min_samples_leaf
        shallow = SHALLOW if smooth.growth.max_depth > SHALLOW or smooth.growth.max_depth < 0 else None
        yield "", best
        if drawn:
            yield "random thresholds", smooth
            if shallow:
                yield "random thresholds, shallow trees", grown(smooth, max_depth=shallow)
            straight = replace(
                smooth, basis=Polynomial(1) if smooth.basis == Polynomial(2) else smooth.basis, base=None
            )
            yield (
                "random thresholds, large leaves, half of the features, no base",
                grown(straight, min_samples_leaf=large, colsample_bytree=HALF),
            )
        else:
            yield "large leaves", grown(best, min_samples_leaf=large)
            if shallow:
                yield "shallow trees", grown(best, max_depth=shallow)
        if self.bends(self.table):
            yield "additive base", replace(best, base="additive")
        if smooth.base is not None:
            yield "no base", replace(best, base=None)
        plain_best = grown(plain, extra_trees=False)
        yield "constant leaves", plain_best
        yield "constant leaves, shallow trees", grown(plain_best, max_depth=SHALLOW)
        yield "constant leaves, few features per tree", grown(plain, colsample_bytree=FEW)

    def plainly(self, name: str, network: Network) -> Option:
        """A network as it was trained."""
        held, last = network.predict(self.held.X, n_jobs=self.settings.n_threads), self.settings.layers[-1]
        boosted = self.settings.output_target == "loss"
        head = OutputLayerPlan(replace(last, n_estimators=rounds_of(network.layers[-1].forest))) if boosted else None
        return Option(name, name, network, held, head)

    def headed(self, option: Option, budget: Budget, left: int = 1) -> Iterator[Option]:
        """The hidden layers of a network, one of so many left, under an output layer grown to its end."""
        until = budget.until(FOR_HEADS if self.held.from_training else 1.0, left)  # the rest is for all rows
        if budget.over(until):
            return
        network, n_threads = option.network, self.settings.n_threads
        table = output_table(network, self.table, n_jobs=n_threads)
        held_X = network.output_input(self.held.X, n_jobs=n_threads)
        bends = self.fits_leaves and self.smooth.base == "ridge" and self.bends(table)
        layer = replace(self.smooth, base="additive") if bends else self.smooth
        fitted, raw, head = self._head(table, held_X, layer, budget, until)
        network = replace(network, layers=(*network.layers[:-1], fitted))
        yield Option(f"{option.name}, final output layer", option.stack, network, raw, head)

    def _head(
        self, table: Table, held_X: Floats, layer: LayerSettings, budget: Budget, until: float
    ) -> tuple[Layer, Floats, OutputLayerPlan]:
        rows = self.rows(table, self.y, self.weight)
        return boost(rows, layer, held_X=held_X, score=self.score, over=partial(budget.over, until))

    def rows(self, table: Table, y: Floats, weight: Floats) -> Rows:
        """Rows as output layers see them, to boost such layers on."""
        n_threads, seed = self.settings.n_threads, self.settings.seed
        return Rows(table, y, weight, self.backend, self.loss, self.baseline, n_threads, seed)


def grown(layer: LayerSettings, **how: Any) -> LayerSettings:
    """The layer with trees that are grown otherwise."""
    return replace(layer, growth=replace(layer.growth, **how))
