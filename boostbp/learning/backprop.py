"""Algorithm 1: forward, backward, move, refit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Table
from boostbp.learning import layer as layers
from boostbp.learning.history import Epoch, History, Stop
from boostbp.learning.layer import BoundInput, LayerSettings, SquaredTo
from boostbp.learning.losses import Loss
from boostbp.learning.metrics import Metric
from boostbp.learning.network import Network
from boostbp.learning.starts import Start, projection
from boostbp.learning.steps import Memory, Normalised, Step, spread

__all__ = ["Callback", "EvalSet", "Progress", "Settings", "train"]

Floats = NDArray[np.float64]
GROW = 1.2  # a step that went well may be followed by one this much larger, up to alpha
FAR = 1e8  # a hidden variable this many initial spreads away has exploded


@dataclass(frozen=True, slots=True)
class Settings:
    """How a network is trained.

    Attributes
    ----------
    layers : tuple of LayerSettings
        One for each T_i, i = 0 .. L-1.
    units : tuple of int
        Size of each hidden layer, L-1 numbers.
    epochs : int
    step : Step
        How hidden variables move (alpha and mu).
    start : Start
    refit_order : {"upward", "downward"}
        Downward as in Algorithm 1: from the output layer to the input, each layer on its old input.
        Upward: from the input to the output, each layer on the new output of the one below.
    output : {"boost", "move"}
        Fit the output layer by boosting on the loss itself, or, as in Algorithm 1, to ``h_L - alpha g_L``.
    n_iter_no_change : int or None
        Stop when the metric of the first evaluation set has not improved for so many epochs.
    tol : float
        Improvements up to this do not count.
    max_rise : float or None
        Take an epoch back that raises the training loss by more than this share, and halve the step; None: never.
    max_time : float or None
        Seconds after which no new epoch begins.
    n_threads : int
    seed : int
    """

    layers: tuple[LayerSettings, ...]
    units: tuple[int, ...]
    epochs: int = 30
    step: Step = field(default_factory=Normalised)
    start: Start = projection
    refit_order: Literal["upward", "downward"] = "upward"
    output: Literal["boost", "move"] = "boost"
    n_iter_no_change: int | None = None
    tol: float = 0.0
    max_rise: float | None = 0.02
    max_time: float | None = None
    n_threads: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class EvalSet:
    """Rows that are watched but not learned from: `y` as `Metric` wants it, (rows, outputs)."""

    name: str
    X: Floats
    y: Floats
    weight: Floats


@dataclass(frozen=True, slots=True)
class Progress:
    """What a callback sees after each epoch."""

    epoch: Epoch
    epochs: int
    history: History
    network: Network


Callback = Callable[[Progress], object]
"""Called after each epoch; returning True stops the training."""


@dataclass(frozen=True, slots=True)
class BoostTo:
    """Objective of an output layer that is boosted on the loss itself.

    The running fit of the layer starts from `baseline`, (outputs,); `y` and `weight` as in the loss.
    """

    loss: Loss
    y: Floats
    weight: Floats
    baseline: Floats

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.y.shape[1]

    @property
    def separable(self) -> bool:
        """Whether the outputs can be boosted one by one: a single one, or independent losses."""
        return self.n_outputs == 1 or self.loss.scale_free

    def gradient(self, fit: Floats, outputs: slice) -> tuple[Floats, Floats]:
        """Weighted gradient and hessian of the loss, each (rows, outputs)."""
        h, y = fit + self.baseline[outputs], self.y[:, outputs]
        weight = self.weight[:, None]
        return weight * self.loss.gradient(h, y), weight * self.loss.hessian(h, y)


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

    Returns
    -------
    network : Network
        Of the best epoch; without evaluation sets, of the last.
    history : History
    """
    run = _Run(table, y, backend, loss, settings, weight)
    history = History(metric=metric.name if metric and eval_sets else "")
    watch = _Watch(history, eval_sets, metric, outcome or loss.link, callbacks, settings)
    try:
        begun = time.perf_counter()
        run.initialise()
        stop = watch.see(run, begun)
        while stop is None and run.epoch < settings.epochs:
            begun = time.perf_counter()
            run.step()
            stop = watch.see(run, begun)
        history.stop = stop or Stop.EPOCHS
    except KeyboardInterrupt:
        if watch.best is None:
            raise
        history.stop = Stop.INTERRUPTED
    assert watch.best is not None
    return watch.best, history


