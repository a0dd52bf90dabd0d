"""Refits: the leaves of a chosen model's output layers, fitted again on all rows, the held-out ones included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from boostbp.backends.failures import attempted
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.output_layers import boost_again
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.schedule import split_threads
from boostbp.ensemble.trained_candidate import OutputLayerPlan, TrainedCandidate
from boostbp.layers.rounds import rounds_of
from boostbp.network.history import History
from boostbp.network.network import Network
from boostbp.runtime.group import training_in
from boostbp.runtime.threads import run_tasks


def refit_all(
    chosen: Sequence[TrainedCandidate], problem: Problem, budget: Budget
) -> tuple[list[Network], dict[str, Exception], KeyboardInterrupt | None]:
    """Return the refitted models of candidates, the failures, and the interrupt, if one came.

    A model stays as it was if its refit fails, or would begin after an interrupt.
    """
    problem, n_at_once = split_threads(problem, len(chosen))
    models: dict[str, Network | Exception] = {}
    try:
        all_rows = problem.on_all_rows()
        tasks = {one.name: partial(attempted, partial(_refitted, one, all_rows, budget)) for one in chosen}
        with training_in(all_rows.rows.group):
            interrupt = run_tasks(tasks, n_at_once, models, on_stop=budget.end)
    except KeyboardInterrupt as during_concat:  # of the held-out rows to the others
        interrupt = during_concat
    refitted, failed = [], {}
    for one in chosen:
        model = models.get(one.name, one.model)
        if isinstance(model, Exception):
            failed[f"{one.name}, all rows"], model = model, one.model
        refitted.append(model)
    return refitted, failed, interrupt


def _refitted(one: TrainedCandidate, all_rows: Problem, budget: Budget) -> Network:
    """Return the model with its output layer fitted to all rows; unchanged without a plan or without time."""
    if one.plan is None:
        return one.model
    below = replace(one.model, layers=one.model.layers[:-1])
    layer = boost_again(all_rows.above(below), one.plan, over=budget.over)
    return one.model if layer is None else replace(one.model, layers=(*below.layers, layer))


def refit_single_layer(model: Network, history: History, problem: Problem) -> Network:
    """Return the user's single layer fitted to all rows; unchanged if the refit fails or is interrupted."""
    layer = model.layers[-1]
    settings = replace(problem.settings.layers[-1], n_estimators=rounds_of(layer.forest))
    plan = OutputLayerPlan(settings, (layer,))
    candidate = TrainedCandidate("single layer", None, model, problem.constant_raw, plan)
    [refitted], _, interrupt = refit_all([candidate], problem, Budget(None))
    history.refitted = refitted is not model
    if interrupt is not None:
        history.interrupted(interrupt)
    return refitted
