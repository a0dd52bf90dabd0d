"""Callbacks: what may happen after each epoch, in the style of LightGBM and XGBoost.

A callback is anything that can be called with a `Progress`; returning True stops the training, and the
best epoch is restored. These look at the history only, so they work in a fit that is resumed too: it
calls them once more with the epoch that it goes on from.

>>> from sklearn.datasets import load_diabetes
>>> from boostbp import BoostBPRegressor, callbacks
>>> X, y = load_diabetes(return_X_y=True)
>>> seen = {}
>>> def plateau(progress):  # one's own
...     losses = progress.history.loss
...     return len(losses) > 3 and losses[-1] > 0.999 * losses[-2]
>>> model = BoostBPRegressor(
...     (4,),
...     epochs=4,
...     deep=True,
...     random_state=0,
... ).fit(
...     X[100:],
...     y[100:],
...     eval_set=[(X[:100], y[:100])],
...     callbacks=[callbacks.early_stopping(3), callbacks.record(seen), callbacks.time_limit(60), plateau],
... )
>>> len(seen["valid_0"]["rmse"]) == len(model.history_)
True
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from boostbp.network import checkpoints
from boostbp.network.history import Epoch
from boostbp.network.monitor import Progress, Stage
from boostbp.network.network import Network

__all__ = [
    "Checkpoint",
    "ProgressBar",
    "StageLog",
    "StopOnInterrupt",
    "checkpoint",
    "early_stopping",
    "log_evaluation",
    "record",
    "record_networks",
    "show_log",
    "stop_on_interrupt",
    "time_limit",
]

log = logging.getLogger("boostbp")


def early_stopping(rounds: int, *, min_delta: float = 0.0, name: str | None = None) -> Callable[[Progress], bool]:
    """Stop when the metric of an evaluation set has not improved for so many epochs.

    Parameters
    ----------
    rounds : int
        Epochs to wait.
    min_delta : float
        Improvements up to this do not count.
    name : str or None
        The evaluation set: one of `eval_names`, "valid_0", "valid_1", ..., or "held_out"; None is the first one.

    Raises
    ------
    ValueError
        At once if `rounds` is less than 1; in the first epoch if there is no such evaluation set.
    """
    _at_least_one("rounds", rounds)
    return _EarlyStopping(rounds, min_delta, name)


def log_evaluation(period: int = 1) -> Callable[[Progress], None]:
    """Log loss and metrics to the logger ``boostbp``, level INFO, every `period` epochs and in the last one."""
    _at_least_one("period", period)
    return _LogEvaluation(period)


def record(into: dict[str, Any]) -> Callable[[Progress], None]:
    """Keep all figures in a dict of yours: ``{"train": {"loss": [...]}, "valid_0": {"rmse": [...]}, ...}``."""
    return _Record(into)


def record_networks(into: dict[int, Network], epochs: Collection[int] | None = None) -> Callable[[Progress], None]:
    """Keep the network of each epoch, or of some, in a dict of yours: ``{0: network, 1: network, ...}``.

    `boostbp.plots.representations` draws any rows through them. A network is as large as the model.
    """
    return _RecordNetworks(into, epochs)


def time_limit(seconds: float) -> Callable[[Progress], bool]:
    """Stop after the epoch in which so many seconds of training, those before a resume included, are used up."""
    if not seconds > 0:
        raise ValueError(f"seconds={seconds!r} is not a positive number: give the seconds that training may take.")
    return _TimeLimit(seconds)


# Objects of classes, not functions within functions: a fitted estimator holds its callbacks, and pickle cannot write a
# function that has no name in its module.


@dataclass(frozen=True, slots=True)
class _EarlyStopping:
    rounds: int
    min_delta: float
    name: str | None

    def __call__(self, progress: Progress) -> bool:
        values = _values(progress, self.name)
        sign = 1.0 if progress.greater_is_better else -1.0
        best, at = sign * values[0], 0
        for epoch, value in enumerate(values):
            if sign * value > best + self.min_delta:
                best, at = sign * value, epoch
        return len(values) - 1 - at >= self.rounds


@dataclass(frozen=True, slots=True)
class _LogEvaluation:
    period: int

    def __call__(self, progress: Progress) -> None:
        number = progress.epoch.epoch
        if number % self.period == 0 or number == progress.epochs:
            log.info(
                "epoch %d/%d  %s  %.2f s", number, progress.epochs, _figures(progress.epoch), progress.epoch.seconds
            )


@dataclass(frozen=True, slots=True)
class _TimeLimit:
    seconds: float

    def __call__(self, progress: Progress) -> bool:
        return sum(epoch.seconds for epoch in progress.history.epochs) >= self.seconds


@dataclass(frozen=True, slots=True)
class _Into:
    """A callback that writes into a dict of the user's, into which its copies and those of `clone` write, too."""

    into: dict[Any, Any]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class _Record(_Into):
    def __call__(self, progress: Progress) -> None:
        history = progress.history
        for name in progress.epoch.metrics:
            self.into[name] = {history.metric: history.metrics(name)}
        self.into["train"] = self.into.get("train", {}) | {"loss": history.loss}


