"""Session: the training of an estimator with its callbacks and checkpoint, the model it begins from, how it goes on.

A fit happens whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from numbers import Integral
from types import FunctionType
from typing import Any, TypeVar, cast

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
from boostbp.estimators.parameters import check_run, ensemble_settings_of, settings_of
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
from boostbp.runtime.compiling import on_compile
from boostbp.runtime.group import training_in, workers
from boostbp.runtime.native_threads import single_threaded_blas

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class FittedOn:
    """What a fit learns of its table and target before any training."""

    schema: Schema
    targets: Targets
    with_offset: bool = False


@dataclass(frozen=True, slots=True)
class Training:
    """A training that can go on.

    Attributes
    ----------
    fitted : FittedOn
    problem : Problem
    ensemble : EnsembleSettings or None
        None trains the network of the problem alone.
    others : sequence of callable
        Each returns the problem of a further member of an average, with other rows held out.
    earlier : Network or None
        A network that the trained one is added to.
    state : State or None
        After the last epoch of the network.
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
        """Train, from the start or from an earlier state."""
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
        """Summarise the training rows as the network sees them."""
        rows, n_threads = self.problem.rows, self.problem.settings.n_threads
        with training_in(rows.group):
            return summary_of(network, rows.table, rows.weight, n_threads=n_threads)


def training_of(
    estimator: Any,
    fitted: FittedOn,
    rows: Rows,
    evaluation: Evaluation,
    options: FitOptions,
    others: Sequence[Callable[[], tuple[Rows, Evaluation]]] = (),
) -> Training:
    """Return the training of an estimator on some rows; `others` hold other rows out, for further members."""
    check_run(estimator, options)
    random = checks.random_state("random_state", estimator.random_state)
    [n_rows], seed = workers().sum(len(rows)), workers().agree(int(random.randint(2**31 - 1)))
    settings = settings_of(estimator, int(n_rows), rows.y.shape[1], seed, fitted.schema)
    problem_of = partial(_problem_of, fitted.targets, backend=backends.load(estimator.backend), settings=settings)
    how = workers().agree(ensemble_settings_of(estimator, options))  # callbacks may be given on rank 0 alone
    way = way_of(estimator, held_out=bool(evaluation.sets), wanted=how.network_wanted)
    warn_before(estimator, way, evaluation.sets, options.callbacks)
    if options.earlier is not None:
        check_sum(options.earlier.network, settings, networks=how.deep is not False)
    return Training(
        fitted,
        problem_of(rows, evaluation),
        # the hidden units of an auto-encoder are the model, and nothing may stand beside them
        ensemble=None if estimator._fewest_hidden else how,
        others=[partial(_drawn, draw, problem_of) for draw in others],
        earlier=None if options.earlier is None else options.earlier.network,
    )


def _problem_of(
    targets: Targets, rows: Rows, evaluation: Evaluation, *, backend: Backend, settings: Settings
) -> Problem:
    """Return the problem of the rows that have weight; held-out rows get weights in the same unit."""
    counted = rows.counted()
    total, before = workers().sum(counted.weight.sum(), rows.weight.sum())

    def in_rows(part: EvalSet) -> EvalSet:
        return replace(part, rows=replace(part.rows, weight=part.rows.weight * (total / before)))

    sets = tuple(in_rows(part) if part.from_training else part for part in evaluation.sets)
    evaluation = replace(evaluation, sets=sets)
    return Problem.of(
        counted,
        backend=backend,
        loss=targets.loss,
        settings=settings,
        evaluation=evaluation,
        to_target=targets.to_loss,
    )


def _drawn(draw: Callable[[], tuple[Rows, Evaluation]], problem_of: Callable[[Rows, Evaluation], Problem]) -> Problem:
    return problem_of(*draw())


def start_fit(estimator: Any, training: Training, options: FitOptions, *, n_rows: int) -> None:
    """Train an estimator, from the start or from the checkpoint, on so many rows of this process."""
    checks.one_of("keep_state", options.keep_state, (True, False))
    written = [callback for callback in options.checked_callbacks() if isinstance(callback, Checkpoint)]
    path = written[-1].path if written else None
    if path is not None and not isinstance(estimator.random_state, Integral):
        raise ValueError(
            f"random_state={estimator.random_state!r} with checkpoint={str(path)!r} would begin another training each "
            "time: give a whole number, such as random_state=0."
        )
    run_training(estimator, training, checkpoints.find(path, n_rows), options)


