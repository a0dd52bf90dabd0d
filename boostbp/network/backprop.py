"""Algorithm 1: forward, backward, move, refit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Table
from boostbp.losses import Loss
from boostbp.metrics import Metric
from boostbp.network.fingerprint import fingerprint
from boostbp.network.history import History, Stop
from boostbp.network.monitor import Callback, EvalSet, Monitor, Progress
from boostbp.network.network import Network
from boostbp.network.resume import capture, restore
from boostbp.network.settings import Settings
from boostbp.network.state import State
from boostbp.network.trainer import DivergenceError, Trainer
from boostbp.trees import interrupts

__all__ = ["Callback", "EvalSet", "Progress", "Settings", "train"]

Floats = NDArray[np.float64]


def train(
    table: Table,
    y: Floats,
    *,
    backend: Backend,
    loss: Loss,
    settings: Settings,
    weight: Floats,
    eval_sets: Sequence[EvalSet] = (),
    metric: Metric | None = None,
    outcome: Callable[[Floats], Floats] | None = None,
    callbacks: Sequence[Callback] = (),
    resume: State | None = None,
) -> tuple[Network, History]:
    """Train a network by back-propagation.

    Parameters
    ----------
    table : Table
        h_0, (rows, features).
    y : (rows, outputs) float64
        Targets in the loss's shape.
    weight : (rows,) float64
    eval_sets : sequence of EvalSet
        The first one chooses the best epoch, by `metric`.
    outcome : callable, optional
        Raw output to what `metric` compares with the targets of the evaluation sets; the loss's link if left out.
    callbacks : sequence of callable
        See `Callback`.
    resume : State, optional
        Of an earlier training on the same data with the same settings; this one goes on from there.

    Returns
    -------
    network : Network
        Of the best epoch; without evaluation sets, of the last.
    history : History
    """
    trainer = Trainer(table, y, backend, loss, settings, weight)
    history = History(metric=metric.name if metric and eval_sets else "")
    monitor = Monitor(history, eval_sets, metric, outcome or loss.link, callbacks, settings)
    of_what = cache(
        partial(fingerprint, table, y, weight, eval_sets, settings=settings, backend=backend, loss=loss, metric=metric)
    )
    monitor.state = lambda: capture(trainer, monitor, of_what())
    # so many held-out rows can be looked at beside the training rows without its showing in the time
    probed = eval_sets[0].some(max(100, min(1000, len(y) // 10))) if eval_sets else None
    try:
        with interrupts.deferred():  # and raised between rounds, where no object is half made and none is being freed
            stop = None
            if resume is not None:
                restore(resume, trainer, monitor, of_what())
                stop = monitor.again(trainer.network) if resume.since < resume.epoch else None
            while stop is None and trainer.epoch < settings.epochs:
                interrupts.check()
                begun = time.perf_counter()
                try:
                    trainer.step()
                except DivergenceError:
                    stop = Stop.NOT_FINITE
                else:
                    stop = (
                        monitor.see(trainer.network, trainer.record(probed), begun)
                        if trainer.bounded
                        else Stop.NOT_FINITE
                    )
            history.stop = stop or Stop.EPOCHS
            if stop is Stop.NOT_FINITE:
                monitor.restore_lowest_loss()
    except KeyboardInterrupt as interrupt:
        if monitor.best is None:
            raise
        history.interrupted(interrupt)
    if monitor.best is None:
        raise FloatingPointError(Stop.NOT_FINITE.value)
    return monitor.best, history
