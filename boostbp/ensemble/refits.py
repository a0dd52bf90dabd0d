"""Refits: output layers of a chosen model grown again, by as many rounds, on all rows; those that chose it included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from boostbp.ensemble.budget import Budget
from boostbp.ensemble.output_layers import boost_again
from boostbp.ensemble.parallel import Task, run_tasks
from boostbp.ensemble.problem import Problem, back_propagate
from boostbp.ensemble.schedule import shared
from boostbp.ensemble.trained_candidate import TrainedCandidate
from boostbp.layers.rounds import rounds_of
from boostbp.network.history import History
from boostbp.network.network import Network, table_above
from boostbp.trees import interrupts

__all__ = ["refit_all", "refit_single_layer"]


def refit_all(
    chosen: Sequence[TrainedCandidate], problem: Problem, budget: Budget
) -> tuple[list[Network], KeyboardInterrupt | None]:
    """Return the models of some candidates, each refitted unless an interrupt came before; and this interrupt."""
    problem, n_at_once = shared(problem, len(chosen))
    models: dict[str, Network] = {}
    try:
        all_rows = problem.on_all_rows()
        tasks = [Task(one.name, partial(_refitted, one, all_rows, budget)) for one in chosen]
        interrupt = run_tasks(tasks, n_at_once, budget, models)
    except KeyboardInterrupt as while_joining:
        interrupt = while_joining
    return [models.get(one.name, one.model) for one in chosen], interrupt


def _refitted(one: TrainedCandidate, all_rows: Problem, budget: Budget, needed: object) -> Network:
    """Return the model with its output layer grown on all rows; as it is if that cannot be, or not in time."""
    if one.plan is None:
        return one.model
    below = replace(one.model, layers=one.model.layers[:-1])
    table = table_above(below.layers, all_rows.table, skip=below.skip, n_jobs=all_rows.settings.n_threads)
    try:
        layer = boost_again(replace(all_rows, table=table), one.plan, over=budget.over)
    except FloatingPointError:
        return one.model
    return one.model if layer is None else replace(one.model, layers=(*below.layers, layer))


def refit_single_layer(model: Network, history: History, problem: Problem) -> Network:
    """Return a single layer that was asked for, grown on all rows; as it is if that fails, or is interrupted."""
    settings = problem.settings
    last = replace(settings.layers[-1], n_estimators=rounds_of(model.layers[-1].forest))
    settings = replace(settings, layers=(last,), epochs=0)
    try:
        with interrupts.deferred():
            all_rows = replace(problem.on_all_rows(), settings=settings, callbacks=(), resume=None)
            model, again = back_propagate(replace(all_rows, eval_sets=(), metric=None))
            history.refitted = True
            if again.interrupt is not None:
                history.interrupted(again.interrupt)
    except KeyboardInterrupt as interrupt:
        history.interrupted(interrupt)
    except FloatingPointError:
        pass
    return model
