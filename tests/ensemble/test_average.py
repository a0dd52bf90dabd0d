"""Weights of candidates: what their sum is worth on the held-out rows, and how far these rows can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import problem_of

from boostbp.ensemble import constants
from boostbp.ensemble.average import member_weights, stacked_weights, summed, t_statistic
from boostbp.ensemble.problem import HeldOutScore
from boostbp.losses import AbsoluteError, Poisson, SquaredError


@dataclass(frozen=True, slots=True)
class Shifted(Poisson):
    """A likelihood that is known but for a constant."""

    constant: float = 0.0
    name: ClassVar[str] = "shifted"

    def value(self, h, y):
        return Poisson.value(self, h, y) + self.constant


def held_out_of(target, weight=None, **changes):
    """A problem whose held-out rows have these targets and weights."""
    taught = np.array([[0.0], [1.0]]) if target.shape[1] == 1 else np.eye(2, target.shape[1])
    problem = problem_of((np.zeros((2, 1)), taught), (np.zeros((len(target), 1)), target), **changes)
    if weight is None:
        return problem
    [part] = problem.evaluation.sets
    part = replace(part, rows=replace(part.rows, weight=weight))
    return replace(problem, evaluation=replace(problem.evaluation, sets=(part,)))


def errors(seed, n_models, rows=200):
    """Targets, and models that err by noise of their own."""
    rng = np.random.default_rng(seed)
    target = rng.standard_normal((rows, 1))
    return target, target + rng.standard_normal((n_models, rows, 1))


@pytest.mark.parametrize("n_models", [1, 2, 5, 40])
def test_equal_models_get_equal_weights(n_models):
    target, raws = errors(0, 1)
    weights = stacked_weights(np.repeat(raws, n_models, axis=0), held_out_of(target))
    np.testing.assert_allclose(weights, 1.0 / n_models, rtol=1e-12)


def test_models_that_are_mirrors_of_each_other_get_equal_weights():
    target, raws = errors(1, 1)
    weights = stacked_weights(np.stack([raws[0], 2.0 * target - raws[0]]), held_out_of(target))
    np.testing.assert_allclose(weights, 0.5, rtol=1e-9)  # their mean is right in each row


def test_the_best_of_very_different_models_gets_nearly_all():
    target, raws = errors(2, 3)
    raws = target + np.array([0.1, 10.0, 30.0])[:, None, None] * (raws - target)
    weights = stacked_weights(raws, held_out_of(target))
    assert list(weights > 0) == [True, False, False]
    assert weights[0] == 1.0


def test_one_step_is_that_of_exponentiated_gradient_descent(tune):
    tune(MAX_STACKING_STEPS=1, MIN_WEIGHT=0.0)
    target, raws = errors(3, 2)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 200)
    found = stacked_weights(raws, held_out_of(target, weight))
    mean, share = raws.mean(0), weight / weight.sum()
    loss = share @ (0.5 * np.square(mean - target).ravel())
    slopes = [share @ ((mean - target) * raw).ravel() / loss for raw in raws]
    expected = np.exp(-constants.STACKING_RATE * np.array(slopes))
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-9)


def test_more_rows_are_trusted_more():
    """Few leave the weights near the mean, many bring them to the best sum of two, which has a closed form."""
    weights, best = [], []
    for rows in (100, 5000):
        target, (shared, *own) = errors(4, 3, rows=rows)
        raws = np.stack([shared + size * (raw - target) for size, raw in zip((0.1, 0.2), own, strict=True)])
        u, v = ((raw - target).ravel() for raw in raws)
        best.append(v @ (v - u) / np.square(v - u).sum())
        weights.append(stacked_weights(raws, held_out_of(target))[0])
    assert 0.5 < weights[0] < best[0] - 0.1
    assert weights[1] == pytest.approx(best[1], abs=1e-2)


@given(st.integers(0, 2**31), st.integers(1, 12))
def test_weights_are_shares_and_their_sum_is_no_worse_than_the_mean(seed, n_models):
    target, raws = errors(seed, n_models, rows=60)
    problem = held_out_of(target)
    weights = stacked_weights(raws, problem)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1.0)
    kept = weights > 0
    assert problem.score(np.tensordot(weights, raws, 1)) <= problem.score(raws[kept].mean(0)) * (1 + 1e-9)


@given(st.integers(0, 2**31))
def test_weights_go_with_the_models_and_the_scale_of_targets_does_not_matter(seed):
    target, raws = errors(seed, 5, rows=60)
    weights = stacked_weights(raws, held_out_of(target))
    order = np.random.default_rng(seed).permutation(5)
    np.testing.assert_allclose(stacked_weights(raws[order], held_out_of(target)), weights[order], rtol=1e-6)
    np.testing.assert_allclose(stacked_weights(1e6 * raws, held_out_of(1e6 * target)), weights, rtol=1e-6)


def test_models_without_a_number_get_no_weight():
    target, raws = errors(4, 4)
    raws[1, 7] = np.nan
    raws[2, 0] = np.inf
    problem = held_out_of(target)
    weights = stacked_weights(raws, problem)
    assert list(weights[1:3]) == [0.0, 0.0]
    np.testing.assert_array_equal(weights[[0, 3]], stacked_weights(raws[[0, 3]], problem))
    with pytest.raises(FloatingPointError, match="no model has finite predictions of the held-out rows"):
        stacked_weights(raws[1:3], problem)


def test_models_of_infinite_loss_get_no_weight():
    """Leaves that are not clipped may predict numbers whose squares float64 does not hold."""
    target, raws = errors(4, 4)
    raws[1:3, 5] = 1e200
    problem = held_out_of(target)
    weights = stacked_weights(raws, problem)
    assert list(weights[1:3]) == [0.0, 0.0]
    np.testing.assert_array_equal(weights[[0, 3]], stacked_weights(raws[[0, 3]], problem))
    assert list(stacked_weights(raws[1:3], problem)) == [1.0, 0.0]


def test_what_has_no_weight_is_not_in_the_sum():
    _, raws = errors(4, 4)
    weights = np.array([0.25, 0.0, 0.0, 0.75])
    expected = 0.25 * raws[0] + 0.75 * raws[3]
    raws[1, 7], raws[2, 0] = np.nan, np.inf
    np.testing.assert_allclose(summed(weights, raws), expected, rtol=1e-15, atol=1e-15)


def test_models_of_least_weight_are_left_out(tune):
    target, raws = errors(5, 3)
    raws[2] = target + 1.5 * (raws[2] - target)
    tune(MIN_WEIGHT=0.0)
    all_of_them = stacked_weights(raws, held_out_of(target))
    assert (all_of_them > 0).all()
    tune(MIN_WEIGHT=float(all_of_them[2]) * 1.001)
    fewer = stacked_weights(raws, held_out_of(target))
    np.testing.assert_array_equal(fewer, [*stacked_weights(raws[:2], held_out_of(target)), 0.0])
    tune(MIN_WEIGHT=1.0)  # the best one stays, whatever the least is
    assert list(stacked_weights(raws, held_out_of(target))) == [float(all_of_them.argmax() == k) for k in range(3)]


def test_rows_of_weight_0_do_not_count():
    target, raws = errors(6, 3)
    weight = np.r_[np.ones(100), np.zeros(100)]
    half = stacked_weights(raws[:, :100], held_out_of(target[:100]))
    # a score that is flat at its minimum tells weights apart by no less than the root of its rounding, 1.5e-8
    np.testing.assert_allclose(stacked_weights(raws, held_out_of(target, weight)), half, rtol=1e-7)


@pytest.mark.parametrize("constant", [-1e3, -50.0, 1e3])
def test_a_constant_in_the_loss_changes_no_weight(constant):
    rng = np.random.default_rng(0)
    true = 1.0 + 0.5 * rng.standard_normal((400, 1))
    target = rng.poisson(np.exp(true)).astype(np.float64)
    raws = true + np.array([0.1, 0.2, 0.4])[:, None, None] * rng.standard_normal((3, 400, 1))
    weights = [stacked_weights(raws, held_out_of(target, loss=Shifted(constant=one))) for one in (constant, 100.0)]
    assert len(set(weights[0])) == 3
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-6)


def test_several_outputs_count_together():
    rng = np.random.default_rng(0)
    target = rng.standard_normal((200, 2))
    right = np.eye(2)  # each model knows one output and nothing of the other
    raws = np.stack([target * right[k] + (1.0 - right[k]) * rng.standard_normal((200, 2)) for k in range(2)])
    weights = stacked_weights(raws, held_out_of(target))
    np.testing.assert_allclose(weights, 0.5, atol=0.1)


def test_evidence_is_the_slope_in_its_standard_errors():
    rng = np.random.default_rng(0)
    u, weight, baseline = rng.standard_normal(200), rng.uniform(0.5, 2.0, 200), np.array([3.0])
    y = 0.3 * u + rng.standard_normal(200)
    got = t_statistic(u[:, None] + 3.0, y[:, None] + 3.0, baseline, weight, SquaredError())
    slope = np.sum(weight * u * y) / np.sum(weight * u * u)
    error = np.sqrt(np.sum((weight * u * (y - slope * u)) ** 2)) / np.sum(weight * u * u)  # White (1980)
    assert got == pytest.approx(slope / error, rel=1e-12)
    assert t_statistic(3.0 - u[:, None], y[:, None] + 3.0, baseline, weight, SquaredError()) == 0.0
    for raw, loss in ((u[:, None] + 3.0, AbsoluteError()), (np.full((200, 1), 3.0), SquaredError())):
        assert t_statistic(raw, y[:, None] + 3.0, baseline, weight, loss) == np.inf


def test_a_member_that_is_worse_counts_as_makes_the_mean_best():
    """Of errors that do not go together, the weights of the best mean are the inverse variances."""
    sizes = (0.1, 0.1, 0.5)
    scores, outputs = [], []
    for seed, size in enumerate(sizes):
        target, (raw,) = errors(seed, 1, rows=4000)
        outputs.append(size * (raw - target))
        problem = held_out_of(target)
        scores.append(problem.mean_of(problem.row_losses(target + outputs[-1])))
    weights = member_weights(scores, lambda score: score)
    assert weights[0] == weights[1]  # a difference by chance
    inverse = 1.0 / np.square(sizes)
    np.testing.assert_allclose(weights, inverse / inverse.sum(), rtol=0.05)

    def error(by):
        return np.square(np.tensordot(by, outputs, 1)).mean()

    best = error(inverse / inverse.sum())
    assert error(weights) == pytest.approx(best, rel=0.01)
    assert error([1 / 3, 1 / 3, 1 / 3]) > 4 * best


def test_a_member_without_a_finite_loss_has_no_weight_beside_others():
    problem = held_out_of(np.zeros((5, 1)))
    good, lost = HeldOutScore(1.0, 0.1), problem.mean_of(problem.row_losses(np.full((5, 1), 1e200)))
    assert lost.mean == np.inf
    assert member_weights([good, lost, good], abs) == [0.5, 0.0, 0.5]
    assert member_weights([lost, lost], abs) == [0.5, 0.5]
