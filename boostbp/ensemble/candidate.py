"""Candidate: a model that may be part of the ensemble, and its training, piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Protocol

from boostbp.ensemble.budget import Turn
from boostbp.ensemble.output_layers import Boosting
from boostbp.ensemble.problem import Problem, back_propagate
from boostbp.ensemble.trained_candidate import OutputLayerPlan, TrainedCandidate
from boostbp.layers import LayerSettings
from boostbp.layers.rounds import rounds_of
from boostbp.network.history import NETWORK, Stop
from boostbp.network.network import Network, output_table
from boostbp.network.settings import Settings

__all__ = ["Candidate", "Kind", "Training", "network", "output_layer_on", "single_layer", "train"]

Condition = Callable[[Problem], bool]


class Kind(Enum):
    """What a candidate is."""

    SINGLE_LAYER = "single layer of boosted trees on the features"
    NETWORK = "network, trained by back-propagation"
    OUTPUT_LAYER = "network under an output layer boosted to its end"


class Training(Protocol):
    """A training that is advanced piece by piece; each piece gives a new value."""

    @property
    def finished(self) -> bool:
        """Whether there is nothing to gain from a further piece."""

    def advance(self, turn: Turn) -> Training:
        """Train one piece more."""

    @property
    def result(self) -> TrainedCandidate | None:
        """What has been trained so far; None if nothing came of it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that may be part of the ensemble.

    Attributes
    ----------
    name : str
    kind : Kind
    begin : callable
        ``begin(problem, needed) -> Training``, which depends on nothing else.
    when : tuple of callable
        ``condition(problem) -> bool``: the candidate is tried if all hold.
    needs : str or None
        Name of the candidate whose result, `needed`, the training begins from.
    """

    name: str
    kind: Kind
    begin: Callable[[Problem, TrainedCandidate | None], Training]
    when: tuple[Condition, ...] = ()
    needs: str | None = None

    def applies(self, problem: Problem) -> bool:
        """Whether it is tried on a problem."""
        return all(condition(problem) for condition in self.when)


def train(
    candidate: Candidate, problem: Problem, turn: Turn, needed: TrainedCandidate | None = None
) -> TrainedCandidate | None:
    """Train a candidate to its end, or for as long as its turn lasts; None if it has none, or if nothing came of it.

    A required candidate, and any that has begun, gets one piece whatever the time.
    """
    turn = turn.begun()
    # an output layer is left out as soon as its kind has no time, others as long as the whole fit has some
    if turn.over() if candidate.kind is Kind.OUTPUT_LAYER else not turn.required and turn.budget.over():
        return None
    training = candidate.begin(problem, needed).advance(turn)
    while not training.finished and not turn.over():
        training = training.advance(turn)
    return training.result


def single_layer(
    name: str, settings: Callable[[Problem], LayerSettings], when: tuple[Condition, ...] = ()
) -> Candidate:
    """Return a candidate that is a single layer on the features, boosted while the held-out loss falls."""

    def begin(problem: Problem, needed: TrainedCandidate | None) -> Training:
        boosting = Boosting.begin(problem, settings(problem), problem.held_out.X)
        return _LayerTraining(name, None, Network((), problem.baseline), boosting)

    return Candidate(name, Kind.SINGLE_LAYER, begin, when)


def network(name: str, settings: Callable[[Problem], Settings], when: tuple[Condition, ...] = ()) -> Candidate:
    """Return a candidate that is a network; callbacks and an earlier state are those of the one that was asked for."""

    def begin(problem: Problem, needed: TrainedCandidate | None) -> Training:
        problem = replace(problem, settings=settings(problem))
        if name == NETWORK:
            return _NetworkTraining(name, problem, asked_for=True)
        return _NetworkTraining(name, replace(problem, callbacks=(), resume=None), asked_for=False)

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
) -> Training:
    assert needed is not None
    hidden, n_threads = needed.model, problem.settings.n_threads
    problem = replace(problem, table=output_table(hidden, problem.table, n_jobs=n_threads))
    held_out_input = hidden.output_input(problem.held_out.X, n_jobs=n_threads)
    boosting = Boosting.begin(problem, settings(problem), held_out_input)
    return _LayerTraining(name, needed.network, replace(hidden, layers=hidden.layers[:-1]), boosting)


@dataclass(frozen=True, slots=True)
class _LayerTraining:
    """The boosting of an output layer on the hidden layers of a network, `below`; a single layer has none."""

    name: str
    network: str | None
    below: Network
    boosting: Boosting

    @property
    def finished(self) -> bool:
        return self.boosting.finished

    def advance(self, turn: Turn) -> _LayerTraining:
        return replace(self, boosting=self.boosting.advance())

    @property
    def result(self) -> TrainedCandidate:
        model = replace(self.below, layers=(*self.below.layers, self.boosting.layer))
        return TrainedCandidate(self.name, self.network, model, self.boosting.best_raw, self.boosting.plan)


@dataclass(frozen=True, slots=True)
class _NetworkTraining:
    """The back-propagation of a network, of which all epochs are one piece."""

    name: str
    problem: Problem
    asked_for: bool
    finished: bool = False
    result: TrainedCandidate | None = None

    def advance(self, turn: Turn) -> _NetworkTraining:
        """Train it; without a result if it diverged in its first epoch, unless it was asked for."""
        problem = self.problem
        limited = replace(problem.settings, max_time=turn.seconds())
        callbacks = [*problem.callbacks, lambda _: turn.budget.ended]
        try:
            model, history = back_propagate(replace(problem, settings=limited, callbacks=callbacks))
        except FloatingPointError:
            if self.asked_for:
                raise
            return replace(self, finished=True)
        if history.stop is Stop.TIME:
            turn.budget.spent = True
        held_out = model.predict(problem.held_out.X, n_jobs=problem.settings.n_threads)
        plan = None
        if problem.settings.output_target == "loss":
            rounds = rounds_of(model.layers[-1].forest)
            plan = OutputLayerPlan(replace(problem.settings.layers[-1], n_estimators=rounds))
        result = TrainedCandidate(self.name, self.name, model, held_out, plan, history)
        return replace(self, finished=True, result=result)
