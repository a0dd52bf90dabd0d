"""Back-propagation (Algorithm 1) as a training that can stop after an epoch, be stored as a state, and resume."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np

from boostbp.network.fingerprint import fingerprint
from boostbp.network.history import History, Stop
from boostbp.network.layers.bound import LayerSettings
from boostbp.network.monitor import Monitor, NetworkTask, State
from boostbp.network.network import Network
from boostbp.network.trainer import Trainer
from boostbp.runtime import clock, interrupts
from boostbp.runtime.group import workers
from boostbp.trees.forest import Forest


class BackPropagation:
    """A training by back-propagation that can stop after any epoch and continue.

    Once it is `finished`, its `history` has the reason.
    """

    def __init__(self, task: NetworkTask) -> None:
        self.settings = task.settings
        metric, eval_sets = task.evaluation.metric, task.evaluation.sets
        self.history = History(metric=metric.name if metric and eval_sets else "")
        self.finished = False
        self._trainer = Trainer(task.rows, task.backend, task.loss, task.settings)
        self._monitor = Monitor(self.history, task.evaluation, task.callbacks, task.settings, self._state)
        self._fingerprint = cache(partial(fingerprint, task, self._trainer.loss.loss))
        self._resume = task.resume
        # With this many held-out rows, probes take little time compared to an epoch.
        [n_rows] = workers().sum(len(task.rows))
        self._probed = eval_sets[0].rows.spaced(max(100, min(1000, int(n_rows) // 10))) if eval_sets else None

    @property
    def epoch(self) -> int:
        """Number of the last epoch, or of the epoch to resume after; -1 before the first."""
        return self._trainer.epoch if self._resume is None else self._resume.epoch

    @property
    def network(self) -> Network:
        """The network of the best epoch so far; without evaluation sets, of the last."""
        if self._monitor.best is None:
            raise clock.of_fit().interrupt or FloatingPointError(Stop.NOT_FINITE.value)
        return self._monitor.best

    def advance(self, until: int | None = None) -> None:
        """Train until the epoch `until`, or to the end.

        Raises FloatingPointError if the network diverged in its first epoch, and KeyboardInterrupt if Ctrl-C ended the
        training; `network` is then that of the best epoch so far.
        """
        trainer, monitor = self._trainer, self._monitor
        last = self.settings.epochs if until is None else min(until, self.settings.epochs)
        try:
            # An interrupt is deferred to the end of a round, where all objects are consistent.
            with interrupts.deferred():
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
        except KeyboardInterrupt:
            self.leave(Stop.INTERRUPTED)
            raise
        if monitor.best is None:
            raise FloatingPointError(Stop.NOT_FINITE.value)

    def leave(self, stop: Stop) -> None:
        """End the training for the reason `stop`."""
        self.history.stop, self.finished = stop, True

    def _begin(self) -> Stop | None:
        """Restore the earlier state, if there is one and this was not done; return a reason to stop there, if any.

        Raises ValueError if the state belongs to other data or other parameters; the message names them.
        """
        state, self._resume = self._resume, None
        if state is None:
            return None
        trainer, monitor = self._trainer, self._monitor
        _check(state, self.settings.epochs, self._fingerprint())
        _check_shapes(state, trainer)
        trainer.epoch, trainer.losses, trainer.T = state.epoch, state.history.loss, list(state.network.layers)
        # h_0 is the input and does not move: its gradient and momentum are placeholders.
        trainer.h = [trainer.rows.X, *state.h]
        trainer.g, trainer.m = ([np.empty((0, 0)), *arrays] for arrays in (state.g, state.m))
        trainer.rng.bit_generator.state = dict(copy.deepcopy(state.random))
        monitor.best, monitor.lowest_loss, monitor.since = state.best, state.lowest_loss, state.since
        monitor.begun = time.perf_counter() - state.elapsed
        self.history.epochs, self.history.best_epoch = list(state.history.epochs), state.history.best_epoch
        return monitor.recheck(trainer.network) if state.since < state.epoch else None

    def _state(self) -> State:
        """Return the state after the last epoch that the monitor has seen."""
        trainer, monitor = self._trainer, self._monitor
        assert monitor.best is not None
        h, g, m = (tuple(arrays[1:]) for arrays in (trainer.h, trainer.g, trainer.m))
        random, networks = trainer.rng.bit_generator.state, (trainer.network, monitor.best, monitor.lowest_loss)
        history = replace(self.history, epochs=list(self.history.epochs))
        elapsed = time.perf_counter() - monitor.begun
        return State(h, g, m, random, *networks, history, elapsed, self._fingerprint(), monitor.since)


def _check(state: State, epochs: int, fingerprint: Mapping[str, str]) -> None:
    other = [
        f"{name} differs" if now.startswith("sha256:") else f"{name} was {state.fingerprint.get(name)}, is {now}"
        for name, now in fingerprint.items()
        if state.fingerprint.get(name) != now
    ]
    if other:
        raise ValueError(f"{state.origin} belongs to another fit: {'; '.join(other)}. Start anew without it.")
    if state.epoch > epochs:
        raise ValueError(f"epochs={epochs} is less than the {state.epoch} epochs of {state.origin}: give more.")


def _check_shapes(state: State, trainer: Trainer) -> None:
    """Refuse arrays and trees whose sizes do not fit this training: the fingerprint in a file may be false."""
    rows, settings, wrong = trainer.rows, trainer.settings, ""
    sizes = (*settings.units, len(trainer.baseline))
    shapes = [h.shape for h in state.h]
    if shapes != [(len(rows), size) for size in sizes]:
        wrong = f"hidden variables of the shapes {shapes}"
    elif state.network.skip != settings.skip or state.network.layers[0].forest.n_features != rows.X.shape[1]:
        wrong = f"a network of {state.network.layers[0].forest.n_features} features"
    else:
        for layer, of_layer in zip(state.network.layers, settings.layers, strict=True):
            wrong = wrong or _structure_of_another(layer.forest, of_layer)
    if wrong:
        raise ValueError(f"{state.origin} is not consistent: it holds {wrong}. Start anew without it.")


def _structure_of_another(forest: Forest, settings: LayerSettings) -> str:
    """Return in words why a forest cannot have been fitted with some settings; "" if it may have been.

    Code that reuses its structures needs them in the order of the rounds, each with a leaf regression of the basis.
    """
    leaves, native = forest.leaves, settings.leaves == "native"
    if forest.basis != settings.basis or forest.clip != settings.clip:
        return f"trees on the basis {forest.basis!r} with clip={forest.clip}"
    # A ridge base is one tree of one leaf, an additive base a tree for each feature that has functions.
    fewest, most = {None: (0, 0), "ridge": (1, 1), "additive": (1, forest.n_features)}[settings.base]
    if not fewest <= forest.n_base <= most:
        return f"a base of {forest.n_base} trees"
    served = [[0, forest.n_outputs]] if settings.growth.multi_output else [[j, 1] for j in range(forest.n_outputs)]
    by_rounds = np.tile(served, (settings.n_estimators, 1))
    if settings.n_estimators and not native and not np.array_equal(leaves.tree_output[forest.n_base :], by_rounds):
        return "trees in another order than that of the rounds"
    if not (leaves.tree_degree[forest.n_base :] == (1 if native else settings.basis.powers)).all():
        return "leaf regressions of another degree"
    most = int(np.diff(forest.tree_split)[forest.n_base :].max(initial=0)) + 1
    return f"trees of {most} leaves" if most > settings.growth.leaves and not native else ""
