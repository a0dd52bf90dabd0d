"""Race: layers are boosted piece by piece, and the next piece goes to those that promise most for what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from boostbp.backends.failures import attempted
from boostbp.ensemble import constants
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.candidate import Candidate, LayerTraining
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.trained_candidate import TrainedCandidate
from boostbp.ensemble.weights import stacked_weights, summed
from boostbp.network.monitor import Stage
from boostbp.runtime import interrupts
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.runtime.threads import run_tasks

STEPS = (0.1, 0.25, 0.5, 0.75, 1.0)  # shares of the model that a candidate may get, for its promise


@dataclass(frozen=True, slots=True)
class RacingLayer:
    """A layer in training.

    Attributes
    ----------
    before : (held-out rows, outputs) float64
        Its raw output before its last piece.
    interrupt : KeyboardInterrupt or None
        What cut its last pieces short.
    failure : Exception or None
        What the piece after its last one failed of.
    """

    training: LayerTraining
    before: Floats
    interrupt: KeyboardInterrupt | None = None
    failure: Exception | None = None

    def advance(self, n_pieces: int | None, over: Callable[[], bool]) -> RacingLayer:
        """Boost so many pieces, or to the end, while there is time; the first one of all in any case.

        Raises
        ------
        KeyboardInterrupt, interrupts.Stopped
            If it came before the first piece of all was there; otherwise the pieces until then are kept.
        """
        training, before, done = self.training, self.before, 0
        try:
            while done != n_pieces and not training.finished and not (training.boosting.boosted.pieces and over()):
                after = attempted(training.advance)
                if isinstance(after, Exception):
                    if not training.boosting.boosted.pieces:
                        raise after
                    return RacingLayer(training, before, failure=after)
                training, before, done = after, training.boosting.raw, done + 1
        except (KeyboardInterrupt, interrupts.Stopped) as reason:
            if not training.boosting.boosted.pieces:
                raise
            return RacingLayer(training, before, reason if isinstance(reason, KeyboardInterrupt) else None)
        return RacingLayer(training, before)

    @property
    def expected(self) -> Floats:
        """Its raw output some pieces later, if each changes it as the last one did."""
        raw = self.training.boosting.raw
        return raw + constants.PIECES_AHEAD * (raw - self.before)


class Race:
    """Layers in training, and what they add up to on the held-out rows.

    What is decided depends on held-out losses and on counted work, not on the clock or the number of threads; only the
    end of the time cuts it short. Of a group of workers, rank 0 decides: others may round the losses differently.

    Attributes
    ----------
    others : list of TrainedCandidate
        Trained networks that are in the sum as well.
    spent : float
        Work so far.
    most : float
        Work of the whole fit, once it is known.
    failed : dict of str to Exception
        Candidates that failed: they are left out, or end with the pieces that they had.
    """

    def __init__(
        self,
        problem: Problem,
        budget: Budget,
        n_at_once: int,
        *,
        refit: bool,
        failed: dict[str, Exception] | None = None,
    ) -> None:
        self.problem, self.budget, self.n_at_once, self.refit = problem, budget, n_at_once, refit
        self.failed = {} if failed is None else failed
        self.entrants: dict[str, RacingLayer] = {}
        self.others: list[TrainedCandidate] = []
        self.spent, self.most = 0.0, np.inf

    def tell(
        self, name: str, weights: dict[str, float] | None = None, raw: Floats | None = None, *, hint: str = ""
    ) -> None:
        """Report where the fit stands: what is trained now, and what there is."""
        if weights is None or raw is None:
            weights, raw = self.sum()
        n_models = sum(weight > 0 for weight in weights.values())
        self.problem.report(Stage(name, self.share, self.problem.score(raw), n_models, hint))

    @property
    def share(self) -> float:
        """Share of the work that is done; 0 if the first layer, which sets the measure, failed."""
        return self.spent / self.most if self.most else 0.0

    def trained(self) -> list[TrainedCandidate]:
        """What there is so far, in the order in which it was begun."""
        return [entrant.training.result for entrant in self.entrants.values()] + self.others

    def begin(
        self,
        candidates: Sequence[Candidate],
        n_pieces: int | None,
        *,
        stage: str = "layers",
        limit: float = np.inf,
    ) -> KeyboardInterrupt | None:
        """Begin candidates, and boost so many pieces of each, or to its end.

        Parameters
        ----------
        stage : str
            What this is called in reports.
        limit : float
            Work beyond which no more of them are begun. Neither is one after the end of the time, but for the first
            entrant of all.
        """
        waiting = list(candidates)
        while waiting:
            later = self.refit_share() if self.entrants else 0.0  # of the first layer alone, all of it is worth more
            if self.entrants and (self.spent >= limit or self.budget.over(later)):
                break
            there = {None, *self.entrants, *(one.name for one in self.others)}
            ready = [one for one in waiting if one.needs in there]
            wave = ready[: constants.WAVE]
            if not wave:
                break
            waiting = [one for one in waiting if one not in wave]
            self.tell(stage)
            required = None if self.entrants else wave[0]
            steps = {one.name: partial(self._begun, one, n_pieces, later, required=one is required) for one in wave}
            interrupt = self._run(steps)
            if interrupt is not None:
                return interrupt
        return None

    def begin_best(self, candidates: Sequence[Candidate], *, stage: str) -> KeyboardInterrupt | None:
        """Begin candidates, and boost one to its end: the first, or the one whose loss is less by enough after a piece.

        The others are left out.
        """
        interrupt = self.begin(candidates, constants.FIRST_LAYER_PIECES if len(candidates) > 1 else None, stage=stage)
        if interrupt is not None or len(candidates) == 1 or not self.entrants:
            return interrupt
        scores = {name: one.training.boosting.best_score for name, one in self.entrants.items()}
        first, best = next(iter(scores)), min(scores, key=lambda name: scores[name])
        lead = scores[first] - scores[best]
        least = constants.FIRST_LAYER_LEAD * self.problem.scale_of(scores[first])
        chosen = workers().agree(best if lead >= least else first)
        self.entrants = {chosen: self.entrants[chosen]}
        step = partial(self.entrants[chosen].advance, None, partial(self.budget.over, 0.0))
        return self._run({chosen: step})

    def _begun(self, candidate: Candidate, n_pieces: int | None, later: float, *, required: bool) -> RacingLayer | None:
        over = partial(self.budget.over, later)
        if not required and over():
            return None
        training = candidate.begin(self.problem, self._result(candidate.needs))
        assert isinstance(training, LayerTraining)
        return RacingLayer(training, training.boosting.raw).advance(n_pieces, over)

    def _result(self, name: str | None) -> TrainedCandidate | None:
        if name in self.entrants:
            return self.entrants[name].training.result
        return next((one for one in self.others if one.name == name), None)

    def run(self, limit: float) -> KeyboardInterrupt | None:
        """Boost those that promise most until none promises enough, or until so much work is spent.

        Work for the refit of the model counts as spent.
        """
        while self.entrants:
            weights, raw = self.sum()
            later = self._refit_work(weights)
            over = partial(self.budget.over, later / self.spent)
            if self.spent + later > limit or over():
                return None
            self.tell("layers", weights, raw)
            next_ones = self._most_promising(weights, raw)
            if not next_ones:
                return None
            steps = {name: partial(self.entrants[name].advance, constants.RACE_PIECES, over) for name in next_ones}
            interrupt = self._run(steps)
            if interrupt is not None:
                return interrupt
        return None

    def _run(self, steps: Mapping[str, Callable[[], RacingLayer | None]]) -> KeyboardInterrupt | None:
        """Do steps of some entrants, as many at a time as threads allow, and count their work."""
        after: dict[str, RacingLayer | Exception | None] = {}

        def interrupt_of(entrant: RacingLayer | Exception | None) -> KeyboardInterrupt | None:
            return entrant.interrupt if isinstance(entrant, RacingLayer) else None

        attempts = {name: partial(attempted, step) for name, step in steps.items()}
        interrupt = run_tasks(attempts, self.n_at_once, after, on_stop=self.budget.end, interrupt_of=interrupt_of)
        for name in steps:
            entrant = after.get(name)
            if isinstance(entrant, Exception):
                self.failed[name] = entrant
            elif entrant is not None:
                if entrant.failure is not None:
                    self.failed[name] = entrant.failure
                pieces = len(entrant.training.boosting.boosted.pieces)
                if name in self.entrants:
                    pieces -= len(self.entrants[name].training.boosting.boosted.pieces)
                self.spent += pieces * entrant.training.work
                self.entrants[name] = entrant
        return interrupt

    def sum(self) -> tuple[dict[str, float], Floats]:
        """Weights of all models so far, by name, and the raw output of their sum on the held-out rows."""
        raws = {name: entrant.training.boosting.best_raw for name, entrant in self.entrants.items()}
        raws |= {one.name: one.held_out for one in self.others}
        if not raws:
            return {}, self.problem.constant_raw
        of_all = np.stack(list(raws.values()))
        weights = workers().agree(stacked_weights(of_all, self.problem))
        return {name: float(weight) for name, weight in zip(raws, weights, strict=True)}, summed(weights, of_all)

    def score(self) -> float:
        """Loss of the sum on the held-out rows."""
        return workers().agree(self.problem.score(self.sum()[1]))

    def refit_share(self) -> float:
        """Work of growing what has weight again, as a multiple of all work so far."""
        return self._refit_work(self.sum()[0]) / self.spent if self.spent else 0.0

    def _refit_work(self, weights: dict[str, float]) -> float:
        if not self.refit:
            return 0.0
        return sum(entrant.training.refit_work for name, entrant in self.entrants.items() if weights[name])

    def _most_promising(self, weights: dict[str, float], raw: Floats) -> list[str]:
        """Names of the layers whose next pieces lower the loss of the sum most for their work, if by enough."""
        score = self.problem.score(raw)
        least = constants.LEAST_PROMISE * self.problem.scale_of(score)
        promises = {
            name: self._gain(entrant, weights[name], raw, score)
            for name, entrant in self.entrants.items()
            if not entrant.training.finished and name not in self.failed
        }
        work = {name: self.entrants[name].training.work for name in promises}
        enough = [name for name, gain in promises.items() if gain >= least]
        return workers().agree(sorted(enough, key=lambda name: -promises[name] / work[name])[: constants.WAVE])

    def _gain(self, entrant: RacingLayer, weight: float, raw: Floats, score: float) -> float:
        """By how much the loss of the sum is expected to fall, if a layer goes on, with the best of some weights."""
        expected = entrant.expected
        sums = [(1.0 - step) * raw + step * expected for step in STEPS]
        if weight:
            sums.append(raw + weight * (expected - entrant.training.boosting.best_raw))
        return score - min(self.problem.score(one) for one in sums)
