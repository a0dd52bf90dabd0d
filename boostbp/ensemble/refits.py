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
    chosen: Sequence[TrainedCandidate], problem: Problem, budget: Budget, members: int = 1
) -> tuple[list[list[Network]], KeyboardInterrupt | None]:
    """Return the models of each of some candidates, refitted unless an interrupt came before; and this interrupt.

    Parameters
    ----------
    members : int
        How many of each: the first one on all rows, the others on samples of them with other seeds; those that there is
        no time for are left out.
    """
    problem, n_at_once = shared(problem, len(chosen) * members)
    models: dict[str, Network] = {}
    names = [[f"{one.name}, member {number}" for number in range(members)] for one in chosen]
    try:
        all_rows = problem.on_all_rows()
        tasks = [
            Task(names[k][number], partial(_refitted, one, all_rows if number == 0 else sample, budget, number == 0))
            for number in range(members)
            for sample in [all_rows.resampled(number) if number else all_rows]
            for k, one in enumerate(chosen)
            if number == 0 or one.plan is not None
        ]
        interrupt = run_tasks(tasks, n_at_once, budget, models)
    except KeyboardInterrupt as while_joining:
        interrupt = while_joining
    found = [[models[name] for name in of_one if name in models] for of_one in names]
    return [models_of_one or [one.model] for models_of_one, one in zip(found, chosen, strict=True)], interrupt


def _refitted(one: TrainedCandidate, rows: Problem, budget: Budget, keep: bool, needed: object) -> Network | None:
    """Return the model with its output layer grown on other rows.

    As it is, or none, where that cannot be or is not over in time.
    """
    as_it_is = one.model if keep else None
    if one.plan is None:
        return as_it_is
    below = replace(one.model, layers=one.model.layers[:-1])
    table = table_above(below.layers, rows.table, skip=below.skip, n_jobs=rows.settings.n_threads)
    try:
        layer = boost_again(replace(rows, table=table), one.plan, over=budget.over)
    except FloatingPointError:
        return as_it_is
    return as_it_is if layer is None else replace(one.model, layers=(*below.layers, layer))


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
