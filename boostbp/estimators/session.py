"""Session: the training of an estimator with its callbacks and checkpoint, the model it begins from, how it goes on.

A fit happens whole or not at all.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from numbers import Integral
from types import FunctionType
from typing import Any, TypeVar, cast

from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from boostbp import checks
from boostbp.atomic_write import check_writable
from boostbp.ensemble import ensemble
from boostbp.ensemble.problem import EnsembleSettings, Problem
from boostbp.ensemble.safeguard import back_propagate_alone
from boostbp.ensemble.weighted_sum import weighted_sum
from boostbp.estimators.block_rows import fit_blocks
from boostbp.estimators.nested_parameters import constrained, refuse_unknown
from boostbp.floats import usual_floats
from boostbp.group import joined, workers
from boostbp.inputs.blocks import is_blocks
from boostbp.inputs.schema import Schema
from boostbp.inspection import Summary, summary_of
from boostbp.losses import Loss
from boostbp.model import Model, Targets
from boostbp.network import checkpoints
from boostbp.network.callbacks import Checkpoint, StopOnInterrupt, checkpoint, log_evaluation
from boostbp.network.displays import ProgressBar, StageLog, show_log
from boostbp.network.fingerprint import words_of
from boostbp.network.history import History
from boostbp.network.monitor import Callback, Progress, Stage, State
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.trees import interrupts, threads
from boostbp.trees.compiling import told_to

F = TypeVar("F", bound=Callable[..., Any])

_FOREIGN = ("before_iteration", "after_iteration", "on_epoch_end")  # of LightGBM, XGBoost and Keras; ours have none


def check_target(earlier: Model, loss: Loss, n_outputs: int) -> None:
    """Refuse to go on from a model with a loss whose raw output means something else, or with other outputs."""
    if words_of(loss) != words_of(earlier.targets.loss):
        raise ValueError(
            f"init_model was trained by {words_of(earlier.targets.loss)}, this estimator has loss={words_of(loss)}: "
            "use the same loss, as raw outputs of both are added."
        )
    if n_outputs != earlier.targets.n_outputs:
        raise ValueError(
            f"y has {n_outputs} outputs, init_model has {earlier.targets.n_outputs}: give the same outputs."
        )


def begin_from(estimator: Any, init_model: Any, *, offset_given: bool) -> Model | None:
    """Return the model of a fitted estimator, whose inputs and targets an estimator then reads; None without one.

    Raises TypeError if `init_model` is no model of this kind, and NotFittedError if it is not fitted.
    """
    if init_model is None:
        return None
    kind = "BoostBPClassifier" if is_classifier(estimator) else "BoostBPRegressor"
    if isinstance(init_model, str | os.PathLike):
        path = os.fspath(init_model)
        raise TypeError(f"init_model={path!r} is a path: give the model in it, init_model=boostbp.load({path!r}).")
    known = hasattr(init_model, "_with_offset") and is_classifier(init_model) == is_classifier(estimator)
    if not known:
        raise TypeError(f"init_model={checks.shown(init_model)} is not supported: give a fitted {kind}.")
    check_is_fitted(init_model)
    earlier: Model = init_model.model_
    if earlier.with_offset and not offset_given:
        raise ValueError(
            "init_model was fitted with an offset, but this fit has none: pass offset=..., with 0 for rows without one."
        )
    if constrained(estimator):
        raise ValueError(
            "init_model is not supported with monotone_constraints: what it predicts need not keep to them. Train on "
            "all rows at once, or give its predictions as offset, which are not of the model then."
        )
    if not isinstance(earlier.network, Network):
        raise TypeError(f"init_model is a {type(init_model).__name__}, which is no sum of trees: give a fitted {kind}.")
    for name in ("n_features_in_", "feature_names_in_"):  # an input has no names if its table had none
        vars(estimator).pop(name, None)
        if hasattr(init_model, name):
            setattr(estimator, name, getattr(init_model, name))
    return earlier


def check_sum(earlier: Network, settings: Settings, *, networks: bool) -> None:
    """Refuse new layers, by the settings of their network, that cannot stand in one with those of an earlier one.

    `networks` says whether that network may be trained.
    """
    there, wanted = len(earlier.layers) - 1, len(settings.units) if networks else 0
    if there and wanted and there != wanted:
        raise ValueError(
            f"hidden_layer_sizes={settings.units!r} has {wanted} hidden layers, init_model has {there}, which cannot "
            "stand in one network: use as many, or deep=False, which adds single layers."
        )
    for old, new in zip(reversed(earlier.layers), reversed(settings.layers), strict=False):
        forest, functions = old.forest, new.basis.has_functions or old.forest.basis.has_functions
        if len(forest.leaves.column) and (forest.clip != new.clip or (functions and forest.basis != new.basis)):
            raise ValueError(
                f"init_model has leaves on {forest.basis!r} with clip={forest.clip}, this estimator on {new.basis!r} "
                f"with clip={new.clip}, which cannot stand in one network: use the same."
            )


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
        with joined(problem.rows.group):
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
        with joined(rows.group):
            return summary_of(network, rows.table, rows.weight, n_threads=n_threads)


@dataclass(frozen=True, slots=True)
class FitOptions:
    """What `fit` is told of one training alone: it belongs to the process that trains, not to the model."""

    callbacks: Any = None
    checkpoint: Any = None
    keep_state: Any = False  # whether the estimator keeps the state of training, for `fit_more`
    earlier: Model | None = None  # the model whose network the trained one is added to

    def checked_callbacks(self) -> list[Callback]:
        """Return the user's callbacks; the checkpoint comes last, after the epoch's other work."""
        if callable(self.callbacks):
            raise ValueError(f"callbacks={self.callbacks!r} is a single function: give a list, such as [function].")
        if not isinstance(self.callbacks, list | tuple | None):
            raise ValueError(f"callbacks={checks.shown(self.callbacks)} is not allowed: give a list of functions.")
        callbacks = list(self.callbacks or ())
        for number, callback in enumerate(callbacks):
            _check_callback(number, callback)
        if self.checkpoint is not None:
            callbacks.append(checkpoint(checks.file("checkpoint", self.checkpoint)))
        for callback in callbacks:
            if isinstance(callback, Checkpoint):  # known now, and not after the first epoch
                check_writable(callback.path)
        return callbacks


def start_fit(estimator: Any, training: Training, run: FitOptions, *, n_rows: int) -> None:
    """Train an estimator, from the start or from the checkpoint, on so many rows of this process."""
    checks.one_of("keep_state", run.keep_state, (True, False))
    written = [callback for callback in run.checked_callbacks() if isinstance(callback, Checkpoint)]
    path = written[-1].path if written else None
    if path is not None and not isinstance(estimator.random_state, Integral):
        raise ValueError(
            f"random_state={estimator.random_state!r} with checkpoint={str(path)!r} would begin another training each "
            "time: give a whole number, such as random_state=0."
        )
    _train(estimator, training, checkpoints.find(path, n_rows), run)


def continue_fit(estimator: Any, epochs: int, run: FitOptions) -> None:
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
    _train(estimator, replace(training, problem=problem), state, run)


def all_or_nothing(fit: F) -> F:
    """Make a fit that fails leave the estimator as it was: never a network of one fit with the columns of another.

    What interrupted the training, and warnings of the model where warnings are errors, is raised once the estimator has
    the model. A fit is the same for any number of BLAS's threads and for any `np.seterr`. Its `X` may be a path or an
    iterator of blocks.
    """
    method = cast(FunctionType, fit)

    @wraps(fit)
    @usual_floats()
    @interrupts.deferred()
    @threads.single_threaded_blas()
    def whole(*args: Any, **options: Any) -> Any:
        estimator = args[0]
        refuse_unknown(method, type(estimator), options)
        X = args[1] if len(args) > 1 else options.get("X")
        before = dict(vars(estimator))
        try:
            fitted = fit_blocks(fit, *args, **options) if is_blocks(X) else fit(*args, **options)
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


def _check_callback(number: int, callback: Any) -> None:
    """Refuse what is no function of our progress."""
    names = {*dir(type(callback)), *getattr(callback, "__dict__", ())}
    if names.intersection(_FOREIGN):
        raise ValueError(
            f"callbacks[{number}]={callback!r} is a callback of {type(callback).__module__}, which could not read "
            "the progress of a training here: use the parameters n_iter_no_change (of backprop) and verbose, or "
            "early_stopping, log_evaluation and record of boostbp.callbacks."
        )
    if not callable(callback):
        raise ValueError(f"callbacks[{number}]={callback!r} cannot be called: give functions of the progress.")
    try:
        inspect.signature(callback).bind(None)
    except TypeError as error:
        raise ValueError(
            f"callbacks[{number}]={callback!r} does not take the progress as its one argument ({error}): write "
            "def callback(progress)."
        ) from error
    except ValueError:  # a compiled function without a signature
        pass


def _no_report(stage: Stage | str) -> None:
    """Report nothing."""


def _train(estimator: Any, training: Training, resume: State | None, run: FitOptions) -> None:
    callbacks = run.checked_callbacks()
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

    if run.keep_state:
        callbacks.append(keep)
    try:
        with told_to(_no_report if shown is None else shown.compiling):
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
    if run.keep_state:
        estimator._training = replace(training, state=states[-1] if states else resume)
    else:
        vars(estimator).pop("_training", None)
    if any(isinstance(callback, StopOnInterrupt) for callback in callbacks):
        history.interrupt = None
