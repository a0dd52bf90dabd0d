"""Session: one fit of an estimator from its start, with callbacks, a checkpoint, blocks of rows, and `fit_more`.

A fit that fails leaves the estimator as it was.
"""

from __future__ import annotations

import copy
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from traceback import clear_frames
from typing import Any, NamedTuple, Protocol

import numpy as np

from boostbp.ensemble.plan import Way
from boostbp.estimators.arguments import Arguments
from boostbp.estimators.data import Reader, read_data
from boostbp.estimators.parameter_use import warn_after
from boostbp.estimators.request import Request
from boostbp.estimators.training import Training, training_of
from boostbp.inputs.blocks import rows_of
from boostbp.inputs.disk_arrays import on_disk
from boostbp.inputs.sources import is_blocks
from boostbp.model.health import warn_if_ill
from boostbp.model.model import Model
from boostbp.network import checkpoints
from boostbp.network.callbacks import Checkpoint, StopOnInterrupt, log_evaluation
from boostbp.network.displays import ProgressBar, current_display, showing
from boostbp.network.monitor import Progress, State
from boostbp.runtime import checks, clock, interrupts, messages
from boostbp.runtime.arrays import numpy_errstate
from boostbp.runtime.group import training_in
from boostbp.runtime.threads import single_threaded_blas


class Trainable(Reader, Protocol):
    """An estimator, whose attributes a fit sets."""

    model_: Model
    verbose: Any

    def _plan(self, training: Training) -> Training: ...


class Trained(NamedTuple):
    """What a session leaves in an estimator."""

    model: Model
    way: Way
    kept: Training | None  # for `fit_more`, if the user requested it


def run_fit(estimator: Trainable, arguments: Arguments) -> None:
    """Train an estimator, and store the model in it."""
    with _all_or_nothing(estimator) as clock_of_fit:
        request = Request.of(estimator, arguments)
        in_blocks = request.task is not None and is_blocks(arguments.X)
        trained = _from_blocks(estimator, request) if in_blocks else _run(_begin(estimator, request))
        _store(estimator, trained)
    _tell(trained, request, clock_of_fit.interrupt)


def run_more(estimator: Trainable, epochs: int, arguments: Arguments) -> None:
    """Train an estimator for `epochs` more epochs; patience and time start anew."""
    with _all_or_nothing(estimator) as clock_of_fit:
        epochs = checks.whole("epochs", epochs, 1)
        training: Training | None = vars(estimator).get("_training")
        if training is None or training.state is None:
            limit = None if training is None else training.problem.settings.max_time
            if limit is not None:
                raise ValueError(
                    f"fit_more needs a network, and max_time={limit!r} left none: call fit with a longer max_time."
                )
            raise ValueError(
                "fit_more needs the state of training, which was not kept (files and copies never contain it): "
                "call fit with keep_state=True, or with checkpoint= and again with more epochs."
            )
        state = replace(training.state, elapsed=0.0, since=training.state.epoch)
        settings = replace(training.problem.settings, epochs=state.epoch + epochs)
        request, problem = replace(training.request, arguments=arguments), replace(training.problem, settings=settings)
        trained = _run(replace(training, request=request, problem=problem, state=state))
        _store(estimator, trained)
    _tell(trained, request, clock_of_fit.interrupt)


@contextmanager
def _all_or_nothing(estimator: Trainable) -> Iterator[clock.Clock]:
    """Restore the attributes of an estimator if its fit fails, so that no parts of two fits are combined.

    The fit does not depend on the number of BLAS threads or on `np.seterr`.
    """
    attributes = dict(vars(estimator))
    with clock.counting(), numpy_errstate(), interrupts.deferred(), single_threaded_blas():
        try:
            with showing(estimator.verbose):
                yield clock.of_fit()
        except BaseException as error:
            vars(estimator).clear()
            vars(estimator).update(attributes)
            messages.shorten(error)
            raise


def _store(estimator: Trainable, trained: Trained) -> None:
    """Set the fitted attributes of an estimator."""
    estimator.model_ = trained.model
    vars(estimator).pop("_training", None)
    if trained.kept is not None:
        vars(estimator)["_training"] = trained.kept


