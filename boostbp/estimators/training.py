"""Training: what a fit trains, how, and on which rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from boostbp.backends import load_backend
from boostbp.backends.base import Backend
from boostbp.ensemble import ensemble
from boostbp.ensemble.plan import Plan, Way
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.weighted_sum import continued
from boostbp.estimators.arguments import NO_ARGUMENTS
from boostbp.estimators.data import FitData
from boostbp.estimators.held_out import Drawing
from boostbp.estimators.init_model import check_sum
from boostbp.estimators.parameter_use import warn_before
from boostbp.estimators.request import Request
from boostbp.inputs.rows import Rows
from boostbp.losses import Loss, traits_of
from boostbp.metrics import Metric, load_metric
from boostbp.model.hazards import with_curves, with_scale
from boostbp.model.model import Model, Targets
from boostbp.model.summary import Summary, summary_of
from boostbp.network.history import History, Stop
from boostbp.network.monitor import Callback, EvalSet, Evaluation, NetworkTask, Stage, State, raw_output
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.runtime import checks, clock
from boostbp.runtime.group import training_in, workers


@dataclass(frozen=True, slots=True)
class Training:
    """A training that can continue."""

    request: Request
    data: FitData
    problem: Problem
    plan: Plan
    state: State | None = None  # of the network, from which its training goes on

    def warn(self) -> None:
        """Warn of parameters that have no effect."""
        warn_before(self.request, self.plan.way, self.problem.evaluation.sets)

    def call(
        self, callbacks: Sequence[Callback], report: Callable[[Stage], object] = bool
    ) -> Callable[[], tuple[Network, History]]:
        """Return the call that trains, from the start or from the state."""
        problem = replace(self.problem, callbacks=callbacks, resume=self.state, report=report)
        like = self.data.targets, problem.evaluation.metric, problem.backend, problem.settings
        others = [partial(lambda draw: problem_of(draw(), *like), draw) for draw in self.data.others]
        return partial(ensemble.train_model, problem, self.plan, others)

    def with_targets(self, targets: Targets) -> Training:
        """Return the training by another loss of the same targets, and by its metric."""
        problem, metric = self.problem, metric_of(self.request, targets, self.problem.evaluation.sets)
        task = NetworkTask(
            rows=problem.rows,
            backend=problem.backend,
            loss=targets.loss,
            settings=problem.settings,
            evaluation=replace(problem.evaluation, metric=metric),
        )
        problem = Problem.of(task, targets.to_loss)
        return replace(self, data=replace(self.data, targets=targets), problem=problem, plan=self.plan.on(problem))

    def kept(self, state: State | None) -> Training:
        """Return the training to go on with from a state, without what the user passed to `fit`."""
        request, data = replace(self.request, arguments=NO_ARGUMENTS), replace(self.data, calibrate=None)
        return replace(self, request=request, data=data, state=state)

    def summarise(self, network: Network) -> Summary:
        """Return the summary of the training rows for a network."""
        rows = self.problem.rows
        with training_in(rows.group):
            return summary_of(network, rows.table, rows.weight, n_threads=self.problem.settings.n_threads)

    def model(self, network: Network, history: History) -> Model:
        """Return the model of what was trained; one of survival has curves, and one with reserved rows a calibration.

        The history says if Ctrl-C ended the training.
        """
        data, fit = self.data, clock.of_fit()
        if data.earlier is not None:
            with training_in(self.problem.rows.group):
                network = continued(data.earlier.network, network)
        summary = fit.completed(partial(self.summarise, network))
        if fit.interrupt is not None:
            history.stop = Stop.INTERRUPTED
        model = Model(data.schema, data.targets, network, history, summary, data.with_offset)
        if traits_of(data.targets.loss).task == "survival":
            model = _with_curves(model, self.problem, scale=getattr(self.request.values["loss"], "scale", None))
        history.held_out = None
        return model if data.calibrate is None else data.calibrate(model)


def training_of(request: Request, data: FitData, drawn: Drawing) -> Training:
    """Return the training on the data of a fit."""
    _check_network(request)
    targets, arguments = data.targets, request.arguments
    _refuse_divided(targets.loss, drawn[0])
    random = checks.random_state("random_state", request.values["random_state"])
    [n_rows], seed = workers().sum(len(drawn[0])), workers().agree(int(random.randint(2**31 - 1)))
    settings = request.settings(int(n_rows), targets.n_outputs, seed, data.schema)
    backend = load_backend(request.values["backend"])
    metric = metric_of(request, targets, drawn[1])
    network_needed = bool(arguments.callbacks or any(arguments.of_networks.values()))
    if data.earlier is not None:
        check_sum(data.earlier.network, settings, networks=request.way is not Way.LAYERS)
    problem = problem_of(drawn, targets, metric, backend, settings)
    plan = Plan.of(
        problem,
        request.way,
        quality=request.quality,
        network_needed=workers().agree(network_needed),  # only rank 0 may have callbacks
        hidden_units=request.needs_hidden,  # such a model has no other parts
    )
    return Training(request, data, problem, plan)


def _check_network(request: Request) -> None:
    """Raise ValueError if an argument stores the training of a network, and none is trained."""
    if request.way not in (Way.ONE_LAYER, Way.LAYERS):
        return
    why = "monotone_constraints" if request.constrained else f"quality={request.quality}"
    why = "deep=False" if request.deep is False else why
    for name, value in request.arguments.of_networks.items():
        if value:
            raise ValueError(
                f"{name}={value!r} with {why} is not supported: it stores the state of a network's training, and "
                f"no network is trained. Leave out {name}, or use deep='auto' and quality=2 or more."
            )


def metric_of(request: Request, targets: Targets, sets: Sequence[EvalSet]) -> Metric | None:
    """Return the metric of the evaluation sets, None without any."""
    metric = request.arguments.eval_metric or request.values["eval_metric"]
    if not sets and metric is None:
        return None
    classes, scale = targets.classes is not None, targets.scale if targets.classes is None else 1.0
    loaded = load_metric(metric, targets.loss, classes=classes, scale=scale)
    return loaded if sets else None  # load_metric refuses a wrong name even if nothing is scored


def problem_of(
    drawn: Drawing, targets: Targets, metric: Metric | None, backend: Backend, settings: Settings
) -> Problem:
    """Return the problem of the rows with weight and the evaluation sets, in units of the targets.

    Weights of held-out rows are scaled like those of training rows.
    """
    rows, sets = drawn
    if targets.classes is None:  # metrics take the targets of evaluation sets as they were passed
        rows = rows.in_units(targets.shift, targets.scale)
        sets = [replace(part, rows=part.rows.with_offset_unit(targets.scale)) for part in sets]
    counted = rows.counted()
    total, previous_total = workers().sum(counted.weight.sum(), rows.weight.sum())
    shares = [total / previous_total if part.from_training else 1.0 for part in sets]
    weighted = [replace(part.rows, weight=part.rows.weight * share) for part, share in zip(sets, shares, strict=True)]
    sets = [replace(part, rows=rows) for part, rows in zip(sets, weighted, strict=True)]
    outcome = raw_output if metric is not None and metric.takes_raw else targets.outcome
    evaluation = Evaluation(tuple(sets), metric, outcome)
    task = NetworkTask(rows=counted, backend=backend, loss=targets.loss, settings=settings, evaluation=evaluation)
    return Problem.of(task, targets.to_loss)


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
