"""The trainer's figures: a linear probe of hidden layers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flat_parameters import parameters
from sklearn.linear_model import LinearRegression

from boostbp import BoostBPRegressor
from boostbp.network.trainer import linear_probe_r2
from tests.model.models import SMALL, table


def test_probe_is_a_linear_regression():
    rng = np.random.default_rng(0)
    h, weight = rng.normal(size=(80, 3)), rng.uniform(0.5, 2.0, 80)
    h[:, 2] = h[:, 0]  # repeated columns do no harm
    y = h[:, :2] @ rng.normal(size=(2, 2)) + rng.normal(size=(80, 2))
    line = LinearRegression().fit(h, y, sample_weight=weight)
    rest, std = (weight @ np.square(y - centre) for centre in (line.predict(h), np.average(y, 0, weight)))
    fresh = rng.normal(size=(50, 3))
    fresh[:, 2] = fresh[:, 0]
    target = rng.normal(size=(50, 2)) + fresh[:, :2]
    agreement = np.array([np.corrcoef(line.predict(fresh)[:, k], target[:, k])[0, 1] for k in range(2)])
    for unit in (3.0, -3.0):
        training, held = linear_probe_r2(h, y, weight, (fresh, 7.0 + unit * target, np.ones(50)))
        assert training == pytest.approx(1.0 - rest.sum() / std.sum())
        squared = np.square(np.maximum(np.sign(unit) * agreement, 0.0))
        assert held == pytest.approx(std @ squared / std.sum())
    assert math.isnan(linear_probe_r2(h, np.ones((80, 1)), weight)[0])
    assert math.isnan(linear_probe_r2(h, y, weight)[1])


@pytest.mark.usefixtures("unrounded")  # as an average is, after its network was probed
def test_layers_are_probed_on_training_and_held_out_rows():
    frame, y = table()
    model = BoostBPRegressor(**parameters(**SMALL)).fit(frame[:300], y[:300], eval_set=[(frame[300:], y[300:])])
    best = model.history_[model.history_.best_epoch]
    for layer in range(2):
        h = model.hidden_representation(frame, layer)
        line = LinearRegression().fit(h[:300], y[:300])
        assert best.explained[layer] == pytest.approx(line.score(h[:300], y[:300]))
        assert best.explained_held[layer] == pytest.approx(np.corrcoef(line.predict(h[300:]), y[300:])[0, 1] ** 2)