def _tell(trained: Trained, request: Request, interrupt: KeyboardInterrupt | None) -> None:
    """Warn of what a fit found, and raise the interrupt that ended it, now that the estimator has its model."""
    history = trained.model.history
    try:
        warn_if_ill(history)
        if history.choice is not None and trained.way is Way.AVERAGE:
            warn_after(request, history.choice)
    finally:
        if interrupt is not None:
            raise interrupt


def _begin(estimator: Trainable, request: Request) -> Training:
    """Return the training of a fit, which goes on from the state in its checkpoint file if there is one."""
    data, drawn = read_data(estimator, request)
    training = estimator._plan(training_of(request, data, drawn))
    training.warn()
    return replace(training, state=_state_to_resume(request, n_rows=len(drawn[0])))


def _state_to_resume(request: Request, *, n_rows: int) -> State | None:
    """Return the state in the checkpoint file of a fit, None without one; this process has `n_rows` rows."""
    checks.one_of("keep_state", request.arguments.keep_state, (True, False))
    paths = [callback.path for callback in request.arguments.checked_callbacks() if isinstance(callback, Checkpoint)]
    path, random_state = paths[-1] if paths else None, request.values["random_state"]
    if path is not None and not checks.is_whole(random_state):
        raise ValueError(
            f"random_state={random_state!r} with checkpoint={str(path)!r} would start a new training each time: give "
            "a whole number, such as random_state=0."
        )
    return None if path is None else checkpoints.find(path, n_rows)


def _from_blocks(estimator: Trainable, request: Request) -> Trained:
    """Train on a path or an iterator of blocks; the model is the same as with these rows as arrays."""
    passed = request.arguments
    if passed.keep_state:
        raise ValueError(
            f"keep_state={passed.keep_state!r} is not supported with rows that are read block by block: the "
            "state is as large as they are. Use checkpoint=..., which stores it in a file."
        )
    y, schema = passed.y, getattr(passed.init_model, "schema_", None)
    named = {name: getattr(passed, name) for name in ("y", "sample_weight", "offset", "groups")}
    how: Any = {"kind": request.task, "categorical_features": request.values["categorical_features"], "schema": schema}
    with on_disk():
        X, columns = rows_of(passed.X, named, **how)
        request = replace(request, arguments=replace(passed, X=X, **columns))
        try:
            trained = _run(_begin(estimator, request))
        except BaseException as error:
            clear_frames(error.__traceback__)  # frames would keep arrays, and their disk space
            raise
        finally:
            del X, columns, request
            gc.collect()  # a training refers to its rows in a cycle
    model = trained.model
    # copies that are not in the files of the fit
    targets = model.targets
    if targets.multilabel and schema is None and isinstance(y, list | tuple) and isinstance(y[0], str):
        targets = replace(targets, classes=np.array(y))  # several labels have the names of their columns
    names = ("network", "calibration", "event_times", "hazard")
    copied = {name: copy.deepcopy(getattr(model, name)) for name in names}
    return trained._replace(model=replace(model, targets=targets, **copied))


def _run(training: Training) -> Trained:
    """Run a training, with callbacks for its display and for the state that is kept."""
    arguments, display = training.request.arguments, current_display()
    callbacks = arguments.checked_callbacks()
    if display is not None:
        callbacks.append(display if isinstance(display, ProgressBar) else log_evaluation())
    states: list[State] = []

    def keep(progress: Progress) -> None:
        states[:] = [replace(progress.state(), origin="the state that fit kept")]

    if arguments.keep_state:
        callbacks.append(keep)
    train = training.call(callbacks, bool if display is None else display.stage)
    with training_in(training.problem.rows.group):
        network, history = train()
    model = training.model(network, history)
    if any(isinstance(callback, StopOnInterrupt) for callback in callbacks):
        clock.of_fit().interrupt = None
    kept = training.kept(states[-1] if states else training.state) if arguments.keep_state else None
    return Trained(model, training.plan.way, kept)
