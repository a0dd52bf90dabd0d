"""Rounds of Newton steps on a curved loss never raise it, however long the steps."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BACKENDS
from scipy.special import log_softmax

from boostbp import BoostBPClassifier, BoostBPRegressor, losses
from boostbp import backends as libraries
from boostbp.backends.base import TreeParams
from boostbp.network import layers
from boostbp.network.layers import LossObjective
from boostbp.network.layers.layer import stage_forests
from boostbp.trees.ridge import Ridge
from boostbp.trees.sparse import Table

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 3))
LABELS = rng.integers(0, 2, 200) * (np.abs(X[:, 0]) + 0.5 * rng.standard_normal(200) > 0.7).astype(int) + (
    X[:, 1] > 0.5
)
N_ROUNDS = 12


def fitted(backend, loss, Y, learning_rate, reg_lambda, *, shared=False):
    """Raw outputs after each number of rounds, computed from the trees; the last is that of the running fit."""
    settings = layers.LayerSettings(
        n_estimators=N_ROUNDS,
        learning_rate=learning_rate,
        growth=TreeParams(max_depth=3, min_samples_leaf=1, multi_output=shared),
        ridge=Ridge(reg_lambda, penalize_constant=False),
    )
    bound = layers.BoundInput(libraries.load_backend(backend), Table(X), settings, np.ones(200))
    baseline = loss.baseline(Y, np.ones(200))
    fit = layers.fit(bound, LossObjective.of(loss, Y, np.ones(200), baseline))
    raws = list(accumulate(part.predict(X) for part in stage_forests(fit.layer.forest, range(1, N_ROUNDS + 1))))
    np.testing.assert_allclose(raws[-1], fit.output, rtol=1e-9, atol=1e-9)
    return [baseline + np.zeros_like(Y), *(raw + baseline for raw in raws)]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_softmax_rounds_never_raise_the_loss(backend, shared):
    Y = np.eye(3)[LABELS]
    raws = fitted(backend, losses.Softmax(), Y, 1.0, 0.0, shared=shared)
    values = [-(Y * log_softmax(raw, axis=1)).sum() for raw in raws]
    assert (np.diff(values) <= 1e-9).all(), values
    assert values[-1] < 0.2 * values[0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_poisson_rounds_never_raise_the_loss(backend, outputs):
    Y = rng.poisson(np.exp(X[:, :outputs])).astype(float)
    raws = fitted(backend, losses.Poisson(), Y, 1.0, 1e-6)
    values = [(np.exp(raw) - Y * raw).sum() for raw in raws]
    assert (np.diff(values) <= 1e-9 * np.abs(values[0])).all(), values


@pytest.mark.parametrize("backend", BACKENDS)
def test_unpenalised_full_steps_give_a_bounded_classifier(backend):
    way = {"reg_lambda": 0.0, "learning_rate": 1.0, "min_samples_leaf": 1, "max_depth": 3, "clip": False}
    way |= {"n_estimators": [5, 30], "epochs": 1, "early_stopping": False, "random_state": 0, "n_jobs": 1}
    model = BoostBPClassifier((4,), **parameters(backend=backend, **way)).fit(X, LABELS > 0)
    assert max(model.history_.loss) < np.log(2)


class NoNumber(losses.Logistic):
    """A curved loss with a careless logarithm: no number in row `row`, from `begin` calls on."""

    task = "regression"

    def __init__(self, what, begin):
        super().__init__()
        object.__setattr__(self, "what", what)
        object.__setattr__(self, "calls", -begin)

    def _spoilt(self, what, found):
        object.__setattr__(self, "calls", self.calls + (what == self.what))
        if what == self.what and self.calls > 0:
            found = found.copy()
            found[7] = np.nan
        return found

    def value(self, h, y):
        return self._spoilt("value", super().value(h, y))

    def gradient(self, h, y):
        return self._spoilt("gradient", super().gradient(h, y))

    def hessian(self, h, y):
        return self._spoilt("hessian", super().hessian(h, y))

    def derivatives(self, h, y):
        return self.value(h, y), self.gradient(h, y), self.hessian(h, y)


@pytest.mark.parametrize("what", ["value", "gradient", "hessian"])
def test_loss_that_begins_as_no_number_is_refused_by_name_and_row(what):
    Y = (LABELS > 0).astype(float)
    model = BoostBPRegressor((3,), **parameters(loss=NoNumber(what, 0), epochs=1, n_estimators=2, early_stopping=False))
    with pytest.raises(
        ValueError, match=f"loss='{losses.Logistic().name}': its {what} is .*nan.* in row 7, where y is"
    ):
        model.fit(X, Y)


def test_loss_that_turns_into_no_number_ends_a_fit():
    Y = (LABELS > 0).astype(float)
    model = BoostBPRegressor(
        (3,), **parameters(loss=NoNumber("value", 20), epochs=1, n_estimators=4, early_stopping=False)
    )
    with pytest.raises(ValueError, match=r"loss='logistic': its value is nan in row 7, where y is .*, in training"):
        model.fit(X, Y)