class _Run:
    """The moving parts of Algorithm 1: T_i, h_i, traces, momenta."""

    def __init__(
        self, table: Table, y: Floats, backend: Backend, loss: Loss, settings: Settings, weight: Floats
    ) -> None:
        self.y, self.backend, self.loss, self.settings, self.weight = y, backend, loss, settings, weight
        self.rng = np.random.default_rng(settings.seed)
        self.L = len(settings.layers)
        self.table = table
        self.input: BoundInput | None = None  # h_0 never changes: binned once
        # Algorithm 1 fits the output from 0; a boosted output starts from the best constant
        self.baseline = loss.baseline(y, weight) if settings.output == "boost" else np.zeros(y.shape[1])
        self.epoch = 0
        self.h: list[Floats] = [table.X]
        self.g: list[Floats] = []
        self.memory: list[Memory] = []
        self.T: list[layers.Fit] = []
        self.loss_now = np.inf
        self.alpha = settings.step.alpha
        self.drift: tuple[float, ...] = ()
        self.r2: tuple[float, ...] = ()

    @property
    def network(self) -> Network:
        """The network as it stands."""
        return Network(tuple(fitted.layer for fitted in self.T), self.baseline)

    @property
    def finite(self) -> bool:
        """Whether every hidden variable is still finite and within bounds."""
        return all(np.isfinite(h).all() and np.abs(h).max(initial=0.0) < FAR for h in self.h[1:])

    def initialise(self) -> None:
        """Start the hidden variables and fit each layer to them, from the input up."""
        self.r2 = ()
        for i, units in enumerate(self.settings.units):
            target = self.settings.start(self._numeric(i), self.weight, units, self.rng)
            self._append(i, target)
        baseline = np.broadcast_to(self.baseline, self.y.shape)
        step = self.settings.step
        self._append(self.L - 1, baseline - step.alpha * self.loss.gradient(baseline, self.y))
        self.memory = [Memory.of(h) for h in self.h]
        self.drift = (0.0,) * (self.L - 1)
        self._backward()

    def step(self) -> None:
        """One epoch; one that raises the loss too far is taken back, and the next moves half as far."""
        before = (self.h, self.g, self.T, self.memory, self.loss_now)
        self.epoch += 1
        self._refit()
        rise = self.settings.max_rise
        if rise is None:
            return
        if self.loss_now <= before[-1] * (1 + rise) or not np.isfinite(before[-1]):
            self.alpha = min(self.settings.step.alpha, GROW * self.alpha)
            return
        self.h, self.g, self.T, self.memory, self.loss_now = before
        self.alpha *= 0.5
        self.drift = (0.0,) * (self.L - 1)

    def _refit(self) -> None:
        """Move the hidden variables and fit every layer again."""
        old = self.h
        self.T, self.memory = list(self.T), list(self.memory)
        targets = self._move()
        if self.settings.refit_order == "downward":
            for i in range(self.L, 0, -1):
                self.T[i - 1] = self._fit(i - 1, old[i - 1], targets[i])
            self._forward()
        else:
            self.h, self.T = [old[0]], []
            for i in range(1, self.L + 1):
                self._append(i - 1, targets[i])
        fitted = [fit.output for fit in self.T[:-1]] + [self.T[-1].output + self.baseline]
        self.r2 = tuple(
            float("nan") if i == self.L and self.settings.output == "boost" else _r2(targets[i], fit, self.weight)
            for i, fit in enumerate(fitted, start=1)
        )
        self.drift = tuple(_drift(old[i], self.h[i], self.weight) for i in range(1, self.L))
        self._backward()

    def _forward(self) -> None:
        """h_{i+1} = T_i(h_i)."""
        self.h = [self.h[0]]
        for i in range(self.L):
            if i == 0:
                output = self.T[0].output  # fitted on h_0 just now
            else:
                output, trace = self.T[i].layer.forward(self.h[i], n_jobs=self.settings.n_threads)
                self.T[i] = self.T[i]._replace(trace=trace)
            self.h.append(output)
        self.h[-1] = self.h[-1] + self.baseline

    def _backward(self) -> None:
        """g_L = dL/dh_L, then g_{i-1} = (dh_i/dh_{i-1})' g_i down to the first hidden layer."""
        self.loss_now = float(self.weight @ self.loss.value(self.h[-1], self.y) / self.weight.sum())
        g = self.loss.gradient(self.h[self.L], self.y)
        self.g = [g]
        for i in range(self.L, 1, -1):
            g = self.T[i - 1].trace.vjp(g)
            self.g.insert(0, g)
        self.g.insert(0, np.empty((0, 0)))  # h_0 does not move

    def _move(self) -> list[Floats]:
        """Targets h_i - alpha m_i; entry 0 is a placeholder, as h_0 does not move."""
        step = replace(self.settings.step, alpha=self.alpha)
        targets = [self.h[0]]
        for i in range(1, self.L + 1):
            if i == self.L and self.settings.output == "boost":
                targets.append(self.h[i])
                continue
            target, self.memory[i] = step.move(self.h[i], self.memory[i], self.g[i], self.weight)
            targets.append(target)
        return targets

    def _append(self, i: int, target: Floats) -> None:
        """Fit T_i on the h_i of now and go forward through it."""
        fitted = self._fit(i, self.h[i], target)
        self.T.append(fitted)
        self.h.append(fitted.output + self.baseline if i == self.L - 1 else fitted.output)

    def _fit(self, i: int, h: Floats, target: Floats) -> layers.Fit:
        """Fit T_i from scratch: h -> target, by squared error, or by boosting if it is the output layer."""
        settings = self.settings
        bound = self._bind(i, h)
        last = i == self.L - 1
        objective: layers.Objective
        if last and settings.output == "boost":
            objective = BoostTo(self.loss, self.y, self.weight, self.baseline)
        else:
            objective = SquaredTo(target - self.baseline if last else target, self.weight)
        seed = int(self.rng.integers(2**30))
        return layers.fit(bound, objective, n_threads=settings.n_threads, seed=seed)

    def _bind(self, i: int, h: Floats) -> BoundInput:
        if i > 0:
            return BoundInput(self.backend, Table(h), self.settings.layers[i], self.weight)
        if self.input is None:
            self.input = BoundInput(self.backend, self.table, self.settings.layers[0], self.weight)
        return self.input

    def _numeric(self, i: int) -> Floats:
        """h_i without categorical columns."""
        return np.delete(self.h[i], self.table.categorical, axis=1) if i == 0 else self.h[i]


