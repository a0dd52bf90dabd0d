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
from boostbp.network.linear_probe import MAX_ROWS, linear_probe_r2
from boostbp.network.network import Network, layer_input
from boostbp.network.settings import Settings
from boostbp.network.starts import start_of
from boostbp.network.steps import moved, pace_after, std
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.sparse import Sparse

MAX_ABS = 1e8  # a hidden variable this large has diverged, as starts have standard deviation 1. Arbitrary
WORSE = 100.0  # a training loss has diverged at this multiple of the best constant's. Arbitrary


class Trainer:
    """The moving parts of Algorithm 1: layers T_i with their traces, hidden variables h_i, gradients, momenta.

    Attributes
    ----------
    T, before : list of Fit
        The layers of this epoch and of the one before.
    h, g, m : list of (rows, units) float64
        Hidden variables h_0 .. h_L, gradients and momenta; those of h_0, which does not move, are placeholders.
    bounded : bool
        Whether the last epoch left all variables finite, and hidden variables and the training loss within bounds.
    """

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
        self.input: BoundInput | None = None  # h_0 never changes, so it is binned once
        self.baseline = baseline_of(loss, rows, settings)
        self.loss = try_loss(loss, self.baseline + rows.offset, rows.y)
        self.total = workers().sum(rows.weight.sum())[0]
        self.constant = self._loss(np.broadcast_to(self.baseline, rows.y.shape))
        self.epoch = -1  # 0 is the stack before any back-propagation
        self.h: list[Floats] = [rows.X]
        self.g: list[Floats] = []
        self.m: list[Floats] = []
        self.losses: list[float] = []  # training loss by epoch
        self.bounded = True
        self.T: list[layers.Fit] = []
        self.before: list[layers.Fit] = []
        self.drift: tuple[float, ...] = ()
        self.r2: tuple[float, ...] = ()

    @property
    def network(self) -> Network:
        """The network of this epoch."""
        return Network(tuple(fitted.layer for fitted in self.T), self.baseline, self.settings.skip)

    def _is_bounded(self) -> bool:
        *hidden, output = workers().max(*(np.abs(h).max(initial=0.0) for h in self.h[1:]))
        finite = np.isfinite(output) and np.isfinite(self.losses[-1])
        # Losses may be negative: the scale is the loss of the constant, or how far training went below it.
        scale = max(abs(self.constant), self.constant - min(self.losses), np.finfo(np.float64).eps)
        far_worse = self.epoch > 0 and self.losses[-1] - self.constant > WORSE * scale
        return all(size < MAX_ABS for size in hidden) and bool(finite) and not far_worse

    def _start(self) -> None:
        """Start the hidden variables, and fit each layer to them from the input up."""
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
        """Run one epoch: move the hidden variables and fit every layer again. Epoch 0 starts them instead."""
        self.epoch += 1
        if self.epoch == 0:
            self._start()
        else:
            targets = self._move()
            sizes = workers().max(*(np.abs(target).max(initial=0.0) for target in targets[1:-1]))
            self.bounded = all(size < MAX_ABS for size in sizes)
            if not self.bounded:  # no library can follow
                return
            self._refit(targets)
        self.losses.append(self._loss(self.h[-1]))
        self.bounded = self._is_bounded()

    def _refit(self, targets: list[Floats]) -> None:
        """Fit every layer to its moved target, and go backward through the new layers."""
        old = self.h
        self.before, self.T = self.T, list(self.T)
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

    def _loss(self, output: Floats) -> float:
        """Return the weighted mean training loss of a raw output, (rows, outputs)."""
        [loss] = workers().sum(self.rows.weight @ self.loss.value(output + self.rows.offset, self.rows.y))
        return float(loss / self.total)

    def _loss_gradient(self, output: Floats) -> Floats:
        """Return the gradient of the loss of each row, without weights, (rows, outputs).

        Raises ValueError if it is not finite where the output is within bounds.
        """
        h = output + self.rows.offset
        gradient = self.loss.gradient(h, self.rows.y)
        if not np.isfinite(gradient.sum()) and np.abs(h).max() < MAX_ABS:
            where = f"in epoch {max(self.epoch, 0)} of training"
            self.loss.refuse_unusable({"gradient": gradient}, h, self.rows.y, where)
        return gradient

    def record(self, held_out: Rows | None = None) -> Epoch:
        """Return the record of the epoch; the monitor fills in metrics and seconds."""
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
        """Return the root mean square of each hidden layer's gradient, and the share of dead rows: see `Epoch`."""
        hidden, learning = self.g[1:-1], np.asarray(self.g[-1].any(axis=1))
        squares = [np.square(g).sum() for g in hidden]
        dead = [float(np.count_nonzero(~g[learning].any(axis=1))) for g in hidden]
        counts = float(len(learning)), float(np.count_nonzero(learning))
        n_rows, n_learning, *sums = map(float, workers().sum(*counts, *squares, *dead))
        norms = [np.sqrt(square / (n_rows * g.shape[1])) for square, g in zip(sums, hidden, strict=False)]
        return tuple(map(float, norms)), tuple(number / max(n_learning, 1.0) for number in sums[len(hidden) :])

    def _probes(self, held_out: Rows | None) -> list[tuple[float, float]]:
        """Return the linear probe of each hidden layer, on some training rows and on held-out rows."""
        rows, group = workers().sampled_rows(len(self.rows.y), MAX_ROWS), workers()
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
        """Compute h_{i+1} = T_i(h_i) from the input up."""
        self.h = [self.h[0]]
        for i in range(self.L):
            if i == 0:
                output = self.T[0].output  # was just fitted on h_0
            else:
                h = layer_input(self.h, skip=self.settings.skip)
                output, trace = self.T[i].layer.forward(h, n_jobs=self.settings.n_threads)
                self.T[i] = self.T[i]._replace(trace=trace)
            self.h.append(output)
        self.h[-1] = self.h[-1] + self.baseline

    def _backward(self) -> None:
        """Compute g_L = dL/dh_L, then g_{i-1} = (dh_i/dh_{i-1})' g_i down to the first hidden layer."""
        g = self._loss_gradient(self.h[self.L])
        self.g = [g]
        for i in range(self.L, 1, -1):
            g = self.T[i - 1].trace.vjp(g)[:, : self.h[i - 1].shape[1]]  # h_0, seen beside it, does not move
            self.g.insert(0, g)
        self.g.insert(0, np.empty((0, 0)))  # h_0 does not move

    def _move(self) -> list[Floats]:
        """Return the targets h_i - alpha m_i; entry 0 is a placeholder, as h_0 does not move."""
        targets = [self.h[0]]
        pace = pace_after(self.losses, self.settings.step.decay)
        for i in range(1, self.L + 1):
            if i == self.L and self.settings.output_target == "loss":
                targets.append(self.h[i])
                continue
            target, self.m[i] = moved(self.settings.step, self.h[i], self.m[i], self.g[i], self.rows.weight)
            targets.append(self.h[i] + pace * (target - self.h[i]))
        return targets

    def _append(self, i: int, target: Floats) -> None:
        """Fit T_i on the present h_i, and go forward through it."""
        fitted = self._fit(i, layer_input(self.h, skip=self.settings.skip), target)
        self.T.append(fitted)
        self.h.append(fitted.output + self.baseline if i == self.L - 1 else fitted.output)

    def _fit(self, i: int, h: Floats, target: Floats) -> layers.Fit:
        """Return T_i fitted from scratch: h -> target by squared error; an output layer may be boosted on the loss."""
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
        """Return whether T_i keeps its tree structures in this epoch.

        Those of epoch 0 are not kept: starts are mostly linear in the layer below, and leave the trees nothing to find.
        """
        return i < len(self.before) and (self.epoch - 1) % self.settings.structure_epochs != 0

    def _bind_kept(self, i: int, h: Floats) -> BoundInput:
        """Return the input of T_i, bound to its previous tree structures; nothing is binned or drawn for them."""
        layer = self.settings.layers[i]
        growth = replace(layer.growth, extra_trees=False, colsample_bytree=1.0, params={})
        structures = FixedStructure.of(self.before[i].layer.forest, shared=growth.multi_output)
        if i == 0:
            return self._bind(0, h).with_backend(structures, growth)
        return BoundInput(structures, self._table(i, h), replace(layer, growth=growth), self.rows.weight)

    def _bind(self, i: int, h: Floats) -> BoundInput:
        if i > 0:
            return BoundInput(self.backend, self._table(i, h), self.settings.layers[i], self.rows.weight)
        if self.input is None:
            self.input = BoundInput(self.backend, self.rows.table, self.settings.layers[0], self.rows.weight)
        return self.input

    def _table(self, i: int, h: Floats) -> Table:
        """Return the input of T_i, i > 0; the categories of h_0 come behind the hidden units."""
        units = self.settings.units[i - 1]
        return Table(h, tuple(units + j for j in self.rows.table.categorical) if self.settings.skip else ())


def _r2(target: Floats, fit: Floats, weight: Floats) -> float:
    """Return R^2 over the rows of all workers and all outputs; NaN if the target is constant."""
    moment, weights, missed = workers().sum(weight @ target, weight.sum(), weight @ np.square(target - fit).sum(1))
    [total] = workers().sum(weight @ np.square(target - moment / weights).sum(1))
    return 1.0 - float(missed) / float(total) if total > 0 else float("nan")


def _drift(old: Floats, new: Floats, weight: Floats) -> float:
    """Return the root mean square change of the units in their standard deviations, averaged over units."""
    square, total = workers().sum(weight @ np.square(new - old), weight.sum())
    moved, before = np.sqrt(square / total), std(old, weight)
    return float(np.mean(np.divide(moved, before, out=np.zeros_like(moved), where=before > 0)))
