"""Candidates: models that may be part of the ensemble, and their training, which advances piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Protocol, Self

import numpy as np

from boostbp.ensemble import constants
from boostbp.ensemble.budget import Budget, epoch_work
from boostbp.ensemble.hidden_units import directions_layer, encodings_layer
from boostbp.ensemble.output_layers import LayerTraining, OutputLayerPlan, TrainedCandidate
from boostbp.ensemble.problem import Problem
from boostbp.inputs.rows import NO_OFFSET
from boostbp.losses import SquaredError
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.network.backprop import BackPropagation
from boostbp.network.choice import NETWORK
from boostbp.network.history import Stop
from boostbp.network.layers import LayerSettings
from boostbp.network.layers.layer import rounds_of
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.network.steps import best_constant

Condition = Callable[[Problem], bool]
Over = Callable[..., bool]  # ``over(*later, here=False)``, as `Budget.over`
AFTER_ALL_EPOCHS = 2**31  # epoch of the first look of a training that is never judged


class CandidateKind(Enum):
    """Kind of a model and of its training."""

    SINGLE_LAYER = "single layer of boosted trees on the features"
    DIRECTIONS = "layer on the features and on the directions in which another layer varies most"
    ENCODINGS = "layer on the features and on the means of the target for the levels of categories"
    NETWORK = "network trained by back-propagation"
    OUTPUT_LAYER = "network under an output layer that is boosted to its end"


class Trial(Protocol):
    """The training of a candidate, piece by piece."""

    @property
    def n_pieces(self) -> int:
        """Number of pieces so far."""
        ...

    @property
    def finished(self) -> bool:
        """Whether no piece is left."""
        ...

    @property
    def is_trained(self) -> bool:
        """Whether there is a model, also after a piece that failed or was interrupted."""
        ...

    def work_since(self, n_pieces: int) -> float:
        """Return the work of all pieces but the first `n_pieces`; see `boostbp.ensemble.budget`."""
        ...

    def advance(self, over: Over | None = None) -> Self:
        """Return the training with one piece more, which may end early if ``over()``."""
        ...

    @property
    def result(self) -> TrainedCandidate:
        """The model so far."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that may be part of the ensemble."""

    name: str
    kind: CandidateKind
    # ``begin(problem, needed)`` returns a `NetworkTraining` for a network, and otherwise a `LayerTraining`. It must
    # depend on nothing else.
    begin: Callable[[Problem, TrainedCandidate | None], Any]
    when: tuple[Condition, ...] = ()  # the candidate is tried if all of these hold
    needs: str | None = None  # name of the candidate whose result is passed as `needed`
    least_quality: int = 2  # lowest quality of a fit that tries the candidate


def single_layer(
    name: str, settings: Callable[[Problem], LayerSettings], when: tuple[Condition, ...] = (), least_quality: int = 2
) -> Candidate:
    """Return a candidate that is a single layer on the features, boosted while the held-out loss falls."""

    def begin(problem: Problem, needed: TrainedCandidate | None) -> LayerTraining:
        return LayerTraining.begin(name, None, settings, problem, Network((), problem.baseline))

    return Candidate(name, CandidateKind.SINGLE_LAYER, begin, when, least_quality=least_quality)


def directions_of(
    needs: str, settings: Callable[[Problem], LayerSettings], *, name: str, when: tuple[Condition, ...] = ()
) -> Candidate:
    """Return a candidate that is a layer on the features and on the directions in which another layer varies most.

    `needs` is the name of the other layer. The table of the problem that `settings` gets is the input of the new layer:
    the directions as hidden units, then the features.
    """

    def begin(problem: Problem, needed: TrainedCandidate | None) -> LayerTraining:
        assert needed is not None
        below = Network((directions_layer(problem, needed.model),), problem.baseline, skip=True)
        return LayerTraining.begin(name, None, settings, problem, below)

    return Candidate(name, CandidateKind.DIRECTIONS, begin, when, needs)


def encodings_below(
    name: str, settings: Callable[[Problem], LayerSettings], when: tuple[Condition, ...] = ()
) -> Candidate:
    """Return a candidate that is a layer on the features and on the means of the levels of categories.

    The layer is not refitted on all rows, because its training rows must see means of other rows only.
    """

    def begin(problem: Problem, needed: TrainedCandidate | None) -> LayerTraining:
        layer, units = encodings_layer(problem)
        below = Network((layer,), problem.baseline, skip=True)
        return replace(LayerTraining.begin(name, None, settings, problem, below, units=units), refits=False)

    return Candidate(name, CandidateKind.ENCODINGS, begin, when, least_quality=1)


def network(name: str, settings: Callable[[Problem], Settings], when: tuple[Condition, ...] = ()) -> Candidate:
    """Return a candidate that is a network; callbacks and an earlier state belong to the user's network alone."""

    def begin(problem: Problem, needed: TrainedCandidate | None) -> NetworkTraining:
        problem = replace(problem, settings=settings(problem))
        return NetworkTraining(name, problem if name == NETWORK else replace(problem, callbacks=(), resume=None))

    return Candidate(name, CandidateKind.NETWORK, begin, when)


def output_layer_on(needs: str, settings: Callable[[Problem], LayerSettings]) -> Candidate:
    """Return a candidate that has the hidden layers of another one, under an output layer that is boosted anew.

    `needs` is the name of the network. The table of the problem that `settings` gets is the input of the output layer.
    """
    name = f"{needs}, final output layer"

    def begin(problem: Problem, needed: TrainedCandidate | None) -> LayerTraining:
        assert needed is not None
        below = replace(needed.model, layers=needed.model.layers[:-1])
        return LayerTraining.begin(name, needed.network, settings, problem, below)

    return Candidate(name, CandidateKind.OUTPUT_LAYER, begin, needs=needs)


