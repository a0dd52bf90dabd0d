"""Training of the paper's mixtures: GBDT-NN, trees under a neural network, and NN-GBDT, trees on top of one."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from benchmarks.mixtures.network import Columns, Dense, MixtureNetwork, dense, torch_threads
from boostbp.estimators.training import Training
from boostbp.inputs.rows import Rows
from boostbp.losses import Loss
from boostbp.losses.checked_loss import CheckedLoss, try_loss
from boostbp.network.history import Epoch, History, Stop
from boostbp.network.layers import Layer
from boostbp.network.layers.layer import first_rounds, stage_forests, stages
from boostbp.network.monitor import Callback, Evaluation, Monitor
from boostbp.network.settings import Settings
from boostbp.network.steps import std
from boostbp.runtime import clock, interrupts
from boostbp.runtime.messages import require
from boostbp.torch.gathered import StepTarget
from boostbp.torch.module import GBDTModule

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.autograd.function import once_differentiable
else:
    torch = require("torch", extra="torch", what="benchmarks.mixtures")
    once_differentiable = torch.autograd.function.once_differentiable

__all__ = ["MixtureTraining", "NetworkPlan"]

Floats = NDArray[np.float64]
OPTIMIZERS: dict[str, Any] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """How the neural layers are made and trained.

    Attributes
    ----------
    trees : {"first", "last"}
        Trees as the first hidden layer (GBDT-NN), or as the output layer (NN-GBDT).
    activation : str
    optimizer : str or callable
        A name, or parameters -> torch optimizer.
    learning_rate : float
        Of an optimizer by name.
    steps : int
        Gradient steps of the network in each epoch.
    batch_size : int or None
        Rows of a step; None: all.
    """

    trees: Literal["first", "last"]
    activation: str
    optimizer: str | Callable[[Any], Any]
    learning_rate: float
    steps: int
    batch_size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureTraining(Training):
    """The training of a mixture: as `boostbp.network.backprop.BackPropagation`, with a plan of the network.

    Attributes
    ----------
    start : str
        Name of the start of a first layer of trees.
    """

    mixture: NetworkPlan
    start: str

    def warn(self) -> None:
        """Warn of nothing: the table of effects is that of trees alone."""

    def summarise(self, network: object) -> Any:
        """Return nothing: attributions are of trees alone."""

    def call(self, callbacks: Sequence[Callback], report: object = None) -> Any:
        """Return the call that trains from the start."""
        return partial(self._train, callbacks)

    def _train(self, callbacks: Sequence[Callback]) -> tuple[MixtureNetwork, History]:
        """Train from the start; there are no states to go on from, and no stages to report."""
        if self.state is not None:
            _no_state()
        rows, evaluation, settings = self.problem.rows, self.problem.evaluation, self.problem.settings
        plan, loss, backend = self.mixture, self.data.targets.loss, self.problem.backend
        try_loss(loss, CheckedLoss(loss).baseline(rows.y, rows.weight), rows.y)
        metric = evaluation.metric
        history = History(metric=metric.name if metric and evaluation.sets else "")
        # the monitor would cut the output layer of a network of trees: a mixture is cut here
        watch = Monitor(history, evaluation, callbacks, replace(settings, output_target="moved"), _no_state)
        cuts = plan.trees == "last" and settings.output_target == "loss" and evaluation.sets
        with torch_threads(settings.n_threads), torch.inference_mode(False), torch.enable_grad():
            run = _Run(rows, loss, settings, plan, _network(rows, loss, settings, plan, backend, self.start))
            try:
                with interrupts.deferred():
                    stop = None
                    while stop is None and run.epoch < settings.epochs:
                        interrupts.check()
                        begun = time.perf_counter()
                        run.step()
                        finite = np.isfinite(run.loss_now) and np.isfinite(run.h).all()
                        # a snapshot takes the place of a Network: it has its methods
                        network: Any = run.network.snapshot()
                        if finite and cuts and metric is not None:
                            _cut(network, settings, evaluation)
                        stop = watch.on_epoch_end(network, run.record(), begun) if finite else Stop.NOT_FINITE
                    history.stop = stop or Stop.EPOCHS
            except KeyboardInterrupt as interrupt:
                if watch.best is None:
                    raise
                clock.of_fit().interrupt = interrupt
        if history.stop is Stop.NOT_FINITE:
            watch.restore_lowest_loss()
        best: Any = watch.best
        if best is None:
            raise FloatingPointError(
                "the loss or a hidden variable was not finite before the first epoch was over: try a smaller "
                f"network_learning_rate than {plan.learning_rate!r}, or a smaller step_size."
            )
        return best, history


def _no_state() -> NoReturn:
    raise ValueError("a mixture with a neural network keeps no checkpoints: train it without, and pickle the result.")


def _cut(network: MixtureNetwork, settings: Settings, evaluation: Evaluation) -> None:
    """Keep as many rounds of an output layer of trees as an evaluation set likes best."""
    trees = network.trees
    assert trees.layer is not None
    rows, metric = evaluation.sets[0].rows, evaluation.metric
    assert metric is not None
    X: Any = rows.X
    h = torch.from_numpy(network.representation(X, -2, n_jobs=settings.n_threads))
    seen = network.layer_input(len(network.hidden), h, torch.tensor(X, device="cpu")).numpy()
    sign = 1.0 if metric.greater_is_better else -1.0
    numbers, forest = stages(settings.layers[-1].n_estimators), trees.layer.forest
    scores = [
        sign * evaluation.score(raw + trees.baseline, rows)
        for raw in accumulate(part.predict(seen, settings.n_threads) for part in stage_forests(forest, numbers))
    ]
    trees.layer = Layer(first_rounds(forest, numbers[int(np.argmax(scores))]))


def _network(rows: Rows, loss: Loss, settings: Settings, plan: NetworkPlan, backend: Any, start: str) -> MixtureNetwork:
    """The layers before any training."""
    first, units, n_outputs, table = plan.trees == "first", settings.units, rows.y.shape[1], rows.table
    trees = GBDTModule(
        None,
        units[0] if first else n_outputs,
        backend=backend,
        categorical=[j + (0 if first else units[-1]) for j in table.categorical] if first or settings.skip else (),
        start=start,
        step=settings.step,
        reduction="sum",
        n_jobs=settings.n_threads,
        random_state=settings.seed,
    )
    trees.settings = settings.layers[0 if first else -1]
    columns = Columns(table, rows.weight)
    besides = columns.width if settings.skip else 0
    # that of torch belongs to all threads, and to the user
    generator = torch.Generator("cpu").manual_seed(settings.seed)
    layers = partial(dense, activation=plan.activation, generator=generator)
    if not first:
        hidden = [*layers([columns.width, units[0]]), *layers(units, besides=besides)]
        return MixtureNetwork(columns, hidden, trees, n_outputs, settings.skip)
    output = Dense(units[-1] + besides, n_outputs, generator=generator)
    with torch.no_grad():
        output.linear.bias.copy_(torch.from_numpy(CheckedLoss(loss).baseline(rows.y, rows.weight)))
    hidden = [trees, *layers(units, besides=besides)]
    return MixtureNetwork(columns, hidden, output, n_outputs, settings.skip)


def _check_optimizer(optimizer: Any) -> None:
    steps = getattr(optimizer, "step", None)
    if not callable(steps) or not callable(getattr(optimizer, "zero_grad", None)):
        raise TypeError(
            f"optimizer returned {optimizer!r}: let it return a torch optimizer of the parameters that it gets."
        )
    required = [each for each in inspect.signature(steps).parameters.values() if each.default is each.empty]
    if any(each.kind is each.POSITIONAL_OR_KEYWORD for each in required):
        raise TypeError(
            f"optimizer returned a {type(optimizer).__name__}, whose step() needs {required[0].name!r}: use one that "
            "goes by the gradients that stand, such as torch.optim.Adam."
        )


class _Run:
    """The moving parts of the training of a mixture."""

    def __init__(self, rows: Rows, loss: Loss, settings: Settings, plan: NetworkPlan, network: MixtureNetwork) -> None:
        X: Any = rows.X
        self.x, self.y, self.weight, self.loss = torch.tensor(X, device="cpu"), rows.y, rows.weight, loss
        self.settings, self.plan, self.network = settings, plan, network
        network.trees.expected_rows = len(rows)
        self.random = np.random.default_rng(settings.seed)
        self.epoch = -1  # 0 is the model with its first trees
        parameters = [p for p in network.parameters() if p.requires_grad]
        if callable(plan.optimizer):
            self.optimizer = plan.optimizer(parameters)
            _check_optimizer(self.optimizer)
        else:
            self.optimizer = OPTIMIZERS[plan.optimizer](parameters, lr=plan.learning_rate)
        self.batches = self._batches()
        self.h = np.empty((0, 0))
        self.g = np.empty((0, 0))
        self.loss_now, self.drift = np.inf, 0.0

    def step(self) -> None:
        """One epoch: trees then network (GBDT-NN), or network then trees (NN-GBDT)."""
        self.epoch += 1
        before = self.h
        if self.plan.trees == "first":
            self._move_trees()
            self._train_network()
        else:
            if self.epoch > 0:
                self._train_network()
            self._fit_output()
        self._look()
        if self.epoch > 0:
            moved = np.sqrt(self.weight @ np.square(self.h - before) / self.weight.sum())
            size = std(before, self.weight)
            self.drift = float(np.mean(np.divide(moved, size, out=np.zeros_like(moved), where=size > 0)))

    def record(self) -> Epoch:
        """The epoch in numbers; the hidden variable is the one next to the trees."""
        norm = float(np.sqrt(np.mean(np.square(self.g))))
        dead = float(np.mean(~self.g.any(axis=1)))
        size = float(std(self.h, self.weight).mean())
        return Epoch(self.epoch, self.loss_now, {}, 0.0, (norm,), (dead,), (self.drift,), (size,), ())

    def _move_trees(self) -> None:
        """GBDT-NN: move the trees' outputs by the gradient of each row's own loss, and fit them again."""
        if self.epoch == 0:
            self.network.train().trees.begin(self.x, sample_weight=self.weight)
            return
        self._losses(self.network.train()(self.x), slice(None)).sum().backward()
        self.network.trees.step(sample_weight=self.weight)

    def _fit_output(self) -> None:
        """NN-GBDT: fit the output layer to the new hidden variable, on the loss or to its moved target."""
        trees, network = self.network.trees, self.network
        with torch.no_grad():
            h = network.body(self.x)
            seen = network.layer_input(len(network.hidden), h, self.x)
        if self.settings.output_target == "loss":
            trees.boost(self.loss, self.y, x=seen, sample_weight=self.weight)
        elif self.epoch == 0:
            zero = np.zeros(self.y.shape)  # as in Algorithm 1, whose output starts from 0
            target = -self.settings.step.alpha * CheckedLoss(self.loss).gradient(zero, self.y)
            trees.fit_moved(StepTarget(seen.double().numpy(), target, self.weight, first=0))
        else:
            self._losses(network.train().top(h, self.x), slice(None)).sum().backward()
            trees.step(sample_weight=self.weight)

    def _train_network(self) -> None:
        """Gradient steps of the neural layers, through trees that stand."""
        self.network.eval()
        first = self.plan.trees == "first"
        with torch.no_grad():
            h = self.network.through(self.x, self.x, 0, int(first))
        for _ in range(self.plan.steps):
            rows = next(self.batches)
            raw = self.network.head(h[rows], self.x[rows]) if first else self.network(self.x[rows])
            weight = torch.from_numpy(self.weight[rows])
            self.optimizer.zero_grad()
            loss = weight @ self._losses(raw, rows) / weight.sum().clamp(min=1e-300)
            loss.backward()
            self.optimizer.step()
        self.optimizer.zero_grad()

    def _look(self) -> None:
        """Loss, hidden variable next to the trees, and the gradient there."""
        self.network.eval()
        first = self.plan.trees == "first"
        with torch.no_grad():
            h = self.network.through(self.x, self.x, 0, 1) if first else self.network.body(self.x)
        h.requires_grad_(True)
        losses = self._losses((self.network.head if first else self.network.top)(h, self.x), slice(None))
        [g] = torch.autograd.grad(losses.sum(), h)
        self.h, self.g = h.detach().double().numpy(), g.double().numpy()
        self.loss_now = float(self.weight @ losses.detach().numpy() / self.weight.sum())

    def _losses(self, raw: Tensor, rows: Any) -> Tensor:
        losses: Tensor = _RowLosses.apply(raw, self.y[rows], self.loss)
        return losses

    def _batches(self) -> Iterator[Any]:
        n, size = len(self.y), self.plan.batch_size
        if size is None or size >= n:
            while True:
                yield slice(None)
        while True:
            order = self.random.permutation(n)
            for first in range(0, n - size + 1, size):
                yield order[first : first + size]


class _RowLosses(torch.autograd.Function):
    """Loss of each row, (rows,) float64, by a loss of this package or of the user's own."""

    @staticmethod
    def forward(ctx: Any, raw: Tensor, y: Floats, loss: Loss) -> Tensor:
        h = raw.detach().double().numpy()
        ctx.slope = torch.from_numpy(np.ascontiguousarray(CheckedLoss(loss).gradient(h, y)))
        ctx.dtype = raw.dtype
        return torch.from_numpy(np.ascontiguousarray(CheckedLoss(loss).raw_value(h, y), np.float64))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        slope: Tensor = ctx.slope
        return (slope * grad[:, None]).to(ctx.dtype), None, None
