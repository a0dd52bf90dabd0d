"""Training: what a fit trains, how, and on which rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from boostbp.backends import load_backend
from boostbp.ensemble import ensemble
from boostbp.ensemble.plan import Plan
from boostbp.ensemble.problem import Problem
from boostbp.estimators.arguments import Arguments, check_sum
from boostbp.estimators.data import FitData
from boostbp.estimators.held_out import Drawing
from boostbp.estimators.parameter_use import warn_before
from boostbp.estimators.request import Request
from boostbp.inputs.rows import Rows
from boostbp.inputs.schema import Schema
from boostbp.losses import Loss, traits_of
from boostbp.metrics import Metric, load_metric
from boostbp.model.hazards import with_curves, with_scale
from boostbp.model.model import Model, Targets
from boostbp.model.summary import Summary, summary_of
from boostbp.network.history import History
from boostbp.network.monitor import Callback, EvalSet, Evaluation, NetworkTask, Stage, State, raw_output
from boostbp.network.network import Network
from boostbp.runtime import checks, clock
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import training_in, workers


@dataclass(frozen=True, slots=True)
class Training:
    """A training that can continue."""

    request: Request
    schema: Schema
    targets: Targets
    with_offset: bool
    problem: Problem
    plan: Plan
    # each returns the problem of a further member of an average, with other held-out rows
    others: Sequence[Callable[[], Problem]] = ()
    earlier: Network | None = None  # network to which the trained one is added
    state: State | None = None  # state after the last epoch of the network
    calibrate: Callable[[Model], Model] | None = None  # on rows that are reserved for it

    def warn(self, callbacks: Sequence[Callback] | None) -> None:
        """Warn of parameters that have no effect."""
        warn_before(self.request, self.plan.way, self.problem.evaluation.sets, callbacks)

    def call(
        self, callbacks: Sequence[Callback], resume: State | None, report: Callable[[Stage], object]
    ) -> Callable[[], tuple[Network, History]]:
        """Return the call that trains, from the start or from an earlier state."""
        problem = replace(self.problem, callbacks=callbacks, resume=resume, report=report)
        others = (replace(problem_of(), settings=problem.settings) for problem_of in self.others)
        return partial(ensemble.train_model, problem, self.plan, others)

    def summarise(self, network: Network) -> Summary:
        """Return the summary of the training rows for a network."""
        rows = self.problem.rows
        with training_in(rows.group):
            return summary_of(network, rows.table, rows.weight, n_threads=self.problem.settings.n_threads)

    def model(self, network: Network, history: History, summary: Summary) -> Model:
        """Return the model of a trained network; one of survival has curves."""
        model = Model(self.schema, self.targets, network, history, summary, self.with_offset)
        if traits_of(self.targets.loss).task != "survival":
            return model
        return _with_curves(model, self.problem, scale=getattr(self.request.values["loss"], "scale", None))

    def with_loss(self, loss: Loss) -> Training:
        """Return the training by another loss of the same targets, and by its metric."""
        targets = replace(self.targets, loss=loss)

        def changed(problem: Problem) -> Problem:
            metric = metric_of(self.request.values["eval_metric"], targets, problem.evaluation.sets)
            evaluation, settings = replace(problem.evaluation, metric=metric), problem.settings
            rows, backend = problem.rows, problem.backend
            task = NetworkTask(rows=rows, backend=backend, loss=loss, settings=settings, evaluation=evaluation)
            return Problem.of(task, targets.to_loss)

        others = [partial(lambda problem_of: changed(problem_of()), problem_of) for problem_of in self.others]
        problem = changed(self.problem)
        return replace(self, targets=targets, problem=problem, plan=self.plan.on(problem), others=others)


def training_of(request: Request, arguments: Arguments, data: FitData) -> Training:
    """Return the training on the data of a fit."""
    arguments.check_network(request)
    targets, n_rows = data.targets, len(data.drawn[0])
    _refuse_divided(targets.loss, data.drawn[0])
    random = checks.random_state("random_state", request.values["random_state"])
    [n_rows], seed = workers().sum(n_rows), workers().agree(int(random.randint(2**31 - 1)))
    settings = request.settings(int(n_rows), targets.n_outputs, seed, data.schema)
    backend = load_backend(request.values["backend"])
    metric = metric_of(arguments.eval_metric or request.values["eval_metric"], targets, data.drawn[1])

    def problem_of(drawn: Drawing) -> Problem:
        rows, evaluation = _scaled(*drawn, targets, metric)
        task = NetworkTask(rows=rows, backend=backend, loss=targets.loss, settings=settings, evaluation=evaluation)
        return Problem.of(task, targets.to_loss)

    network_needed = bool(arguments.callbacks or any(arguments.of_networks.values()))
    if data.earlier is not None:
        check_sum(data.earlier.network, settings, networks=request.depth is not False)
    problem = problem_of(data.drawn)
    return Training(
        request=request,
        schema=data.schema,
        targets=targets,
        with_offset=arguments.offset is not None,
        problem=problem,
        plan=Plan.of(
            problem,
            deep=request.depth,
            quality=request.quality,
            network_needed=workers().agree(network_needed),  # only rank 0 may have callbacks
            hidden_units=request.needs_hidden,  # such a model has no other parts
        ),
        others=[partial(lambda draw: problem_of(draw()), draw) for draw in data.others],
        earlier=None if data.earlier is None else data.earlier.network,
        calibrate=data.calibrate,
    )


def metric_of(metric: Any, targets: Targets, sets: Sequence[EvalSet]) -> Metric | None:
    """Return the metric of the evaluation sets, None without any."""
    if not sets and metric is None:
        return None
    classes, scale = targets.classes is not None, targets.scale if targets.classes is None else 1.0
    loaded = load_metric(metric, targets.loss, classes=classes, scale=scale)
    return loaded if sets else None  # load_metric refuses a wrong name even if nothing is scored


def _scaled(rows: Rows, sets: Sequence[EvalSet], targets: Targets, metric: Metric | None) -> tuple[Rows, Evaluation]:
    """Return the rows with weight and the evaluation, in units of the targets.

    Weights of held-out rows are scaled like those of training rows.
    """
    if targets.classes is None:  # metrics take the targets of evaluation sets as they were passed
        rows = rows.in_units(targets.shift, targets.scale)
        sets = [replace(part, rows=part.rows.with_offset_unit(targets.scale)) for part in sets]
    counted = rows.counted()
    total, previous_total = workers().sum(counted.weight.sum(), rows.weight.sum())
    shares = [total / previous_total if part.from_training else 1.0 for part in sets]
    weighted = [replace(part.rows, weight=part.rows.weight * share) for part, share in zip(sets, shares, strict=True)]
    sets = [replace(part, rows=rows) for part, rows in zip(sets, weighted, strict=True)]
    outcome = raw_output if metric is not None and metric.takes_raw else targets.outcome
    return counted, Evaluation(tuple(sets), metric, outcome)


def first_model(training: Training) -> Floats:
    """Return the raw output, without offset, of the two single layers of quality 1 on the first evaluation set."""
    problem, time_limit = training.problem, training.problem.settings.max_time
    sets = (replace(problem.evaluation.sets[0], from_training=False),)  # nothing is refitted
    settings = replace(problem.settings, max_time=None if time_limit is None else time_limit / 4)
    problem = replace(problem, settings=settings, evaluation=replace(problem.evaluation, sets=sets))
    plan = Plan.of(problem, deep=False, quality=1)
    train = replace(training, problem=problem, plan=plan, others=()).call((), None, bool)
    with training_in(problem.rows.group):
        _, history = train()
    if (interrupt := clock.of_fit().interrupt) is not None:
        raise interrupt
    assert history.held_out is not None
    return history.held_out


def _refuse_divided(loss: Loss, rows: Rows) -> None:
    """Raise ValueError if several workers divide rows on which the loss of a row depends."""
    joint, group = traits_of(loss).joint, workers()
    if group.is_single or joint is None:
        return
    if joint == "rows":
        raise ValueError(f"loss={loss.name!r} depends on all rows at once, which workers divide: train in one process.")
    numbers, counts = np.unique(np.concatenate(group.gather(np.unique(rows.y[:, -1]))), return_counts=True)
    if (counts > 1).any():
        name, number = (traits_of(loss).columns or ("group",))[-1], numbers[counts > 1][0]
        raise ValueError(f"{name} {number:g} has rows on {counts.max()} workers: keep all of its rows on one worker.")


def _with_curves(model: Model, problem: Problem, *, scale: float | None) -> Model:
    """Return a model of survival with its curves; held-out rows determine the scale of the noise if there is none."""
    parts, n_threads = [problem.rows], problem.settings.n_threads
    if problem.evaluation.sets:
        held_out, raw = problem.held_out, model.history.held_out
        parts += [held_out] if problem.learns_held_out else []
        if scale is None and raw is not None:
            model = with_scale(model, raw + held_out.offset, held_out.y, held_out.weight)
    raw = np.concatenate([model.network.predict(part.X, n_jobs=n_threads) + part.offset for part in parts])
    y, weight = (np.concatenate([getattr(part, name) for part in parts]) for name in ("y", "weight"))
    with training_in(problem.rows.group):
        return with_curves(model, raw, y, weight)
