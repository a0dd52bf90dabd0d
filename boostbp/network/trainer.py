"""Trainer: the moving parts of Algorithm 1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from boostbp import layers
from boostbp.backends.base import Backend, Table
from boostbp.inputs.rows import Rows
from boostbp.layers import BoundInput, LossObjective, Objective, SquaredObjective
from boostbp.layers.cheaper_growth import FixedStructure, on_sample
from boostbp.losses import Loss
from boostbp.losses.loss_trial import try_loss
from boostbp.network.baseline import baseline_of
from boostbp.network.history import Epoch
from boostbp.network.linear_probe import MOST_ROWS, linear_probe_r2
from boostbp.network.network import Network, layer_input
from boostbp.network.settings import Settings
from boostbp.network.starts import start_of
from boostbp.network.steps import moved, pace_after, std
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.sparse import Sparse

MAX_ABS = 1e8  # a hidden variable this large has exploded: starts have standard deviation 1
WORSE = 100.0  # a training loss so many times that of the best constant has exploded


class DivergenceError(ArithmeticError):
    """A hidden variable was asked to move where no library can follow."""


class Trainer:
    """The moving parts of Algorithm 1: T_i, h_i, traces, momenta."""

    def __init__(self, rows: Rows, backend: Backend, loss: Loss, settings: Settings) -> None:
        self.rows, self.settings = rows, settings
        self.backend = on_sample(backend, settings.structure_samples)
        self.rng = np.random.default_rng(settings.seed)
        self.L = len(settings.layers)
        if settings.skip and self.L > 1 and isinstance(rows.X, Sparse):
            raise ValueError(
                "X is sparse, which is not supported with skip=True: layers above the first would see it beside "
                "hidden units, dense. Use skip=False, or pass X.toarray()."
            )
        self.input: BoundInput | None = None  # h_0 never changes: binned once
        self.baseline = baseline_of(loss, rows, settings)
        self.loss = try_loss(loss, self.baseline + rows.offset, rows.y)
        self.total = workers().sum(rows.weight.sum())[0]
        self.constant = self._loss(np.broadcast_to(self.baseline, rows.y.shape))
        self.epoch = -1  # 0 is the stack before any back-propagation
        self.h: list[Floats] = [rows.X]
        self.g: list[Floats] = []
        self.m: list[Floats] = []
        self.losses: list[float] = []  # of training, by epoch
        self.T: list[layers.Fit] = []
        self.before: list[layers.Fit] = []
        self.drift: tuple[float, ...] = ()
        self.r2: tuple[float, ...] = ()

    @property
    def network(self) -> Network:
        """The network as it stands."""
        return Network(tuple(fitted.layer for fitted in self.T), self.baseline, self.settings.skip)

    @property
    def bounded(self) -> bool:
        """Whether all variables are finite, and hidden ones and the training loss within bounds."""
        *hidden, output = workers().max(*(np.abs(h).max(initial=0.0) for h in self.h[1:]))
        finite = bool(np.isfinite(output) and np.isfinite(self.losses[-1]))
        return all(size < MAX_ABS for size in hidden) and finite and not self._far_worse

    @property
    def _far_worse(self) -> bool:
        """Whether the training loss is far above that of the constant; losses need not be above 0."""
        scale = max(abs(self.constant), self.constant - min(self.losses), np.finfo(np.float64).eps)
        return self.epoch > 0 and self.losses[-1] - self.constant > WORSE * scale

    def _start(self) -> None:
        """Start the hidden variables and fit each layer to them, from the input up."""
        for i, units in enumerate(self.settings.units):
            below = self.rows.table if i == 0 else Table(self.h[i])
            target = start_of(self.settings.start, below, self.rows.weight, units, self.rng)
            self._append(i, target)
        baseline = np.broadcast_to(self.baseline, self.rows.y.shape)
        step = self.settings.step
        self._append(self.L - 1, baseline - step.alpha * self._loss_gradient(baseline))
        self.m = [np.empty((0, 0)), *map(np.zeros_like, self.h[1:])]  # h_0 does not move
        self.drift = (0.0,) * (self.L - 1)
        self._backward()

    def step(self) -> None:
        """One epoch: move the hidden variables and fit every layer again; the first one starts them."""
        self.epoch += 1
        if self.epoch == 0:
            self._start()
            self.losses.append(self._loss(self.h[-1]))
            return
        old = self.h
        self.before, self.T = self.T, list(self.T)
        targets = self._move()
        if self.settings.refit_order == "downward":
            for i in range(self.L, 0, -1):
                self.T[i - 1] = self._fit(i - 1, layer_input(old[:i], skip=self.settings.skip), targets[i])
            self._forward()
        else:
            self.h, self.T = [old[0]], []
            for i in range(1, self.L + 1):
                self._append(i - 1, targets[i])
        fitted = [fit.output for fit in self.T[:-1]] + [self.T[-1].output + self.baseline]
        weight, boosted = self.rows.weight, self.settings.output_target == "loss"
        self.r2 = tuple(
            float("nan") if i == self.L and boosted else _r2(targets[i], fit, weight)
            for i, fit in enumerate(fitted, start=1)
        )
        self.drift = tuple(_drift(old[i], self.h[i], weight) for i in range(1, self.L))
        self._backward()
        self.losses.append(self._loss(self.h[-1]))

    def _loss(self, output: Floats) -> float:
        """Weighted mean training loss of a raw output, (rows, outputs)."""
        [loss] = workers().sum(self.rows.weight @ self.loss.value(output + self.rows.offset, self.rows.y))
        return float(loss / self.total)

    def _loss_gradient(self, output: Floats) -> Floats:
        """Gradient of the loss of each row, without weights, (rows, outputs).

        Raises ValueError if it is not finite where the output is within bounds.
        """
        h = output + self.rows.offset
        gradient = self.loss.gradient(h, self.rows.y)
        if not np.isfinite(gradient.sum()) and np.abs(h).max() < MAX_ABS:
            where = f"in epoch {max(self.epoch, 0)} of training"
            self.loss.refuse_unusable({"gradient": gradient}, h, self.rows.y, where)
        return gradient

    def record(self, held_out: Rows | None = None) -> Epoch:
        """Numbers of the epoch; metrics and seconds are the watcher's."""
        norms, dead = self._gradients()
        probes = self._probes(held_out)
        return Epoch(
            self.epoch,
            self.losses[-1],
            {},
            0.0,
            norms,
            dead,
            self.drift,
            tuple(float(std(h, self.rows.weight).mean()) for h in self.h[1:-1]),
            self.r2,
            tuple(training for training, _ in probes),
            tuple(held_out for _, held_out in probes),
        )

    def _gradients(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Root mean square of each hidden layer's gradient; share of the rows that learn which have none there."""
        hidden, learning = self.g[1:-1], np.asarray(self.g[-1].any(axis=1))
        squares = [np.square(g).sum() for g in hidden]
        dead = [float(np.count_nonzero(~g[learning].any(axis=1))) for g in hidden]
        counts = float(len(learning)), float(np.count_nonzero(learning))
        n_rows, n_learning, *sums = map(float, workers().sum(*counts, *squares, *dead))
        norms = [np.sqrt(square / (n_rows * g.shape[1])) for square, g in zip(sums, hidden, strict=False)]
        return tuple(map(float, norms)), tuple(number / max(n_learning, 1.0) for number in sums[len(hidden) :])

    def _probes(self, held_out: Rows | None) -> list[tuple[float, float]]:
        """What a linear regression on each hidden layer explains, on some training rows and on held-out ones."""
        rows, group = workers().sampled_rows(len(self.rows.y), MOST_ROWS), workers()
        parts: list[Any] = [None] * (self.L - 1)
        if held_out is not None and self.L > 1:
            hidden = self.network.hidden(held_out.X, n_jobs=self.settings.n_threads)
            parts = [(h, held_out.y, held_out.weight) for h in hidden]
        samples = [
            group.select_rows(rows).allgather_rows(h[rows], self.rows.y[rows], self.rows.weight[rows])
            for h in self.h[1:-1]
        ]
        return [linear_probe_r2(h, y, weight, part) for (h, y, weight), part in zip(samples, parts, strict=True)]

    def _forward(self) -> None:
        """h_{i+1} = T_i(h_i)."""
        self.h = [self.h[0]]
        for i in range(self.L):
            if i == 0:
                output = self.T[0].output  # fitted on h_0 just now
            else:
                h = layer_input(self.h, skip=self.settings.skip)
                output, trace = self.T[i].layer.forward(h, n_jobs=self.settings.n_threads)
                self.T[i] = self.T[i]._replace(trace=trace)
            self.h.append(output)
        self.h[-1] = self.h[-1] + self.baseline

    def _backward(self) -> None:
        """g_L = dL/dh_L, then g_{i-1} = (dh_i/dh_{i-1})' g_i down to the first hidden layer."""
        g = self._loss_gradient(self.h[self.L])
        self.g = [g]
        for i in range(self.L, 1, -1):
            g = self.T[i - 1].trace.vjp(g)[:, : self.h[i - 1].shape[1]]  # h_0, seen beside it, does not move
            self.g.insert(0, g)
        self.g.insert(0, np.empty((0, 0)))  # h_0 does not move

    def _move(self) -> list[Floats]:
        """Targets h_i - alpha m_i; entry 0 is a placeholder, as h_0 does not move.

        Raises DivergenceError if a target is out of bounds.
        """
        targets = [self.h[0]]
        pace = pace_after(self.losses, self.settings.step.decay)
        for i in range(1, self.L + 1):
            if i == self.L and self.settings.output_target == "loss":
                targets.append(self.h[i])
                continue
            target, self.m[i] = moved(self.settings.step, self.h[i], self.m[i], self.g[i], self.rows.weight)
            targets.append(self.h[i] + pace * (target - self.h[i]))
        sizes = workers().max(*(np.abs(target).max(initial=0.0) for target in targets[1:-1]))
        if not all(size < MAX_ABS for size in sizes):
            raise DivergenceError
        return targets

    def _append(self, i: int, target: Floats) -> None:
        """Fit T_i on the h_i of now and go forward through it."""
        fitted = self._fit(i, layer_input(self.h, skip=self.settings.skip), target)
        self.T.append(fitted)
        self.h.append(fitted.output + self.baseline if i == self.L - 1 else fitted.output)

    def _fit(self, i: int, h: Floats, target: Floats) -> layers.Fit:
        """Fit T_i from scratch: h -> target, by squared error, or by boosting if it is the output layer."""
        settings = self.settings
        last = i == self.L - 1
        objective: Objective
        if last and settings.output_target == "loss":
            start, where = self.baseline + self.rows.offset, f" of epoch {self.epoch}"
            objective = LossObjective(self.loss, self.rows.y, self.rows.weight, start, where)
        else:
            objective = SquaredObjective(target - self.baseline if last else target, self.rows.weight)
        seed = int(self.rng.integers(2**30))
        bound = self._bind_kept(i, h) if self._keeps(i) else self._bind(i, h)
        return layers.fit(bound, objective, n_threads=settings.n_threads, seed=seed)

    def _keeps(self, i: int) -> bool:
        """Whether T_i keeps its tree structures in this epoch.

        Those of epoch 0 are not kept: starts are mostly linear in the layer below, and leave the trees nothing to find.
        """
        return i < len(self.before) and (self.epoch - 1) % self.settings.structure_epochs != 0

    def _bind_kept(self, i: int, h: Floats) -> BoundInput:
        """The input of T_i with the tree structures that T_i had; nothing is binned or drawn for them."""
        layer = self.settings.layers[i]
        growth = replace(layer.growth, extra_trees=False, colsample_bytree=1.0, params={})
        replay = FixedStructure.of(self.before[i].layer.forest, shared=growth.multi_output)
        if i == 0:
            return self._bind(0, h).with_backend(replay, growth)
        return BoundInput(replay, self._table(i, h), replace(layer, growth=growth), self.rows.weight)

    def _bind(self, i: int, h: Floats) -> BoundInput:
        if i > 0:
            return BoundInput(self.backend, self._table(i, h), self.settings.layers[i], self.rows.weight)
        if self.input is None:
            self.input = BoundInput(self.backend, self.rows.table, self.settings.layers[0], self.rows.weight)
        return self.input

    def _table(self, i: int, h: Floats) -> Table:
        """What T_i sees, i > 0; the categories of h_0 stand behind the hidden units."""
        units = self.settings.units[i - 1]
        return Table(h, tuple(units + j for j in self.rows.table.categorical) if self.settings.skip else ())


def _r2(target: Floats, fit: Floats, weight: Floats) -> float:
    moment, weights, missed = workers().sum(weight @ target, weight.sum(), weight @ np.square(target - fit).sum(1))
    [total] = workers().sum(weight @ np.square(target - moment / weights).sum(1))
    return 1.0 - float(missed) / float(total) if total > 0 else float("nan")


def _drift(old: Floats, new: Floats, weight: Floats) -> float:
    square, total = workers().sum(weight @ np.square(new - old), weight.sum())
    moved, before = np.sqrt(square / total), std(old, weight)
    return float(np.mean(np.divide(moved, before, out=np.zeros_like(moved), where=before > 0)))
