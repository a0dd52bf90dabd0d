"""Driver: trials of candidates, piece by piece, their work so far, and their sum on the held-out rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.failures import numerical
from boostbp.ensemble import constants
from boostbp.ensemble.average import stacked_weights, summed
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.candidate import Candidate, NetworkTraining, Over, Trial
from boostbp.ensemble.output_layers import LayerTraining, TrainedCandidate
from boostbp.ensemble.plan import Plan
from boostbp.ensemble.problem import Problem
from boostbp.network.monitor import Stage, StageSeconds
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.runtime.threads import run_tasks

FIRST_STAGE = "first layers"  # the stage with which every fit begins
SHARES_TRIED = (0.1, 0.25, 0.5, 0.75, 1.0)  # weights that are tried for a layer; the values were not varied


T = TypeVar("T", bound=Trial)


@dataclass
class Turn(Generic[T]):
    """Pieces of one trial, which are trained by a thread."""

    begin: Callable[[], T | None]  # None if there is no time for it
    n_pieces: int | None  # None for all
    over: Over  # asked before each piece but the first of all
    cuts: bool = False  # whether ``over()`` also ends a piece after some of its rounds
    trial: T | None = None  # with the pieces so far, also if the turn fails or is interrupted
    failure: Exception | None = None  # that ended the turn

    def run(self) -> None:
        """Train the pieces."""
        try:
            self.trial, done = self.begin(), 0
            while (trial := self.trial) and done != self.n_pieces and not trial.finished:
                if trial.n_pieces and self.over():
                    break
                self.trial, done = trial.advance(self.over if self.cuts else None), done + 1
        except Exception as error:
            self.failure = numerical(error)


@dataclass
class Driver:
    """The training of the candidates of a plan, and their weighted sum on the held-out rows.

    Decisions depend on held-out losses and on counted work, not on the clock or the number of threads. A time limit
    only ends the training early. In a group of workers rank 0 decides, as others may round the losses differently.
    """

    problem: Problem  # layers that are trained at the same time share its threads
    budget: Budget
    plan: Plan
    # by name of the candidate; failed ones are left out, or keep the pieces from before the failure
    failed: dict[str, Exception] = field(default_factory=dict)
    layers: dict[str, LayerTraining] = field(default_factory=dict)
    networks: dict[str, NetworkTraining] = field(default_factory=dict)
    others: list[TrainedCandidate] = field(default_factory=list)  # of other trainings, part of the sum, too
    spent: float = 0.0  # work so far
    total: float = np.inf  # work of the whole fit; infinite until it is known
    begin_seconds: float = 0.0  # that it took to begin a candidate, at most
    columns: NDArray[np.intp] | None = None  # the features of the problem, if it leaves out some of the table's
    seconds: StageSeconds | None = None  # of the stages so far

    @classmethod
    def of(cls, problem: Problem, plan: Plan) -> Driver:
        """Return the driver of a whole fit, before its first trial."""
        seconds = StageSeconds(FIRST_STAGE, problem.report)
        return cls(replace(problem, report=seconds), Budget(problem.settings.max_time), plan, seconds=seconds)

    def continue_as(self, other: Driver) -> None:
        """Continue as another driver, with what that one has trained."""
        vars(self).update(vars(other))

    def report(
        self, name: str, weights: dict[str, float] | None = None, raw: Floats | None = None, *, hint: str = ""
    ) -> None:
        """Report the stage of the fit by name, with the models so far."""
        if weights is None or raw is None:
            weights, raw = self.sum()
        n_models = sum(weight > 0 for weight in weights.values())
        self.problem.report(Stage(name, self.share, self.problem.score(raw), n_models, hint))

    @property
    def share(self) -> float:
        """Share of the work that is done; 0 if the first layer, whose work is the unit, failed."""
        return self.spent / self.total if self.total else 0.0

    def trained(self) -> list[TrainedCandidate]:
        """Return the models so far: layers and networks in the order in which they were begun, then the others."""
        trials: list[Trial] = [*self.layers.values(), *self.networks.values()]
        return [trial.result for trial in trials] + self.others

    def begin(
        self, candidates: Sequence[Candidate], n_pieces: int | None, *, stage: str = "layers", limit: float = np.inf
    ) -> None:
        """Begin candidates, and boost each by a number of pieces, or to its end; `stage` is its name in reports.

        No candidate begins after the work `limit` or after the time limit, except for the first layer of all.
        """
        waiting = list(candidates)
        while waiting:
            # No time is reserved to refit the first layer: more pieces of it are worth more than a refit.
            later = self.refit_seconds() if self.layers else 0.0
            if self.layers and (self.spent >= limit or self.budget.over(later)):
                break
            ready = {None, *self.layers, *self.networks, *(model.name for model in self.others)}
            wave = [candidate for candidate in waiting if candidate.needs in ready][: constants.WAVE]
            if not wave:
                break
            waiting = [candidate for candidate in waiting if candidate not in wave]
            self.report(stage)
            over, first = partial(self.budget.over, later), wave[0] if not self.layers else None
            turns = {layer.name: self._turn(layer, n_pieces, over, required=layer is first) for layer in wave}
            self.train(turns, self.layers)

    def _turn(self, candidate: Candidate, n_pieces: int | None, over: Over, *, required: bool) -> Turn[LayerTraining]:
        """Return the turn that begins a layer, or takes one that was begun on to `n_pieces`."""
        if (begun := self.layers.get(candidate.name)) is None:
            return self._pieces(partial(self._begun, candidate, over, required), n_pieces, over)
        left = None if n_pieces is None else max(n_pieces - begun.n_pieces, 0)
        return self._pieces(lambda: begun, left, over)

    def _pieces(self, begin: Callable[[], T | None], n_pieces: int | None, over: Over) -> Turn[T]:
        return Turn(begin, n_pieces, over, cuts=self.budget.seconds is not None)

    def turn_of(self, network: NetworkTraining, n_pieces: int | None = None) -> dict[str, Turn[NetworkTraining]]:
        """Return the turn of a network until its next looks, or to its end."""
        over = partial(self.budget.over, self.refit_seconds())
        return {network.name: self._pieces(lambda: network, n_pieces, over)}

    def _begun(self, candidate: Candidate, over: Over, required: bool) -> Any:
        """Return a candidate's training before its first piece; None if time is up and it is not required."""
        if not required and over(self.begin_seconds):
            return None
        starts = time.perf_counter()
        trials: dict[Any, Trial] = {**self.layers, **self.networks}
        needed = trials[candidate.needs].result if candidate.needs in trials else None
        needed = needed or next((model for model in self.others if model.name == candidate.needs), None)
        trial = candidate.begin(self.problem.split_threads()[0], needed)
        self.begin_seconds = max(self.begin_seconds, time.perf_counter() - starts)
        return trial

    def begin_best(self, candidates: Sequence[Candidate], *, stage: str) -> None:
        """Begin candidates, boost those that `audition` keeps to their end, and drop the others.

        A layer on directions begins if the layer is kept that the directions are of, and goes on if it promises enough.
        """
        self.audition([layer for layer in candidates if layer.needs is None], stage=stage)
        if not self.layers:
            return
        on_others = [layer for layer in candidates if layer.needs in self.layers]
        self.begin(on_others, 1, stage=stage)
        going = [layer for layer in on_others if layer.name in self.layers and self._leads_at_first(layer)]
        for layer in on_others:
            if layer not in going:
                self.layers.pop(layer.name, None)
        if going:
            self.audition(going, stage=stage)
        self._boost(self.layers, None, self.budget.over)

    def _leads_at_first(self, candidate: Candidate) -> bool:
        """Return whether the first piece of a layer has clearly less loss than that of the layer it needs."""
        loss = self.layers[str(candidate.needs)].first_score
        lead = loss - self.layers[candidate.name].first_score
        return workers().agree(lead >= constants.FIRST_PIECE_LEAD * self.problem.scale_of(loss))

    def audition(self, candidates: Sequence[Candidate], *, stage: str) -> None:
        """Begin candidates, and keep those whose loss after the trial is not clearly above the lowest one."""
        self.begin(candidates, constants.FIRST_LAYER_PIECES, stage=stage)
        if self.layers:
            best = min(self.layers.values(), key=attrgetter("best_score"))
            t = constants.FIRST_LAYER_T
            kept = [name for name, layer in self.layers.items() if layer is best or not self.is_worse(layer, best, t)]
            self.layers = {name: self.layers[name] for name in workers().agree(kept)}

    def is_worse(self, layer: LayerTraining, other: LayerTraining, limit: float) -> bool:
        """Return whether the held-out loss of a layer exceeds that of another by more standard errors than `limit`.

        Layers on few features are compared in this way, too.
        """
        losses, others = [self.problem.row_losses(training.best_raw) for training in (layer, other)]
        with np.errstate(invalid="ignore"):  # infinite losses
            excess, error = self.problem.mean_of(losses - others)
        return not excess <= limit * error

    def run(self, limit: float) -> None:
        """Boost the layers that promise most until none promises enough, or `limit` of work with the refit is spent."""
        while self.layers:
            weights, raw = self.sum()
            later = self.refit_work(weights)
            over = partial(self.budget.over, self.refit_seconds(weights))
            if self.spent + later > limit or over():
                return
            self.report("layers", weights, raw)
            names = self.most_promising(weights, raw)
            if not names:
                return
            self._boost(names, constants.RACE_PIECES, over)

    def _boost(self, names: Iterable[str], n_pieces: int | None, over: Over) -> None:
        """Boost layers that were begun."""
        layers = {name: self.layers[name] for name in names}
        self.train({name: self._pieces(partial(layers.get, name), n_pieces, over) for name in layers}, self.layers)

    def train(self, turns: Mapping[str, Turn[T]], trials: dict[str, T]) -> None:
        """Train some of the layers or of the networks, `trials`, as many at a time as threads allow.

        Work is counted and trials are kept, also after Ctrl-C.
        """
        before = {name: trials[name].n_pieces for name in turns if name in trials}
        try:
            run_tasks([turn.run for turn in turns.values()], self.problem.split_threads()[1])
        finally:
            for name, turn in turns.items():
                if turn.failure is not None:
                    self.failed[name] = turn.failure
                if turn.trial is not None and turn.trial.is_trained:
                    self.spent += turn.trial.work_since(before.get(name, 0))
                    trials[name] = turn.trial

    def sum(self) -> tuple[dict[str, float], Floats]:
        """Return the weights of all models so far, by name, and the raw output of their sum on the held-out rows."""
        raws = {name: training.held_out for name, training in self.layers.items()}
        raws |= {name: training.result.held_out for name, training in self.networks.items()}
        raws |= {model.name: model.held_out for model in self.others}
        if not raws:
            return {}, self.problem.constant_raw
        stacked = np.stack(list(raws.values()))
        weights = workers().agree(stacked_weights(stacked, self.problem))
        return {name: float(weight) for name, weight in zip(raws, weights, strict=True)}, summed(weights, stacked)

    def score(self) -> float:
        """Return the held-out loss of the sum."""
        return workers().agree(self.problem.score(self.sum()[1]))

    def refit_seconds(self, weights: dict[str, float] | None = None) -> float:
        """Return the expected seconds of refitting all models with weight."""
        if not self.plan.refit or self.budget.seconds is None:
            return 0.0
        weights = self.sum()[0] if weights is None else weights
        return sum(training.refit_seconds for name, training in self.layers.items() if weights[name])

    def seconds_of(self, work: float) -> float:
        """Return the expected seconds of work, at the rate of the layers so far."""
        return work * max((training.seconds_per_work for training in self.layers.values()), default=0.0)

    def refit_work(self, weights: dict[str, float] | None = None) -> float:
        """Return the work of refitting all models with weight."""
        if not self.plan.refit:
            return 0.0
        weights = self.sum()[0] if weights is None else weights
        return sum(training.refit_work for name, training in self.layers.items() if weights[name])

    def most_promising(self, weights: dict[str, float], raw: Floats) -> list[str]:
        """Return the layers whose next pieces promise most gain of the sum for their work, and enough of it."""
        min_gain = constants.MIN_PROMISE * self.problem.scale_of(self.problem.score(raw))
        gain_per_work = {}
        for name, training in self.layers.items():
            if not training.finished and name not in self.failed:
                gain = promised_gain(training, weights[name], raw, self.problem)
                if gain >= min_gain:
                    gain_per_work[name] = gain / training.work
        return workers().agree(sorted(gain_per_work, key=lambda name: -gain_per_work[name])[: constants.WAVE])


def promised_gain(training: LayerTraining, weight: float, raw: Floats, problem: Problem) -> float:
    """Return how far the loss of the sum is expected to fall if a layer is boosted further.

    The layer's expected output either gets a share of the sum, or replaces the layer's output at its present weight,
    whichever has the lower loss. `weight` is that of the layer in the sum, whose raw output is `raw`.
    """
    expected = training.expected
    sums = [(1.0 - share) * raw + share * expected for share in SHARES_TRIED]
    if weight:
        sums.append(raw + weight * (expected - training.held_out))
    return problem.score(raw) - min([problem.score(raw_sum) for raw_sum in sums])
