"""Training of an estimator: its start, callbacks and checkpoint, and `fit_more`.

A fit that fails leaves the estimator as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from numbers import Integral
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from boostbp import backends
from boostbp.backends.base import Backend
from boostbp.ensemble import ensemble
from boostbp.ensemble.problem import EnsembleSettings, Problem
from boostbp.ensemble.safeguard import back_propagate_alone
from boostbp.ensemble.weighted_sum import weighted_sum
from boostbp.estimators.block_rows import fit_blocks
from boostbp.estimators.fit_options import FitOptions
from boostbp.estimators.init_model import check_sum
from boostbp.estimators.nested_parameters import refuse_unknown
from boostbp.estimators.parameter_use import warn_before, way_of
from boostbp.estimators.parameters import check_options, ensemble_settings_of, settings_of
from boostbp.inputs.blocks import is_blocks
from boostbp.inputs.rows import Rows
from boostbp.inputs.schema import Schema
from boostbp.inspection import Summary, summary_of
from boostbp.model import Model, Targets
from boostbp.network import checkpoints
from boostbp.network.callbacks import Checkpoint, StopOnInterrupt, log_evaluation
from boostbp.network.displays import ProgressBar, StageLog, show_log
from boostbp.network.eval_sets import EvalSet, Evaluation
from boostbp.network.history import History
from boostbp.network.monitor import Callback, Progress, Stage, State
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.runtime import checks, interrupts
from boostbp.runtime.arrays import numpy_errstate
from boostbp.runtime.group import training_in, workers
from boostbp.runtime.native_threads import single_threaded_blas

if TYPE_CHECKING:
    from boostbp.estimators.base import BaseBoostBP

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class FittedOn:
    """What a fit learns from its table and target before the training."""

    schema: Schema
    targets: Targets
    with_offset: bool = False


@dataclass(frozen=True, slots=True)
class Training:
    """A training that can continue.

    Attributes
    ----------
    fitted : FittedOn
    problem : Problem
    ensemble : EnsembleSettings or None
        None trains only the network of the problem.
    others : sequence of callable
        Each returns the problem of a further member of an average, with other held-out rows.
    earlier : Network or None
        Network to which the trained one is added.
    state : State or None
        State after the last epoch of the network.
    """

    fitted: FittedOn
    problem: Problem
    ensemble: EnsembleSettings | None
    others: Sequence[Callable[[], Problem]] = ()
    earlier: Network | None = None
    state: State | None = None

    def train(
        self, callbacks: Sequence[Callback], resume: State | None, report: Callable[[Stage], object]
    ) -> tuple[Network, History]:
        """Train from the start or from an earlier state."""
        problem = replace(self.problem, callbacks=callbacks, resume=resume, report=report)
        with training_in(problem.rows.group):
            if self.ensemble is None:
                return back_propagate_alone(problem)
            others = (replace(problem_of(), settings=problem.settings) for problem_of in self.others)
            network, history = ensemble.train(problem, self.ensemble, others)
            if self.earlier is not None:
                network = weighted_sum([self.earlier, network], [1.0, 1.0])
            return network, history

    def summarise(self, network: Network) -> Summary:
        """Return the summary of the training rows for a network."""
        rows, n_threads = self.problem.rows, self.problem.settings.n_threads
        with training_in(rows.group):
            return summary_of(network, rows.table, rows.weight, n_threads=n_threads)


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
    random = checks.random_state("random_state", estimator.random_state)
    [n_rows], seed = workers().sum(len(rows)), workers().agree(int(random.randint(2**31 - 1)))
    settings = settings_of(estimator, int(n_rows), rows.y.shape[1], seed, fitted.schema)
    problem_of = partial(_problem_of, fitted.targets, backend=backends.load(estimator.backend), settings=settings)
    # Only rank 0 may have callbacks.
    ensemble_settings = workers().agree(ensemble_settings_of(estimator, options))
    way = way_of(estimator, held_out=bool(evaluation.sets), network_needed=ensemble_settings.network_needed)
    warn_before(estimator, way, evaluation.sets, options.callbacks)
    if options.earlier is not None:
        check_sum(options.earlier.network, settings, networks=ensemble_settings.deep is not False)
    other_problems = [lambda draw=draw: problem_of(*draw()) for draw in others]
    return Training(
        fitted,
        problem_of(rows, evaluation),
        # The hidden units of an auto-encoder are the model, so it has no other parts.
        ensemble=None if estimator._min_hidden else ensemble_settings,
        others=other_problems,
        earlier=None if options.earlier is None else options.earlier.network,
    )


def _problem_of(
    targets: Targets, rows: Rows, evaluation: Evaluation, *, backend: Backend, settings: Settings
) -> Problem:
    """Return the problem of the rows with weight; weights of held-out rows are scaled like those of training rows."""
    counted = rows.counted()
    total, previous_total = workers().sum(counted.weight.sum(), rows.weight.sum())

    def scaled(part: EvalSet) -> EvalSet:
        return replace(part, rows=replace(part.rows, weight=part.rows.weight * (total / previous_total)))

    sets = tuple(scaled(part) if part.from_training else part for part in evaluation.sets)
    evaluation = replace(evaluation, sets=sets)
    return Problem.of(
        counted,
        backend=backend,
        loss=targets.loss,
        settings=settings,
        evaluation=evaluation,
        to_target=targets.to_loss,
    )


def start_fit(estimator: BaseBoostBP, training: Training, options: FitOptions, *, n_rows: int) -> None:
    """Train an estimator from the start or the checkpoint; this process has `n_rows` rows."""
    checks.one_of("keep_state", options.keep_state, (True, False))
    paths = [callback.path for callback in options.checked_callbacks() if isinstance(callback, Checkpoint)]
    path = paths[-1] if paths else None
    if path is not None and not isinstance(estimator.random_state, Integral):
        raise ValueError(
            f"random_state={estimator.random_state!r} with checkpoint={str(path)!r} would start another training each "
            "time: give a whole number, such as random_state=0."
        )
    run_training(estimator, training, checkpoints.find(path, n_rows), options)


def continue_fit(estimator: BaseBoostBP, epochs: int, options: FitOptions) -> None:
    """Train an estimator for `epochs` more epochs; patience and time start anew."""
    epochs = checks.whole("epochs", epochs, 1)
    training: Training | None = vars(estimator).get("_training")
    if training is not None and training.state is None and estimator.max_time is not None:
        raise ValueError(
            f"fit_more needs the state of the network, which did not start within max_time={estimator.max_time!r}: "
            "call fit with a longer max_time, and keep_state=True."
        )
    if training is None or training.state is None:
        raise ValueError(
            "fit_more needs the state of training, which was not kept (files and copies never have it): "
            "call fit with keep_state=True, or with checkpoint= and again with more epochs."
        )
    state = replace(training.state, elapsed=0.0, since=training.state.epoch)
    settings = replace(training.problem.settings, epochs=state.epoch + epochs)
    problem = replace(training.problem, settings=settings)
    run_training(estimator, replace(training, problem=problem), state, options)


def all_or_nothing(fit: F) -> F:
    """Restore the attributes of the estimator if a fit fails, so that no parts of two fits are combined.

    An interrupt of the training, and warnings that are errors, are raised after the estimator got its model. The fit
    does not depend on the number of BLAS threads or on `np.seterr`. Its `X` may be a path or an iterator of blocks.
    """
    method = cast(FunctionType, fit)

    @wraps(fit)
    @numpy_errstate()
    @interrupts.deferred()
    @single_threaded_blas()
    def guarded(*args: Any, **options: Any) -> Any:
        estimator: BaseBoostBP = args[0]
        refuse_unknown(method, type(estimator), options)
        in_blocks = estimator._takes_blocks and is_blocks(args[1] if len(args) > 1 else options.get("X"))
        attributes = dict(vars(estimator))
        try:
            fitted = fit_blocks(fit, *args, **options) if in_blocks else fit(*args, **options)
        except BaseException:
            estimator.__dict__.clear()
            estimator.__dict__.update(attributes)
            raise
        interrupt, estimator.history_.interrupt = estimator.history_.interrupt, None
        try:
            estimator._warn_of_fit()
        finally:
            if interrupt is not None:
                raise interrupt
        return fitted

    guarded.all_or_nothing = True  # type: ignore[attr-defined]
    return cast(F, guarded)


def _no_report(stage: Stage | str) -> None:
    """Ignore a report."""


def run_training(estimator: BaseBoostBP, training: Training, resume: State | None, options: FitOptions) -> None:
    """Train an estimator, from the state `resume` if there is one, and store the model in it."""
    callbacks = options.checked_callbacks()
    if not isinstance(estimator.verbose, Integral):
        raise ValueError(
            f"verbose={estimator.verbose!r} is not a whole number: 0 is silent, 1 a progress bar, 2 a log."
        )
    if int(estimator.verbose) >= 2:
        callbacks.append(log_evaluation())
        show_log()
    bar, level = ProgressBar(), min(int(estimator.verbose), 2) if workers().rank == 0 else 0
    if estimator.verbose == 1:
        callbacks.append(bar)
    display: ProgressBar | StageLog | None = bar if level == 1 else StageLog() if level == 2 else None
    report = _no_report if display is None else display.stage
    states: list[State] = []

    def keep(progress: Progress) -> None:
        states[:] = [replace(progress.state(), origin="the state that fit kept")]

    if options.keep_state:
        callbacks.append(keep)
    try:
        network, history = training.train(callbacks, resume, report)
    finally:
        bar.close()
    try:
        summary = training.summarise(network)
    except KeyboardInterrupt as interrupt:  # the summary takes little time, so the fit completes
        history.interrupted(interrupt)
        summary = training.summarise(network)
    fitted = training.fitted
    estimator.model_ = Model(fitted.schema, fitted.targets, network, history, summary, fitted.with_offset)
    if options.keep_state:
        estimator._training = replace(training, state=states[-1] if states else resume)
    else:
        estimator.__dict__.pop("_training", None)
    if any(isinstance(callback, StopOnInterrupt) for callback in callbacks):
        history.interrupt = None
