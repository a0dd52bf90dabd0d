"""Average: the weighted sum of trained candidates that the held-out rows choose, as one network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from boostbp.ensemble import constants
from boostbp.ensemble.output_layers import TrainedCandidate
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.safeguard import best_share, refuse_unlearned
from boostbp.ensemble.weighted_sum import weighted_sum
from boostbp.ensemble.weights import shrink_weight, stacked_weights, summed, t_statistic
from boostbp.network.choice import CONSTANT, NETWORK, CandidateResult, ModelChoice
from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

ROUNDING = 1e-9  # weights below this come from rounding


@dataclass(frozen=True, slots=True)
class Average:
    """A weighted sum of candidates and of the constant that boosting starts from.

    Attributes
    ----------
    parts : tuple of TrainedCandidate
        The candidates with weight.
    constant : (outputs,) float64
        The constant times its weight; 0 without weight.
    unweighted : Network or None
        The user's network, if no network has weight: its hidden layers are in the sum all the same. If the constant has
        all the weight, any single layer.
    choice : ModelChoice
        The record of the choice, for the history.
    """

    parts: tuple[TrainedCandidate, ...]
    weights: tuple[float, ...]
    constant: Floats
    unweighted: Network | None
    choice: ModelChoice

    @property
    def models(self) -> list[Network]:
        """The parts as they were trained."""
        return [part.model for part in self.parts]

    @property
    def held_out(self) -> Floats:
        """Raw output of the sum on the held-out rows; (outputs,) if it is the constant."""
        if not self.parts:
            return self.constant
        return summed(np.array(self.weights), np.stack([part.held_out for part in self.parts])) + self.constant

    def network(self, models: Sequence[Network]) -> Network:
        """Return the sum as one network. `models` are the parts, as they were trained or refitted."""
        unweighted = [] if self.unweighted is None else [self.unweighted]
        if self.weights == (1.0,) and not unweighted:
            return models[0]
        whole = weighted_sum([*models, *unweighted], [*self.weights, *(0.0 for _ in unweighted)])
        return replace(whole, baseline=whole.baseline + self.constant) if self.constant.any() else whole


def average_of(candidates: Sequence[TrainedCandidate], problem: Problem, *, shows_network: bool = False) -> Average:
    """Return the average of candidates that the held-out rows choose; see `stacked_weights`.

    `shows_network` says whether the hidden layers of the user's network stay in the sum without weight. Raises
    ValueError as `refuse_unlearned` does, if the average is worse than the constant on the held-out rows.
    """
    raws = np.stack([candidate.held_out for candidate in candidates])
    deep = [candidate.is_deep for candidate in candidates]
    weights, gain, error = workers().agree(_weights(raws, deep, problem))
    raw = summed(weights, raws) + (1.0 - weights.sum()) * problem.baseline
    share = workers().agree(best_share(raw, problem))
    if share < 1.0:
        refuse_unlearned([candidate.model for candidate in candidates], problem)
        weights = share * weights
    weighted = list(zip(candidates, map(float, weights), strict=True))
    results = [
        CandidateResult(one.name, problem.score(one.held_out), weight, one.network, one.on_directions)
        for one, weight in weighted
    ]
    rest, constant = max(1.0 - float(weights.sum()), 0.0), np.zeros_like(problem.baseline)
    if rest > ROUNDING:
        results.insert(0, CandidateResult(CONSTANT, problem.score(problem.constant_raw), rest, None))
        constant = rest * problem.baseline
    parts = tuple(one for one, weight in weighted if weight > 0)
    unweighted = None
    if shows_network and not any(part.network for part in parts):
        unweighted = next((one.model for one in candidates if one.name == NETWORK), None)
    if not parts and unweighted is None:
        unweighted = next((one.model for one in candidates if not one.is_deep), candidates[0].model)
    choice = ModelChoice(tuple(results), gain, error)
    return Average(parts, tuple(weight for _, weight in weighted if weight > 0), constant, unweighted, choice)


def _weights(raws: Floats, deep: Sequence[bool], problem: Problem) -> tuple[Floats, float, float]:
    """Return the weights of candidates, the gain of the sum from hidden layers, and the gain's standard error.

    With a weak signal the weights sum to less than 1, and the constant has the rest.

    Parameters
    ----------
    raws : (candidates, held-out rows, outputs) float64
    deep : sequence of bool
        Whether each candidate has hidden layers.
    """
    weights = stacked_weights(raws, problem)
    raw = summed(weights, raws)
    gain, error = _gain_of_depth(raws, raw, deep, problem)
    target = problem.target - problem.held_out.offset
    t = t_statistic(raw, target, problem.baseline, problem.held_out.weight, problem.loss)
    if t < constants.WEAK_SIGNAL_T:
        weights = shrink_weight(max(t, constants.MIN_SIGNAL_T), constants.HALF_WEIGHT_T) * weights
    return weights, gain, error


def _gain_of_depth(raws: Floats, raw: Floats, deep: Sequence[bool], problem: Problem) -> tuple[float, float]:
    """Return how far the loss of the sum `raw` lies below that of the sum of single layers, and its standard error."""
    flat = np.flatnonzero(~np.asarray(deep))
    if len(flat) in (0, len(raws)):
        return 0.0, 0.0
    without = summed(stacked_weights(raws[flat], problem), raws[flat])
    difference = problem.row_losses(without) - problem.row_losses(raw)
    share = problem.held_out.weight / problem.held_out.weight.sum()
    gain = float(share @ difference)
    return gain, float(np.sqrt(np.square(share) @ np.square(difference - gain)))
