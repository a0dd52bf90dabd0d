"""Average: the weights of trained candidates that are best on the held-out rows, and their sum as one network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from boostbp.ensemble import constants
from boostbp.ensemble.output_layers import TrainedCandidate
from boostbp.ensemble.problem import HeldOutScore, Problem
from boostbp.ensemble.safeguard import best_share, refuse_unlearned
from boostbp.ensemble.weighted_sum import weighted_sum
from boostbp.losses import Loss, traits_of
from boostbp.network.choice import CONSTANT, NETWORK, CandidateResult, ModelChoice
from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

WEIGHT_ROUNDING = 1e-9  # weights below this come from rounding
MAX_LOG_CHANGE = 5.0  # of a weight in one step; it keeps exp() within bounds. Not varied


@dataclass(frozen=True, slots=True)
class Average:
    """A weighted sum of candidates and of the constant that boosting starts from."""

    parts: tuple[TrainedCandidate, ...]  # the candidates with weight
    weights: tuple[float, ...]
    constant: Floats  # the constant times its weight, (outputs,)
    # The user's network if no network has weight: the sum then contains its hidden layers, but no trees above them. Any
    # single layer if the constant has all the weight.
    unweighted: Network | None
    choice: ModelChoice  # the record of the choice, for the history

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
        CandidateResult(part.name, problem.score(part.held_out), weight, part.network, part.on_directions)
        for part, weight in weighted
    ]
    rest, constant = max(1.0 - float(weights.sum()), 0.0), np.zeros_like(problem.baseline)
    if rest > WEIGHT_ROUNDING:
        results.insert(0, CandidateResult(CONSTANT, problem.score(problem.constant_raw), rest, None))
        constant = rest * problem.baseline
    parts = tuple(part for part, weight in weighted if weight > 0)
    unweighted = None
    if shows_network and not any(part.network for part in parts):
        unweighted = next((candidate.model for candidate in candidates if candidate.name == NETWORK), None)
    if not parts and unweighted is None:
        unweighted = next((candidate.model for candidate in candidates if not candidate.is_deep), candidates[0].model)
    choice = ModelChoice(tuple(results), gain, error)
    return Average(parts, tuple(weight for _, weight in weighted if weight > 0), constant, unweighted, choice)


def _weights(raws: Floats, deep: Sequence[bool], problem: Problem) -> tuple[Floats, float, float]:
    """Return the weights of candidates, the gain of the sum from hidden layers, and the gain's standard error.

    With a weak signal the weights sum to less than 1, and the rest goes to the constant. `raws` are (candidates,
    held-out rows, outputs), and `deep` says which candidates have hidden layers.
    """
    weights = stacked_weights(raws, problem)
    raw = summed(weights, raws)
    gain, error = _gain_of_depth(raws, raw, deep, problem)
    target = problem.target - problem.held_out.offset
    t = t_statistic(raw, target, problem.baseline, problem.held_out.weight, problem.loss)
    if t < constants.WEAK_SIGNAL_T:
        t = max(t, constants.MIN_SIGNAL_T)
        weights = t**2 / (constants.HALF_WEIGHT_T**2 + t**2) * weights
    return weights, gain, error


def _gain_of_depth(raws: Floats, raw: Floats, deep: Sequence[bool], problem: Problem) -> tuple[float, float]:
    """Return the loss of the best sum of single layers minus that of the sum `raw`, and its standard error."""
    flat = np.flatnonzero(~np.asarray(deep))
    if len(flat) in (0, len(raws)):
        return 0.0, 0.0
    without = summed(stacked_weights(raws[flat], problem), raws[flat])
    return problem.mean_of(problem.row_losses(without) - problem.row_losses(raw))


def t_statistic(raw: Floats, target: Floats, baseline: Floats, weight: Floats, loss: Loss) -> float:
    """Return the slope of a target on a raw output, both measured from the baseline, in standard errors.

    The standard error is robust to unequal noise (White 1980). The result is infinite for the baseline itself, and for
    losses other than squared residuals, where the scale of the noise is unknown. `raw` and `target` are (rows,
    outputs).
    """
    if not traits_of(loss).least_squares:
        return np.inf
    u, y = raw - baseline, target - baseline
    size = float(weight @ np.square(u).sum(1))
    if not size > 0:
        return np.inf
    slope = float(weight @ (u * y).sum(1)) / size
    score = weight * (u * (y - slope * u)).sum(1)
    error = float(np.sqrt(score @ score)) / size
    return max(slope, 0.0) / error if error > 0 else np.inf


def stacked_weights(raws: Floats, problem: Problem) -> Floats:
    """Return weights of models that lower the loss of their sum; `raws` are (models, held-out rows, outputs).

    Exponentiated gradient descent (Kivinen and Warmuth 1997) starts from equal weights. It runs once with all models,
    and once more without those of low weight. The length of its path grows with the number of held-out rows
    (`path_length`): a few rows tell little about many models, and then the average of all is the safe choice. Raises
    FloatingPointError if no model has finite predictions.
    """
    stacked = np.zeros(len(raws))
    kept = np.flatnonzero(np.isfinite(raws).all(axis=(1, 2)))
    if not len(kept):
        raise FloatingPointError("no model has finite predictions of the held-out rows: check the scale of X and y.")
    if len(kept) > 1:  # a model of infinite loss would make the loss of any sum infinite
        finite = np.isfinite([problem.score(raw) for raw in raws[kept]])
        kept = kept[finite] if finite.any() else kept[:1]
    weights = _descend(raws[kept], problem)
    kept = kept[weights >= min(constants.MIN_WEIGHT, weights.max())]
    stacked[kept] = _descend(raws[kept], problem)
    return stacked


def summed(weights: Floats, raws: Floats) -> Floats:
    """Return the weighted sum of raw outputs, (rows, outputs); those of weight 0 need not be finite."""
    if not np.isfinite(raws).all():
        weights, raws = weights[weights > 0], raws[weights > 0]
    return np.asarray(np.tensordot(weights, raws, 1))


def path_length(problem: Problem, score: float) -> float:
    """Return the sum of the learning rates of all steps, each relative to the score of equal weights.

    For classes the score is a log-loss, and the path is no longer than the sum of the log-losses of all rows. By Bayes'
    rule the logarithms of the weights should not differ by more than the log-losses do. If nearly all rows are
    predicted with certainty, the score is small, and without this limit the few other rows would decide.
    """
    n_rows = np.count_nonzero(problem.held_out.weight)
    length = max(constants.MIN_STACKING_PATH, constants.STACKING_PATH_PER_ROW * n_rows)
    return min(length, n_rows * score) if traits_of(problem.loss).task == "classification" else length


def _descend(raws: Floats, problem: Problem) -> Floats:
    """Return the weights at the end of the path.

    A step that would raise the loss is dropped, and the next one is half as long. Other steps let the rate grow.
    """
    share = problem.held_out.weight / problem.held_out.weight.sum()
    weights, rate, slopes = np.full(len(raws), 1.0 / len(raws)), constants.STACKING_RATE, None
    raw = np.tensordot(weights, raws, 1)
    score = problem.score(raw)
    left = path_length(problem, score)
    for _ in range(constants.MAX_STACKING_STEPS if len(raws) > 1 else 0):
        if slopes is None:
            gradient = share[:, None] * problem.held_out_loss.gradient(raw + problem.held_out.offset, problem.smoothed)
            slopes = np.tensordot(raws - raw, gradient, 2) / problem.scale_of(score)
        rate = min(rate, left)
        moved = weights * np.exp(np.clip(-rate * slopes, -MAX_LOG_CHANGE, MAX_LOG_CHANGE))
        moved /= moved.sum()
        moved_raw = np.tensordot(moved, raws, 1)
        moved_score = problem.score(moved_raw)
        if moved_score > score:
            rate /= 2.0
            continue
        weights, raw, score, slopes = moved, moved_raw, moved_score, None
        left -= rate
        if left <= 0.0:
            break
        rate *= constants.STACKING_GROWTH
    return weights


def member_weights(scores: Sequence[HeldOutScore], scale_of: Callable[[float], float]) -> list[float]:
    """Return the weights of models, each scored on held-out rows of its own.

    The weights are equal, except that a model counts less if it is worse than the best one by more than chance. Its
    weight ``scale / (scale + worse)`` is the ratio of the two losses. For independent models and the squared error,
    these weights minimise the error of the mean.
    """
    best = min(scores)
    weights = np.ones(len(scores))
    for number, score in enumerate(scores):
        worse, chance = score.mean - best.mean, constants.MEMBER_T * np.hypot(score.error, best.error)
        if np.isfinite(best.mean) and not worse <= chance:
            scale = scale_of(best.mean)
            weights[number] = scale / (scale + worse)
    return [float(weight) for weight in workers().agree(weights / weights.sum())]
