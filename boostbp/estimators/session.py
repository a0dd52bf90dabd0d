"""Training of an estimator: its start, callbacks and checkpoint, rows that are read block by block, and `fit_more`.

A fit that fails leaves the estimator as it was.
"""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from traceback import clear_frames
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import get_tags

from boostbp.backends import load_backend
from boostbp.backends.base import Backend
from boostbp.ensemble import ensemble
from boostbp.ensemble.problem import EnsembleSettings, Problem
from boostbp.ensemble.safeguard import back_propagate_alone
from boostbp.ensemble.weighted_sum import continued
from boostbp.estimators.fit_options import FitOptions, FittedOn, check_sum
from boostbp.estimators.nested_parameters import refuse_unknown
from boostbp.estimators.parameter_use import Way, warn_after, warn_before, way_of
from boostbp.estimators.parameters import check_options, ensemble_settings_of, training_settings
from boostbp.inputs.blocks import rows_of
from boostbp.inputs.disk_arrays import on_disk
from boostbp.inputs.rows import Rows
from boostbp.inputs.sources import is_blocks
from boostbp.losses import Loss, traits_of
from boostbp.model.hazards import with_curves, with_scale
from boostbp.model.health import warn_if_ill
from boostbp.model.model import Model, Targets
from boostbp.model.summary import Summary, summary_of
from boostbp.network import checkpoints
from boostbp.network.callbacks import Checkpoint, StopOnInterrupt, log_evaluation
from boostbp.network.displays import ProgressBar, current_display, showing
from boostbp.network.history import History
from boostbp.network.monitor import Callback, Evaluation, NetworkTask, Progress, Stage, State
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.runtime import checks, clock, interrupts, messages
from boostbp.runtime.arrays import Floats, TableLike, numpy_errstate
from boostbp.runtime.group import training_in, workers
from boostbp.runtime.threads import single_threaded_blas

if TYPE_CHECKING:
    from boostbp.estimators.base import BaseBoostBP

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Training:
    """A training that can continue."""

    fitted: FittedOn
    problem: Problem
    ensemble: EnsembleSettings | None  # None trains only the network of the problem
    # each returns the problem of a further member of an average, with other held-out rows
    others: Sequence[Callable[[], Problem]] = ()
    earlier: Network | None = None  # network to which the trained one is added
    state: State | None = None  # state after the last epoch of the network

    def train(
        self, callbacks: Sequence[Callback], resume: State | None, report: Callable[[Stage], object]
    ) -> tuple[Network, History]:
        """Train from the start or from an earlier state."""
        problem = replace(self.problem, callbacks=callbacks, resume=resume, report=report)
        with training_in(problem.rows.group):
            if self.ensemble is None:
                return back_propagate_alone(problem)
            others = (replace(problem_of(), settings=problem.settings) for problem_of in self.others)
            network, history = ensemble.train_model(problem, self.ensemble, others)
            if self.earlier is not None:
                network = continued(self.earlier, network)
            return network, history

    def summarise(self, network: Network) -> Summary:
        """Return the summary of the training rows for a network."""
        rows = self.problem.rows
        with training_in(rows.group):
            return summary_of(network, rows.table, rows.weight, n_threads=self.problem.settings.n_threads)


def training_of(
    estimator: BaseBoostBP,
    fitted: FittedOn,
    rows: Rows,
    evaluation: Evaluation,
    options: FitOptions,
    others: Sequence[Callable[[], tuple[Rows, Evaluation]]] = (),
) -> Training:
    """Return the training of an estimator; `others` return rows and evaluation of further members of an average."""
    check_options(estimator, options)
    _refuse_divided(fitted.targets.loss, rows)
    random = checks.random_state("random_state", estimator.random_state)
    [n_rows], seed = workers().sum(len(rows)), workers().agree(int(random.randint(2**31 - 1)))
    settings = training_settings(estimator, int(n_rows), fitted.targets.n_outputs, seed, fitted.schema)
    problem_of = partial(_problem_of, fitted.targets, backend=load_backend(estimator.backend), settings=settings)
    # Only rank 0 may have callbacks.
    ensemble_settings = workers().agree(ensemble_settings_of(estimator, options))
    way = way_of(estimator, held_out=bool(evaluation.sets), network_needed=ensemble_settings.network_needed)
    warn_before(estimator, way, evaluation.sets, options.callbacks)
    earlier = None if options.earlier is None else options.earlier.network
    if earlier is not None:
        check_sum(earlier, settings, networks=ensemble_settings.deep is not False)
    other_problems = [lambda draw=draw: problem_of(*draw()) for draw in others]
    # The hidden units of an auto-encoder are the model, so it has no other parts.
    average = None if estimator._min_hidden else ensemble_settings
    return Training(fitted, problem_of(rows, evaluation), average, other_problems, earlier)


