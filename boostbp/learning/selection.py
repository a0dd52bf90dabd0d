"""Selection: what depth adds to a single layer on held-out rows, and the model that follows from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Table
from boostbp.learning import backprop
from boostbp.learning.bound import LayerSettings
from boostbp.learning.history import Candidate, Choice, History, Stop
from boostbp.learning.losses import Loss
from boostbp.learning.merging import weighted_sum
from boostbp.learning.metrics import Metric
from boostbp.learning.network import Network
from boostbp.learning.pool import Pool, grown
from boostbp.learning.sampling import growing
from boostbp.learning.settings import Settings
from boostbp.learning.watch import EvalSet
from boostbp.learning.weighing import doubt_of, softened, weighed

__all__ = ["train"]

Floats = NDArray[np.float64]
LIGHT = 1.0  # penalty of the ridge under hidden units, which follow their gradients faster than by cross-validation
WIDER = 2  # times the units asked for: without trees they are cheap
HEADED = 2  # networks, the best ones, that get output layers grown to their end


def train(
    table: Table,
    y: Floats,
    *,
    backend: Backend,
    loss: Loss,
    settings: Settings,
    weight: Floats,
    eval_sets: Sequence[EvalSet] = (),
    to_target: Callable[[Floats], Floats],
    metric: Metric | None = None,
    outcome: Callable[[Floats], Floats] | None = None,
    **rest: Any,
) -> tuple[Network, History]:
    """Train a network by back-propagation, then weigh it against single layers of the same library.

    With ``settings.deep == "auto"`` and an evaluation set, the model is a sum of single layers and networks: the one
    that was trained, its variants (hidden units that share their trees, and linear ones under two penalties: none of
    them is best on all data), and the best of these with output layers boosted anew to the end.
    Weights are those that the first evaluation set likes best (forward selection with replacement: Caruana and
    others 2004). Where no sum with a network in it is better than the best without by more than
    `settings.least_gain` standard errors, networks are left out. Where classes are learnt, the model lies between the
    two sums: the same rows chose the networks' epochs, and few rows that are far off decide on their log-loss.

    Parameters are those of `backprop.train`, and:

    Parameters
    ----------
    to_target : callable
        Targets of an evaluation set as the loss takes them.
    """
    begun = time.perf_counter()
    again = partial(backprop.train, table, y, backend=backend, loss=loss, weight=weight, eval_sets=eval_sets)
    again = partial(again, metric=metric, outcome=outcome)
    network, history = again(settings=settings, **rest)
    if settings.deep != "auto" or not settings.units or not eval_sets or history.stop is Stop.INTERRUPTED:
        return network, history
    held = eval_sets[0]
    until = np.inf if settings.max_time is None else begun + settings.max_time
    grown_by = growing(backend, settings)
    target = softened(to_target(held.y), held.weight, loss)
    pool = Pool(table, y, weight, grown_by, loss, settings, network.baseline, held, target, until)
    try:
        options = [*pool.singles(), pool.plainly("network", network)]
        for name, variant in _variants(settings):
            left = until - time.perf_counter()
            if left > 0:
                trained = _trained(again, replace(variant, max_time=None if settings.max_time is None else left))
                options += [] if trained is None else [pool.plainly(name, trained)]
        ranked = sorted((option for option in options if option.deep), key=lambda option: pool.score(option.held))
        for option in ranked[:HEADED]:
            options += pool.headed(option)
        weights, gain, error = weighed(
            options, pool.row_losses, held.weight, least_gain=settings.least_gain, doubt=doubt_of(loss)
        )
    except KeyboardInterrupt:
        history.stop = Stop.INTERRUPTED
        return network, history
    shares = list(zip(options, map(float, weights), strict=True))
    history.choice = Choice(tuple(Candidate(o.name, pool.score(o.held), w) for o, w in shares), gain, error)
    chosen = [(option.network, w) for option, w in shares if w > 0]
    if not any(option.deep and w for option, w in shares):  # its hidden layers are what `transform` gives
        chosen.append((network, 0.0))
    return weighted_sum(*zip(*chosen, strict=True)), history


def _trained(train: Callable[..., tuple[Network, History]], settings: Settings) -> Network | None:
    """A network beside the one that was asked for; None if it exploded in its first epoch."""
    try:
        network, history = train(settings=settings)
    except FloatingPointError:
        return None
    if history.stop is Stop.INTERRUPTED:  # it kept its best epoch, but the user wants all of this to end
        raise KeyboardInterrupt
    return network


def _variants(settings: Settings) -> Iterator[tuple[str, Settings]]:
    """Networks beside the one that was asked for, with other hidden layers; none if it has no trees there."""
    *hidden, last = settings.layers
    if not any(layer.n_estimators for layer in hidden):
        return

    def with_hidden(layers: Iterable[LayerSettings], wider: int = 1) -> Settings:
        return replace(settings, layers=(*layers, last), units=tuple(wider * n for n in settings.units))

    if all(layer.leaves == "refit" for layer in settings.layers):
        shared = with_hidden(map(_sharing, hidden))
        if shared != settings:
            yield "network of shared trees", shared
    straight = [replace(layer, n_estimators=0, base="ridge") for layer in hidden]
    yield "linear network", with_hidden(straight)
    light = [replace(layer, base_lambda=LIGHT) for layer in straight]
    yield "wide linear network, light penalty", with_hidden(light, WIDER)


def _sharing(layer: LayerSettings) -> LayerSettings:
    """The layer with one tree for all units; a sketch not in use before may be one that the library cannot grow on."""
    if layer.growth.shared:
        return layer
    return replace(grown(layer, shared=True), sketch=None)
