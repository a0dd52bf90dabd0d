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
from boostbp.learning.abreast import abreast, at_once, later, turns_left
from boostbp.learning.bound import LayerSettings
from boostbp.learning.budget import Budget
from boostbp.learning.history import NETWORK, Candidate, Choice, History, Stop
from boostbp.learning.losses import Loss
from boostbp.learning.merging import weighted_sum
from boostbp.learning.metrics import Metric
from boostbp.learning.network import Network
from boostbp.learning.pool import Pool
from boostbp.learning.refit import Refit
from boostbp.learning.sampling import growing
from boostbp.learning.settings import Settings
from boostbp.learning.watch import EvalSet
from boostbp.learning.weighing import Option, doubt_of, softened, weighed
from boostbp.trees import interrupts

__all__ = ["train"]

Floats = NDArray[np.float64]
LIGHT = 1.0  # penalty of the ridge under hidden units, which follow their gradients faster than by cross-validation
WIDER = 2  # times the units asked for: without trees they are cheap
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
    that was trained, its variants (hidden units that are linear, or sums of smooth functions: none of them is best on
    all data), and each of these with an output layer boosted anew to the end.
    Weights are those that the first evaluation set likes best (forward selection with replacement: Caruana and
    others 2004). Where no sum with a network in it is better than the best without by more than
    `settings.least_gain` standard errors, networks are left out. Where classes are learnt, the model lies between the
    two sums: the same rows chose the networks' epochs, and few rows that are far off decide on their log-loss.
    If they are training rows that were held out, the output layers of what is chosen are grown again on all rows.

    Of ``settings.max_time`` the network takes `FOR_NETWORK` at most, and each other candidate its share of the rest.
    An interrupt ends all of it: the model is made of the candidates that are there. On few rows the candidates after
    the first network are trained side by side, as threads allow; none depends on another.

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
    model = network
    try:
        with interrupts.held():  # and raised when the model is there
            model = _weighed_model(pool, target, network, history, again, budget)
    except KeyboardInterrupt:
        history.stop = Stop.INTERRUPTED
    return model, history


def _weighed_model(
    pool: Pool,
    target: Floats,
    network: Network,
    history: History,
    train: Callable[..., tuple[Network, History]],
    budget: Budget,
) -> Network:
    """The weighted sum of the candidates; what they are is told to the history."""
    settings, held = pool.settings, pool.held
    options, interrupted = _candidates(pool, network, train, budget)
    if interrupted:
        history.stop = Stop.INTERRUPTED
        if not options:
            return network
        if not any(option.stack for option in options):
            options.append(pool.plainly(NETWORK, network))
    weights, gain, error = weighed(
        options, pool.row_losses, held.weight, least_gain=settings.least_gain, doubt=doubt_of(pool.loss)
    )
    shares = list(zip(options, map(float, weights), strict=True))
    candidates = tuple(Candidate(one.name, pool.score(one.held), w, one.stack) for one, w in shares)
    used = [option for option, w in shares if w > 0]
    chosen = [option.network for option in used]
    if settings.refit and held.taken and not interrupted:
        chosen, interrupted = _on_all_rows(used, pool, target, budget)
        if interrupted:
            history.stop = Stop.INTERRUPTED
    refitted = any(new is not option.network for new, option in zip(chosen, used, strict=True))
    history.choice = Choice(candidates, gain, error, budget.spent, refitted)
    said = [w for _, w in shares if w > 0]
    if not any(option.stack for option in used):  # its hidden layers are what `transform` gives
        chosen, said = [*chosen, network], [*said, 0.0]
    return weighted_sum(chosen, said)


def _on_all_rows(used: Sequence[Option], pool: Pool, target: Floats, budget: Budget) -> tuple[list[Network], bool]:
    """The networks of the options, each refitted unless an interrupt came before; and whether one did."""
    networks = {option.name: option.network for option in used}
    pool, n_at_once = _shared(pool, len(used))

    def pieces() -> Iterator[Iterator[tuple[str, Network]]]:
        refit = Refit.of(pool, target, budget.over)
        for option in used:
            yield later(partial(_refitted, refit, option))

    found, interrupted = abreast(pieces(), n_at_once, budget)
    return list((networks | dict(found)).values()), interrupted


def _shared(pool: Pool, most: int | None = None) -> tuple[Pool, int]:
    """The pool on the threads of one candidate, and how many of these, `most` at most, are best trained at a time."""
    n_at_once = at_once(len(pool.y), pool.settings.n_threads)
    if most is not None:
        n_at_once = min(n_at_once, most)
    return pool.on(pool.settings.n_threads // n_at_once), n_at_once


def _refitted(refit: Refit, option: Option) -> tuple[str, Network]:
    return option.name, refit(option)


def _candidates(
    pool: Pool, network: Network, train: Callable[..., tuple[Network, History]], budget: Budget
) -> tuple[list[Option], bool]:
    """Single layers and networks; and whether an interrupt ended it."""
    pool, n_at_once = _shared(pool)

    def pieces() -> Iterator[Iterator[Option]]:
        yield from pool.singles(budget, n_at_once)
        variants = list(_variants(pool.settings, additive=pool.bends(pool.table)))
        n_networks = 1 + len(variants)
        yield pool.networks(NETWORK, network, budget, turns_left(n_networks, 0, n_at_once))
        for number, (name, variant) in enumerate(variants, start=1):
            yield _variant(name, variant, pool, train, budget, turns_left(n_networks, number, n_at_once))

    return abreast(pieces(), n_at_once, budget)


def _variant(
    name: str, settings: Settings, pool: Pool, train: Callable[..., tuple[Network, History]], budget: Budget, left: int
) -> Iterator[Option]:
    """A network beside the one that was asked for, one of so many left; none if it exploded in its first epoch."""
    if budget.over():
        return
    try:
        network, history = train(
            settings=replace(settings, max_time=budget.share(FOR_VARIANTS, left)),
            callbacks=[lambda progress: budget.ended],
        )
    except FloatingPointError:
        return
    if history.stop is Stop.INTERRUPTED:  # it kept its best epoch, but the user wants all of this to end
        raise KeyboardInterrupt
    if history.stop is Stop.TIME:
        budget.spent = True
    yield from pool.networks(name, network, budget, left)


def _variants(settings: Settings, *, additive: bool) -> Iterator[tuple[str, Settings]]:
    """Networks beside the one that was asked for, with other hidden layers; none if it has no trees there.

    What takes longest comes first. Where there are additive units, linear ones with as strong a penalty add nothing.
    """
    *hidden, last = settings.layers
    if not any(layer.n_estimators for layer in hidden):
        return

    def with_hidden(layers: Iterable[LayerSettings], wider: int = 1) -> Settings:
        return replace(settings, layers=(*layers, last), units=tuple(wider * n for n in settings.units))

    straight = [replace(layer, n_estimators=0, base="ridge") for layer in hidden]
    light = [replace(layer, base_lambda=LIGHT) for layer in straight]
    yield "linear network", with_hidden(light, WIDER)
    if additive:
        yield "additive network", with_hidden(replace(layer, base="additive") for layer in straight)
    else:
        yield "linear network, cross-validated penalty", with_hidden(straight)
