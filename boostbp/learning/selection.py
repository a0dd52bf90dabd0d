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
from boostbp.learning.pool import Pool, grown
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
    that was trained, its variants (hidden units that share their trees, linear ones, sums of smooth functions: none of
    them is best on all data), and the best of these with output layers boosted anew to the end.
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
    options: list[Option] = []
    if _gather(options, pool, network, again, budget):
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
        chosen, interrupted = _on_all_rows(used, pool, target, budget)
        if interrupted:
            history.stop = Stop.INTERRUPTED
    refitted = any(new is not option.network for new, option in zip(chosen, used, strict=True))
    history.choice = Choice(candidates, gain, error, budget.spent, refitted)
    said = [w for _, w in shares if w > 0]
    if not any(option.stack for option in used):  # its hidden layers are what `transform` gives
        chosen, said = [*chosen, network], [*said, 0.0]
    return weighted_sum(chosen, said), history


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


def _gather(
    options: list[Option],
    pool: Pool,
    network: Network,
    train: Callable[..., tuple[Network, History]],
    budget: Budget,
) -> bool:
    """Add what the model may be made of: single layers, networks, and the best ones under output layers grown on.

    Whether an interrupt ended it.
    """
    try:
        with interrupts.held():  # between the pieces as well
            found, interrupted = _candidates(pool, network, train, budget)
            options += found
            if not interrupted:
                found, interrupted = _headed([option for option in options if option.stack], pool, budget)
                options += found
            return interrupted
    except KeyboardInterrupt:
        return True


def _candidates(
    pool: Pool, network: Network, train: Callable[..., tuple[Network, History]], budget: Budget
) -> tuple[list[Option], bool]:
    """Single layers and networks; and whether an interrupt ended it."""
    pool, n_at_once = _shared(pool)

    def pieces() -> Iterator[Iterator[Option]]:
        yield from pool.singles(budget, n_at_once)
        yield later(partial(pool.plainly, NETWORK, network))
        variants = list(_variants(pool.settings, additive=pool.bends))
        for number, (name, variant) in enumerate(variants):
            yield _variant(name, variant, pool, train, budget, turns_left(len(variants), number, n_at_once))

    return abreast(pieces(), n_at_once, budget)


def _headed(stacks: Sequence[Option], pool: Pool, budget: Budget) -> tuple[list[Option], bool]:
    """The best networks under output layers grown on; and whether an interrupt ended it."""
    ranked = sorted(stacks, key=lambda option: pool.score(option.held))[:HEADED]
    pool, n_at_once = _shared(pool, len(ranked))
    heads = (pool.headed(option, budget, turns_left(len(ranked), k, n_at_once)) for k, option in enumerate(ranked))
    return abreast(heads, n_at_once, budget)


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
    yield pool.plainly(name, network)


def _variants(settings: Settings, *, additive: bool) -> Iterator[tuple[str, Settings]]:
    """Networks beside the one that was asked for, with other hidden layers; none if it has no trees there.

    What takes longest comes first. Where there are additive units, linear ones with as strong a penalty add nothing.
    """
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
    light = [replace(layer, base_lambda=LIGHT) for layer in straight]
    yield "linear network", with_hidden(light, WIDER)
    if additive:
        yield "additive network", with_hidden(replace(layer, base="additive") for layer in straight)
    else:
        yield "linear network, cross-validated penalty", with_hidden(straight)


def _sharing(layer: LayerSettings) -> LayerSettings:
    """The layer with one tree for all units; a sketch not in use before may be one that the library cannot grow on."""
    if layer.growth.shared:
        return layer
    return replace(grown(layer, shared=True), sketch=None)
