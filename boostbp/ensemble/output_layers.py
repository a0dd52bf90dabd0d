"""Output layers that are boosted piece by piece while the held-out loss falls, and boosted again on other rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from boostbp import layers
from boostbp.backends.base import Backend, TreeParams
from boostbp.ensemble import constants
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.trained_candidate import OutputLayerPlan
from boostbp.layers import BoundInput, Layer, LayerSettings, LossObjective
from boostbp.layers.cheaper_growth import FixedStructure
from boostbp.layers.rounds import rounds_of
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.forest import Forest


@dataclass(frozen=True, slots=True)
class Boosted:
    """Pieces of a layer on one input. Each piece is boosted on what the earlier ones leave; the first has the base.

    Attributes
    ----------
    problem : Problem
        Its table is the input of the layer.
    bound : BoundInput
        That table, bound for the next piece.
    fit : (rows, outputs) float64
        Raw output so far on the training rows, baseline and offset included.
    rounds_left : int
        Limit on the rounds that follow.
    """

    problem: Problem
    bound: BoundInput
    fit: Floats
    rounds_left: int
    pieces: tuple[Layer, ...] = ()

    @classmethod
    def begin(
        cls, problem: Problem, settings: LayerSettings, n_rounds: int, *, backend: Backend | None = None
    ) -> Boosted:
        """Bind the input for `n_rounds` rounds, in pieces of ``settings.n_estimators``; the last may be shorter.

        `backend` is by default that of the problem.
        """
        bound = BoundInput(backend or problem.growing_backend, problem.rows.table, settings, problem.rows.weight)
        return cls(problem, bound, problem.start, n_rounds)

    def advance(self, *, structures_of: Layer | None = None) -> Boosted:
        """Return these pieces and one more, which has the structures of another layer if one is passed."""
        problem, rows, number = self.problem, self.problem.rows, len(self.pieces)
        n_rounds, growth = min(self.bound.settings.n_estimators, self.rounds_left), self.bound.settings.growth
        bound = self.bound.with_settings(n_estimators=n_rounds)
        if structures_of is not None:
            bound = bound.with_backend(_structures_of(structures_of, growth), growth)
        y, fit = np.asfortranarray(rows.y), np.asfortranarray(self.fit)  # the memory order of the running fit
        first_round = number * bound.settings.n_estimators
        objective = LossObjective(problem.loss, y, rows.weight, fit, first_round=first_round)
        n_threads, seed = problem.settings.n_threads, problem.settings.seed + number
        piece = layers.fit(bound, objective, n_threads=n_threads, seed=seed)
        return replace(
            self,
            bound=self.bound if number else self.bound.with_settings(base=None),
            fit=self.fit + piece.output,
            rounds_left=self.rounds_left - n_rounds,
            pieces=(*self.pieces, piece.layer),
        )


@dataclass(frozen=True, slots=True)
class Boosting:
    """An output layer that is boosted piece by piece while the held-out loss falls.

    Attributes
    ----------
    settings : LayerSettings
        Settings of a piece.
    held_out_input : (held-out rows, features) float64
        What the layer sees of the held-out rows.
    raw, before : (held-out rows, outputs) float64
        Raw output of all pieces on these rows, baseline included, and that without the last piece.
    min_gain : float
        A fall of the held-out loss counts as a gain if it exceeds this.
    best : int
        Number of pieces with the lowest loss.
    best_raw : (held-out rows, outputs) float64
        Raw output of these pieces.
    trial_score : float
        Lowest loss within the pieces of a trial.
    """

    boosted: Boosted
    settings: LayerSettings
    held_out_input: Floats
    raw: Floats
    before: Floats
    best_raw: Floats
    min_gain: float = 0.0
    best: int = 1
    best_score: float = np.inf
    trial_score: float = np.inf

    @classmethod
    def begin(cls, problem: Problem, settings: LayerSettings, held_out_input: Floats) -> Boosting:
        """Bind the input, ready for the first piece.

        Parameters
        ----------
        problem : Problem
            Its table is the input of the layer.
        settings : LayerSettings
            Its number of rounds is the limit for all pieces together.
        """
        n_rounds = settings.n_estimators
        settings = replace(settings, n_estimators=min(constants.PIECE_ROUNDS, n_rounds))
        raw = np.broadcast_to(problem.baseline, (len(held_out_input), len(problem.baseline)))
        return cls(Boosted.begin(problem, settings, n_rounds), settings, held_out_input, raw, raw, raw)

    @property
    def n_pieces(self) -> int:
        """Number of pieces so far."""
        return len(self.boosted.pieces)

    @property
    def finished(self) -> bool:
        """Whether the loss has stopped falling, or no rounds are left."""
        patience = min(constants.MAX_PATIENCE, max(constants.MIN_PATIENCE, self.best))
        return self.n_pieces > 0 and (self.boosted.rounds_left == 0 or self.n_pieces >= self.best + patience)

    def advance(self) -> Boosting:
        """Return the boosting with one piece more, scored on the held-out rows."""
        problem, first = self.boosted.problem, not self.n_pieces
        boosted = self.boosted.advance()
        raw = self.raw + boosted.pieces[-1].predict(self.held_out_input, n_jobs=problem.settings.n_threads)
        before, score = workers().agree((problem.score(self.raw) if first else 0.0, problem.score(raw)))
        # A share of the first gain: the loss itself may be known only up to a constant.
        min_gain = constants.MIN_GAIN_OF_FIRST * max(before - score, 0.0) if first else self.min_gain
        after = replace(self, boosted=boosted, raw=raw, before=self.raw, min_gain=min_gain)
        if after.n_pieces <= constants.TRIAL_PIECES:
            after = replace(after, trial_score=min(score, self.trial_score))
        # The first piece may remove all but a thousandth of the loss, so a share of the rest is a gain, too.
        if first or score < self.best_score - min(min_gain, constants.MIN_GAIN_OF_REST * abs(self.best_score)):
            return replace(after, best=after.n_pieces, best_score=score, best_raw=raw)
        return after

    @property
    def layer(self) -> Layer:
        """The best pieces, as one layer."""
        return _sum_of(self.boosted.pieces[: self.best])

    @property
    def plan(self) -> OutputLayerPlan:
        """How to boost the layer again."""
        return OutputLayerPlan(self.settings, self.boosted.pieces[: self.best])


def boost_again(problem: Problem, plan: OutputLayerPlan, *, over: Callable[[], bool] = bool) -> Layer | None:
    """Return an output layer of as many rounds, boosted on other rows: the same structures with other leaves.

    Growth is most of the work, and the leaves gain as much from the new rows if the structures stay. A library's own
    leaves come with its growth, so those trees are grown again.

    Parameters
    ----------
    problem : Problem
        Its table is what the layer sees of these rows.
    over : callable
        ``over() -> bool`` says whether time is up; it is called before each piece.

    Returns
    -------
    Layer or None
        None if time was up before the end.
    """
    n_rounds = sum(rounds_of(piece.forest) for piece in plan.pieces)
    keeps_structures = plan.settings.leaves == "refit"
    settings, backend, boosted = plan.settings, None, None
    if keeps_structures:  # nothing is drawn or binned
        growth = replace(settings.growth, extra_trees=False, colsample_bytree=1.0, params={})
        settings = replace(settings, subsample=1.0, growth=growth)
        backend = _structures_of(plan.pieces[0], growth)
    for piece in plan.pieces:
        if over():
            return None
        boosted = boosted or Boosted.begin(problem, settings, n_rounds, backend=backend)
        boosted = boosted.advance(structures_of=piece if keeps_structures else None)
    return None if boosted is None else _sum_of(boosted.pieces)


def _structures_of(layer: Layer, growth: TreeParams) -> FixedStructure:
    return FixedStructure.of(layer.forest, shared=growth.multi_output)


def _sum_of(pieces: Sequence[Layer]) -> Layer:
    """Return the sum of layers on one input, as one layer."""
    forest = Forest.concat([piece.forest for piece in pieces])
    return Layer(replace(forest, n_base=pieces[0].forest.n_base))
