"""Callbacks: functions that run after each epoch, in the style of LightGBM and XGBoost, and displays of the progress.

A callback is anything that can be called with a `Progress`. If it returns True, training stops and the best epoch is
restored. The callbacks here read only the history, so they also work in a resumed fit. Such a fit first calls them with
the last epoch of the earlier training.

>>> from sklearn.datasets import load_diabetes
>>> from boostbp import BoostBPRegressor, callbacks
>>> X, y = load_diabetes(return_X_y=True)
>>> seen = {}
>>> def plateau(progress):  # a callback of your own
...     losses = progress.history.loss
...     return len(losses) > 3 and losses[-1] > 0.999 * losses[-2]
>>> watch = [callbacks.early_stopping(3), callbacks.record(seen), callbacks.time_limit(60), plateau]
>>> model = BoostBPRegressor((4,), epochs=4, deep=True, random_state=0)
>>> model = model.fit(X[100:], y[100:], eval_set=[(X[:100], y[:100])], callbacks=watch)
>>> len(seen["valid_0"]["rmse"]) == len(model.history_)
True
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from boostbp.network import checkpoints
from boostbp.network.displays import ProgressBar, figures, log
from boostbp.network.monitor import Progress
from boostbp.network.network import Network
from boostbp.runtime import checks
from boostbp.runtime.messages import require

__all__ = [
    "Checkpoint",
    "ProgressBar",
    "StopOnInterrupt",
    "checkpoint",
    "early_stopping",
    "log_evaluation",
    "optuna_pruning",
    "record",
    "record_networks",
    "stop_on_interrupt",
    "time_limit",
]


# Callbacks are partials and objects, not nested functions: a fitted estimator may hold its callbacks, and pickle cannot
# write nested functions.


def early_stopping(rounds: int, *, min_delta: float = 0.0, name: str | None = None) -> Callable[[Progress], bool]:
    """Stop when the metric on an evaluation set has not improved for some epochs.

    Parameters
    ----------
    rounds : int
        Epochs to wait.
    min_delta : float
        An improvement counts if it is larger than this.
    name : str or None
        Name of the evaluation set: one of `eval_names`, "valid_0", "valid_1", ..., or "held_out"; None for the first.

    Raises
    ------
    ValueError
        If `rounds` is less than 1, or, in the first epoch, if there is no such evaluation set.
    """
    return partial(_waited, checks.whole("rounds", rounds, 1), min_delta, name)


def _waited(rounds: int, min_delta: float, name: str | None, progress: Progress) -> bool:
    values = _values(progress, name, "early_stopping")
    sign = 1.0 if progress.greater_is_better else -1.0
    best, at = sign * values[0], 0
    for epoch, value in enumerate(values):
        if sign * value > best + min_delta:
            best, at = sign * value, epoch
    return len(values) - 1 - at >= rounds


def log_evaluation(period: int = 1) -> Callable[[Progress], None]:
    """Log loss and metrics to the logger ``boostbp``, level INFO, every `period` epochs and in the last epoch."""
    return partial(_log, checks.whole("period", period, 1))


def _log(period: int, progress: Progress) -> None:
    number = progress.epoch.epoch
    if number % period == 0 or number == progress.epochs:
        log.info("epoch %d/%d  %s  %.2f s", number, progress.epochs, figures(progress.epoch), progress.epoch.seconds)


def optuna_pruning(trial: Any, *, name: str | None = None) -> Callable[[Progress], None]:
    """Report the metric after each epoch to a trial of Optuna, and end the trial if the study's pruner decides so.

    The metric is that of the user's network, even if the model is an average with others.

    Parameters
    ----------
    trial : optuna.trial.Trial
    name : str or None
        Name of the evaluation set, as in `early_stopping`.

    Raises
    ------
    optuna.TrialPruned
        Raised through `fit`, so that the study counts the trial as pruned.
    ValueError
        In the first epoch if there is no such evaluation set, or the study optimises in the other direction.
    """
    return partial(_prune, trial, name)


def _prune(trial: Any, name: str | None, progress: Progress) -> None:
    optuna = require("optuna", extra="optuna", what="optuna_pruning(...)")
    value = _values(progress, name, "optuna_pruning")[-1]
    direction = "MAXIMIZE" if progress.greater_is_better else "MINIMIZE"
    # A FixedTrial has no study.
    study = getattr(trial, "study", None)
    directions = [direction] if study is None else [of_study.name for of_study in study.directions]
    if directions != [direction]:
        fault = f"the directions of the study are {directions}, and trials are compared by {progress.history.metric!r}"
        cure = f"use create_study(direction={direction.lower()!r}), or another eval_metric"
        raise ValueError(f"optuna_pruning(trial): {fault}: {cure}.")
    trial.report(value, progress.epoch.epoch)
    if trial.should_prune():
        raise optuna.TrialPruned(f"Pruned after epoch {progress.epoch.epoch}.")


def record(into: dict[str, Any]) -> Callable[[Progress], None]:
    """Record all figures in a dict: ``{"train": {"loss": [...]}, "valid_0": {"rmse": [...]}, ...}``."""
    return _Into(into, _record)


def _record(into: dict[Any, Any], progress: Progress) -> None:
    history = progress.history
    for name in progress.epoch.metrics:
        into[name] = {history.metric: history.metrics(name)}
    into["train"] = into.get("train", {}) | {"loss": history.loss}


def record_networks(into: dict[int, Network], epochs: Collection[int] | None = None) -> Callable[[Progress], None]:
    """Record the network of each epoch, or of some epochs, in a dict: ``{0: network, 1: network, ...}``.

    `boostbp.plots.representations` draws the hidden variables of any rows from them. Each network is as large as the
    model.
    """
    return _Into(into, partial(_record_network, epochs))


def _record_network(epochs: Collection[int] | None, into: dict[Any, Any], progress: Progress) -> None:
    if epochs is None or progress.epoch.epoch in epochs:
        into[progress.epoch.epoch] = progress.network


@dataclass(frozen=True, slots=True)
class _Into:
    """A callback that writes into the user's dict. Copies, such as those of `clone`, write into the same dict."""

    into: dict[Any, Any]
    write: Callable[[dict[Any, Any], Progress], None]

    def __call__(self, progress: Progress) -> None:
        self.write(self.into, progress)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def time_limit(seconds: float) -> Callable[[Progress], bool]:
    """Stop after the epoch in which the training has taken these seconds, including those before it was resumed."""
    if not seconds > 0:
        raise ValueError(f"seconds={seconds!r} is not a positive number: give the seconds that training may take.")
    return partial(_time_is_up, seconds)


