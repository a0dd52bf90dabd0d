"""Selection: what depth adds to a single layer on held-out rows, and the model that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Table
from boostbp.learning import backprop
from boostbp.learning.bound import LayerSettings
from boostbp.learning.budget import Budget
from boostbp.learning.history import NETWORK, Candidate, Choice, History, Stop
from boostbp.learning.losses import Loss
from boostbp.learning.merging import weighted_sum
from boostbp.learning.metrics import Metric
from boostbp.learning.network import Network
from boostbp.learning.pool import Pool, grown
from boostbp.learning.refit import Refit
from boostbp.learning.sampling import growing
from boostbp.learning.settings import Settings
from boostbp.learning.watch import EvalSet
from boostbp.learning.weighing import Option, doubt_of, softened, weighed

__all__ = ["train"]

Floats = NDArray[np.float64]
LIGHT = 1.0  # penalty of the ridge under hidden units, which follow their gradients faster than by cross-validation
WIDER = 2  # times the units asked for: without trees they are cheap
HEADED = 2  # networks, the best ones, that get output layers grown to their end
# Shares of `max_time` by which the network, and then its variants, are done
FOR_NETWORK, FOR_VARIANTS = 0.4, 0.85


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
    If they are training rows that were held out, the output layers of what is chosen are grown again on all rows.

    Of ``settings.max_time`` the network takes `FOR_NETWORK` at most, and each other candidate its share of the rest.
    An interrupt ends all of it: the model is made of the candidates that are there.

    Parameters are those of `backprop.train`, and:

    Parameters
    ----------
    to_target : callable
        Targets of an evaluation set as the loss takes them.
    """
    budget = Budget(settings.max_time)
    again = partial(backprop.train, table, y, backend=backend, loss=loss, weight=weight, eval_sets=eval_sets)
    again = partial(again, metric=metric, outcome=outcome)
    if settings.deep != "auto" or not settings.units or not eval_sets:
        return again(settings=settings, **rest)
    network, history = again(settings=replace(settings, max_time=budget.share(FOR_NETWORK)), **rest)
    if history.stop is Stop.INTERRUPTED:
        return network, history
    budget.spent |= history.stop is Stop.TIME
    held = eval_sets[0]
    target = to_target(held.y)
    unsure = softened(target, held.weight, loss)
    pool = Pool(table, y, weight, growing(backend, settings), loss, settings, network.baseline, held, unsure)
    options: list[Option] = []
    try:
        for option in _options(pool, network, again, budget):
            options.append(option)
    except KeyboardInterrupt:
        history.stop = Stop.INTERRUPTED
        if not options:
            return network, history
        if not any(option.stack for option in options):
            options.append(pool.plainly(NETWORK, network))
    weights, gain, error = weighed(
        options, pool.row_losses, held.weight, least_gain=settings.least_gain, doubt=doubt_of(loss)
    )
    shares = list(zip(options, map(float, weights), strict=True))
    candidates = tuple(Candidate(one.name, pool.score(one.held), w, one.stack) for one, w in shares)
    used = [option for option, w in shares if w > 0]
    chosen = [option.network for option in used]
    if settings.refit and held.taken and history.stop is not Stop.INTERRUPTED:
        chosen = _on_all_rows(used, partial(Refit.of, pool, target, budget.over), history)
    refitted = any(new is not option.network for new, option in zip(chosen, used, strict=True))
    history.choice = Choice(candidates, gain, error, budget.spent, refitted)
    said = [w for _, w in shares if w > 0]
    if not any(option.stack for option in used):  # its hidden layers are what `transform` gives
        chosen, said = [*chosen, network], [*said, 0.0]
    return weighted_sum(chosen, said), history


def _on_all_rows(used: Sequence[Option], join: Callable[[], Refit], history: History) -> list[Network]:
    """The networks of the options, each refitted unless an interrupt came before."""
    networks = [option.network for option in used]
    try:
        refit = join()
        for k, option in enumerate(used):
            networks[k] = refit(option)
    except KeyboardInterrupt:
        history.stop = Stop.INTERRUPTED
    return networks


def _options(
    pool: Pool, network: Network, train: Callable[..., tuple[Network, History]], budget: Budget
) -> Iterator[Option]:
    """What the model may be made of: single layers, networks, and the best networks under output layers grown on."""
    yield from pool.singles(budget)
    stacks = [pool.plainly(NETWORK, network)]
    yield stacks[0]
    variants = list(_variants(pool.settings, additive=pool.bends))
    for left, (name, variant) in zip(range(len(variants), 0, -1), variants, strict=True):
        if budget.over():
            return
        trained = _trained(train, replace(variant, max_time=budget.share(FOR_VARIANTS, left)), budget)
        if trained is not None:
            stacks.append(pool.plainly(name, trained))
            yield stacks[-1]
    ranked = sorted(stacks, key=lambda option: pool.score(option.held))[:HEADED]
    for left, option in zip(range(len(ranked), 0, -1), ranked, strict=True):
        yield from pool.headed(option, budget, left)


def _trained(train: Callable[..., tuple[Network, History]], settings: Settings, budget: Budget) -> Network | None:
    """A network beside the one that was asked for; None if it exploded in its first epoch."""
    try:
        network, history = train(settings=settings)
    except FloatingPointError:
        return None
    if history.stop is Stop.INTERRUPTED:  # it kept its best epoch, but the user wants all of this to end
        raise KeyboardInterrupt
    budget.spent |= history.stop is Stop.TIME
    return network


def _variants(settings: Settings, *, additive: bool) -> Iterator[tuple[str, Settings]]:
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
    if additive:
        yield "additive network", with_hidden(replace(layer, base="additive") for layer in straight)
    light = [replace(layer, base_lambda=LIGHT) for layer in straight]
    yield "wide linear network, light penalty", with_hidden(light, WIDER)


def _sharing(layer: LayerSettings) -> LayerSettings:
    """The layer with one tree for all units; a sketch not in use before may be one that the library cannot grow on."""
    if layer.growth.shared:
        return layer
    return replace(grown(layer, shared=True), sketch=None)
