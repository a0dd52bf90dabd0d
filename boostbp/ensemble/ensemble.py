"""The model of a fit: one network, or the average of networks and single layers that the held-out rows choose."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from boostbp.backends.failures import attempted, first_of, in_words
from boostbp.ensemble.average import average_of
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.candidate_settings import first_layer, varied
from boostbp.ensemble.candidates import candidates_for
from boostbp.ensemble.looks import looks_of, looks_of_candidate
from boostbp.ensemble.many_rows import train_many
from boostbp.ensemble.problem import EnsembleSettings, Problem, back_propagate
from boostbp.ensemble.quality_levels import QualityLevel
from boostbp.ensemble.refits import refit_all, refit_single_layer
from boostbp.ensemble.safeguard import no_worse_than_constant, refuse_undefined
from boostbp.ensemble.schedule import FIRST_STAGE, EnsembleRun, train_all, train_network
from boostbp.ensemble.trained_candidate import distinct
from boostbp.ensemble.weighted_sum import weighted_sum
from boostbp.ensemble.weights import Score, member_weights
from boostbp.layers.layer_spec import OUTPUT
from boostbp.network.choice import CONSTANT, NETWORK
from boostbp.network.history import Epoch, History, Stop
from boostbp.network.monitor import Stage, StageSeconds
from boostbp.network.network import Network
from boostbp.runtime import interrupts
from boostbp.runtime.compiling import working_time
from boostbp.runtime.group import training_in, workers

LOSS_ROWS = 250  # rows for the training loss of an average without the network
SEEDS_APART = 1_000_003  # of members: pieces of a layer have seeds one after the other


def train(problem: Problem, settings: EnsembleSettings, others: Iterable[Problem] = ()) -> tuple[Network, History]:
    """Train the model of a fit.

    With ``settings.deep == "auto"`` and an evaluation set it is a sum of single layers and networks: those of
    `CANDIDATES` that the quality allows, with weights by the first evaluation set. If its rows are training rows that
    were held out, the leaves of what has weight are fitted again on all rows; so are those of a single layer that was
    asked for.

    With ``settings.deep`` False, it is such a sum of single layers, and no network is trained; with True, it is the
    network that was asked for, with output layers boosted to their end on its units and on the features. Without an
    evaluation set nothing can be weighed: the model is the first layer, with a fixed number of rounds, or with True the
    network as it is trained.

    With other problems, the same rows with others held out, such sums are trained on as many as the quality asks for,
    and the model is their mean.

    Sums are rounded, for small files (`Network.rounded`); one network or layer is what its training made of it, and so
    is what must rise or fall in a feature, as leaves that are rounded would not keep to it.

    An end of `max_time` or an interrupt ends all of it: the model is made of what is there. What does best alone for
    its seconds comes first.

    A candidate that fails for numerical reasons is left out, and the history says so.

    Raises
    ------
    KeyboardInterrupt
        If it came before there was a model; otherwise it is in the history.
    FloatingPointError
        If the network that was asked for alone diverged in its first epoch.
    ValueError
        If a part of the user's own is broken: see `boostbp.ensemble.safeguard`.
    Exception
        What the first candidate failed of, if all did.
    """
    judged, hidden = bool(problem.evaluation.sets), bool(problem.settings.units)
    if not judged and not (settings.trains_one_network or (settings.deep and not hidden)):
        problem = _fixed_layer_of(problem)
    if not judged or (settings.deep is True and problem.settings.output_target != "loss"):
        network, history = _train_alone(problem)
    elif settings.deep and not problem.settings.units:
        network, history = _train_single_layer(problem, settings)
    else:
        network, history = _train_mean(problem, settings, others)
    refuse_undefined(network, problem)
    return network, history


def _fixed_layer_of(problem: Problem) -> Problem:
    """Return the problem of the first layer alone, with as many rounds as the user set, or by default."""
    layer = varied(problem, first_layer(problem), n_estimators=OUTPUT.n_estimators)
    settings = replace(problem.settings, layers=(layer,), units=(), epochs=0, output_target="loss")
    return replace(problem, settings=replace(settings, structure_samples=None), backend=problem.growing_backend)


def _train_alone(problem: Problem) -> tuple[Network, History]:
    """Train a network or a layer alone; what is worse than the constant is shrunk to it, and the history says so."""
    network, history = back_propagate(problem)
    model = no_worse_than_constant(network, history, problem)
    choice = history.choice
    if history.by_rounds:
        led_by_constant = choice is not None and choice.lead == CONSTANT
        history.looks = looks_of(Network((), problem.baseline) if led_by_constant else network, problem)
    if choice is not None and not problem.settings.units:
        history.epochs = _history_without_network(model, problem, choice.metrics).epochs
    return model, history


def _train_single_layer(problem: Problem, settings: EnsembleSettings) -> tuple[Network, History]:
    """Train a single layer that was asked for, and again on all rows unless time is up."""
    budget = Budget(problem.settings.max_time)
    layer, history = _train_alone(problem)
    cut_short = history.choice is not None or history.stop in (Stop.INTERRUPTED, Stop.NOT_FINITE) or budget.over()
    if settings.level.refit and problem.learns_held_out and not cut_short:
        layer = refit_single_layer(layer, history, problem)
    return layer, history


def _train_mean(problem: Problem, settings: EnsembleSettings, others: Iterable[Problem]) -> tuple[Network, History]:
    """Train averages of candidates on some problems; their mean, with the history of the first one."""
    begun = working_time()
    level = settings.level
    first = _train_average(problem, settings, level)
    model, history = first.model, first.history
    members, wanted = [first], level.effort(networks=first.networks).members
    if not first.networks:
        level = replace(level, networks=None)
    for number, other in enumerate(islice(others, wanted - 1), start=1):
        seconds = working_time() - begun
        left = None if problem.settings.max_time is None else workers().agree(problem.settings.max_time - seconds)
        if history.interrupt is not None:
            break
        if left is not None and workers().agree(left < seconds / number):  # what it takes
            assert history.choice is not None
            history.choice = replace(history.choice, cut_by_time=True)
            break
        own = replace(other.settings, max_time=left, seed=(other.settings.seed + number * SEEDS_APART) % 2**31)
        try:
            with training_in(other.rows.group):
                member = attempted(partial(_train_average, replace(other, settings=own), settings, level))
        except KeyboardInterrupt as interrupt:
            history.interrupted(interrupt)
            break
        assert history.choice is not None
        if isinstance(member, Exception):
            failure = in_words({f"member {number + 1}": member})
            history.choice = replace(history.choice, failed=history.choice.failed + failure)
            continue
        assert member.history.choice is not None
        failures = history.choice.failed + member.history.choice.failed
        history.choice = replace(history.choice, failed=tuple(dict.fromkeys(failures)))
        if member.history.interrupt is not None:
            history.interrupted(member.history.interrupt)
            break
        members.append(member)
    if len(members) == 1:
        return model, history
    assert history.choice is not None
    history.choice = replace(history.choice, members=len(members))
    weights = member_weights([member.score for member in members], problem.scale_of)
    return _of_few_bits(weighted_sum([member.model for member in members], weights), problem), history


class _Member(NamedTuple):
    """An average of candidates, its history, its loss on its held-out rows, and whether networks are among it."""

    model: Network
    history: History
    score: Score
    networks: bool


def _train_average(problem: Problem, settings: EnsembleSettings, level: QualityLevel) -> _Member:
    """Train candidates, and average what is there if an interrupt comes."""
    budget, clock = Budget(problem.settings.max_time), StageSeconds(FIRST_STAGE, problem.report)
    problem = replace(problem, report=clock)
    run = EnsembleRun(candidates_for(problem, settings, level), problem, level, budget, settings.network_wanted)
    made: tuple[Network, History, Score] | None = None
    interrupt: KeyboardInterrupt | None = None
    try:
        with interrupts.deferred():  # and raised when the model is there
            if settings.deep is True:
                interrupt = train_network(run)
            else:
                interrupt = train_many(run) if problem.has_many_rows else train_all(run)
            if run.trained:
                made = _averaged(run, interrupt, alone=settings.deep is True)
                _note_seconds(made[1], clock)
    except KeyboardInterrupt as later_one:
        interrupt = interrupt or later_one
    if made is None:
        raise interrupt or first_of(run.failed)
    if interrupt is not None:
        made[1].interrupted(interrupt)
    return _Member(*made, any(one.history is not None for one in run.trained))


def _note_seconds(history: History, clock: StageSeconds) -> None:
    """Write down what each stage took; all of it is that of epoch 0, if that describes the whole model."""
    clock.end()
    assert history.choice is not None
    history.choice = replace(history.choice, seconds=clock.seconds)
    if history.network is None:
        history.epochs[0] = replace(history[0], seconds=math.fsum(clock.seconds.values()))


def _of_few_bits(model: Network, problem: Problem) -> Network:
    """Return the model rounded, unless it must rise or fall in a feature."""
    return model if problem.settings.layers[-1].growth.monotone else model.rounded()


def _averaged(run: EnsembleRun, interrupt: KeyboardInterrupt | None, *, alone: bool) -> tuple[Network, History, Score]:
    """Return the average of what was trained, refitted, the history of its network, and the held-out loss before.

    `alone` says whether the network was asked for alone: it then is the model's, whatever its weight.
    """
    problem, budget = run.problem, run.budget
    average = average_of(distinct(run.trained), problem, shows_network=alone)
    networks = {one.name: one.history for one in run.trained}
    score = Score.of(np.broadcast_to(average.held_out, problem.target.shape), problem)
    model = average.network(average.models)
    to_refit = run.level.refit and problem.learns_held_out and interrupt is None and not problem.has_many_rows
    to_refit = to_refit and bool(average.parts)
    if not to_refit:
        model = _of_few_bits(model, problem)
    scores = problem.metrics_of(model)
    history = networks.get(average.choice.network or (NETWORK if alone else ""))
    history = history or _history_without_network(model, problem, scores)
    history.choice = average.choice
    if history.by_rounds:
        lead = next((one for one in run.trained if one.name == average.choice.lead), None)
        history.looks = looks_of_candidate(lead, problem)
    if to_refit:
        problem.report(Stage("all rows", 1.0, score.mean, len(average.parts)))
        refitted, failed_refits, interrupt = refit_all(average.parts, problem, budget)
        run.failed.update(failed_refits)
        if interrupt is not None:
            history.interrupted(interrupt)
        history.refitted = any(new is not old for new, old in zip(refitted, average.models, strict=True))
        model = _of_few_bits(average.network(refitted), problem)
    history.choice = replace(average.choice, cut_by_time=budget.spent, metrics=scores, failed=in_words(run.failed))
    return model, history, score


def _history_without_network(model: Network, problem: Problem, scores: dict[str, float]) -> History:
    """Return the history of an average without the network: an epoch 0, which describes the model before its refit.

    The training loss is that of some rows: to predict all would take a tenth of some fits.
    """
    rows = problem.rows.take(workers().sampled_rows(len(problem.rows), LOSS_ROWS))
    raw = model.predict(rows.X, n_jobs=problem.settings.n_threads) + rows.offset
    loss, total = workers().sum(rows.weight @ problem.loss.value(raw, rows.y), rows.weight.sum())
    epoch = Epoch(0, float(loss / total), scores, 0.0, (), (), (), (), ())
    metric = problem.evaluation.metric
    name = "" if metric is None else metric.name
    return History([epoch], stop=Stop.NO_NETWORK, metric=name)