def _time_is_up(seconds: float, progress: Progress) -> bool:
    return sum(epoch.seconds for epoch in progress.history.epochs) >= seconds


@dataclass(frozen=True, slots=True)
class StopOnInterrupt:
    """Let Ctrl-C stop the training like a callback: `fit` returns, and ``history_.stop`` gives the reason.

    Without this callback, `fit` raises KeyboardInterrupt, and the estimator has the same model. Before the first epoch
    there is no model, and `fit` always raises.
    """

    def __call__(self, progress: Progress) -> None:
        """Do nothing: a fit checks whether this callback is present."""


stop_on_interrupt = StopOnInterrupt


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The callback that `checkpoint` returns."""

    path: Path
    every: int
    # All workers call it, as each writes its rows; rank 0 alone calls other callbacks.
    of_all_workers: ClassVar[bool] = True

    def __call__(self, progress: Progress) -> None:
        """Write the state every `every` epochs and in the last epoch."""
        if progress.epoch.epoch % self.every == 0 or progress.epoch.epoch == progress.epochs:
            checkpoints.write_state(self.path, progress.state())


def checkpoint(path: str | os.PathLike[str], every: int = 1) -> Checkpoint:
    """Write the whole state of training to a file, every `every` epochs and in the last epoch.

    A fit that finds the file continues from it. The model is the same, bit for bit, as without the interruption.
    ``checkpoint=path`` of `fit` is this callback with ``every=1``.

    Parameters
    ----------
    path : str or path
        Path of the file. It is written atomically, so it always holds a complete state. Each training needs its own
        file: if two trainings write to the same file, it has the state of the last one.
    every : int
        Epochs between two states.
    """
    return Checkpoint(Path(path), checks.whole("every", every, 1))


def _values(progress: Progress, name: str | None, callback: str) -> list[float]:
    names = list(progress.epoch.metrics)
    if not names:
        raise ValueError(f"{callback}(...) has no evaluation set: pass eval_set to fit, or early_stopping=True.")
    if name is not None and name not in names:
        raise ValueError(f"{callback}(name={name!r}): the evaluation sets are {', '.join(map(repr, names))}.")
    return progress.history.metrics(name or names[0])
