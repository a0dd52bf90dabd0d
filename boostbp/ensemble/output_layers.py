"""Output layers boosted piece by piece until the held-out loss falls no more; and again on other rows."""

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
from boostbp.trees.merging import PlacedForest, merged


@dataclass(frozen=True, slots=True)
class Boosted:
    """Layers on one input, boosted one after the other, each on what those before have left; one base for all.

    Attributes
    ----------
    problem : Problem
        Its table is what the layers see.
    bound : BoundInput
        That table, bound for the next piece.
    fit : (rows, outputs) float64
        Raw output so far on the training rows, baseline and offset included.
    rounds_left : int
        Rounds that may follow.
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
        """Bind the input for a number of rounds, by default to the backend of the problem.

        A piece has the rounds of `settings`, and the last one those that are left.
        """
        bound = BoundInput(backend or problem.growing_backend, problem.rows.table, settings, problem.rows.weight)
        return cls(problem, bound, problem.start, n_rounds)

    def advance(self, *, structures_of: Layer | None = None) -> Boosted:
        """Boost one piece more; with the structures of another layer, if there is one."""
        problem, number = self.problem, len(self.pieces)
        n_rounds, growth = min(self.bound.settings.n_estimators, self.rounds_left), self.bound.settings.growth
        bound = self.bound.with_settings(n_estimators=n_rounds)
        if structures_of is not None:
            bound = bound.with_backend(_structures_of(structures_of, growth), growth)
        rows, first_round = problem.rows, number * bound.settings.n_estimators
        y, fit = np.asfortranarray(rows.y), np.asfortranarray(self.fit)  # as the running fit lies in memory
        goal = LossObjective(problem.loss, y, rows.weight, fit, first_round=first_round)
        n_threads, seed = problem.settings.n_threads, problem.settings.seed + number
        piece = layers.fit(bound, goal, n_threads=n_threads, seed=seed)
        bound = self.bound if number else self.bound.with_settings(base=None)
        left, pieces = self.rounds_left - n_rounds, (*self.pieces, piece.layer)
        return replace(self, bound=bound, fit=self.fit + piece.output, rounds_left=left, pieces=pieces)


@dataclass(frozen=True, slots=True)
class Boosting:
    """An output layer that is boosted piece by piece while the held-out loss falls.

    Attributes
    ----------
    settings : LayerSettings
        Of a piece.
    held_out_input : (held-out rows, features) float64
        What the layer sees of the held-out rows.
    raw : (held-out rows, outputs) float64
        Raw output of all pieces there, baseline included.
    least_gain : float
        Fall of the held-out loss that counts as a gain.
    best : int
        Number of pieces with the least loss.
    best_raw : (held-out rows, outputs) float64
    trial_score : float
        Least loss of as many pieces as a trial has.
    """

    boosted: Boosted
    settings: LayerSettings
    held_out_input: Floats
    raw: Floats
    least_gain: float
    best: int
    best_score: float
    best_raw: Floats
    trial_score: float = np.inf

    @classmethod
    def begin(cls, problem: Problem, settings: LayerSettings, held_out_input: Floats) -> Boosting:
        """Bind the input, for pieces of as many rounds as lie between two looks at the held-out loss.

        Parameters
        ----------
        problem : Problem
            Its table is what the layer sees.
        settings : LayerSettings
            Its number of rounds is the largest.
        """
        most = settings.n_estimators
        settings = replace(settings, n_estimators=min(constants.PIECE_ROUNDS, most))
        raw = np.broadcast_to(problem.baseline, (len(held_out_input), len(problem.baseline)))
        return cls(Boosted.begin(problem, settings, most), settings, held_out_input, raw, 0.0, 1, np.inf, raw)

    @property
    def finished(self) -> bool:
        """Whether the loss has stopped falling, or the limit of rounds is reached."""
        if not self.boosted.pieces:
            return False
        patience = min(constants.PATIENCE_PIECES, max(constants.LEAST_PATIENCE, self.best))
        return self.boosted.rounds_left == 0 or len(self.boosted.pieces) >= self.best + patience

    def advance(self) -> Boosting:
        """Boost one piece more, and look at the held-out loss."""
        problem, first = self.boosted.problem, not self.boosted.pieces
        boosted = self.boosted.advance()
        raw = self.raw + boosted.pieces[-1].predict(self.held_out_input, n_jobs=problem.settings.n_threads)
        before, score = workers().agree((problem.score(self.raw) if first else 0.0, problem.score(raw)))
        least_gain = self.least_gain
        if first:  # a share of what it gains, as losses may be known but for a constant
            least_gain = constants.LEAST_GAIN_OF_FIRST * max(before - score, 0.0)
        after = replace(self, boosted=boosted, raw=raw, least_gain=least_gain)
        if len(boosted.pieces) <= constants.TRIAL_PIECES:
            after = replace(after, trial_score=min(score, self.trial_score))
        # one easy split may take all but a thousandth of the loss: a share of the rest is a gain, too
        if first or score < self.best_score - min(least_gain, constants.LEAST_GAIN_OF_REST * abs(self.best_score)):
            return replace(after, best=len(boosted.pieces), best_score=score, best_raw=raw)
        return after

    @property
    def layer(self) -> Layer:
        """The best pieces, as one layer."""
        return _together(self.boosted.pieces[: self.best])

    @property
    def plan(self) -> OutputLayerPlan:
        """How to boost the layer again."""
        return OutputLayerPlan(self.settings, self.boosted.pieces[: self.best])


def boost_again(problem: Problem, plan: OutputLayerPlan, *, over: Callable[[], bool] = bool) -> Layer | None:
    """Boost an output layer by as many rounds on other rows: the same structures, other leaves.

    Growth is most of the work, and leaves gain as much by the new rows with the structures kept. Leaves of the library
    come with its growth.

    Parameters
    ----------
    problem : Problem
        Its table is what the layer sees of these rows.
    over : callable
        ``over() -> bool``: whether time is up, asked before each piece.

    Returns
    -------
    Layer or None
        None if time was up before the end.
    """
    n_rounds = sum(rounds_of(piece.forest) for piece in plan.pieces)
    kept = plan.settings.leaves == "refit"
    settings, backend, boosted = plan.settings, None, None
    if kept:  # there is nothing to draw, and nothing to bin
        growth = replace(settings.growth, extra_trees=False, colsample_bytree=1.0, params={})
        settings = replace(settings, subsample=1.0, growth=growth)
        backend = _structures_of(plan.pieces[0], growth)
    for piece in plan.pieces:
        if over():
            return None
        boosted = boosted or Boosted.begin(problem, settings, n_rounds, backend=backend)
        boosted = boosted.advance(structures_of=piece if kept else None)
    return None if boosted is None else _together(boosted.pieces)


def _structures_of(layer: Layer, growth: TreeParams) -> FixedStructure:
    return FixedStructure.of(layer.forest, shared=growth.multi_output)


def _together(pieces: Sequence[Layer]) -> Layer:
    """Return the sum of layers on one input."""
    n_features, n_outputs = pieces[0].forest.n_features, pieces[0].forest.n_outputs
    parts = [PlacedForest(piece.forest, np.arange(n_features)) for piece in pieces]
    whole = merged(parts, n_features=n_features, n_outputs=n_outputs)
    return Layer(replace(whole, n_base=pieces[0].forest.n_base))
