"""Trainer: the state of Algorithm 1, and its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import lstsq

from boostbp.backends.base import Backend, TreeParams
from boostbp.inputs.rows import Rows
from boostbp.losses import Loss
from boostbp.losses.checked_loss import try_loss
from boostbp.network import layers
from boostbp.network.history import Epoch
from boostbp.network.layers import BoundInput, Layer, LossObjective, Objective, SquaredObjective, Trace
from boostbp.network.layers.cheaper_growth import FixedStructure, on_sample
from boostbp.network.network import Network, layer_input, variables
from boostbp.network.settings import Settings
from boostbp.network.steps import baseline_of, moved, pace_after, start_of, std
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.sparse import Sparse, Table

# A hidden variable this large has diverged, as starts have standard deviation 1. Arbitrary.
MAX_ABS = 1e8
# A training loss above this multiple of the best constant's has diverged. Arbitrary.
WORSE = 100.0
# A column that varies by less than this share of its size is constant.
LEAST_VARIATION = 1e-12
# Number of training rows of a probe, small enough for it to take little time. Not varied.
PROBE_ROWS = 1000
HiddenRows = tuple[Floats, Floats, Floats]  # a hidden variable, targets and weights of some rows


class Trainer:
    """State of Algorithm 1: layers T_i with their traces, hidden variables h_i, gradients, momenta.

    The paper counts layers from 1, ``h_i = T_i(h_{i-1})``; here ``h_{i+1} = T_i(h_i)``.
    """

    def __init__(self, rows: Rows, backend: Backend, loss: Loss, settings: Settings) -> None:
        self.rows, self.settings = rows, settings
        self.backend = on_sample(backend, settings.structure_samples)
        self.rng = np.random.default_rng(settings.seed)
        self.L = len(settings.layers)
        # Whether the output layer is boosted on the loss itself instead of fitted to a moved target.
        self._boosts_loss = settings.output_target == "loss"
        if settings.skip and self.L > 1 and isinstance(rows.X, Sparse):
            raise ValueError("X is sparse, which is not supported with skip=True. Use skip=False, or pass X.toarray().")
        self.input: BoundInput | None = None  # h_0 never changes, so it is binned once
        self.baseline = baseline_of(loss, rows, settings.output_target)
        self.loss = try_loss(loss, self.baseline + rows.offset, rows.y).prepared(rows.y, rows.weight)
        self.total = workers().sum(rows.weight.sum())[0]
        self.constant = self._loss(np.broadcast_to(self.baseline, (len(rows), len(self.baseline))))
        self.epoch = -1  # epoch 0 is the stack of layers before any back-propagation
        # Hidden variables h_0 .. h_L, gradients and momenta, (rows, units); those of h_0 are placeholders.
        self.h: list[Floats] = [rows.X]
        self.g: list[Floats] = []
        self.m: list[Floats] = []
        self.losses: list[float] = []  # training loss by epoch
        self.bounded = True  # whether the last epoch left all variables finite, and hidden ones and the loss in bounds
        self.T: list[Layer] = []  # layers of this epoch
        self.before: list[Layer] = []  # layers of the epoch before
        self.traces: dict[int, Trace] = {}  # of the layers T on their inputs, by i
        self.drift: tuple[float, ...] = (0.0,) * (self.L - 1)
        self.r2: tuple[float, ...] = ()

    @property
    def network(self) -> Network:
        """The network of this epoch."""
        return Network(tuple(self.T), self.baseline, self.settings.skip)

    def step(self) -> None:
        """Run one epoch: move the hidden variables and fit every layer again. Epoch 0 starts them instead."""
        # Algorithm 1 runs forward and backward passes, and then moves and fits. Here an epoch ends with the backward
        # pass, so a state that is stored between epochs has the gradients of the next move.
        self.epoch += 1
        if self.epoch:
            targets = self._move()
            sizes = workers().max(*(np.abs(target).max(initial=0.0) for target in targets[1:-1]))
            self.bounded = all(size < MAX_ABS for size in sizes)
            # No library can fit targets of this size.
            if not self.bounded:
                return
            self._refit(targets)
        else:
            # From the input up, each layer on the one below.
            for i in range(self.L):
                self._fit(i, self._start_of(i))
            self.m = [np.empty((0, 0)), *map(np.zeros_like, self.h[1:])]
        self._backward()
        self.losses.append(self._loss(self.h[-1]))
        self.bounded = self._is_bounded()

    def _is_bounded(self) -> bool:
        *hidden, output = workers().max(*(np.abs(h).max(initial=0.0) for h in self.h[1:]))
        finite = np.isfinite(output) and np.isfinite(self.losses[-1])
        # Losses may be negative. The scale is the size of the constant's loss, or the largest fall below it.
        scale = max(abs(self.constant), self.constant - min(self.losses), np.finfo(np.float64).eps)
        # Epoch 0 may be far worse, as its hidden variables are a random start.
        far_worse = self.epoch > 0 and self.losses[-1] - self.constant > WORSE * scale
        return all(size < MAX_ABS for size in hidden) and bool(finite) and not far_worse

    def _start_of(self, i: int) -> Floats:
        """Return the first target of T_i: a start, or for the output layer a plain step from the constant."""
        if i < self.L - 1:
            below = Table(self.h[i]) if i else self.rows.table
            return start_of(self.settings.start, below, self.rows.weight, self.settings.units[i], self.rng)
        # A moved target starts with a step of equation 6 from the constant. Boosting on the loss ignores it.
        baseline = np.broadcast_to(self.baseline, (len(self.rows), len(self.baseline)))
        return baseline - self.settings.step.alpha * self._loss_gradient(baseline)

    def _move(self) -> list[Floats]:
        """Return the targets h_i - alpha m_i; entry 0 is a placeholder, as h_0 does not move."""
        # Steps of constant size do not converge: `pace` shortens them on a plateau of the training loss.
        targets = list(self.h)
        pace = pace_after(self.losses, self.settings.step.decay)
        # An output layer that is boosted on the loss needs no target: each of its rounds follows the gradient.
        for i in range(1, self.L + 1 - self._boosts_loss):
            target, self.m[i] = moved(self.settings.step, self.h[i], self.m[i], self.g[i], self.rows.weight)
            targets[i] = self.h[i] + pace * (target - self.h[i])
        return targets

    def _refit(self, targets: list[Floats]) -> None:
        """Fit every layer to its moved target."""
        old, weight, downward = list(self.h), self.rows.weight, self.settings.refit_order == "downward"
        self.before = list(self.T)
        for i in reversed(range(self.L)) if downward else range(self.L):
            self._fit(i, targets[i + 1])
        # A boosted output layer has no target to be compared with.
        of_target = slice(1, self.L + 1 - self._boosts_loss)
        r2 = [refit_r2(target, fit, weight) for target, fit in zip(targets[of_target], self.h[of_target], strict=True)]
        self.r2 = (*r2, float("nan")) if self._boosts_loss else tuple(r2)
        # Downward, each layer was fitted on the old output of the one below: pass the rows through the new layers.
        for i in range(1, self.L if downward else 1):
            output, self.traces[i] = self.T[i].forward(self._input(i), n_jobs=self.settings.n_threads)
            self.h[i + 1] = output + self.baseline if i == self.L - 1 else output
        self.drift = tuple(drift(old[i], self.h[i], weight) for i in range(1, self.L))

    def _backward(self) -> None:
        """Compute g_L = dL/dh_L, then g_{i-1} = (dh_i/dh_{i-1})' g_i down to the first hidden layer."""
        # Equation 1 of the paper, with the vector-Jacobian products of the layers (equations 9 to 11) in place of J.
        self.g = [self._loss_gradient(self.h[self.L])]
        for i in range(self.L, 1, -1):
            # With skip=True the layer also reads h_0, whose columns come last. h_0 does not move, so drop its gradient.
            self.g.insert(0, self.traces[i - 1].vjp(self.g[0])[:, : self.h[i - 1].shape[1]])
        self.g.insert(0, np.empty((0, 0)))

    def _loss(self, output: Floats) -> float:
        """Return the weighted mean training loss of a raw output, (rows, outputs)."""
        [loss] = workers().sum(self.rows.weight @ self.loss.value(output + self.rows.offset, self.rows.y))
        return float(loss / self.total)

    def _loss_gradient(self, output: Floats) -> Floats:
        """Return the gradient of the loss of each row, without weights, (rows, outputs).

        Raises ValueError if it is not finite where the output is within bounds.
        """
        # The gradient is not divided by the number of rows: each row has its own hidden variables, which would hardly
        # move. Row weights are not included either, as the fits apply them.
        h = output + self.rows.offset
        gradient = self.loss.gradient(h, self.rows.y)
        if not np.isfinite(gradient.sum()) and np.abs(h).max() < MAX_ABS:
            where = f"in epoch {max(self.epoch, 0)} of training"
            self.loss.refuse_unusable({"gradient": gradient}, h, self.rows.y, where)
        return gradient

    def _fit(self, i: int, target: Floats) -> None:
        """Fit T_i from scratch, h_i -> target by squared error or on the loss, and set h_{i+1} to its output."""
        last = i == self.L - 1
        if last and self._boosts_loss:
            start, where = self.baseline + self.rows.offset, f" of epoch {self.epoch}"
            objective: Objective = LossObjective(self.loss, self.rows.y, self.rows.weight, start, where)
        else:
            # Subtract the constant, so that penalties shrink the layer towards the constant and not towards 0.
            objective = SquaredObjective(target - self.baseline if last else target, self.rows.weight)
        # The generator's state is stored with a training, so a resumed one draws the seeds of an uninterrupted one.
        seed = int(self.rng.integers(2**30))
        fitted = layers.fit(self._bound(i), objective, n_threads=self.settings.n_threads, seed=seed)
        self.T[i : i + 1], self.traces[i] = [fitted.layer], fitted.trace
        self.h[i + 1 : i + 2] = [fitted.output + self.baseline if last else fitted.output]

    def _bound(self, i: int) -> BoundInput:
        """Return the input of T_i, bound to the library or to the tree structures of the epoch before.

        Structures of epoch 0 are not reused: starts are mostly linear in the layer below, so the base fits them, and
        the trees find no structure.
        """
        layer, backend, weight = self.settings.layers[i], self.backend, self.rows.weight
        if i == 0 and self.input is None:
            self.input = BoundInput(backend, self.rows.table, layer, weight)
        keeps = bool(self.before) and (self.epoch - 1) % self.settings.structure_epochs != 0
        if keeps:
            backend, growth = kept_structures(self.before[i], layer.growth)
            layer = replace(layer, growth=growth)
        if i == 0 and self.input is not None:
            return self.input.with_backend(backend, layer.growth) if keeps else self.input
        # Categories of h_0 come after the hidden units.
        places = (self.settings.units[i - 1] + j for j in self.rows.table.categorical)
        table = Table(self._input(i), tuple(places) if self.settings.skip else ())
        return BoundInput(backend, table, layer, weight)

    def _input(self, i: int) -> Floats:
        """Return the input of T_i: h_i, with h_0 beside it if ``skip=True``."""
        return layer_input(self.h[: i + 1], skip=self.settings.skip)

    def record(self, held_out: Rows | None = None) -> Epoch:
        """Return the record of the epoch; the monitor fills in metrics and seconds."""
        norms, dead = gradient_figures(self.g)
        stds = tuple(float(std(h, self.rows.weight).mean()) for h in self.h[1:-1])
        probes = self._probes(held_out)
        explained = tuple(training for training, _ in probes), tuple(of_held_out for _, of_held_out in probes)
        return Epoch(self.epoch, self.losses[-1], {}, 0.0, norms, dead, self.drift, stds, self.r2, *explained)

    def _probes(self, held_out: Rows | None) -> list[tuple[float, float]]:
        """Return the linear probe of each hidden layer, on some training rows and on held-out rows."""
        # A target whose columns are not outputs has a single output, which its first column stands for.
        target = slice(len(self.baseline))
        y, weight = self.rows.y[:, target], self.rows.weight
        # Samples of the rows, as regressions on all of them would take a noticeable part of an epoch.
        rows = workers().sampled_rows(len(y), PROBE_ROWS)
        group = workers().select_rows(rows)
        below, skip, n_threads = self.T[:-1], self.settings.skip, self.settings.n_threads
        hidden = [] if held_out is None else variables(below, held_out.X, skip=skip, n_jobs=n_threads)
        probes = []
        for i, h in enumerate(self.h[1:-1], start=1):
            sampled_h, sampled_y, sampled_weight = group.allgather_rows(h[rows], y[rows], weight[rows])
            of_held_out = None if held_out is None else (hidden[i], held_out.y[:, target], held_out.weight)
            probes.append(linear_probe_r2(sampled_h, sampled_y, sampled_weight, of_held_out))
        return probes