def mean_and_quantiles(candidate: Candidate) -> Candidate:
    """Return a candidate that learns the mean of a target; each quantile level lies at a fixed distance from it.

    Boosting outer levels is slow, because the gradient of their loss is small on nearly all rows. Where the noise does
    not depend on the inputs, the mean and the quantiles of its held-out residuals are the whole answer. Elsewhere such
    layers are a part of the average, beside layers that were boosted on the levels themselves.

    The layer is not refitted on all rows, because the distances are quantiles on rows that it has not seen.
    """

    def begin(problem: Problem, needed: TrainedCandidate | None) -> LayerTraining:
        return replace(candidate.begin(problem_of_mean(problem), needed), levels=problem)

    return replace(candidate, begin=begin)


def problem_of_mean(levels: Problem) -> Problem:
    """Return the problem of one output, the mean of the target; the outputs of `levels` are its quantiles."""
    loss, held_out = CheckedLoss(SquaredError(), curved=False, separable=True), levels.held_out
    # all levels have the same target, so the mean over columns is that target without the offsets
    y, target = (
        columns.mean(axis=1, keepdims=True)
        for columns in (levels.rows.y - levels.rows.offset, levels.target - held_out.offset)
    )
    rows = replace(levels.rows, y=y, offset=NO_OFFSET)
    first, *others = levels.evaluation.sets
    first = replace(first, rows=replace(held_out, offset=NO_OFFSET))
    evaluation, baseline = replace(levels.evaluation, sets=(first, *others)), best_constant(loss, rows)
    learned = replace(levels, loss=loss, held_out_loss=loss, rows=rows, evaluation=evaluation)
    return replace(learned, baseline=baseline, target=target, smoothed=target)


class NetworkTraining:
    """The back-propagation of a network; each piece ends at the epoch of the next look at its held-out error.

    The looks are at epochs 8, 16, 32, ..., so the next piece takes as long as all earlier ones together. The judgement
    at a look depends only on the epochs until then, so a resumed training is judged as the original one was.
    """

    def __init__(self, name: str, problem: Problem) -> None:
        self.name, self._problem = name, problem
        self._result: TrainedCandidate | None = None
        self.n_pieces = 0  # number of looks so far
        self._over: Callable[[float], bool] = bool
        ends = [*problem.callbacks, lambda progress: self._over(progress.epoch.seconds)]
        self._training = BackPropagation(replace(problem, callbacks=ends))
        self.history = self._training.history
        # whether all epochs run, however much work they take, because the user continues a training
        self.required = problem.resume is not None and problem.resume.since >= 0
        self._first_look = AFTER_ALL_EPOCHS if self.required else constants.FIRST_LOOK
        self.epoch_work = epoch_work(problem.settings, problem.n_rows, problem.rows.X.shape[1], len(problem.baseline))

    @property
    def epoch(self) -> int:
        """Epoch of the last look."""
        return self._epoch_of(self.n_pieces)

    def _epoch_of(self, n_pieces: int) -> int:
        return min(self._first_look << n_pieces - 1, self._problem.settings.epochs) if n_pieces else 0

    @property
    def finished(self) -> bool:
        """Whether training was over at the last look."""
        return self._training.finished and self._training.epoch <= self.epoch

    @property
    def is_trained(self) -> bool:
        """Whether an epoch is over."""
        return bool(self.history.epochs)

    @property
    def work(self) -> float:
        """Work of the epochs until the next look."""
        return self.epoch_work * (self._epoch_of(self.n_pieces + 1) - self.epoch)

    def work_since(self, n_pieces: int) -> float:
        """Return the work of the epochs between the look `n_pieces` and the last one."""
        return self.epoch_work * (self.epoch - self._epoch_of(n_pieces))

    def advance(self, over: Over | None = None) -> NetworkTraining:
        """Train until the next look, or until ``over(seconds)`` for the seconds of an epoch; return this training.

        Raises FloatingPointError if the network diverges in its first epoch, and KeyboardInterrupt.
        """
        over = over or Budget(None).over
        self._over, self._result = partial(over, here=True), None  # callbacks are called on rank 0 only
        self._training.advance(self._epoch_of(self.n_pieces + 1))
        self.n_pieces += 1
        if self.history.stop is Stop.CALLBACK and over(self.history[-1].seconds):
            self._training.leave(Stop.TIME)
        return self

    def leave(self, budget: Budget) -> None:
        """End the training, because it promises too little or because time is up."""
        if not self._training.finished:
            self._training.leave(Stop.TIME if budget.spent else Stop.QUALITY)

    def best_errors(self) -> tuple[float, float]:
        """Return the lowest held-out error of the first half of the epochs until the last look, and of all of them."""
        problem = self._problem
        metrics = self.history.metrics(problem.evaluation.sets[0].name)[: self.epoch + 1]
        errors = np.minimum.accumulate([problem.error_of(metric) for metric in metrics])
        return float(errors[min(self.epoch // 2, len(errors) - 1)]), float(errors[-1])

    @property
    def network(self) -> Network:
        """The network of the best epoch; without evaluation sets, of the last."""
        return self._training.network

    @property
    def result(self) -> TrainedCandidate:
        """The network of the best epoch, in a sum."""
        if self._result is None:
            problem, model, plan = self._problem, self.network.with_short_hidden(), None
            held_out = model.predict(problem.held_out.X, n_jobs=problem.settings.n_threads)
            if problem.settings.output_target == "loss":
                rounds = rounds_of(model.layers[-1].forest)
                plan = OutputLayerPlan(replace(problem.settings.layers[-1], n_estimators=rounds), model.layers[-1:])
            self._result = TrainedCandidate(self.name, self.name, model, held_out, plan, self.history)
        return self._result
