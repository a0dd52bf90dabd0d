"""Output layers grown to their end: where the held-out loss says so, whatever constant is missing in it."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp import backends, losses
from boostbp.backends.base import Growth, Table
from boostbp.ensemble import output_layers
from boostbp.layers import LayerSettings
from boostbp.trees.basis import Polynomial

SETTINGS = LayerSettings(growth=Growth(max_depth=3, min_samples_leaf=10), learning_rate=0.1, basis=Polynomial(1))


def counts(rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows, 5))
    return X, rng.poisson(np.exp(3.9 + 0.1 * np.sin(6 * X[:, :1])))[:, :1].astype(np.float64)


def grown(missing):
    """A layer on counts of 50 or so, by their likelihood without so much of it; and the loss after each piece."""
    (X, y), (held_X, held_y) = counts(240, 0), counts(120, 1)
    loss = losses.load("poisson", n_outputs=1)
    weight = np.ones(len(y))
    rows = output_layers.Rows(Table(X), y, weight, backends.load("lightgbm"), loss, loss.baseline(y, weight))
    seen = []

    def score(raw):
        seen.append(float(loss.value(raw, held_y).mean()) - missing)
        return seen[-1]

    layer, held, head = output_layers.boost(rows, SETTINGS, held_X=held_X, score=score)
    np.testing.assert_allclose(layer.predict(held_X) + rows.baseline, held, rtol=1e-12)
    return held, head, np.array(seen)


def test_the_best_piece_is_kept_where_losses_are_below_0():
    _, head, seen = grown(missing=0.0)
    assert seen.max() < 0
    assert len(seen) - 1 <= head.pieces + output_layers.PATIENCE < output_layers.MOST
    gain = seen[0] - seen.min()
    assert seen[head.pieces] == pytest.approx(seen.min(), abs=output_layers.PATIENCE * output_layers.LEAST * gain)


@pytest.mark.parametrize("missing", [-1e3, -150.0, 1e3])
def test_a_constant_in_the_loss_changes_nothing(missing):
    held, head, _ = grown(missing)
    expected, expected_head, _ = grown(0.0)
    assert head.pieces == expected_head.pieces
    np.testing.assert_array_equal(held, expected)