def first_model(training: Training) -> Floats:
    """Return the raw output, without offset, of the two single layers of quality 1 on the first evaluation set."""
    problem, time_limit = training.problem, training.problem.settings.max_time
    sets = (replace(problem.evaluation.sets[0], from_training=False),)  # nothing is refitted
    settings = replace(problem.settings, max_time=None if time_limit is None else time_limit / 4)
    problem = replace(problem, settings=settings, evaluation=replace(problem.evaluation, sets=sets))
    layers = EnsembleSettings(deep=False, quality=1)
    first = replace(training, problem=problem, ensemble=layers, others=(), earlier=None)
    _, history = first.train((), None, bool)
    if history.interrupt is not None:
        raise history.interrupt
    assert history.held_out is not None
    return history.held_out


def _problem_of(
    targets: Targets, rows: Rows, evaluation: Evaluation, *, backend: Backend, settings: Settings
) -> Problem:
    """Return the problem of the rows with weight; weights of held-out rows are scaled like those of training rows."""
    counted = rows.counted()
    total, previous_total = workers().sum(counted.weight.sum(), rows.weight.sum())
    sets = list(evaluation.sets)
    for number, part in enumerate(sets):
        if part.from_training:
            scaled = replace(part.rows, weight=part.rows.weight * (total / previous_total))
            sets[number] = replace(part, rows=scaled)
    evaluation = replace(evaluation, sets=tuple(sets))
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


def state_to_resume(estimator: BaseBoostBP, options: FitOptions, *, n_rows: int) -> State | None:
    """Return the state in the checkpoint file of a fit, None without one; this process has `n_rows` rows."""
    checks.one_of("keep_state", options.keep_state, (True, False))
    paths = [callback.path for callback in options.checked_callbacks() if isinstance(callback, Checkpoint)]
    path = paths[-1] if paths else None
    if path is not None and not checks.is_whole(estimator.random_state):
        raise ValueError(
            f"random_state={estimator.random_state!r} with checkpoint={str(path)!r} would start a new training each "
            "time: give a whole number, such as random_state=0."
        )
    return None if path is None else checkpoints.find(path, n_rows)


def continue_fit(estimator: BaseBoostBP, epochs: int, options: FitOptions) -> None:
    """Train an estimator for `epochs` more epochs; patience and time start anew."""
    epochs = checks.whole("epochs", epochs, 1)
    training: Training | None = vars(estimator).get("_training")
    if training is not None and training.state is None and estimator.max_time is not None:
        raise ValueError(
            f"fit_more needs a network, and max_time={estimator.max_time!r} left none: call fit with a longer max_time."
        )
    if training is None or training.state is None:
        raise ValueError(
            "fit_more needs the state of training, which was not kept (files and copies never contain it): "
            "call fit with keep_state=True, or with checkpoint= and again with more epochs."
        )
    state = replace(training.state, elapsed=0.0, since=training.state.epoch)
    settings = replace(training.problem.settings, epochs=state.epoch + epochs)
    problem = replace(training.problem, settings=settings)
    run_training(estimator, replace(training, problem=problem), options, state)


