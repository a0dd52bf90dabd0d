"""Time limits, on a clock that the tests move: no step begins that would end too late."""

from __future__ import annotations

import time

import numpy as np
import pytest
from flat_parameters import parameters

from boostbp import BoostBPRegressor
from boostbp.ensemble import refits
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.output_layers import LayerTraining, OutputLayerPlan, TrainedCandidate
from boostbp.estimators import data
from boostbp.network.layers.boosting import Boosting
from boostbp.network.layers.layer import rounds_of
from boostbp.network.trainer import Trainer

RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 4))
Y = np.sin(X[:, 0]) + X[:, 1]
FAST = {"n_estimators": 5, "epochs": 30, "random_state": 0}


@pytest.fixture
def takes(tune, before):
    """Let calls take time: ``takes(owner, name, seconds)``; ``takes.now`` is the time."""
    now = [0.0]
    tune(time, perf_counter=lambda: now[0])

    def takes(owner, name, seconds):
        def passes(*_, **options):
            now[0] += seconds

        before(owner, name, passes)
        return now

    return takes


def limited(max_time, **how):
    return BoostBPRegressor((2,), **parameters(**FAST, **how), max_time=max_time).fit(X, Y)


def rounds(model):
    return rounds_of(model.network_.layers[-1].forest)


def test_the_reading_of_the_rows_counts(takes):
    takes(data, "learn_schema", 5.0)
    assert rounds(limited(5.0, quality=1)) == 1
    assert rounds(limited(6.0, quality=1)) > 1


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_layer_ends_after_any_round(takes, n_outputs):
    now = takes(Boosting, "boost_in_core", 1.0)
    y = Y if n_outputs == 1 else np.column_stack([Y, -Y, X[:, 2]])
    model = BoostBPRegressor((2,), **parameters(**FAST, quality=1), max_time=3.0).fit(X, y)
    assert now[0] == 3.0
    assert rounds(model) == 3
    assert model.history_.choice.cut_by_time


def test_a_candidate_that_would_begin_too_late_is_not_begun(takes):
    now = takes(LayerTraining, "begin", 10.0)
    model = BoostBPRegressor((2,), **parameters(**FAST, quality=4, deep=False), max_time=25.0)
    model.fit(X, Y, eval_set=[(X[:50], Y[:50])])  # nothing is refitted
    assert now[0] == 20.0
    assert len(model.history_.choice.candidates) == 2
    assert model.history_.choice.cut_by_time


@pytest.mark.parametrize("early_stopping", [False, True])
def test_an_epoch_that_would_end_too_late_is_not_begun(takes, early_stopping):
    now = takes(Trainer, "step", 4.0)
    model = limited(18.0, deep=True, early_stopping=early_stopping)
    assert now[0] == 16.0
    assert len(model.history_) == 4


def test_the_layers_before_a_network_leave_it_half_of_the_time(takes, before):
    begun = []
    now = takes(Boosting, "boost_in_core", 1.0)
    before(Trainer, "step", lambda *_: begun.append(now[0]))
    limited(8.0, deep=True)
    assert begun[0] == 4.0


def test_a_refit_that_would_end_too_late_is_not_begun(takes, tune):
    takes(Trainer, "step", 0.0)
    model, begun = limited(None, quality=1).network_, []
    tune(refits, boost_again=lambda *_, **options: begun.append(1))

    class AllRows:
        def above(self, below):
            return self

    for seconds in (3.0, 5.0):
        plan = OutputLayerPlan(None, (), seconds)
        candidate = TrainedCandidate("single layer", None, model, np.zeros((1, 1)), plan)
        assert refits._refitted(candidate, AllRows(), Budget(4.0)) is model
    assert len(begun) == 1