@dataclass(frozen=True, slots=True)
class _RecordNetworks(_Into):
    epochs: Collection[int] | None

    def __call__(self, progress: Progress) -> None:
        if self.epochs is None or progress.epoch.epoch in self.epochs:
            self.into[progress.epoch.epoch] = progress.network


@dataclass(frozen=True, slots=True)
class StopOnInterrupt:
    """What `stop_on_interrupt` returns: a fit asks for its presence."""

    def __call__(self, progress: Progress) -> None:
        """Do nothing."""


def stop_on_interrupt() -> StopOnInterrupt:
    """Let Ctrl-C stop the training as other callbacks do: `fit` returns, and ``history_.stop`` says why.

    Without it `fit` raises KeyboardInterrupt, with the same model in the estimator. Before the first epoch there is
    none, and it raises in any case.
    """
    return StopOnInterrupt()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What `checkpoint` returns.

    Attributes
    ----------
    path : Path
    every : int
    """

    path: Path
    every: int

    def __call__(self, progress: Progress) -> None:
        """Write the state, if it is time."""
        if progress.epoch.epoch % self.every == 0 or progress.epoch.epoch == progress.epochs:
            checkpoints.write(self.path, progress.state())


def checkpoint(path: str | os.PathLike[str], every: int = 1) -> Checkpoint:
    """Write the whole state of training to a file, every so many epochs and in the last one.

    A fit that finds the file goes on from it, and ends in the same model, bit for bit, as one that was
    never interrupted. ``checkpoint=path`` of `fit` is this with ``every=1``.

    Parameters
    ----------
    path : str or path
        Written atomically: it holds a whole state at any time. Give each training a file of its own: of two that
        write to one, the last one wins.
    every : int
        Epochs from one writing to the next.
    """
    _at_least_one("every", every)
    return Checkpoint(Path(path), every)


class _Lenient:
    """A stream of which nobody need read: what cannot be written is left out."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # its reader has gone; it is closed, or cannot spell this
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ProgressBar:
    """A bar of tqdm; ``verbose=1`` shows it.

    Of a network it has epoch, training loss, metrics and the time left; of an ensemble the work, what is trained, and
    the held-out loss. Without a standard error, as in services, there is none.
    """

    def __init__(self) -> None:
        self._bar: Any = None
        self._of_stages = False

    def __call__(self, progress: Progress) -> None:
        """Move the bar after an epoch; that of an ensemble only shows its figures."""
        number, figures = progress.epoch.epoch, _figures(progress.epoch)
        if self._of_stages:
            self._show(f"epoch {number}  {figures}", None)
        elif self._open(total=progress.epochs, initial=number, desc="boostbp", unit="epoch"):
            self._show(figures, number)

    def stage(self, stage: Stage) -> None:
        """Move the bar of an ensemble."""
        self._of_stages = True
        form = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}{postfix}]"
        if self._open(total=100, desc="boostbp", bar_format=form):
            self._bar.set_description_str(f"boostbp, {stage.name}", refresh=False)
            self._show(f"held-out loss {stage.score:.6g}, models: {stage.n_models}", int(100 * min(stage.share, 1.0)))

    def _open(self, **how: Any) -> bool:
        """Whether there is a bar, which is made if there is none yet."""
        if self._bar is None and sys.stderr is not None:
            from tqdm.auto import tqdm

            self._bar = tqdm(**how, file=_Lenient(sys.stderr))
        return self._bar is not None

    def _show(self, figures: str, number: int | None) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(figures, refresh=False)
            self._bar.update(0 if number is None else number - self._bar.n)
            self._bar.refresh()

    def __getstate__(self) -> dict[str, Any]:
        """What copies have: the bar itself is drawn by this process."""
        return {"_bar": None, "_of_stages": False}

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class StageLog:
    """Logs the stages of an ensemble to the logger ``boostbp``, level INFO, as another one begins; ``verbose=2``."""

    def __init__(self) -> None:
        self._begun, self._last = time.perf_counter(), ""

    def stage(self, stage: Stage) -> None:
        """Log a stage if it is another one."""
        if stage.name != self._last:
            self._last = stage.name
            log.info(
                "%s, %.1f s: held-out loss %.6g, models %d",
                stage.name, time.perf_counter() - self._begun, stage.score, stage.n_models,
            )  # fmt: skip


def show_log() -> None:
    """Let the logger ``boostbp`` write to the standard error, if no logging was set up."""
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)


def _figures(epoch: Epoch) -> str:
    return "  ".join([f"loss {epoch.loss:.6g}", *(f"{name} {value:.6g}" for name, value in epoch.metrics.items())])


def _values(progress: Progress, name: str | None) -> list[float]:
    names = list(progress.epoch.metrics)
    if not names:
        raise ValueError(
            "early_stopping(...) has no evaluation set to look at: pass eval_set to fit, or early_stopping=True."
        )
    if name is not None and name not in names:
        raise ValueError(f"early_stopping(name={name!r}): the evaluation sets are {', '.join(map(repr, names))}.")
    return progress.history.metrics(name or names[0])


def _at_least_one(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value!r} is not a number of epochs: give a whole number of at least 1.")