def kept_structures(layer: Layer, growth: TreeParams) -> tuple[Backend, TreeParams]:
    """Return a backend that returns the trees of a fitted layer, and its growth parameters, without random draws."""
    growth = replace(growth, extra_trees=False, colsample_bytree=1.0, params={})
    return FixedStructure.of(layer.forest, shared=growth.multi_output), growth


def refit_r2(target: Floats, fit: Floats, weight: Floats) -> float:
    """Return R^2 over the rows of all workers and all outputs; NaN if the target is constant."""
    moment, weights, residual = workers().sum(weight @ target, weight.sum(), weight @ np.square(target - fit).sum(1))
    # R^2 = 1 - residual / total, with sums over all outputs, so outputs of large variance count most.
    [total] = workers().sum(weight @ np.square(target - moment / weights).sum(1))
    return 1.0 - float(residual) / float(total) if total > 0 else float("nan")


def drift(old: Floats, new: Floats, weight: Floats) -> float:
    """Return the root mean square change of the units in their standard deviations, averaged over units."""
    square, total = workers().sum(weight @ np.square(new - old), weight.sum())
    moved, before = np.sqrt(square / total), std(old, weight)
    return float(np.mean(np.divide(moved, before, out=np.zeros_like(moved), where=before > 0)))


def gradient_figures(g: Sequence[Floats]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the root mean square of each hidden layer's gradient, h_1 .. h_{L-1}, and its share of dead rows."""
    # A row whose loss gradient is 0 is already fitted: a gradient of 0 in the layers below is no sign of a dead unit.
    hidden, learning = g[1:-1], np.asarray(g[-1].any(axis=1))
    squares = [np.square(of_layer).sum() for of_layer in hidden]
    dead = [float(np.count_nonzero(~of_layer[learning].any(axis=1))) for of_layer in hidden]
    counts = float(len(learning)), float(np.count_nonzero(learning))
    n_rows, n_learning, *sums = map(float, workers().sum(*counts, *squares, *dead))
    norms = [np.sqrt(square / (n_rows * h.shape[1])) for square, h in zip(sums, hidden, strict=False)]
    return tuple(map(float, norms)), tuple(number / max(n_learning, 1.0) for number in sums[len(hidden) :])


def linear_probe_r2(h: Floats, y: Floats, weight: Floats, held_out: HiddenRows | None = None) -> tuple[float, float]:
    """Return the share of the target, (rows, outputs), that a linear regression on a hidden layer explains.

    On the training rows this is R^2, NaN if no output varies. On held-out rows, which are passed as the same three
    arrays, it is the squared correlation of prediction and target, which does not depend on the unit of the target, or
    0 if the correlation is negative. It is averaged over the outputs in the same way as R^2.
    """
    # Targets may have any size; if they overflow, the probe is NaN.
    with np.errstate(all="ignore"):
        (h, scale), (y, _) = _centred(h, weight, axis=0), _centred(y, weight, axis=None)
        if not (np.isfinite(h).all() and np.isfinite(y).all()):
            return float("nan"), float("nan")
        # Least squares of minimal norm (SVD, relative cutoff 1e-10), as units that follow one gradient are collinear.
        root = np.sqrt(weight / weight.sum())[:, None]
        w = lstsq(root * h, root * y, cond=1e-10, check_finite=False)[0]
        total = np.square(root * y).sum(axis=0)
        if not total.sum() > 0:
            return float("nan"), float("nan")
        training = float(1.0 - np.square(root * (y - h @ w)).sum() / total.sum())
        return training, float("nan") if held_out is None else _agreement(held_out, w / scale[:, None], total)


def _centred(values: Floats, weight: Floats, axis: int | None) -> tuple[Floats, Floats]:
    """Return columns of mean 0 scaled to a largest size of 1, each (axis 0) or all together, and the divisor."""
    largest = np.abs(values).max(axis=axis)
    values = values - weight @ values / weight.sum()
    size = np.abs(values).max(axis=axis)
    varies = size > LEAST_VARIATION * largest
    return np.where(varies, values, 0.0) / np.where(varies, size, 1.0), np.where(varies, size, 1.0)


def _agreement(held_out: HiddenRows, w: Floats, share: Floats) -> float:
    h, y, weight = held_out
    # The correlation, not R^2, as targets of evaluation sets may have another unit than those of the loss.
    fit, y = _centred(h @ w, weight, axis=0)[0], _centred(y, weight, axis=0)[0]
    along, sizes = weight @ (fit * y), (weight @ np.square(fit)) * (weight @ np.square(y))
    squared = np.divide(np.maximum(along, 0.0) ** 2, sizes, out=np.zeros_like(along), where=sizes > 0)
    share = np.where(weight @ np.square(y) > 0, share, 0.0)
    return float(share @ squared / share.sum()) if share.sum() > 0 else float("nan")
