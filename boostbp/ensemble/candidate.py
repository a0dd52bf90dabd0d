"""Candidate: a model that may be part of the ensemble, and its training, piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

import numpy as np

from boostbp.ensemble import constants
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.directions import directions_layer
from boostbp.ensemble.output_layers import Boosting
from boostbp.ensemble.problem import Problem, back_propagation
from boostbp.ensemble.trained_candidate import OutputLayerPlan, TrainedCandidate
from boostbp.ensemble.work import epoch_work, round_work
from boostbp.layers import LayerSettings
from boostbp.layers.rounds import rounds_of
from boostbp.network.choice import NETWORK
from boostbp.network.history import Stop
from boostbp.network.network import Network, above
from boostbp.network.settings import Settings

Condition = Callable[[Problem], bool]
MOST_EPOCHS = 2**31


class Kind(Enum):
    """What a candidate is."""

    SINGLE_LAYER = "single layer of boosted trees on the features"
    DIRECTIONS = "layer on the features and the directions in which another one varies most"
    NETWORK = "network, trained by back-propagation"
    OUTPUT_LAYER = "network under an output layer boosted to its end"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that may be part of the ensemble.

    Attributes
    ----------
    begin : callable
        ``begin(problem, needed)`` gives a `LayerTraining` or `NetworkTraining`, which depends on nothing else.
    when : tuple of callable
        ``condition(problem) -> bool``: the candidate is tried if all hold.
    needs : str or None
        Name of the candidate whose result, `needed`, the training begins from.
    least_quality : int
        Quality of the fit from which on it is tried.
    """

    name: str
    kind: Kind
    begin: Callable[[Problem, TrainedCandidate | None], LayerTraining | NetworkTraining]
    when: tuple[Condition, ...] = ()
    needs: str | None = None
    least_quality: int = 2

    def applies(self, problem: Problem) -> bool:
        """Whether it is tried on a problem."""
        return all(condition(problem) for condition in self.when)


def single_layer(
    name: str,
    settings: Callable[[Problem], LayerSettings],
    when: tuple[Condition, ...] = (),
    least_quality: int = 2,
) -> Candidate:
    """Return a candidate that is a single layer on the features, boosted while the held-out loss falls."""

    def begin(problem: Problem, needed: TrainedCandidate | None) -> LayerTraining:
        boosting = Boosting.begin(problem, settings(problem), problem.held_out.X)
        return LayerTraining(name, None, Network((), problem.baseline), boosting)

    return Candidate(name, Kind.SINGLE_LAYER, begin, when, least_quality=least_quality)


def directions_of(
    needs: str, settings: Callable[[Problem], LayerSettings], *, name: str, when: tuple[Condition, ...] = ()
) -> Candidate:
    """Return a candidate that is a layer on the features and the directions in which another single layer varies most.

    Parameters
    ----------
    needs : str
        Name of the other single layer.
    settings : callable
        Of the layer, for a problem whose table is what it sees: the directions as hidden units, then the features.
    """

    def begin(problem: Problem, needed: TrainedCandidate | None) -> LayerTraining:
        assert needed is not None
        below = Network((directions_layer(problem, needed.model),), problem.baseline, skip=True)
        return begin_above(name, None, settings, problem, below)

    return Candidate(name, Kind.DIRECTIONS, begin, when, needs)


def network(name: str, settings: Callable[[Problem], Settings], when: tuple[Condition, ...] = ()) -> Candidate:
    """Return a candidate that is a network; callbacks and an earlier state are those of the one that was asked for."""

    def begin(problem: Problem, needed: TrainedCandidate | None) -> NetworkTraining:
        problem = replace(problem, settings=settings(problem))
        return NetworkTraining(name, problem if name == NETWORK else replace(problem, callbacks=(), resume=None))

    return Candidate(name, Kind.NETWORK, begin, when)


def output_layer_on(
    needs: str, settings: Callable[[Problem], LayerSettings], *, name: str = "", when: tuple[Condition, ...] = ()
) -> Candidate:
    """Return a candidate that is another one's hidden layers under an output layer, boosted while the loss falls.

    Parameters
    ----------
    needs : str
        Name of the network.
    settings : callable
        Of the output layer, for a problem whose table is what this layer sees.
    name : str
        That of the network and "final output layer" if left out.
    """
    name = name or f"{needs}, final output layer"
    return Candidate(name, Kind.OUTPUT_LAYER, partial(_begin_output_layer, name, settings), when, needs)


def _begin_output_layer(
    name: str, settings: Callable[[Problem], LayerSettings], problem: Problem, needed: TrainedCandidate | None
) -> LayerTraining:
    assert needed is not None
    below = replace(needed.model, layers=needed.model.layers[:-1])
    return begin_above(name, needed.network, settings, problem, below)


def begin_above(
    name: str,
    network: str | None,
    settings: Callable[[Problem], LayerSettings],
    problem: Problem,
    below: Network,
) -> LayerTraining:
    """Begin to boost an output layer above hidden layers, `below`."""
    held_out = above(below.layers, problem.held_out.X, skip=below.skip, n_jobs=problem.settings.n_threads)
    problem = problem.above(below)
    return LayerTraining(name, network, below, Boosting.begin(problem, settings(problem), held_out))


