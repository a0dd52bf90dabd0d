"""Candidates: single layers, networks, and each network under an output layer grown to its end, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain

from boostbp.ensemble.budget import Budget
from boostbp.ensemble.options import Option, distinct
from boostbp.ensemble.parallel import at_once, run_parallel, waves_left
from boostbp.ensemble.pool import Pool
from boostbp.layers import LayerSettings
from boostbp.network.history import History, Stop
from boostbp.network.network import Network
from boostbp.network.settings import Settings

__all__ = ["as_option", "candidates", "shared"]

LIGHT = 1.0  # penalty of the ridge under hidden units, which follow their gradients faster than by cross-validation
WIDER = 2  # times the units asked for: without trees they are cheap
FOR_VARIANTS = 0.85  # share of `max_time` by which variants of the network are done


def candidates(
    pool: Pool,
    asked: Callable[[Pool], Iterator[Option]],
    train: Callable[..., tuple[Network, History]],
    budget: Budget,
) -> tuple[list[Option], KeyboardInterrupt | None]:
    """Single layers, then networks, each also under an output layer grown to its end; and the interrupt, if one came.

    Without a limit of time, what takes longest is begun first; with one, what must be there: the network that was
    asked for, alone, then single layers.
    """
    narrow, n_at_once = shared(pool)
    variants = list(_variants(narrow.settings, additive=pool.bends(pool.table)))
    left = [waves_left(1 + len(variants), number, n_at_once) for number in range(1 + len(variants))]
    singles = narrow.singles(budget, n_at_once)
    trained = (
        _headed(_variant(name, settings, narrow, train, budget, turns), narrow, budget, turns)
        for (name, settings), turns in zip(variants, left[1:], strict=True)
    )
    if n_at_once > 1 and budget.seconds is None:
        network = _headed(asked(narrow), narrow, budget, left[0])
        found, interrupt = run_parallel(chain([network], trained, singles), n_at_once, budget)
    else:
        found, interrupt = run_parallel([asked(pool)], 1, budget)
        if interrupt is None:
            heads = (narrow.headed(option, budget, left[0]) for option in found)
            others, interrupt = run_parallel(chain(singles, heads, trained), n_at_once, budget)
            found = [*found, *others]
    return distinct(sorted(found, key=lambda option: option.stack is not None)), interrupt


def shared(pool: Pool, most: int | None = None) -> tuple[Pool, int]:
    """The pool on the threads of one candidate, and how many of these, `most` at most, are best trained at a time."""
    n_at_once = at_once(len(pool.y), pool.settings.n_threads)
    if most is not None:
        n_at_once = min(n_at_once, most)
    return pool.on(pool.settings.n_threads // n_at_once), n_at_once


def as_option(name: str, network: Network, history: History, pool: Pool, budget: Budget) -> Iterator[Option]:
    """A network as it was trained, unless an interrupt ended that.

    Raises
    ------
    KeyboardInterrupt
        If it did: its best epoch is there, but the user wants all of this to end.
    """
    if history.interrupt is not None:
        raise history.interrupt
    if history.stop is Stop.TIME:
        budget.spent = True
    yield pool.plainly(name, network)


def _headed(networks: Iterator[Option], pool: Pool, budget: Budget, left: int) -> Iterator[Option]:
    """Networks, each followed by the same under an output layer grown to its end."""
    for option in networks:
        yield option
        yield from pool.headed(option, budget, left)


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
    yield from as_option(name, network, history, pool, budget)


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
