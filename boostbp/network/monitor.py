"""Monitor: what is recorded after each epoch, which one is kept, when training stops, and its state to go on from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boostbp.layers import Layer, rounds
from boostbp.network.eval_sets import Evaluation
from boostbp.network.history import Epoch, History, Stop
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.runtime.arrays import Floats
from boostbp.runtime.compiling import working_time
from boostbp.runtime.group import workers

COMPILING = "compiling"  # the stage of a fit in which loops are compiled; time limits exclude it
_SHORT = 0.5  # seconds below which it is not reported
LowestLoss = tuple[float, Network | None, int]


@dataclass(frozen=True, slots=True)
class State:
    """Training after an epoch; its arrays are those of training, not copies."""

    epoch: int
    # tuples of (rows, units) float64: hidden variables h_1 .. h_L and the gradients of the loss in them
    h: tuple[Floats, ...]
    g: tuple[Floats, ...]
    m: tuple[Floats, ...]  # tuple of (rows, units) float64: momentum of each
    drift: tuple[float, ...]
    r2: tuple[float, ...]
    random: Mapping[str, Any]  # state of the random generator
    network: Network  # as it stands
    best: Network  # of the best epoch
    best_score: float
    # the epoch of the least training loss, if no metric chooses the best one: loss, network, number
    lowest_loss: LowestLoss
    history: History
    elapsed: float  # seconds of training so far
    fingerprint: Mapping[str, str]  # what was trained on, and how; see `fingerprint`
    since: int = -1  # epoch at which more epochs were asked for; patience counts from there
    origin: str = ""  # where the state comes from, as the user wrote it, for errors
    # how many rows each of several workers wrote to a file of its own; empty if `h`, `g` and `m` are here
    rows: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """What a callback sees after each epoch.

    Attributes
    ----------
    epoch : Epoch
    epochs : int
        Number of the last one, if nothing stops training before.
    history : History
    network : Network
    greater_is_better : bool
        Whether larger metrics are better.
    state : callable
        ``state() -> State``: all that training needs to go on from here.
    """

    epoch: Epoch
    epochs: int
    history: History
    network: Network
    greater_is_better: bool
    state: Callable[[], State]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the fit of an ensemble stands."""

    name: str  # what is trained
    share: float  # share of the work that the fit may cost; it may end before all of it is spent
    score: float  # loss on the held-out rows of the sum of what there is
    n_models: int  # number of models in it
    hint: str = ""  # what is to be said of the fit, once; "" for nothing


class StageSeconds:
    """Seconds of each stage of a fit, told of as it begins; `told` passes the word on."""

    def __init__(self, first: str, told: Callable[[Stage], object]) -> None:
        self.seconds: dict[str, float] = {}  # by name of the stage, in the order in which they began
        self._told, self._name = told, first
        self._begun, self._wall = working_time(), time.perf_counter()

    def __call__(self, stage: Stage) -> None:
        """Begin a stage, or go on with it."""
        self.end()
        self._name = stage.name
        self._told(stage)

    def end(self) -> None:
        """Count the seconds until now."""
        now, wall = working_time(), time.perf_counter()
        self._count(self._name, now - self._begun)
        self._count(COMPILING, (wall - self._wall) - (now - self._begun))
        self._begun, self._wall = now, wall

    def _count(self, name: str, seconds: float) -> None:
        if name != COMPILING or seconds >= _SHORT:  # loading takes milliseconds
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds


Callback = Callable[[Progress], object]
"""Called after each epoch; returning True stops the training."""


