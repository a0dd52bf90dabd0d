"""Selection: what depth adds to a single layer on held-out rows, and the model that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Table
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.candidates import as_option, candidates, shared
from boostbp.ensemble.merging import weighted_sum
from boostbp.ensemble.options import (
    HALF_WEIGHT_T,
    WEAK_SIGNAL_T,
    Option,
    ensemble_weights,
    half_weight_t_of,
    shrink_weight,
    smooth_labels,
    t_statistic,
)
from boostbp.ensemble.parallel import lazily, run_parallel
from boostbp.ensemble.pool import Pool
from boostbp.ensemble.refit import Refit, joined
from boostbp.layers.rounds import rounds_of
from boostbp.layers.row_sampling import on_sample
from boostbp.losses import Loss
from boostbp.metrics import Metric
from boostbp.network import backprop
from boostbp.network.history import NETWORK, Candidate, Choice, History, Stop
from boostbp.network.monitor import Callback, EvalSet
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.network.state import State
from boostbp.network.trainer import baseline_of
from boostbp.trees import interrupts

__all__ = ["train"]

Floats = NDArray[np.float64]
FOR_NETWORK = 0.4  # share of `max_time` by which the network is done
LEAST_GAIN_T = 0.5  # standard errors by which depth must lower the held-out loss to stay in the model
LEAST_SIGNAL_T = 0.5  # standard errors: where held-out rows tell nothing, a little is left
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
    `LEAST_GAIN_T` standard errors, networks are left out. Where classes are learnt, the model lies between the
    two sums: the same rows chose the networks' epochs, and few rows that are far off decide on their log-loss. So it
    does where held-out numbers hardly follow the model (`WEAK_SIGNAL_T`), and it then keeps to the constant in part.
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
    propagate = partial(alone, table, y, weight=weight, eval_sets=eval_sets, metric=metric, outcome=outcome)
    if settings.deep != "auto" or not eval_sets:
        return propagate(settings=settings, callbacks=callbacks, resume=resume)
    held = eval_sets[0]
    target = to_target(held.y)
    if not settings.units:
        layer, history = propagate(settings=settings, callbacks=callbacks, resume=resume)
        cut_short = history.stop in (Stop.INTERRUPTED, Stop.NOT_FINITE) or budget.over()
        if settings.refit and held.from_training and not cut_short:
            every = partial(joined, table, y, weight, held, target)
            layer = _single_on_all_rows(layer, history, every, alone, settings)
        return layer, history
    unsure = smooth_labels(target, held.weight, loss)
    baseline = baseline_of(loss, y, weight, settings)
    pool = Pool(
        table, y, weight, on_sample(backend, settings.structure_samples), loss, settings, baseline, held, unsure
    )
    trained: list[tuple[Network, History]] = []

    def asked(pool: Pool) -> Iterator[Option]:
        """The network that was asked for."""
        lasting = replace(pool.settings, max_time=budget.share(FOR_NETWORK))
        network, history = propagate(settings=lasting, callbacks=[*callbacks, lambda _: budget.ended], resume=resume)
        trained.append((network, history))
        yield from as_option(NETWORK, network, history, pool, budget)

    def scores(model: Network) -> dict[str, float]:
        """Metric of a model on each evaluation set."""
        raws = ((part, model.predict(part.X, n_jobs=settings.n_threads)) for part in eval_sets)
        seen = outcome or loss.link
        return {part.name: metric(seen(raw), part.y, part.weight) for part, raw in raws} if metric else {}

    model, interrupt = None, None
    try:
        with interrupts.deferred():  # and raised when the model is there
            options, interrupt = candidates(pool, asked, propagate, budget)
            if trained:
                model = _weighed_model(options, interrupt, pool, target, *trained[0], budget, scores)
    except KeyboardInterrupt as later_one:
        interrupt = interrupt or later_one
    if interrupt is not None and not trained:
        raise interrupt
    network, history = trained[0]
    if interrupt is not None:
        history.interrupted(interrupt)
    return network if model is None else model, history


def _single_on_all_rows(
    layer: Network,
    history: History,
    rows: Callable[[], tuple[Table, Floats, Floats]],
    train: Callable[..., tuple[Network, History]],
    settings: Settings,
) -> Network:
    """A single layer grown again by as many rounds; as it is if that fails, or is interrupted."""
    last = replace(settings.layers[-1], n_estimators=rounds_of(layer.layers[-1].forest))
    try:
        with interrupts.deferred():
            table, y, weight = rows()
            settings = replace(settings, layers=(last,), epochs=0)
            layer, again = train(table, y, weight=weight, settings=settings)
            history.refitted = True
            if again.interrupt is not None:
                history.interrupted(again.interrupt)
    except KeyboardInterrupt as interrupt:
        history.interrupted(interrupt)
    except FloatingPointError:
        pass
    return layer


def _weighed_model(
    options: list[Option],
    interrupt: KeyboardInterrupt | None,
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
    told = tuple(Candidate(one.name, pool.score(one.held), w, one.stack) for one, w in shares)
    rest = max(1.0 - float(weights.sum()), 0.0)
    if rest > ROUNDING:
        constant = np.broadcast_to(pool.baseline, target.shape)
        told = (Candidate("constant", pool.score(constant), rest, None), *told)
    used = [option for option, w in shares if w > 0]
    chosen, said = [option.network for option in used], [w for _, w in shares if w > 0]
    # hidden layers of the network that was asked for are what `transform` gives
    shown = [] if any(option.stack for option in used) else [network]

    def summed(networks: Sequence[Network]) -> Network:
        model = weighted_sum([*networks, *shown], [*said, *(0.0 for _ in shown)])
        return replace(model, baseline=model.baseline + rest * pool.baseline) if rest > ROUNDING else model

    model = summed(chosen)
    scored = scores(model)
    if settings.refit and held.from_training and interrupt is None:
        chosen, interrupt = _on_all_rows(used, pool, target, budget)
        if interrupt is not None:
            history.interrupted(interrupt)
    history.refitted = any(new is not option.network for new, option in zip(chosen, used, strict=True))
    history.choice = Choice(told, gain, error, budget.spent, scored)
    return summed(chosen) if history.refitted else model


def _weights(options: Sequence[Option], pool: Pool, target: Floats) -> tuple[Floats, float, float]:
    """Weights of the options, the rest that is the constant's, what networks add, and its standard error.

    Of numbers that hardly follow the model on the held-out rows, few and noisy, chance chooses most: there networks are
    doubted as where classes are learnt, and so is all that is not the constant.
    """
    weight = pool.held.weight
    weigh = partial(ensemble_weights, options, pool.row_losses, weight, least_gain=LEAST_GAIN_T)
    weights, gain, error = weigh(half_at=half_weight_t_of(pool.loss))
    raw = sum((w * option.held for w, option in zip(weights, options, strict=True)), np.zeros(1))
    t = t_statistic(raw, target, pool.baseline, weight, pool.loss)
    if t < WEAK_SIGNAL_T:
        weights, gain, error = weigh(half_at=HALF_WEIGHT_T)
        weights = shrink_weight(max(t, LEAST_SIGNAL_T), HALF_WEIGHT_T) * weights
    return weights, gain, error


def _on_all_rows(
    used: Sequence[Option], pool: Pool, target: Floats, budget: Budget
) -> tuple[list[Network], KeyboardInterrupt | None]:
    """The networks of the options, each refitted unless an interrupt came before; and this interrupt."""
    networks = {option.name: option.network for option in used}
    pool, n_at_once = shared(pool, len(used))

    def pieces() -> Iterator[Iterator[tuple[str, Network]]]:
        refit = Refit.of(pool, target, budget.over)
        for option in used:
            yield lazily(partial(_refitted, refit, option))

    found, interrupt = run_parallel(pieces(), n_at_once, budget)
    return list((networks | dict(found)).values()), interrupt


def _refitted(refit: Refit, option: Option) -> tuple[str, Network]:
    return option.name, refit(option)