def continue_fit(estimator: Any, epochs: int, options: FitOptions) -> None:
    """Train an estimator on, for so many epochs; patience and time count anew."""
    epochs = checks.whole("epochs", epochs, 1)
    training: Training | None = vars(estimator).get("_training")
    if training is not None and training.state is None and estimator.max_time is not None:
        raise ValueError(
            f"fit_more needs the state of the network, which was not begun in max_time={estimator.max_time!r}: call "
            "fit with more of it, and keep_state=True."
        )
    if training is None or training.state is None:
        raise ValueError(
            "fit_more needs the state of training, which was not kept (files and copies never hold it): "
            "call fit with keep_state=True, or with checkpoint= and again with more epochs."
        )
    state = replace(training.state, elapsed=0.0, since=training.state.epoch)
    settings = replace(training.problem.settings, epochs=state.epoch + epochs)
    problem = replace(training.problem, settings=settings)
    run_training(estimator, replace(training, problem=problem), state, options)


def all_or_nothing(fit: F) -> F:
    """Make a fit that fails leave the estimator as it was: never a network of one fit with the columns of another.

    What interrupted the training, and warnings of the model where warnings are errors, is raised once the estimator has
    the model. A fit is the same for any number of BLAS's threads and for any `np.seterr`. Its `X` may be a path or an
    iterator of blocks.
    """
    method = cast(FunctionType, fit)

    @wraps(fit)
    @numpy_errstate()
    @interrupts.deferred()
    @single_threaded_blas()
    def whole(*args: Any, **options: Any) -> Any:
        estimator = args[0]
        refuse_unknown(method, type(estimator), options)
        in_blocks = estimator._takes_blocks and is_blocks(args[1] if len(args) > 1 else options.get("X"))
        before = dict(vars(estimator))
        try:
            fitted = fit_blocks(fit, *args, **options) if in_blocks else fit(*args, **options)
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise
        # what interrupted the training, and warnings, which may be errors, now that the estimator has the model
        interrupt, estimator.history_.interrupt = estimator.history_.interrupt, None
        try:
            estimator._warn_of_fit()
        finally:
            if interrupt is not None:
                raise interrupt
        return fitted

    whole.all_or_nothing = True  # type: ignore[attr-defined]
    return cast(F, whole)


def _no_report(stage: Stage | str) -> None:
    """Report nothing."""


def run_training(estimator: Any, training: Training, resume: State | None, options: FitOptions) -> None:
    """Train an estimator from a state, if there is one, and give it the model."""
    callbacks = options.checked_callbacks()
    if not isinstance(estimator.verbose, Integral):
        raise ValueError(f"verbose={estimator.verbose!r} is not a number: 0 is silent, 1 a progress bar, 2 a log.")
    if int(estimator.verbose) >= 2:
        callbacks.append(log_evaluation())
        show_log()
    bar, level = ProgressBar(), min(int(estimator.verbose), 2) if workers().rank == 0 else 0
    if estimator.verbose == 1:
        callbacks.append(bar)
    shown: ProgressBar | StageLog | None = bar if level == 1 else StageLog() if level == 2 else None
    report = _no_report if shown is None else shown.stage
    states: list[State] = []

    def keep(progress: Progress) -> None:
        states[:] = [replace(progress.state(), origin="the state that fit kept")]

    if options.keep_state:
        callbacks.append(keep)
    try:
        with on_compile(_no_report if shown is None else shown.compiling):
            network, history = training.train(callbacks, resume, report)
    finally:
        bar.close()
    try:
        summary = training.summarise(network)
    except KeyboardInterrupt as interrupt:  # a fit is not thrown away for its last second
        history.interrupted(interrupt)
        summary = training.summarise(network)
    fitted = training.fitted
    estimator.model_ = Model(fitted.schema, fitted.targets, network, history, summary, fitted.with_offset)
    if options.keep_state:
        estimator._training = replace(training, state=states[-1] if states else resume)
    else:
        vars(estimator).pop("_training", None)
    if any(isinstance(callback, StopOnInterrupt) for callback in callbacks):
        history.interrupt = None
