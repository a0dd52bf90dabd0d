"""Training of a fit's model: one network, or the average of networks and single layers that held-out rows choose."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from boostbp.backends.failures import attempted, first_of, in_words
from boostbp.ensemble.average import average_of, member_weights
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.driver import Driver
from boostbp.ensemble.few_features import on_all_features
from boostbp.ensemble.many_rows import train_first_of_many, train_many
from boostbp.ensemble.output_layers import distinct
from boostbp.ensemble.plan import OF_ONE_MODEL, Plan, Schedule
from boostbp.ensemble.problem import HeldOutScore, Problem
from boostbp.ensemble.refits import refit_all, refit_single_layer
from boostbp.ensemble.safeguard import no_worse_than_constant, refuse_undefined, refuse_unlearned, training_loss
from boostbp.ensemble.schedule import (
    train_alone,
    train_first_layers,
    train_fixed_layer,
    train_one_network,
    train_stages,
)
from boostbp.ensemble.weighted_sum import weighted_sum
from boostbp.inputs.rows import Rows
from boostbp.losses import traits_of
from boostbp.network.choice import CONSTANT, NETWORK
from boostbp.network.history import Epoch, History, Look, Stop
from boostbp.network.layers import Layer
from boostbp.network.layers.layer import rounds_of, stage_forests, stages
from boostbp.network.monitor import Stage
from boostbp.network.network import Network
from boostbp.runtime import clock
from boostbp.runtime.group import training_in

SEED_STEP = 1_000_003  # between the seeds of members; large, as the pieces of a layer have successive seeds


def train_model(problem: Problem, plan: Plan, others: Sequence[Callable[[], Problem]] = ()) -> tuple[Network, History]:
    """Train the model of a fit, as its plan says.

    `others` return problems of the same table with other rows held out. The quality says for how many of them such a
    sum is trained, too; the model is the mean of the sums.

    Sums are rounded, which makes files small (`Network.rounded`). A single network or layer stays as it was trained,
    and so does a sum with monotone constraints, which rounded leaves might violate.

    When `max_time` is over or Ctrl-C comes, the model is made of the candidates so far. Those that gain most for
    their seconds are trained first. A candidate that fails for numerical reasons is left out, and the history says so.

    Raises KeyboardInterrupt if it came before there was a model (otherwise `clock` has it), FloatingPointError if
    the user's network was trained alone and diverged in its first epoch, ValueError if the user's own loss, backend,
    basis or step is broken (`boostbp.ensemble.safeguard`), and the failure of the first candidate if all failed.
    """
    driver, fit = Driver.of(problem, plan), clock.of_fit()
    with fit.ending_early():
        SCHEDULES[plan.schedule](driver)
    first = fit.completed(partial(_member_of, driver, problem.rows.X.shape[1]))
    is_sum = plan.schedule not in OF_ONE_MODEL
    network, history = _mean_with_others(first, problem, plan, others) if is_sum else (first.model, first.history)
    if plan.schedule is not Schedule.HIDDEN_UNITS:
        refuse_undefined(network, problem)
    history.plan = plan.in_words(problem.settings.max_time)
    return network, history


def _mean_with_others(
    first: _Member, problem: Problem, plan: Plan, others: Sequence[Callable[[], Problem]]
) -> tuple[Network, History]:
    """Train an average of candidates on each other problem; return the mean of all, with the history of the first."""
    budget, fit = Budget(problem.settings.max_time), clock.of_fit()
    history, members = first.history, [first]
    n_members = 1 if fit.interrupt is not None else plan.level.effort(networks=first.networks).members
    assert history.choice is not None
    failed, cut_by_time = list(history.choice.failed), history.choice.cut_by_time
    member: _Member | Exception | None = None
    for number, draw in enumerate(others[: n_members - 1], start=1):
        if budget.over(budget.elapsed / number):  # a member has taken so long so far
            cut_by_time = True
            break
        with fit.ending_early():
            member = attempted(partial(_train_other, draw, plan, number, networks=first.networks))
        if fit.interrupt is not None or member is None:
            break
        if isinstance(member, Exception):
            failed += in_words({f"member {number + 1}": member})
            continue
        assert member.history.choice is not None
        failed += member.history.choice.failed
        members.append(member)
    failures = tuple(dict.fromkeys(failed))
    history.choice = replace(history.choice, failed=failures, cut_by_time=cut_by_time, members=len(members))
    if len(members) == 1:
        return first.model, history
    weights = member_weights([member.score for member in members if member.score], problem.scale_of)
    return _rounded(weighted_sum([member.model for member in members], weights), problem), history


def _train_other(draw: Callable[[], Problem], plan: Plan, number: int, *, networks: bool) -> _Member:
    """Train an average on other rows, which ``draw()`` returns, with a seed of its own."""
    problem = draw()
    seed = (problem.settings.seed + number * SEED_STEP) % 2**31
    problem = replace(problem, settings=replace(problem.settings, seed=seed))
    with training_in(problem.rows.group):
        driver = Driver.of(problem, plan.on(problem, networks=networks))
        SCHEDULES[driver.plan.schedule](driver)
        return _member_of(driver, problem.rows.X.shape[1])


class _Member(NamedTuple):
    """A model, or a member of the mean of several."""

    model: Network
    history: History
    networks: bool = False  # whether networks were trained for an average
    score: HeldOutScore | None = None  # of an average, on its held-out rows


SCHEDULES: Mapping[Schedule, Callable[[Driver], None]] = {
    Schedule.HIDDEN_UNITS: train_alone,
    Schedule.ALONE: train_alone,
    Schedule.FIXED_LAYER: train_fixed_layer,
    Schedule.ONE_NETWORK: train_one_network,
    Schedule.FIRST_LAYERS: train_first_layers,
    Schedule.STAGES: train_stages,
    Schedule.FIRST_OF_MANY: train_first_of_many,
    Schedule.SAMPLE: train_many,
}


def _member_of(driver: Driver, n_features: int) -> _Member:
    """Return the model of what was trained on a table of `n_features` features; raise an error if nothing was."""
    if not (driver.layers or driver.networks or driver.others):
        raise clock.of_fit().interrupt or first_of(driver.failed)
    if driver.plan.schedule in OF_ONE_MODEL:
        return _alone(driver)
    member = _averaged(driver)
    history, choice = member.history, member.history.choice
    assert driver.seconds is not None
    assert choice is not None
    driver.seconds.end()
    history.choice = choice = replace(choice, seconds=driver.seconds.seconds)
    if history.network is None:  # epoch 0 describes the whole model
        history.epochs[0] = replace(history[0], seconds=math.fsum(choice.seconds.values()))
    if driver.columns is None:
        return member
    left_out = tuple(np.setdiff1d(np.arange(n_features), driver.columns).tolist())
    history.choice = replace(choice, left_out=left_out)
    return member._replace(model=on_all_features(member.model, driver.columns, n_features))


def _alone(driver: Driver) -> _Member:
    """Return the network or layer that was trained alone, shrunk if it is worse than the constant, and refitted."""
    [training], problem = driver.networks.values(), driver.problem
    network, history = training.network, training.history
    if driver.plan.schedule is Schedule.HIDDEN_UNITS:  # its hidden units do not shrink
        refuse_unlearned([network], problem)
        return _Member(network, history)
    model = no_worse_than_constant(network, history, problem)
    choice = history.choice
    if problem.evaluation.sets and traits_of(problem.loss).task == "survival":
        history.held_out = model.predict(problem.held_out.X, n_jobs=problem.settings.n_threads)
    if history.by_rounds:
        led_by_constant = choice is not None and choice.lead == CONSTANT
        history.looks = _looks_of(Network((), problem.baseline) if led_by_constant else network, problem)
    if choice is not None and not problem.settings.units:
        history.epochs = _history_without_network(model, problem, choice.metrics).epochs
    stopped = choice is not None or history.stop in (Stop.INTERRUPTED, Stop.NOT_FINITE)
    if driver.plan.refit and not (stopped or driver.budget.over()):
        model = refit_single_layer(model, history, problem, driver.budget)
    return _Member(model, history)


def _rounded(model: Network, problem: Problem) -> Network:
    """Return the model rounded, unless it has monotone constraints."""
    return model if problem.settings.layers[-1].growth.monotone else model.rounded()


def _averaged(driver: Driver) -> _Member:
    """Return the average of the trained candidates, refitted if possible, its history, and its score before the refit.

    If the plan is that of one network, this network stays in the model even without weight.
    """
    problem, trained, shows_network = driver.problem, driver.trained(), driver.plan.schedule is Schedule.ONE_NETWORK
    average = average_of(distinct(trained), problem, shows_network=shows_network)
    held_out = np.broadcast_to(average.held_out, problem.constant_raw.shape)
    score = problem.mean_of(problem.row_losses(held_out))
    models = [part.model for part in average.parts]
    model = average.network(models)
    refits = driver.plan.refit and clock.of_fit().interrupt is None and bool(average.parts)
    if not refits:
        model = _rounded(model, problem)
    metrics = problem.metrics_of(model)
    by_name = {candidate.name: candidate for candidate in trained}
    network = by_name.get(average.choice.network or (NETWORK if shows_network else ""))
    history = (network and network.history) or _history_without_network(model, problem, metrics)
    history.choice, history.held_out = average.choice, held_out
    if history.by_rounds:
        lead = by_name.get(average.choice.lead or "")  # None: the constant
        pieces = () if lead is None or lead.plan is None else lead.plan.pieces
        history.looks = _looks_of(Network((), problem.baseline) if lead is None else lead.model, problem, pieces)
    if refits:
        problem.report(Stage("all rows", 1.0, score.mean, len(average.parts)))
        refitted, failed_refits = refit_all(average.parts, problem, driver.budget)
        driver.failed.update(failed_refits)
        history.refitted = any(new is not old for new, old in zip(refitted, models, strict=True))
        model = _rounded(average.network(refitted), problem)
    failed, cut_by_time = in_words(driver.failed), driver.budget.spent
    history.choice = replace(average.choice, cut_by_time=cut_by_time, metrics=metrics, failed=failed)
    return _Member(model, history, any(part.history is not None for part in trained), score)


def _history_without_network(model: Network, problem: Problem, metrics: dict[str, float]) -> History:
    """Return the history of an average without a network: an epoch 0 that describes the model before its refit."""
    metric = problem.evaluation.metric
    epoch = Epoch(0, training_loss(model, problem), metrics, 0.0, (), (), (), (), ())
    return History([epoch], stop=Stop.NO_NETWORK, metric="" if metric is None else metric.name)


def _looks_of(model: Network, problem: Problem, pieces: Sequence[Layer] = ()) -> list[Look]:
    """Return the scores of a network after some rounds of its output layer, from 0 on.

    The scores are those after each of the `pieces` of the output layer or, without pieces, after the rounds of
    `stages`. A network without layers is a constant.
    """
    pieces = [piece for piece in pieces if rounds_of(piece.forest)]  # a base alone has no rounds
    if pieces or not model.layers:
        numbers = np.cumsum([0, *(rounds_of(piece.forest) for piece in pieces)]).tolist()
        forests = [None, *(piece.forest for piece in pieces)]
    else:
        numbers = sorted({0, *stages(rounds_of(model.layers[-1].forest))})
        forests = [*stage_forests(model.layers[-1].forest, numbers)]
    n_threads, evaluation = problem.settings.n_threads, problem.evaluation

    def scores_on(rows: Rows) -> list[float]:
        h, output = model.output_input(rows.X, n_jobs=n_threads), np.zeros((len(rows), len(model.baseline)))
        scores: list[float] = []
        for forest in forests:
            output = output if forest is None else output + forest.predict(h, n_threads)
            scores.append(evaluation.score(output + model.baseline, rows))
        return scores

    scores = {part.name: scores_on(part.rows) for part in evaluation.sets if evaluation.metric is not None}
    return [Look(n, {name: values[i] for name, values in scores.items()}) for i, n in enumerate(numbers)]
