"""Refits: the leaves of the chosen output layers are fitted again on all rows, including the held-out ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from boostbp.backends.failures import attempted
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.output_layers import Boosted, OutputLayerPlan, TrainedCandidate, sum_of_pieces
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.safeguard import LOSS_ROUNDING
from boostbp.network.history import History
from boostbp.network.layers import Layer
from boostbp.network.layers.layer import rounds_of
from boostbp.network.network import Network
from boostbp.network.trainer import kept_structures
from boostbp.runtime import clock
from boostbp.runtime.group import training_in, workers
from boostbp.runtime.threads import run_tasks


def refit_all(
    chosen: Sequence[TrainedCandidate], problem: Problem, budget: Budget
) -> tuple[list[Network], dict[str, Exception]]:
    """Return the refitted models of candidates, and the failures.

    A model stays as it is if its refit fails, or if Ctrl-C came before the refit.
    """
    problem, n_at_once = problem.split_threads(len(chosen))
    models: dict[str, Network | Exception] = {}
    with clock.of_fit().ending_early():
        all_rows = problem.on_all_rows()
        tasks = [partial(_refit, candidate, all_rows, budget, models) for candidate in chosen]
        with training_in(all_rows.rows.group):
            run_tasks(tasks, n_at_once)
    refitted, failed = [], {}
    for candidate in chosen:
        model = models.get(candidate.name, candidate.model)
        if isinstance(model, Exception):
            failed[f"{candidate.name}, all rows"], model = model, candidate.model
        refitted.append(model)
    return refitted, failed


def _refit(
    candidate: TrainedCandidate, all_rows: Problem, budget: Budget, models: dict[str, Network | Exception]
) -> None:
    models[candidate.name] = attempted(partial(_refitted, candidate, all_rows, budget))


def _refitted(candidate: TrainedCandidate, all_rows: Problem, budget: Budget) -> Network:
    """Return the model with its output layer fitted to all rows; unchanged without a plan or without time."""
    # What came before ended where only the expected seconds of the refit were left, give or take its last round.
    if candidate.plan is None or budget.over(0.8 * candidate.plan.seconds):
        return candidate.model
    below = replace(candidate.model, layers=candidate.model.layers[:-1])
    layer = boost_again(all_rows.above(below), candidate.plan, over=budget.over)
    return candidate.model if layer is None else replace(candidate.model, layers=(*below.layers, layer))


def refit_single_layer(model: Network, history: History, problem: Problem, budget: Budget) -> Network:
    """Return the user's single layer fitted to all rows; unchanged if the refit fails or is interrupted."""
    layer = model.layers[-1]
    settings = replace(problem.settings.layers[-1], n_estimators=rounds_of(layer.forest))
    plan = OutputLayerPlan(settings, (layer,))
    candidate = TrainedCandidate("single layer", None, model, problem.constant_raw, plan)
    [refitted], _ = refit_all([candidate], problem, budget)
    history.refitted = refitted is not model
    return refitted


def boost_again(problem: Problem, plan: OutputLayerPlan, *, over: Callable[[], bool] = bool) -> Layer | None:
    """Return an output layer with the same number of rounds and tree structures, and leaves fitted on other rows.

    Growing trees is most of the work, and the leaves gain as much from the new rows if the structures stay. Leaves that
    the library fits come with its trees, so those trees are grown again. The table of the problem is the input of the
    layer for these rows. Returns None if ``over()``, which is asked before each piece, says that time is up, or if the
    new fit is worse than the constant, as may happen with a custom loss that is well-behaved on some rows only.
    """
    n_rounds = sum(rounds_of(piece.forest) for piece in plan.pieces)
    keeps_structures = plan.settings.leaves == "refit"
    settings, backend, boosted = plan.settings, None, None
    if keeps_structures:  # nothing is drawn or binned
        backend, growth = kept_structures(plan.pieces[0], settings.growth)
        settings = replace(settings, subsample=1.0, growth=growth)
    for piece in plan.pieces:
        if over():
            return None
        boosted = boosted or Boosted.begin(problem, settings, n_rounds, backend=backend)
        boosted = boosted.advance(structures_of=piece if keeps_structures else None)
    return None if boosted is None or not _has_learned(boosted) else sum_of_pieces(boosted.pieces)


def _has_learned(boosted: Boosted) -> bool:
    """Return whether the loss on the training rows is at most that of the raw output that boosting starts from."""
    problem, rows = boosted.problem, boosted.problem.rows
    with np.errstate(all="ignore"):
        loss_of_rows = problem.loss.prepared(rows.y, rows.weight)
        losses = [loss_of_rows.value(raw, rows.y) for raw in (boosted.fit, problem.start)]
    loss, constant = workers().sum(*(rows.weight @ np.where(np.isnan(values), np.inf, values) for values in losses))
    return bool(loss - constant <= LOSS_ROUNDING * abs(constant))
