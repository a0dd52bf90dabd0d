"""The problem of a fit: held-out rows, of which smoothed labels count."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp import losses
from boostbp.ensemble.average import stacked_weights
from boostbp.ensemble.problem import smooth_labels
from boostbp.losses import Logistic, Softmax, SquaredError
from tests.ensemble.test_average import held_out_of
from tests.losses.test_checked_loss import Probit


@pytest.mark.parametrize("loss", [Logistic(), Softmax()])
def test_classes_that_are_told_with_certainty_are_little_evidence(loss):
    """To first order weights are those of Bayes' rule: their logarithms differ as the log-losses of all rows do."""
    label = np.arange(50) % 2
    target = label[:, None].astype(float) if loss.name == "logistic" else np.eye(2)[label]
    raws = np.stack([size * (2.0 * target - 1.0) for size in (5.0, 6.0)])
    problem = held_out_of(target, loss=loss)
    weights = stacked_weights(raws, problem)
    slopes = (loss.gradient(raws.mean(0), problem.smoothed) * (raws[1] - raws[0])).sum()
    assert 0.02 < abs(slopes) < 0.5
    assert np.log(weights[1] / weights[0]) == pytest.approx(-slopes, rel=0.05)


def test_smoothed_labels_are_those_of_a_quarter_of_a_row_more_of_another_class():
    y = np.array([[0.0], [1.0], [1.0], [0.0]])
    weight = np.array([1.0, 2.0, 0.5, 0.0])  # three rows count
    np.testing.assert_allclose(smooth_labels(y, weight, Logistic()).ravel(), [0.05, 0.95, 0.95, 0.05])
    one_hot = np.eye(3)
    several = smooth_labels(one_hot, np.ones(3), Softmax())
    np.testing.assert_allclose(several, 0.95 * one_hot + 0.025 * (1 - one_hot))
    np.testing.assert_allclose(several.sum(axis=1), 1.0)
    assert smooth_labels(y, weight, SquaredError()) is y
    # the two losses agree on what a row of probabilities costs
    h, p = np.array([[1.3], [-40.0]]), np.array([[0.3], [0.9]])
    two = np.hstack([1 - p, p])
    np.testing.assert_allclose(Logistic().value(h, p), Softmax().value(np.hstack([np.zeros_like(h), h]), two))


def test_labels_are_softened_only_for_losses_that_take_probabilities():
    target, weight = np.array([[0.0], [1.0]]), np.ones(2)
    np.testing.assert_array_equal(smooth_labels(target, weight, Probit(task="classification")), target)
    assert 0 < smooth_labels(target, weight, losses.Logistic())[0, 0] < 0.1
    soft = Probit(task="classification", soft_labels=True)
    np.testing.assert_array_equal(smooth_labels(target, weight, soft), smooth_labels(target, weight, losses.Logistic()))
