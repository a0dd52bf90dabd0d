"""Problem: what the model of a fit is trained on, and the held-out rows that choose it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from boostbp.backends.base import Backend
from boostbp.ensemble import constants
from boostbp.ensemble.quality_levels import DEFAULT_QUALITY, LEVELS, QualityLevel
from boostbp.inputs.rows import Rows
from boostbp.layers.cheaper_growth import RowSampling, SharedStructure, drawn_rows, on_sample
from boostbp.losses import Loss, traits_of
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.losses.loss_trial import try_loss
from boostbp.network.backprop import BackPropagation
from boostbp.network.baseline import baseline_of
from boostbp.network.eval_sets import NO_EVALUATION, Evaluation, raw_output
from boostbp.network.history import History
from boostbp.network.monitor import Callback, Stage, State
from boostbp.network.network import Network, table_above
from boostbp.network.settings import Settings
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import training_in, workers


@dataclass(frozen=True, slots=True)
class EnsembleSettings:
    """How networks and single layers become one model.

    Attributes
    ----------
    deep : {"auto", True, False}
        Average networks and single layers, keep the network alone, or average single layers only.
    quality : int
        Which of `LEVELS`: how much is tried, and how long.
    network_wanted : bool
        Whether the network that was asked for is trained, if only for some epochs, whatever it promises: callbacks see
        it, or its state is kept.
    """

    deep: Literal["auto"] | bool = "auto"
    quality: int = DEFAULT_QUALITY
    network_wanted: bool = False

    @property
    def level(self) -> QualityLevel:
        """What this quality may cost."""
        return LEVELS[self.quality]

    @property
    def trains_one_network(self) -> bool:
        """Whether the network that was asked for is trained where no rows can weigh it."""
        return self.deep is True or (self.deep == "auto" and self.network_wanted and self.level.networks is not None)


@dataclass(frozen=True, slots=True)
class Problem:
    """What every candidate is trained on, and how it is scored.

    Attributes
    ----------
    rows : Rows
        Training rows, and the workers that hold them. The table of an output layer is what that layer sees.
    settings : Settings
        Of the network that the user asked for; candidates change them.
    baseline : (outputs,) float64
        Raw output that boosting starts from.
    evaluation : Evaluation
        The rows of its first evaluation set, the held-out rows, weigh the candidates.
    target, smoothed : (held-out rows, outputs) float64
        Targets of the held-out rows as the loss takes them, and the same with smoothed labels, by which candidates are
        scored. Without evaluation sets there are no such rows.
    resume : State or None
        Of an earlier training of the network that the user asked for.
    report : callable
        ``report(stage)``, told where the fit stands.

    Raw outputs below are without the offset of the rows.
    """

    rows: Rows
    backend: Backend
    loss: CheckedLoss
    settings: Settings
    baseline: Floats
    evaluation: Evaluation
    target: Floats
    smoothed: Floats
    callbacks: Sequence[Callback] = ()
    resume: State | None = None
    report: Callable[[Stage], object] = bool

    @classmethod
    def of(
        cls,
        rows: Rows,
        *,
        backend: Backend,
        loss: Loss,
        settings: Settings,
        evaluation: Evaluation = NO_EVALUATION,
        to_target: Callable[[Floats], Floats] = raw_output,
    ) -> Problem:
        """Return the problem of a fit; `to_target` makes targets of an evaluation set what the loss takes."""
        with training_in(rows.group):
            baseline = baseline_of(loss, rows, settings)
            loss = try_loss(loss, baseline + rows.offset, rows.y)
        target = smoothed = np.empty((0, rows.y.shape[1]))
        if evaluation.sets:
            held_out = evaluation.sets[0].rows
            target = to_target(held_out.y)
            smoothed = smooth_labels(target, held_out.weight, loss)
        return cls(rows, backend, loss, settings, baseline, evaluation, target, smoothed)

    @property
    def held_out(self) -> Rows:
        """The rows that weigh the candidates."""
        return self.evaluation.sets[0].rows

    @property
    def learns_held_out(self) -> bool:
        """Whether the chosen model may be refitted on the held-out rows, as the fit took them from its own."""
        return self.evaluation.sets[0].from_training

    @property
    def start(self) -> Floats:
        """Raw output with its offset that boosting starts from on the training rows, (rows, outputs)."""
        return np.broadcast_to(self.baseline + self.rows.offset, self.rows.y.shape)

    @property
    def growing_backend(self) -> Backend:
        """The backend of output layers and single layers, which grows structures on some rows if that was asked for.

        Of many rows, each fit grows them on rows of its own, unless the library fits the leaves or a sample would have
        too few rows of a class. Several classes share the structures of a round.
        """
        backend = self._sampling_backend
        return SharedStructure(backend) if self.shares_structures else backend

    @property
    def shares_structures(self) -> bool:
        """Whether trees of a round in output layers and single layers have one structure: those of several classes.

        Not if these must rise or fall in a feature, as the sum of their gradients that is drawn need not.
        """
        last = self.settings.layers[-1]
        is_free = last.leaves == "refit" and not (last.growth.multi_output or last.growth.monotone)
        return self.has_several_classes and is_free

    @property
    def has_several_classes(self) -> bool:
        """Whether there are three classes or more."""
        return traits_of(self.loss).task == "classification" and self.rows.y.shape[1] >= constants.SEVERAL_CLASSES

    @property
    def _sampling_backend(self) -> Backend:
        samples = self.settings.structure_samples
        if self.has_many_rows and samples is None and self.settings.layers[-1].leaves == "refit":
            drawn = max(constants.LEAST_STRUCTURE_ROWS, round(constants.STRUCTURE_SHARE * self.n_rows))
            enough = self._rarest_class * drawn >= constants.LEAST_STRUCTURE_CLASS * self.n_rows
            return RowSampling(self.backend, drawn, anew=True) if enough else self.backend
        return on_sample(self.backend, samples)

    @property
    def _rarest_class(self) -> float:
        """Rows of the class that has fewest; infinite if there are no classes."""
        if traits_of(self.loss).task != "classification":
            return np.inf
        y = self.rows.y[self.rows.weight > 0]
        rows, n_rows = workers().sum(np.count_nonzero(y, axis=0), len(y))
        return float(min(rows.min(), (n_rows - rows).min()))

    @property
    def n_rows(self) -> int:
        """Number of training rows, those of all workers."""
        [n_rows] = workers().sum(len(self.rows.y))
        return int(n_rows)

    @property
    def has_many_rows(self) -> bool:
        """Whether there are so many rows that the model is chosen on a sample of them."""
        [counted] = workers().sum(np.count_nonzero(self.rows.weight))
        return bool(counted >= constants.MANY_ROWS)

    def row_losses(self, raw: Floats) -> Floats:
        """Loss of each held-out row for a raw output, (held-out rows,); infinite where float64 ends."""
        with np.errstate(over="ignore"):
            return self.loss.value(raw + self.held_out.offset, self.smoothed)

    def score(self, raw: Floats) -> float:
        """Weighted mean loss on the held-out rows for a raw output there."""
        return float(self.held_out.weight @ self.row_losses(raw) / self.held_out.weight.sum())

    @property
    def constant_raw(self) -> Floats:
        """Raw output on the held-out rows that boosting starts from."""
        return np.broadcast_to(self.baseline, self.target.shape)

    def scale_of(self, score: float) -> float:
        """What changes of a score are compared with: the score itself.

        Of losses that are known but for a constant, it is no more than how far the score lies below the baseline's.
        """
        scale = abs(score)
        traits = traits_of(self.loss)
        if not (traits.least_squares or traits.task == "classification"):
            gain = self.score(self.constant_raw) - score
            scale = min(scale, gain) if gain > 0 else scale
        return max(scale, float(np.finfo(np.float64).tiny))

    def metric_of(self, raw: Floats) -> float:
        """Metric on the held-out rows of a raw output there."""
        return self.evaluation.score(raw, self.held_out)

    def metrics_of(self, network: Network) -> dict[str, float]:
        """Metric of a network on each evaluation set, by name."""
        return self.evaluation.scores(network, self.settings.n_threads)

    def with_threads(self, n_threads: int) -> Problem:
        """The same on so many threads, the library's own among them."""
        layers = tuple(
            replace(layer, growth=replace(layer.growth, n_threads=min(layer.growth.n_threads, n_threads)))
            for layer in self.settings.layers
        )
        return replace(self, settings=replace(self.settings, n_threads=n_threads, layers=layers))

    def above(self, below: Network) -> Problem:
        """The problem of an output layer above hidden layers, whose units it sees."""
        table = table_above(below.layers, self.rows.table, skip=below.skip, n_jobs=self.settings.n_threads)
        return replace(self, rows=replace(self.rows, table=table))

    def on_some_rows(self) -> Problem:
        """The same on a sample of the training rows of weight above 0."""
        counted = np.flatnonzero(self.rows.weight > 0)
        with training_in(self.rows.group.select_rows(counted)):
            rows = counted[drawn_rows(len(counted), constants.SAMPLE_ROWS, self.settings.seed)]
        return replace(self, rows=self.rows.take(rows))

    def on_all_rows(self) -> Problem:
        """The same with the held-out rows of weight above 0 behind the training rows: those of the last worker."""
        held_out, group = replace(self.held_out, y=self.target), self.rows.group
        counted = (held_out.weight > 0) & (group.rank == group.size - 1)
        return replace(self, rows=self.rows.concat(held_out.take(counted)))