def all_or_nothing(*, blocks: bool = False) -> Callable[[F], F]:
    """Restore the attributes of the estimator if a fit fails, so that no parts of two fits are combined.

    An interrupt of the training, and warnings that are errors, are raised once the estimator has its model. The fit
    does not depend on the number of BLAS threads or on `np.seterr`. With `blocks`, its `X` may be a path or an iterator
    of blocks.
    """

    def decorate(fit: F) -> F:
        method = cast(FunctionType, fit)

        @wraps(fit)
        @clock.counting()
        @numpy_errstate()
        @interrupts.deferred()
        @single_threaded_blas()
        def guarded(estimator: BaseBoostBP, *args: Any, **options: Any) -> BaseBoostBP:
            refuse_unknown(method, type(estimator), options)
            attributes = dict(vars(estimator))
            try:
                with showing(estimator.verbose):
                    if blocks and is_blocks(args[0] if args else options.get("X")):
                        fit_blocks(fit, estimator, *args, **options)
                    else:
                        fit(estimator, *args, **options)
            except BaseException as error:
                estimator.__dict__.clear()
                estimator.__dict__.update(attributes)
                messages.shorten(error)
                raise
            history = estimator.model_.history
            interrupt, history.interrupt = history.interrupt, None
            try:
                warn_if_ill(history)
                if history.choice is not None and way_of(estimator) is Way.AVERAGE:
                    warn_after(estimator, history.choice)
            finally:
                if interrupt is not None:
                    raise interrupt
            return estimator

        guarded.all_or_nothing = True  # type: ignore[attr-defined]
        return cast(F, guarded)

    return decorate


def fit_blocks(
    fit: Callable[..., BaseBoostBP],
    estimator: BaseBoostBP,
    X: TableLike,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> None:
    """Fit to a path or an iterator of blocks; the model is the same as with these rows as arrays."""
    if options.get("keep_state"):
        raise ValueError(
            f"keep_state={options['keep_state']!r} is not supported with rows that are read block by block: the "
            "state is as large as they are. Use checkpoint=..., which stores it in a file."
        )
    named = {"y": y, "sample_weight": sample_weight, **{name: options.get(name) for name in ("offset", "groups")}}
    with on_disk():
        categorical_features = estimator.categorical_features
        if checks.is_container(categorical_features):
            categorical_features = list(categorical_features)
        schema = getattr(options.get("init_model"), "schema_", None)
        options_of_rows: Any = {"categorical_features": categorical_features, "schema": schema}
        X, columns = rows_of(X, named, kind=get_tags(estimator).estimator_type, **options_of_rows)
        options |= {name: columns[name] for name in options.keys() & columns.keys()}
        try:
            fit(estimator, X, columns["y"], columns["sample_weight"], **options)
        except BaseException as error:
            clear_frames(error.__traceback__)  # frames would keep arrays, and their disk space
            raise
        finally:
            del X, columns, options
            gc.collect()  # a training refers to its rows in a cycle
    model = estimator.model_
    # copies that are not in the files of the fit
    targets = model.targets
    if targets.multilabel and schema is None and isinstance(y, list | tuple) and isinstance(y[0], str):
        targets = replace(targets, classes=np.array(y))  # several labels have the names of their columns
    names = ("network", "calibration", "event_times", "hazard")
    estimator.model_ = replace(model, targets=targets, **{name: copy.deepcopy(getattr(model, name)) for name in names})


def run_training(estimator: BaseBoostBP, training: Training, options: FitOptions, resume: State | None) -> None:
    """Train an estimator, from the state `resume` if there is one, and store the model in it."""
    callbacks = options.checked_callbacks()
    display = current_display()
    if display is not None:
        callbacks.append(display if isinstance(display, ProgressBar) else log_evaluation())
    report: Callable[[Stage], object] = bool if display is None else display.stage
    states: list[State] = []

    def keep(progress: Progress) -> None:
        states[:] = [replace(progress.state(), origin="the state that fit kept")]

    if options.keep_state:
        callbacks.append(keep)
    network, history = training.train(callbacks, resume, report)
    try:
        summary = training.summarise(network)
    except KeyboardInterrupt as interrupt:  # the summary takes little time, so the fit completes
        history.interrupted(interrupt)
        summary = training.summarise(network)
    fitted = training.fitted
    model = Model(fitted.schema, fitted.targets, network, history, summary, fitted.with_offset)
    if traits_of(fitted.targets.loss).task == "survival":
        model = _with_curves(model, training.problem, scale=getattr(estimator.loss, "scale", None))
    history.held_out = None
    estimator.model_ = model
    if options.keep_state:
        estimator._training = replace(training, state=states[-1] if states else resume)
    else:
        estimator.__dict__.pop("_training", None)
    if any(isinstance(callback, StopOnInterrupt) for callback in callbacks):
        history.interrupt = None
