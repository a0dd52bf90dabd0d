"""Output layers: boosted piece by piece while the held-out loss falls, and boosted again on other rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from boostbp.backends.base import Backend
from boostbp.ensemble import constants
from boostbp.ensemble.budget import round_work
from boostbp.ensemble.problem import Problem
from boostbp.network import layers
from boostbp.network.history import History
from boostbp.network.layers import BoundInput, Layer, LayerSettings, LossObjective
from boostbp.network.layers.layer import rounds_of
from boostbp.network.network import Network, above
from boostbp.network.trainer import kept_structures
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.forest import Forest


@dataclass(frozen=True, slots=True)
class OutputLayerPlan:
    """Training of an output layer, for a refit: the settings of a piece, and the pieces over one base."""

    settings: LayerSettings
    pieces: tuple[Layer, ...]
    seconds: float = 0.0  # that the refit is expected to take


@dataclass(frozen=True, slots=True)
class TrainedCandidate:
    """A trained model that may be part of the ensemble."""

    name: str
    network: str | None  # name of the network trained by back-propagation whose hidden layers the model has
    model: Network
    held_out: Floats  # raw output on the held-out rows, (held-out rows, outputs)
    plan: OutputLayerPlan | None = None  # of a refit on more rows; None if the output layer may not be refitted
    history: History | None = None  # of a training by back-propagation

    @property
    def is_deep(self) -> bool:
        """Whether the model has hidden layers."""
        return len(self.model.layers) > 1

    @property
    def on_directions(self) -> bool:
        """Whether the hidden layer consists of directions or means, without back-propagation."""
        return self.is_deep and self.network is None


def distinct(candidates: Sequence[TrainedCandidate]) -> list[TrainedCandidate]:
    """Return the candidates without duplicates, which predict the held-out rows exactly as an earlier one.

    Candidates with and without hidden layers are compared separately. Duplicates occur if candidates differ in a
    setting that the backend lacks or that native parameters override.
    """
    first: dict[tuple[bool, bytes], int] = {}
    for number, candidate in enumerate(candidates):
        first.setdefault((candidate.is_deep, candidate.held_out.tobytes()), number)
    return [candidates[number] for number in workers().agree(list(first.values()))]


@dataclass(frozen=True, slots=True)
class Boosted:
    """Pieces of a layer on one input, each boosted on the residuals of the earlier ones; the first has the base."""

    problem: Problem  # its table is the input of the layer
    bound: BoundInput  # that table, bound for the next piece
    fit: Floats  # raw output so far on the training rows, baseline and offset included, (rows, outputs)
    rounds_left: int
    pieces: tuple[Layer, ...] = ()

    @classmethod
    def begin(
        cls, problem: Problem, settings: LayerSettings, n_rounds: int, *, backend: Backend | None = None
    ) -> Boosted:
        """Bind the input for `n_rounds` rounds in pieces of ``settings.n_estimators``; the last one may be shorter."""
        bound = BoundInput(backend or problem.growing_backend, problem.rows.table, settings, problem.rows.weight)
        return cls(problem, bound, problem.start, n_rounds)

    def advance(self, *, structures_of: Layer | None = None, over: Callable[[], bool] | None = None) -> Boosted:
        """Return these pieces and one more, with the tree structures of the layer `structures_of` if there is one.

        If ``over()``, the piece ends early, after its first round or a later one.
        """
        problem, rows, number = self.problem, self.problem.rows, len(self.pieces)
        n_rounds, growth = min(self.bound.settings.n_estimators, self.rounds_left), self.bound.settings.growth
        bound = self.bound.with_settings(n_estimators=n_rounds)
        if structures_of is not None:
            n_rounds = rounds_of(structures_of.forest)
            bound = bound.with_settings(n_estimators=n_rounds).with_backend(*kept_structures(structures_of, growth))
        y, fit = np.asfortranarray(rows.y), np.asfortranarray(self.fit)  # the memory order of the running fit
        loss = problem.loss.prepared(y, rows.weight)
        objective = LossObjective(loss, y, rows.weight, fit, first_round=number * n_rounds)
        n_threads, seed = problem.settings.n_threads, problem.settings.seed + number
        piece = layers.fit(bound, objective, n_threads=n_threads, seed=seed, over=over)
        next_bound = self.bound if number else self.bound.with_settings(base=None)
        left, pieces = self.rounds_left - n_rounds, (*self.pieces, piece.layer)
        return replace(self, bound=next_bound, fit=self.fit + piece.output, rounds_left=left, pieces=pieces)


@dataclass(frozen=True, slots=True)
class LayerTraining:
    """An output layer that is boosted piece by piece while the held-out loss falls."""

    name: str
    network: str | None  # name of the network trained by back-propagation whose hidden layers it uses
    below: Network  # the hidden layers; a single layer has none
    boosted: Boosted  # the pieces so far
    settings: LayerSettings  # of a piece
    held_out_input: Floats  # input of the layer for the held-out rows, (held-out rows, features)
    # Raw outputs on these rows with the baseline, (held-out rows, outputs): of all pieces, of all but the last one, and
    # of the `best` pieces, which have the lowest loss.
    raw: Floats
    before: Floats
    best_raw: Floats
    best: int = 1
    best_score: float = np.inf  # lowest loss of all pieces
    best_trial: float = np.inf  # and of those of a trial
    first_score: float = np.inf  # loss of the first piece
    min_gain: float = 0.0  # a fall of the held-out loss counts as a gain if it exceeds this
    levels: Problem | None = None  # if the layer learns a mean, the problem whose outputs are the quantiles around it
    refits: bool = True  # whether the leaves may be fitted again on all rows
    seconds: float = 0.0  # that the pieces took

    @classmethod
    def begin(
        cls,
        name: str,
        network: str | None,
        settings: Callable[[Problem], LayerSettings],
        problem: Problem,
        below: Network,
        *,
        units: Floats | None = None,
    ) -> LayerTraining:
        """Bind the input of an output layer above the hidden layers of `below`, ready for the first piece.

        `settings` returns the settings of the layer for the problem whose table the layer sees. Their number of rounds
        is the limit for all pieces together. `units` are the hidden units of the training rows, (rows, units), if they
        differ from those that `below` gives.
        """
        held_out = above(below.layers, problem.held_out.X, skip=below.skip, n_jobs=problem.settings.n_threads)
        problem = problem.above(below)
        if units is not None:
            problem.rows.X[:, : units.shape[1]] = units
        layer = settings(problem)
        piece = replace(layer, n_estimators=min(constants.PIECE_ROUNDS, layer.n_estimators))
        boosted = Boosted.begin(problem, piece, layer.n_estimators)
        raw = problem.constant_raw
        return cls(name, network, below, boosted, piece, held_out, raw, raw, raw)

    @property
    def n_pieces(self) -> int:
        """Number of pieces so far."""
        return len(self.boosted.pieces)

    @property
    def is_trained(self) -> bool:
        """Whether there is a piece."""
        return self.n_pieces > 0

    @property
    def finished(self) -> bool:
        """Whether the loss has stopped falling, or no rounds are left."""
        patience = min(constants.MAX_PATIENCE, max(constants.MIN_PATIENCE, self.best))
        return self.n_pieces > 0 and (self.boosted.rounds_left == 0 or self.n_pieces >= self.best + patience)

    def advance(self, over: Callable[[], bool] | None = None) -> LayerTraining:
        """Return the training with one piece more, which may end early if ``over()``, scored on the held-out rows."""
        problem, first, begun = self.boosted.problem, not self.n_pieces, time.perf_counter()
        boosted = self.boosted.advance(over=over)
        raw = self.raw + boosted.pieces[-1].predict(self.held_out_input, n_jobs=problem.settings.n_threads)
        before, score = workers().agree((problem.score(self.raw) if first else 0.0, problem.score(raw)))
        # A share of the first gain, not of the loss, which some losses define only up to a constant.
        min_gain = constants.MIN_GAIN_OF_FIRST * max(before - score, 0.0) if first else self.min_gain
        best_trial = min(score, self.best_trial) if self.n_pieces < constants.TRIAL_PIECES else self.best_trial
        seconds = self.seconds + time.perf_counter() - begun
        after = replace(self, boosted=boosted, raw=raw, before=self.raw, min_gain=min_gain, best_trial=best_trial)
        after = replace(after, seconds=seconds)
        # If the first piece removes nearly all of the loss, its gain is no measure; a share of the rest is a gain, too.
        if first or score < self.best_score - min(min_gain, constants.MIN_GAIN_OF_REST * abs(self.best_score)):
            first_score = score if first else self.first_score
            return replace(after, best=after.n_pieces, best_score=score, best_raw=raw, first_score=first_score)
        return after

    @property
    def held_out(self) -> Floats:
        """Raw output of the best pieces on the held-out rows, (held-out rows, outputs)."""
        return self._outputs(self.best_raw)

    @property
    def expected(self) -> Floats:
        """Raw output on the held-out rows `PIECES_AHEAD` pieces later, if each changes it as the last one did."""
        raw = self._outputs(self.raw)
        return raw + constants.PIECES_AHEAD * (raw - self._outputs(self.before))

    def _outputs(self, raw: Floats) -> Floats:
        return raw if self.levels is None else raw + residual_quantiles(raw, self.levels)

    @property
    def trial_score(self) -> float:
        """Lowest held-out loss within the pieces of a trial, or within all pieces for quantiles around a mean."""
        return self.best_trial if self.levels is None else self.levels.score(self.held_out)

    @property
    def work(self) -> float:
        """Work of a piece; see `boostbp.ensemble.budget`."""
        return self._work(1.0)

    def work_since(self, n_pieces: int) -> float:
        """Return the work of all pieces but the first `n_pieces`."""
        return (self.n_pieces - n_pieces) * self.work

    @property
    def refit_work(self) -> float:
        """Work of fitting the leaves of the best pieces once more."""
        if self.levels is not None or not self.refits:
            return 0.0
        return self.best * self._work(float(self.settings.leaves == "native"))

    @property
    def seconds_per_work(self) -> float:
        """Seconds of a unit of work in the pieces so far."""
        return self.seconds / (self.n_pieces * self.work)

    @property
    def refit_seconds(self) -> float:
        """Expected seconds of fitting the leaves of the best pieces once more."""
        return self.refit_work * self.seconds_per_work

    def _work(self, grown: float) -> float:
        """Return the work of a piece that grows this share of its structures."""
        problem = self.boosted.problem
        n_features, n_outputs = problem.rows.X.shape[1], len(problem.baseline)
        n_rounds = max(self.settings.n_estimators, 1)  # a layer without rounds still has a base
        one_structure = problem.shares_structures
        return n_rounds * round_work(self.settings, problem.n_rows, n_features, n_outputs, grown, one_structure)

    @property
    def result(self) -> TrainedCandidate:
        """The model of the best pieces."""
        pieces, model = self.boosted.pieces[: self.best], self.below
        layer = sum_of_pieces(pieces)
        if not self.refits:
            layer = Layer(replace(layer.forest, runs=()))
        plan = None
        if self.levels is None and self.refits:
            plan = OutputLayerPlan(self.settings, pieces, self.refit_seconds)
        if self.levels is not None:
            layer = repeated(layer, len(self.levels.baseline))
            baseline = self.boosted.problem.baseline + residual_quantiles(self.best_raw, self.levels)
            model = replace(model, baseline=baseline)
        model = replace(model, layers=(*model.layers, layer))
        return TrainedCandidate(self.name, self.network, model, self.held_out, plan)


def sum_of_pieces(pieces: Sequence[Layer]) -> Layer:
    """Return the sum of layers on one input, as one layer."""
    return Layer(Forest.concat([piece.forest for piece in pieces]).as_run_of(pieces[0].forest))


def residual_quantiles(mean: Floats, levels: Problem) -> Floats:
    """Return the quantile of the held-out residuals of a mean, (held-out rows, 1), for each level, (outputs,)."""
    residuals = levels.target - mean - levels.held_out.offset
    return levels.loss.baseline(residuals, levels.held_out.weight)


def repeated(layer: Layer, n_outputs: int) -> Layer:
    """Return a layer of one output as a layer of several equal outputs, all served by the same trees."""
    forest = layer.forest
    served = np.tile(np.array([0, n_outputs]), (forest.n_trees, 1))
    start, weight = forest.leaves.weight_start * n_outputs, np.repeat(forest.leaves.weight, n_outputs)
    leaves = forest.leaves._replace(tree_output=served, weight_start=start, weight=weight)
    return Layer(replace(forest, n_outputs=n_outputs, leaves=leaves, runs=()))
