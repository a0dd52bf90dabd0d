"""Selection: what depth adds to a single layer on held-out rows, and the model that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Table
from boostbp.learning import backprop
from boostbp.learning.history import NETWORK, Candidate, Choice, History, Stop
from boostbp.learning.layers import LayerSettings
from boostbp.learning.layers.rounds import rounds_of
from boostbp.learning.losses import Loss
from boostbp.learning.metrics import Metric
from boostbp.learning.network import Network
from boostbp.learning.run import baseline_of
from boostbp.learning.sampling import growing
from boostbp.learning.settings import Settings
from boostbp.learning.state import State
from boostbp.learning.watch import Callback, EvalSet
from boostbp.learning.weighing.abreast import abreast, at_once, later, turns_left
from boostbp.learning.weighing.budget import Budget
from boostbp.learning.weighing.merging import weighted_sum
from boostbp.learning.weighing.options import DOUBT, FAINT, Option, doubt_of, evidence, softened, trust, weighed
from boostbp.learning.weighing.pool import Pool
from boostbp.learning.weighing.refit import Refit, joined
from boostbp.trees import interrupts

__all__ = ["train"]

Floats = NDArray[np.float64]
LIGHT = 1.0  # penalty of the ridge under hidden units, which follow their gradients faster than by cross-validation
WIDER = 2  # times the units asked for: without trees they are cheap
# Shares of `max_time` by which the network, and then its variants, are done
FOR_NETWORK, FOR_VARIANTS = 0.4, 0.85
FAINTEST = 0.5  # standard errors: where held-out rows tell nothing, a little is left
ROUNDING = 1e-9  # of weights


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
    callbacks: Sequence[Callback] = (),
    resume: State | None = None,
) -> tuple[Network, History]:
    """Train a network by back-propagation, then weigh it against single layers of the same library.

    With ``settings.deep == "auto"`` and an evaluation set, the model is a sum of single layers and networks: the one
    that was trained, its variants (hidden units that are linear, or sums of smooth functions: none of them is best on
    all data), and each of these with an output layer boosted anew to the end.
    Weights are those that the first evaluation set likes best (forward selection with replacement: Caruana and
    others 2004). Where no sum with a network in it is better than the best without by more than
    `settings.least_gain` standard errors, networks are left out. Where classes are learnt, the model lies between the
    two sums: the same rows chose the networks' epochs, and few rows that are far off decide on their log-loss. So it
    does where held-out numbers hardly follow the model (`FAINT`), and it then keeps to the constant in part.
    If they are training rows that were held out, the output layers of what is chosen are grown again on all rows; so
    is a single layer that was asked for.

    Of ``settings.max_time`` the network takes `FOR_NETWORK` at most, and each other candidate its share of the rest.
    An interrupt ends all of it: the model is made of the candidates that are there. On few rows the candidates are
    trained side by side, as threads allow; none depends on another.

    Parameters are those of `backprop.train`, and:

    Parameters
    ----------
    to_target : callable
        Targets of an evaluation set as the loss takes them.
    """
    budget = Budget(settings.max_time)
    alone = partial(backprop.train, backend=backend, loss=loss)
    again = partial(alone, table, y, weight=weight, eval_sets=eval_sets, metric=metric, outcome=outcome)
    if settings.deep != "auto" or not eval_sets:
        return again(settings=settings, callbacks=callbacks, resume=resume)
    held = eval_sets[0]
    target = to_target(held.y)
    if not settings.units:
        layer, history = again(settings=settings, callbacks=callbacks, resume=resume)
        if settings.refit and held.taken and history.stop is Stop.EPOCHS:
            layer = _single_on_all_rows(layer, alone, joined(table, y, weight, held, target), settings, history)
        return layer, history
    unsure = softened(target, held.weight, loss)
    baseline = baseline_of(loss, y, weight, settings)
    pool = Pool(table, y, weight, growing(backend, settings), loss, settings, baseline, held, unsure)
    trained: list[tuple[Network, History]] = []

    def asked(pool: Pool) -> Iterator[Option]:
        """The network that was asked for."""
        lasting = replace(pool.settings, max_time=budget.share(FOR_NETWORK))
        network, history = again(settings=lasting, callbacks=[*callbacks, lambda _: budget.ended], resume=resume)
        trained.append((network, history))
        yield from _as_option(NETWORK, network, history, pool, budget)

    def scores(model: Network) -> dict[str, float]:
        """Metric of a model on each evaluation set."""
        raws = ((part, model.predict(part.X, n_jobs=settings.n_threads)) for part in eval_sets)
        seen = outcome or (lambda raw: raw)
        return {part.name: metric(seen(raw), part.y, part.weight) for part, raw in raws} if metric else {}

    model, interrupted = None, False
    try:
        with interrupts.held():  # and raised when the model is there
            options, interrupted = _candidates(pool, asked, again, budget)
            if trained:
                model = _weighed_model(options, interrupted, pool, target, *trained[0], budget, scores)
    except KeyboardInterrupt:
        interrupted = True
    if not trained:
        raise KeyboardInterrupt
    network, history = trained[0]
    if interrupted:
        history.stop = Stop.INTERRUPTED
    return network if model is None else model, history


def _single_on_all_rows(
    layer: Network,
    train: Callable[..., tuple[Network, History]],
    rows: tuple[Table, Floats, Floats],
    settings: Settings,
    history: History,
) -> Network:
    """A single layer grown again by as many rounds; as it is if that fails, or is interrupted."""
    table, y, weight = rows
    last = replace(settings.layers[-1], n_estimators=rounds_of(layer.layers[-1].forest))
    try:
        return train(table, y, weight=weight, settings=replace(settings, layers=(last,)))[0]
    except KeyboardInterrupt:
        history.stop = Stop.INTERRUPTED
    except FloatingPointError:
        pass
    return layer


def _weighed_model(
    options: list[Option],
    interrupted: bool,
    pool: Pool,
    target: Floats,
    network: Network,
    history: History,
    budget: Budget,
    scores: Callable[[Network], dict[str, float]],
) -> Network:
    """The weighted sum of the options; the history is told what they are, and how the sum scores before its refit."""
    settings, held = pool.settings, pool.held
    if all(option.stack for option in options):  # interrupted before
        return network
    if not any(option.stack for option in options):
        options = [*options, pool.plainly(NETWORK, network)]
    weights, gain, error = _weights(options, pool, target)
    shares = list(zip(options, map(float, weights), strict=True))
    candidates = tuple(Candidate(one.name, pool.score(one.held), w, one.stack) for one, w in shares)
    rest = max(1.0 - float(weights.sum()), 0.0)
    if rest > ROUNDING:
        constant = np.broadcast_to(pool.baseline, target.shape)
        candidates = (Candidate("constant", pool.score(constant), rest, None), *candidates)
    used = [option for option, w in shares if w > 0]
    chosen, said = [option.network for option in used], [w for _, w in shares if w > 0]
    # hidden layers of the network that was asked for are what `transform` gives
    shown = [] if any(option.stack for option in used) else [network]

    def summed(networks: Sequence[Network]) -> Network:
        model = weighted_sum([*networks, *shown], [*said, *(0.0 for _ in shown)])
        return replace(model, baseline=model.baseline + rest * pool.baseline) if rest > ROUNDING else model

    model = summed(chosen)
    scored = scores(model)
    if settings.refit and held.taken and not interrupted:
        chosen, interrupted = _on_all_rows(used, pool, target, budget)
        if interrupted:
            history.stop = Stop.INTERRUPTED
    refitted = any(new is not option.network for new, option in zip(chosen, used, strict=True))
    history.choice = Choice(candidates, gain, error, scored, budget.spent, refitted)
    return summed(chosen) if refitted else model


def _weights(options: Sequence[Option], pool: Pool, target: Floats) -> tuple[Floats, float, float]:
    """Weights of the options, the rest that is the constant's, what networks add, and its standard error.

    Of numbers that hardly follow the model on the held-out rows, few and noisy, chance chooses most: there networks are
    doubted as where classes are learnt, and so is all that is not the constant.
    """
    weight = pool.held.weight
    weigh = partial(weighed, options, pool.row_losses, weight, least_gain=pool.settings.least_gain)
    weights, gain, error = weigh(doubt=doubt_of(pool.loss))
    raw = sum((w * option.held for w, option in zip(weights, options, strict=True)), np.zeros(1))
    t = evidence(raw, target, pool.baseline, weight, pool.loss)
    if t < FAINT:
        weights, gain, error = weigh(doubt=DOUBT)
        weights = trust(max(t, FAINTEST), DOUBT) * weights
    return weights, gain, error


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
    pool: Pool,
    asked: Callable[[Pool], Iterator[Option]],
    train: Callable[..., tuple[Network, History]],
    budget: Budget,
) -> tuple[list[Option], bool]:
    """Single layers, then networks, each also under an output layer grown to its end; and whether an interrupt came.

    Without a limit of time, what takes longest is begun first; with one, what must be there: the network that was
    asked for, alone, then single layers.
    """
    narrow, n_at_once = _shared(pool)
    variants = list(_variants(narrow.settings, additive=pool.bends(pool.table)))
    left = [turns_left(1 + len(variants), number, n_at_once) for number in range(1 + len(variants))]
    singles = narrow.singles(budget, n_at_once)
    trained = (
        _headed(_variant(name, settings, narrow, train, budget, turns), narrow, budget, turns)
        for (name, settings), turns in zip(variants, left[1:], strict=True)
    )
    if n_at_once > 1 and budget.seconds is None:
        network = _headed(asked(narrow), narrow, budget, left[0])
        found, interrupted = abreast(chain([network], trained, singles), n_at_once, budget)
    else:
        found, interrupted = abreast([asked(pool)], 1, budget)
        if not interrupted:
            heads = (narrow.headed(option, budget, left[0]) for option in found)
            others, interrupted = abreast(chain(singles, heads, trained), n_at_once, budget)
            found = [*found, *others]
    return sorted(found, key=lambda option: option.stack is not None), interrupted


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
    yield from _as_option(name, network, history, pool, budget)


def _as_option(name: str, network: Network, history: History, pool: Pool, budget: Budget) -> Iterator[Option]:
    """A network as it was trained, unless an interrupt ended that.

    Raises
    ------
    KeyboardInterrupt
        If it did: its best epoch is there, but the user wants all of this to end.
    """
    if history.stop is Stop.INTERRUPTED:
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

    straight = [replace(layer, n_estimators=0, base="ridge") for layer in hidden]
    light = [replace(layer, base_lambda=LIGHT) for layer in straight]
    yield "linear network", with_hidden(light, WIDER)
    if additive:
        yield "additive network", with_hidden(replace(layer, base="additive") for layer in straight)
    else:
        yield "linear network, cross-validated penalty", with_hidden(straight)