class _Watch:
    """Records epochs, keeps the best network and says when to stop."""

    def __init__(
        self,
        history: History,
        eval_sets: Sequence[EvalSet],
        metric: Metric | None,
        outcome: Callable[[Floats], Floats],
        callbacks: Sequence[Callback],
        settings: Settings,
    ) -> None:
        self.history, self.eval_sets, self.metric, self.outcome = history, eval_sets, metric, outcome
        self.callbacks, self.settings = callbacks, settings
        self.begun = time.perf_counter()
        self.best: Network | None = None
        self.best_score = -np.inf

    def see(self, run: _Run, begun: float) -> Stop | None:
        """Look at the state after an epoch."""
        if not run.finite:
            if self.best is None:
                raise FloatingPointError(Stop.NOT_FINITE.value)
            return Stop.NOT_FINITE
        network = run.network
        metrics = {
            part.name: self._score(network, part) for part in self.eval_sets if self.metric is not None
        }
        epoch = Epoch(
            run.epoch,
            run.loss_now,
            metrics,
            time.perf_counter() - begun,
            tuple(float(np.sqrt(np.mean(np.square(g)))) for g in run.g[1:-1]),
            tuple(float(np.mean(~g.any(axis=1))) for g in run.g[1:-1]),
            run.drift,
            tuple(float(spread(h, run.weight).mean()) for h in run.h[1:-1]),
            run.r2,
        )
        self.history.epochs.append(epoch)
        self._keep(network, epoch)
        return self._verdict(Progress(epoch, self.settings.epochs, self.history, network))

    def _score(self, network: Network, part: EvalSet) -> float:
        assert self.metric is not None
        raw = network.predict(part.X, n_jobs=self.settings.n_threads)
        return self.metric(self.outcome(raw), part.y, part.weight)

    def _keep(self, network: Network, epoch: Epoch) -> None:
        if self.metric is None or not epoch.metrics:
            self.best, self.history.best_epoch = network, epoch.epoch
            return
        value = epoch.metrics[self.eval_sets[0].name]
        score = value if self.metric.greater_is_better else -value
        if self.best is None or score > self.best_score + self.settings.tol:
            self.best, self.best_score, self.history.best_epoch = network, score, epoch.epoch

    def _verdict(self, progress: Progress) -> Stop | None:
        settings, history = self.settings, self.history
        asked = [callback(progress) for callback in self.callbacks]
        if any(answer is True for answer in asked):
            return Stop.CALLBACK
        waited = progress.epoch.epoch - history.best_epoch
        if settings.n_iter_no_change is not None and history.metric and waited >= settings.n_iter_no_change:
            return Stop.PATIENCE
        if settings.max_time is not None and time.perf_counter() - self.begun >= settings.max_time:
            return Stop.TIME
        return None


def _r2(target: Floats, fit: Floats, weight: Floats) -> float:
    total = float(weight @ np.square(target - weight @ target / weight.sum()).sum(1))
    return 1.0 - float(weight @ np.square(target - fit).sum(1)) / total if total > 0 else float("nan")


def _drift(old: Floats, new: Floats, weight: Floats) -> float:
    moved = np.sqrt(weight @ np.square(new - old) / weight.sum())
    before = spread(old, weight)
    return float(np.mean(np.divide(moved, before, out=np.zeros_like(moved), where=before > 0)))
