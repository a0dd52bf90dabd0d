"""Back-propagation as in Algorithm 1: a training that can be left at an epoch, stored as a state, and resumed."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from boostbp.backends.base import Backend
from boostbp.inputs.rows import Rows
from boostbp.layers import Fit
from boostbp.layers.rounds import structure_of_another
from boostbp.losses import Loss
from boostbp.network.eval_sets import NO_EVALUATION, Evaluation
from boostbp.network.fingerprint import fingerprint
from boostbp.network.history import History, Stop
from boostbp.network.monitor import Callback, Monitor, State
from boostbp.network.network import Network, layer_input
from boostbp.network.settings import Settings
from boostbp.network.trainer import Trainer
from boostbp.runtime import interrupts
from boostbp.runtime.group import workers


class BackPropagation:
    """A training by back-propagation that can stop at some epoch and go on.

    Parameters
    ----------
    rows : Rows
        Training rows: h_0, targets as the loss takes them, weights and offsets.
    evaluation : Evaluation
        Its first evaluation set chooses the best epoch.
    callbacks : sequence of callable
        See `Callback`.
    resume : State, optional
        State of an earlier training on the same data with the same settings, from which this one goes on.

    Attributes
    ----------
    history : History
        The epochs so far. Its `stop` is valid once `finished`.
    finished : bool
        Whether training is over, for the reason in the history.
    """

    def __init__(
        self,
        rows: Rows,
        *,
        backend: Backend,
        loss: Loss,
        settings: Settings,
        evaluation: Evaluation = NO_EVALUATION,
        callbacks: Sequence[Callback] = (),
        resume: State | None = None,
    ) -> None:
        self.settings = settings
        metric, eval_sets = evaluation.metric, evaluation.sets
        self.history = History(metric=metric.name if metric and eval_sets else "")
        self.finished = False
        self._trainer = Trainer(rows, backend, loss, settings)
        self._monitor = Monitor(self.history, evaluation, callbacks, settings, self._state)
        self._fingerprint = cache(
            partial(fingerprint, rows, evaluation, settings=settings, backend=backend, loss=self._trainer.loss.loss)
        )
        self._resume = resume
        # Probes on this many held-out rows take no noticeable time beside an epoch.
        [n_rows] = workers().sum(len(rows))
        self._probed = eval_sets[0].rows.spaced(max(100, min(1000, int(n_rows) // 10))) if eval_sets else None

    @property
    def epoch(self) -> int:
        """Number of the last epoch that was run, or of the one to go on from; -1 before the first."""
        return self._trainer.epoch if self._resume is None else self._resume.epoch

    @property
    def network(self) -> Network:
        """The network of the best epoch so far; without evaluation sets, of the last."""
        if self._monitor.best is None:
            raise FloatingPointError(Stop.NOT_FINITE.value)
        return self._monitor.best

    def advance(self, until: int | None = None) -> None:
        """Train until the epoch of this number, or to the end.

        Raises
        ------
        FloatingPointError
            If the network diverged in its first epoch.
        KeyboardInterrupt
            If it came in the first epoch. A later one is in the history, and training is over.
        """
        trainer, monitor = self._trainer, self._monitor
        last = self.settings.epochs if until is None else min(until, self.settings.epochs)
        try:
            with interrupts.deferred():  # interrupts are raised between rounds, where all objects are whole
                stop = self._begin()
                while stop is None and trainer.epoch < last:
                    interrupts.check()
                    begun = time.perf_counter()
                    trainer.step()
                    if trainer.bounded:
                        stop = monitor.on_epoch_end(trainer.network, trainer.record(self._probed), begun)
                    else:
                        stop = Stop.NOT_FINITE
                if stop is Stop.NOT_FINITE:
                    monitor.restore_lowest_loss()
                if stop is not None or trainer.epoch >= self.settings.epochs:
                    self.leave(stop or Stop.EPOCHS)
        except KeyboardInterrupt as interrupt:
            if monitor.best is None:
                raise
            self.history.interrupted(interrupt)
            self.finished = True
        if monitor.best is None:
            raise FloatingPointError(Stop.NOT_FINITE.value)

    def leave(self, stop: Stop) -> None:
        """End the training for this reason."""
        self.history.stop, self.finished = stop, True

    def _begin(self) -> Stop | None:
        """Restore the earlier state, if there is one that is not restored; return a reason to stop there, if any."""
        resume, self._resume = self._resume, None
        if resume is None:
            return None
        _restore(resume, self._trainer, self._monitor, self._fingerprint())
        return self._monitor.recheck(self._trainer.network) if resume.since < resume.epoch else None

    def _state(self) -> State:
        """Return the state after the last epoch that the monitor has seen."""
        trainer, monitor = self._trainer, self._monitor
        assert monitor.best is not None
        return State(
            trainer.epoch,
            tuple(trainer.h[1:]),
            tuple(trainer.g[1:]),
            tuple(trainer.m[1:]),
            trainer.drift,
            trainer.r2,
            trainer.rng.bit_generator.state,
            trainer.network,
            monitor.best,
            monitor.best_score,
            monitor.lowest_loss,
            replace(monitor.history, epochs=list(monitor.history.epochs)),
            time.perf_counter() - monitor.begun,
            self._fingerprint(),
            monitor.since,
        )


def _restore(state: State, trainer: Trainer, monitor: Monitor, fingerprint: Mapping[str, str]) -> None:
    """Put a training that has not begun into a state.

    Raises ValueError if the state belongs to other data or other parameters; the message names them.
    """
    _check(state, trainer.settings.epochs, fingerprint)
    _check_shapes(state, trainer)
    trainer.epoch, trainer.drift, trainer.r2, trainer.losses = state.epoch, state.drift, state.r2, state.history.loss
    trainer.h = [trainer.rows.X, *state.h]
    trainer.g, trainer.m = ([np.empty((0, 0)), *arrays] for arrays in (state.g, state.m))
    trainer.rng.bit_generator.state = dict(copy.deepcopy(state.random))
    trainer.T = []
    for i, (layer, output) in enumerate(zip(state.network.layers, trainer.h[1:], strict=True)):
        h = layer_input(trainer.h[: i + 1], skip=state.network.skip)
        trainer.T.append(Fit(layer, output, layer.trace(h, n_jobs=trainer.settings.n_threads)))
    trainer.T[-1] = trainer.T[-1]._replace(output=trainer.T[-1].output - trainer.baseline)
    monitor.best, monitor.best_score, monitor.lowest_loss = state.best, state.best_score, state.lowest_loss
    monitor.since = state.since
    monitor.history.epochs = list(state.history.epochs)
    monitor.history.best_epoch = state.history.best_epoch
    monitor.begun = time.perf_counter() - state.elapsed


def _check(state: State, epochs: int, fingerprint: Mapping[str, str]) -> None:
    other = [
        f"{name} differs" if now.startswith("sha256:") else f"{name} was {state.fingerprint.get(name)}, is {now}"
        for name, now in fingerprint.items()
        if state.fingerprint.get(name) != now
    ]
    if other:
        raise ValueError(
            f"{state.origin} belongs to another fit: {'; '.join(other)}. "
            "Pass what it was fitted to, or start anew without it."
        )
    if state.epoch > epochs:
        raise ValueError(
            f"epochs={epochs} is less than the {state.epoch} epochs of {state.origin}: give a larger number."
        )


def _check_shapes(state: State, trainer: Trainer) -> None:
    """Refuse arrays and trees whose sizes do not fit this training, as a file may hold a false fingerprint."""
    rows, settings, wrong = trainer.rows, trainer.settings, ""
    sizes = (*settings.units, rows.y.shape[1])
    shapes = [h.shape for h in state.h]
    if shapes != [(len(rows), size) for size in sizes]:
        wrong = f"hidden variables of the shapes {shapes}"
    elif state.network.skip != settings.skip or state.network.layers[0].forest.n_features != rows.X.shape[1]:
        wrong = f"a network of {state.network.layers[0].forest.n_features} features"
    else:
        for layer, of_layer in zip(state.network.layers, settings.layers, strict=True):
            wrong = wrong or structure_of_another(layer.forest, of_layer)
    if wrong:
        raise ValueError(f"{state.origin} is not consistent: it holds {wrong}. Start anew without it.")