class Monitor:
    """Records epochs, keeps the best network and says when to stop."""

    def __init__(
        self,
        history: History,
        evaluation: Evaluation,
        callbacks: Sequence[Callback],
        settings: Settings,
    ) -> None:
        self.history, self.evaluation, self.metric = history, evaluation, evaluation.metric
        self.callbacks, self.settings = callbacks, settings
        self.begun = working_time()
        self.best: Network | None = None
        self.best_score = -np.inf
        self.lowest_loss: LowestLoss = (np.inf, None, 0)
        self.since = -1  # patience counts from here, or from the best epoch after it
        self.state: Callable[[], State]

    def on_epoch_end(self, network: Network, record: Epoch, begun: float) -> Stop | None:
        """Look at the network after an epoch that began at `begun`; a reason if training is to stop."""
        network = self._used(network)
        metrics = workers().agree(self.evaluation.scores(network, self.settings.n_threads))
        epoch = replace(record, metrics=metrics, seconds=working_time() - begun)
        self.history.epochs.append(epoch)
        self._keep(network, epoch)
        return self._verdict(network)

    def recheck(self, network: Network) -> Stop | None:
        """Look once more at the last epoch, of a training that goes on from there."""
        return self._verdict(self._used(network))

    def _used(self, network: Network) -> Network:
        """The network as it would be kept."""
        if self.metric is not None and self.evaluation.sets and self.settings.output_target == "loss":
            return self._cut(network)
        return network

    def _cut(self, network: Network) -> Network:
        """The network with as many rounds of its output layer as the first evaluation set likes best."""
        assert self.metric is not None
        rows, n_threads = self.evaluation.sets[0].rows, self.settings.n_threads
        layer = self.settings.layers[-1]
        forest = network.layers[-1].forest
        h = network.output_input(rows.X, n_jobs=n_threads)
        numbers, start = rounds.stages(layer.n_estimators), network.baseline + rows.offset
        sign = 1.0 if self.metric.greater_is_better else -1.0
        scores = {
            number: sign * self.metric(self.evaluation.outcome(raw + start), rows.y, rows.weight)
            for number, raw in rounds.staged(forest, h, numbers, n_threads=n_threads)
        }
        best = workers().agree(max(numbers, key=lambda number: scores[number]))
        if best == numbers[-1]:
            return network
        return replace(network, layers=(*network.layers[:-1], Layer(rounds.first_rounds(forest, best))))

    def _keep(self, network: Network, epoch: Epoch) -> None:
        if self.metric is None or not epoch.metrics:
            self.best, self.history.best_epoch = network, epoch.epoch
            if epoch.loss < self.lowest_loss[0]:
                self.lowest_loss = (epoch.loss, network, epoch.epoch)
            return
        value = epoch.metrics[self.evaluation.sets[0].name]
        score = value if self.metric.greater_is_better else -value
        if self.best is None or score > self.best_score:
            self.best, self.best_score, self.history.best_epoch = network, score, epoch.epoch

    def restore_lowest_loss(self) -> None:
        """After the numbers diverged, if no metric chose the best epoch: back to that of the least training loss."""
        if np.isfinite(self.lowest_loss[0]):
            _, self.best, self.history.best_epoch = self.lowest_loss

    def _verdict(self, network: Network) -> Stop | None:
        """A reason if training is to stop: that of rank 0, whose clock and callbacks decide for all workers."""
        group = workers()
        greater_is_better = self.metric is not None and self.metric.greater_is_better
        progress = Progress(
            self.history[-1], self.settings.epochs, self.history, network, greater_is_better, self.state
        )
        apart: list[Callback] = []
        together: list[Callback] = []
        for callback in self.callbacks:
            (together if getattr(callback, "of_all_workers", False) and not group.is_single else apart).append(callback)
        verdict = group.agree(self._verdict_here(progress, apart) if group.rank == 0 else None)
        for callback in together:
            callback(progress)
        return verdict

    def _verdict_here(self, progress: Progress, callbacks: Sequence[Callback]) -> Stop | None:
        settings, history = self.settings, self.history
        answers = [callback(progress) for callback in callbacks]
        if any(isinstance(answer, (bool, np.bool_)) and answer for answer in answers):
            return Stop.CALLBACK
        waited = progress.epoch.epoch - max(history.best_epoch, self.since)
        if settings.n_iter_no_change is not None and history.metric and waited >= settings.n_iter_no_change:
            return Stop.PATIENCE
        if settings.max_time is not None and working_time() - self.begun >= settings.max_time:
            return Stop.TIME
        return None