@dataclass(frozen=True, slots=True)
class LayerTraining:
    """The boosting of an output layer above the hidden layers of a network, `below`; a single layer has none."""

    name: str
    network: str | None
    below: Network
    boosting: Boosting

    @property
    def finished(self) -> bool:
        """Whether there is nothing to gain from a further piece."""
        return self.boosting.finished

    @property
    def work(self) -> float:
        """Work of a piece; see `boostbp.ensemble.work`."""
        return self._work(1.0)

    @property
    def refit_work(self) -> float:
        """Work of fitting the leaves of the best pieces once more."""
        return self.boosting.best * self._work(float(self.boosting.settings.leaves == "native"))

    def _work(self, grown: float) -> float:
        """Work of a piece of which a share of the structures is grown."""
        problem, settings = self.boosting.boosted.problem, self.boosting.settings
        n_features, n_outputs = problem.rows.X.shape[1], problem.rows.y.shape[1]
        one_structure = problem.shares_structures
        n_rounds = max(settings.n_estimators, 1)  # a layer of no rounds still has a base
        return n_rounds * round_work(settings, problem.n_rows, n_features, n_outputs, grown, one_structure)

    def advance(self) -> LayerTraining:
        """Boost one piece."""
        return replace(self, boosting=self.boosting.advance())

    @property
    def result(self) -> TrainedCandidate:
        """The best pieces."""
        model = replace(self.below, layers=(*self.below.layers, self.boosting.layer))
        return TrainedCandidate(self.name, self.network, model, self.boosting.best_raw, self.boosting.plan)


class NetworkTraining:
    """The back-propagation of a network; a piece ends with the epoch at which it is looked at next.

    Looks are at epochs 8, 16, 32, ...: the next piece takes as long as all before. What a look says depends on the
    epochs until then alone, so that a training that is resumed later on is judged as it was at first.

    Attributes
    ----------
    looks : int
        How many times it has been looked at.
    """

    def __init__(self, name: str, problem: Problem) -> None:
        self.name, self.looks = name, 0
        self._problem = problem
        self._over: Callable[[], bool] = bool
        callbacks = [*problem.callbacks, lambda _: self._over()]
        self._training = back_propagation(replace(problem, callbacks=callbacks))
        self.history = self._training.history
        # of a training that the user goes on with, all epochs were asked for
        self._first_look = constants.FIRST_LOOK if problem.resume is None or problem.resume.since < 0 else MOST_EPOCHS

    @property
    def required(self) -> bool:
        """Whether all epochs are to be run, whatever their work."""
        return self._first_look == MOST_EPOCHS

    @property
    def epoch(self) -> int:
        """Epoch of the last look."""
        return min(self._first_look << max(self.looks - 1, 0), self._problem.settings.epochs) if self.looks else 0

    @property
    def _next_epoch(self) -> int:
        return min(self._first_look << self.looks, self._problem.settings.epochs)

    @property
    def finished(self) -> bool:
        """Whether training was over at the last look."""
        return self._training.finished and self._training.epoch <= self.epoch

    @property
    def work(self) -> float:
        """Work of the epochs until the next look."""
        return self._epoch_work * (self._next_epoch - self.epoch)

    @property
    def work_of_all(self) -> float:
        """Work of all epochs that may be run."""
        return self._epoch_work * self._problem.settings.epochs

    @property
    def _epoch_work(self) -> float:
        problem = self._problem
        return epoch_work(problem.settings, problem.n_rows, problem.rows.X.shape[1], problem.rows.y.shape[1])

    def advance(self, budget: Budget, later: float) -> None:
        """Train until the next look, or until only the time for what is to be done later is left; see `Budget.over`.

        Raises
        ------
        FloatingPointError
            If it diverges in its first epoch.
        KeyboardInterrupt
            If it came in the first epoch.
        """
        self._over = partial(budget.over_here, later)  # of callbacks, which are called on rank 0
        self._training.advance(self._next_epoch)
        self.looks += 1
        if self.history.stop is Stop.CALLBACK and budget.over(later):
            self._training.leave(Stop.TIME)

    def leave(self, budget: Budget) -> None:
        """Train no more: it promises too little, or time is up."""
        if not self._training.finished:
            self._training.leave(Stop.TIME if budget.spent else Stop.QUALITY)

    def best_metrics(self) -> tuple[float, float]:
        """Best metric on the held-out rows until half of the epochs of the last look, and until all of them."""
        held_out, metric = self._problem.evaluation.sets[0].name, self._problem.evaluation.metric
        assert metric is not None
        best = np.maximum.accumulate if metric.greater_is_better else np.minimum.accumulate
        values = best(self.history.metrics(held_out)[: self.epoch + 1])
        return float(values[min(self.epoch // 2, len(values) - 1)]), float(values[-1])

    @property
    def result(self) -> TrainedCandidate:
        """The network of the best epoch."""
        problem, model = self._problem, self._training.network.with_short_hidden()
        held_out = model.predict(problem.held_out.X, n_jobs=problem.settings.n_threads)
        plan = None
        if problem.settings.output_target == "loss":
            rounds = rounds_of(model.layers[-1].forest)
            plan = OutputLayerPlan(replace(problem.settings.layers[-1], n_estimators=rounds), model.layers[-1:])
        return TrainedCandidate(self.name, self.name, model, held_out, plan, self.history)
