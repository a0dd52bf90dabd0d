"""The task of a training, its evaluation sets, and the monitor of its epochs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from boostbp.backends.base import Backend
from boostbp.inputs.rows import Rows
from boostbp.losses import Loss
from boostbp.metrics import Metric
from boostbp.network.history import Epoch, History, Stop
from boostbp.network.layers import Layer
from boostbp.network.layers.layer import first_rounds, stage_forests, stages
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.runtime import clock
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers


@dataclass(frozen=True, slots=True)
class State:
    """A training after an epoch, from which it can continue."""

    # (rows, units) each, not copies: hidden variables h_1 .. h_L, the gradients of the loss in them, and their momenta
    h: tuple[Floats, ...]
    g: tuple[Floats, ...]
    m: tuple[Floats, ...]
    random: Mapping[str, Any]  # state of the random generator
    network: Network  # of this epoch
    best: Network  # of the best epoch
    lowest_loss: Network | None  # of the epoch of lowest training loss, if no metric chooses the best epoch
    history: History
    elapsed: float  # seconds of training so far
    fingerprint: Mapping[str, str]  # the data and parameters of the training; see `boostbp.network.fingerprint`
    since: int = -1  # epoch at which the user asked for more epochs, from which patience counts; -1 for none
    origin: str = ""  # source of the state as the user wrote it, for errors
    # number of rows that each of several workers wrote to a file of its own; empty if `h`, `g` and `m` are here
    rows: tuple[int, ...] = ()

    @property
    def epoch(self) -> int:
        """Number of the last epoch."""
        return len(self.history) - 1


@dataclass(frozen=True, slots=True)
class Progress:
    """What a callback receives after each epoch.

    Attributes
    ----------
    epoch : Epoch
    epochs : int
        Number of the last epoch, unless training stops earlier.
    history : History
    network : Network
    greater_is_better : bool
        Whether larger metrics are better.
    state : callable
        ``state() -> State`` returns the state from which the training can continue.
    """

    epoch: Epoch
    epochs: int
    history: History
    network: Network
    greater_is_better: bool
    state: Callable[[], State]


@dataclass(frozen=True, slots=True)
class Stage:
    """The stage that the fit of an ensemble has reached."""

    name: str  # of the candidates in training
    share: float  # of the fit's limit on work that is spent; the fit may end before the limit
    score: float  # held-out loss of the sum of the models so far
    n_models: int  # in the sum
    hint: str = ""  # a sentence for the user, sent once


class StageSeconds:
    """Seconds of each stage of a fit, measured by its reports, which are passed on."""

    def __init__(self, first: str, report: Callable[[Stage], object]) -> None:
        self.seconds: dict[str, float] = {}  # by name of the stage, in the order in which the stages began
        self._report, self._name, self._begun = report, first, time.perf_counter()

    def __call__(self, stage: Stage) -> None:
        """Begin or continue a stage, and pass the report on."""
        self.end()
        self._name = stage.name
        self._report(stage)

    def end(self) -> None:
        """Add the seconds until now to the present stage."""
        now = time.perf_counter()
        self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._begun
        self._begun = now


Callback = Callable[[Progress], object]
"""Called after each epoch; returning True stops the training."""


@dataclass(frozen=True, slots=True)
class EvalSet:
    """Rows that score a model during training, and are not trained on."""

    name: str
    rows: Rows
    # whether the fit held them out of the training rows; the chosen model may then be refitted on them
    from_training: bool = False


def raw_output(raw: Floats) -> Floats:
    """Return the raw output itself."""
    return raw


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Evaluation sets and the metric that models are compared by."""

    sets: tuple[EvalSet, ...] = ()  # the first one chooses the epoch and the weights of candidates
    metric: Metric | None = None
    # converts a raw output, offset included, to the values that `metric` compares with targets
    outcome: Callable[[Floats], Floats] = raw_output

    def score(self, raw: Floats, rows: Rows) -> float:
        """Return the metric of a raw output without its offset, (rows, outputs)."""
        assert self.metric is not None
        return self.metric(self.outcome(raw + rows.offset), rows.y, rows.weight)

    def scores(self, network: Network, n_threads: int) -> dict[str, float]:
        """Return the metric of a network on each evaluation set, by name; empty without a metric."""
        if self.metric is None:
            return {}
        return {part.name: self.score(network.predict(part.rows.X, n_jobs=n_threads), part.rows) for part in self.sets}


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTask:
    """What a network is trained on, and how."""

    rows: Rows  # training rows: h_0, targets as the loss takes them, weights and offsets
    backend: Backend
    loss: Loss
    settings: Settings  # of the network; for an ensemble they are the user's, and candidates change them
    evaluation: Evaluation = Evaluation()  # its first set chooses the best epoch, and weighs candidates
    callbacks: Sequence[Callback] = ()
    resume: State | None = None  # state of an earlier training on the same data, which this one continues


