"""Problem: the rows that a fit trains its model on, and the held-out rows that choose it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from boostbp.backends.base import Backend
from boostbp.ensemble import constants
from boostbp.inputs.rows import Rows
from boostbp.losses import Loss, traits_of
from boostbp.losses.checked_loss import CheckedLoss, try_loss
from boostbp.network.layers.cheaper_growth import RowSampling, SharedStructure, drawn_rows, on_sample
from boostbp.network.monitor import NetworkTask, Stage, raw_output
from boostbp.network.network import Network, table_above
from boostbp.network.steps import baseline_of
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import training_in, workers


class HeldOutScore(NamedTuple):
    """Mean loss of a model on the held-out rows, and its standard error, which is NaN if the mean is not finite."""

    mean: float
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(NetworkTask):
    """Rows and settings that every candidate is trained and scored with; the table is the input of its output layer.

    Raw outputs below exclude the offset of the rows.
    """

    loss: CheckedLoss
    baseline: Floats  # raw output that boosting starts from, (outputs,)
    # Targets of the held-out rows as the loss takes them, (held-out rows, outputs), and the same with smoothed labels,
    # which score candidates. Without evaluation sets they have no rows.
    target: Floats
    smoothed: Floats
    held_out_loss: CheckedLoss  # the loss, prepared for the held-out rows if it is joint
    report: Callable[[Stage], object] = bool  # called at each stage of the fit

    @classmethod
    def of(cls, task: NetworkTask, to_target: Callable[[Floats], Floats] = raw_output) -> Problem:
        """Return the problem of a fit; `to_target` converts the targets of evaluation sets for the loss."""
        rows = task.rows
        with training_in(rows.group):
            baseline = baseline_of(task.loss, rows, task.settings.output_target)
            loss = held_out_loss = try_loss(task.loss, baseline + rows.offset, rows.y)
        target = smoothed = np.empty((0, rows.y.shape[1]))
        if task.evaluation.sets:
            held_out = task.evaluation.sets[0].rows
            target = to_target(held_out.y)
            smoothed = smooth_labels(target, held_out.weight, loss)
            held_out_loss = loss.prepared(smoothed, held_out.weight)
        given: dict[str, Any] = {field.name: getattr(task, field.name) for field in fields(task)} | {"loss": loss}
        return cls(**given, baseline=baseline, target=target, smoothed=smoothed, held_out_loss=held_out_loss)

    @property
    def held_out(self) -> Rows:
        """The rows that weigh the candidates."""
        return self.evaluation.sets[0].rows

    @property
    def learns_held_out(self) -> bool:
        """Whether the held-out rows are training rows, on which the chosen model may be refitted."""
        return self.evaluation.sets[0].from_training

    @property
    def start(self) -> Floats:
        """Raw output that boosting starts from on the training rows, offset included, (rows, outputs)."""
        return np.broadcast_to(self.baseline + self.rows.offset, (len(self.rows), len(self.baseline)))

    @property
    def growing_backend(self) -> Backend:
        """The backend of output layers and single layers, which may grow structures on a sample of the rows.

        It uses a sample if the user requested one. With many rows, each fit draws its own sample, unless the library
        fits the leaves or the sample would have too few rows of a class. Several classes share the structures of a
        round.
        """
        backend, samples = on_sample(self.backend, self.settings.structure_samples), self.settings.structure_samples
        if self.has_many_rows and samples is None and self.settings.layers[-1].leaves == "refit":
            drawn = max(constants.MIN_STRUCTURE_ROWS, round(constants.STRUCTURE_SHARE * self.n_rows))
            if self._rarest_class * drawn >= constants.MIN_STRUCTURE_CLASS * self.n_rows:
                backend = RowSampling(backend, drawn, anew=True)
        return SharedStructure(backend) if self.shares_structures else backend

    @property
    def shares_structures(self) -> bool:
        """Whether the trees of a round in output layers and single layers share one structure, as several classes do.

        With monotone constraints they do not: a shared structure is grown on a random sum of the gradients of all
        outputs, to which the constraints do not apply.
        """
        last = self.settings.layers[-1]
        is_free = last.leaves == "refit" and not (last.growth.multi_output or last.growth.monotone)
        return self.has_several_classes and is_free

    @property
    def has_several_classes(self) -> bool:
        """Whether there are three classes or more, or several labels of a row."""
        traits, n_outputs = traits_of(self.loss), self.rows.y.shape[1]
        return traits.multilabel or (traits.task == "classification" and n_outputs >= constants.SEVERAL_CLASSES)

    @property
    def _rarest_class(self) -> float:
        """Number of rows of the rarest class; infinite if there are no classes."""
        if traits_of(self.loss).task != "classification":
            return np.inf
        y = self.rows.y[self.rows.weight > 0]
        rows, n_rows = workers().sum(np.count_nonzero(y, axis=0), len(y))
        return float(min(rows.min(), (n_rows - rows).min()))

    @property
    def n_rows(self) -> int:
        """Number of training rows of all workers."""
        [n_rows] = workers().sum(len(self.rows.y))
        return int(n_rows)

    @property
    def has_many_rows(self) -> bool:
        """Whether a sample of the rows chooses the model, as there are many of them."""
        [counted] = workers().sum(np.count_nonzero(self.rows.weight))
        return bool(counted >= constants.MANY_ROWS)

    def row_losses(self, raw: Floats) -> Floats:
        """Return the loss of each held-out row for a raw output, (held-out rows,); infinite where it overflows."""
        with np.errstate(over="ignore"):
            return self.held_out_loss.value(raw + self.held_out.offset, self.smoothed)

    def mean_of(self, losses: Floats) -> HeldOutScore:
        """Return the weighted mean of losses, or of their differences, (held-out rows,)."""
        share = self.held_out.weight / self.held_out.weight.sum()
        with np.errstate(over="ignore", invalid="ignore"):  # raw outputs without bounds
            mean = float(share @ losses)
            deviations = share * (losses - mean)
            if traits_of(self.loss).joint == "groups":  # rows of a group are not independent
                _, group = np.unique(self.target[:, -1], return_inverse=True)
                deviations = np.bincount(group, deviations)
            return HeldOutScore(mean, float(np.sqrt(deviations @ deviations)))

    def score(self, raw: Floats) -> float:
        """Return the weighted mean loss of a raw output on the held-out rows."""
        return float(self.held_out.weight @ self.row_losses(raw) / self.held_out.weight.sum())

    @property
    def constant_raw(self) -> Floats:
        """Raw output that boosting starts from on the held-out rows, (held-out rows, outputs)."""
        return np.broadcast_to(self.baseline, (len(self.target), len(self.baseline)))

    def scale_of(self, score: float) -> float:
        """Return the scale with which changes of a score are compared: the score itself.

        If the loss is known only up to a constant, the scale is at most the gain over the baseline.
        """
        scale, traits = abs(score), traits_of(self.loss)
        if not (traits.least_squares or traits.task == "classification"):
            gain = self.score(self.constant_raw) - score
            scale = min(scale, gain) if gain > 0 else scale
        return max(scale, float(np.finfo(np.float64).tiny))

    def error_of(self, metric: float) -> float:
        """Return a metric as an error: 1 minus a metric that grows with accuracy, which is at most 1 in most cases."""
        assert self.evaluation.metric is not None
        return 1.0 - metric if self.evaluation.metric.greater_is_better else metric

    def metrics_of(self, network: Network) -> dict[str, float]:
        """Return the metric of a network on each evaluation set, by name."""
        return self.evaluation.scores(network, self.settings.n_threads)

    def split_threads(self, limit: int | None = None) -> tuple[Problem, int]:
        """Return the problem with the threads of one candidate, and the number of candidates at a time, up to `limit`.

        This number of threads also applies to the library.
        """
        few_rows = len(self.rows) < constants.MAX_PARALLEL_ROWS
        n_at_once = min(self.settings.n_threads, constants.MAX_PARALLEL) if few_rows and workers().is_single else 1
        n_at_once = n_at_once if limit is None else min(n_at_once, limit)
        n_threads = self.settings.n_threads // n_at_once
        layers = tuple(
            replace(layer, growth=replace(layer.growth, n_threads=min(layer.growth.n_threads, n_threads)))
            for layer in self.settings.layers
        )
        return replace(self, settings=replace(self.settings, n_threads=n_threads, layers=layers)), n_at_once

    def above(self, below: Network) -> Problem:
        """Return the problem of an output layer above the hidden layers of `below`, whose units it sees."""
        table = table_above(below.layers, self.rows.table, skip=below.skip, n_jobs=self.settings.n_threads)
        return replace(self, rows=replace(self.rows, table=table))

    def on_some_rows(self) -> Problem:
        """Return the problem on a sample of the training rows of weight above 0."""
        counted = np.flatnonzero(self.rows.weight > 0)
        if traits_of(self.loss).joint == "groups":
            _, group, size = np.unique(self.rows.y[counted, -1], return_inverse=True, return_counts=True)
            order = np.random.default_rng(self.settings.seed).permutation(len(size))
            drawn = order[np.cumsum(size[order]) - size[order] < constants.MANY_ROWS_SAMPLE]  # at least one group
            return replace(self, rows=self.rows.take(counted[np.isin(group, drawn)]))
        with training_in(self.rows.group.select_rows(counted)):
            rows = counted[drawn_rows(len(counted), constants.MANY_ROWS_SAMPLE, self.settings.seed)]
        return replace(self, rows=self.rows.take(rows))

    def on_all_rows(self) -> Problem:
        """Return the problem with the held-out rows of weight above 0 behind the training rows, on the last worker."""
        held_out, group = replace(self.held_out, y=self.target), self.rows.group
        counted = (held_out.weight > 0) & (group.rank == group.size - 1)
        return replace(self, rows=self.rows.concat(held_out.take(counted)))


def smooth_labels(target: Floats, weight: Floats, loss: Loss) -> Floats:
    """Return targets of held-out rows; labels are smoothed as if there were a quarter of a row more of another class.

    A model that separates the classes of a few held-out rows may predict probabilities arbitrarily close to 0 and 1.
    Its held-out loss is then near 0, but its loss on a row that it gets wrong has no bound. Platt (1999) smooths labels
    by one row for each class; here it is a quarter of a row for all held-out rows, as such a model is often right.
    """
    if not traits_of(loss).soft_labels:
        return target
    other = constants.SMOOTHING_ROWS / (np.count_nonzero(weight) + 2.0)  # share of the other classes
    n_others = 1 if traits_of(loss).multilabel else max(target.shape[1] - 1, 1)
    return target * (1.0 - other) + (1.0 - target) * other / n_others