def back_propagation(problem: Problem) -> BackPropagation:
    """Begin to train the network of a problem."""
    return BackPropagation(
        problem.rows,
        backend=problem.backend,
        loss=problem.loss,
        settings=problem.settings,
        evaluation=problem.evaluation,
        callbacks=problem.callbacks,
        resume=problem.resume,
    )


def back_propagate(problem: Problem) -> tuple[Network, History]:
    """Train the network of a problem to its end."""
    training = back_propagation(problem)
    training.advance()
    return training.network, training.history


def smooth_labels(target: Floats, weight: Floats, loss: Loss) -> Floats:
    """Return targets of held-out rows; of classes, as if a quarter of a row more like each had another class.

    Few rows may all be told apart by a model that is sure of them without limit: it would seem to lose nothing, and
    lose without limit where it errs. The idea is Platt's (1999), with all held-out rows in place of those of a class,
    and a quarter of his row: models that tell few rows apart may well be right.
    """
    if not traits_of(loss).soft_labels:
        return target
    other = constants.SMOOTHING_ROWS / (np.count_nonzero(weight) + 2.0)
    if target.shape[1] == 1:
        return target * (1.0 - other) + (1.0 - target) * other
    return target * (1.0 - other) + (1.0 - target) * other / (target.shape[1] - 1)