@dataclass
class Monitor:
    """Records epochs, keeps the best network and decides when to stop."""

    history: History
    evaluation: Evaluation
    callbacks: Sequence[Callback]
    settings: Settings
    state: Callable[[], State]  # what callbacks receive as `Progress.state`
    best: Network | None = None  # of the best epoch; without evaluation sets, of the last one
    lowest_loss: Network | None = None  # of the epoch of lowest training loss, without evaluation sets
    since: int = -1  # patience counts from this epoch, or from the best epoch after it
    begun: float = field(default_factory=lambda: clock.of_fit().begun)

    @property
    def sign(self) -> float:
        """Factor with which a larger metric is better."""
        metric = self.evaluation.metric
        return 1.0 if metric is not None and metric.greater_is_better else -1.0

    def on_epoch_end(self, network: Network, record: Epoch, begun: float) -> Stop | None:
        """Score and record an epoch that began at `begun`; return a reason if training is to stop."""
        # Score the network that would be kept, which has the best number of output rounds.
        network = self._cut(network)
        metrics = workers().agree(self.evaluation.scores(network, self.settings.n_threads))
        epoch = replace(record, metrics=metrics, seconds=time.perf_counter() - begun)
        self._keep(network, epoch)
        self.history.epochs.append(epoch)
        return self._verdict(network)

    def recheck(self, network: Network) -> Stop | None:
        """Return a reason to stop right after the epoch from which a training continues."""
        return self._verdict(self._cut(network))

    def _cut(self, network: Network) -> Network:
        """Return the network with the rounds of a boosted output layer that are best on the first evaluation set."""
        metric, outcome = self.evaluation.metric, self.evaluation.outcome
        if metric is None or not self.evaluation.sets or self.settings.output_target != "loss":
            return network
        rows, n_threads = self.evaluation.sets[0].rows, self.settings.n_threads
        forest = network.layers[-1].forest
        h = network.output_input(rows.X, n_jobs=n_threads)
        numbers, start = stages(self.settings.layers[-1].n_estimators), network.baseline + rows.offset
        raw, scores = np.zeros(()), list[float]()
        for part in stage_forests(forest, numbers):
            raw = raw + part.predict(h, n_threads)
            scores.append(self.sign * metric(outcome(raw + start), rows.y, rows.weight))
        best = workers().agree(numbers[scores.index(max(scores))])
        if best == numbers[-1]:
            return network
        return replace(network, layers=(*network.layers[:-1], Layer(first_rounds(forest, best))))

    def _keep(self, network: Network, epoch: Epoch) -> None:
        """Keep the network of an epoch that is not in the history yet, if it is the best one."""
        history = self.history
        if not epoch.metrics:
            if epoch.loss < min(history.loss, default=np.inf):
                self.lowest_loss = network
        elif self.best is not None:
            name = self.evaluation.sets[0].name
            if not self.sign * epoch.metrics[name] > self.sign * history[history.best_epoch].metrics[name]:
                return
        self.best, history.best_epoch = network, epoch.epoch

    def restore_lowest_loss(self) -> None:
        """Go back to the epoch of lowest training loss after a divergence, if no metric chose the best epoch."""
        if self.lowest_loss is not None:
            self.best, self.history.best_epoch = self.lowest_loss, int(np.argmin(self.history.loss))

    def _verdict(self, network: Network) -> Stop | None:
        """Return a reason if training is to stop; the clock and callbacks of rank 0 decide for all workers."""
        group = workers()
        progress = Progress(self.history[-1], self.settings.epochs, self.history, network, self.sign > 0.0, self.state)
        marked = [callback for callback in self.callbacks if getattr(callback, "of_all_workers", False)]
        collective = [] if group.is_single else marked
        on_rank_0 = [callback for callback in self.callbacks if callback not in collective]
        # One clock and one set of callbacks decide. Otherwise workers would stop at different epochs, and wait forever.
        verdict = group.agree(self._verdict_here(progress, on_rank_0) if group.rank == 0 else None)
        for callback in collective:
            callback(progress)
        return verdict

    def _verdict_here(self, progress: Progress, callbacks: Sequence[Callback]) -> Stop | None:
        settings, history = self.settings, self.history
        answers = [callback(progress) for callback in callbacks]
        if any(isinstance(answer, (bool, np.bool_)) and answer for answer in answers):
            return Stop.CALLBACK
        # Epochs since the best one, or since `fit_more` asked for further ones.
        waited = progress.epoch.epoch - max(history.best_epoch, self.since)
        if settings.n_iter_no_change is not None and history.metric and waited >= settings.n_iter_no_change:
            return Stop.PATIENCE
        ends = time.perf_counter() + progress.epoch.seconds  # of one more epoch
        if settings.max_time is not None and ends - self.begun >= settings.max_time:
            return Stop.TIME
        return None
