"""Work: what pieces of training cost, counted alike everywhere; more of anything is more work."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import parameters
from hypothesis import given
from hypothesis import strategies as st
from problems import GROWTH, LAYER
from sklearn.datasets import make_friedman1

from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.ensemble.budget import DEFAULT_QUALITY, LEVELS, epoch_work, round_work
from boostbp.network.settings import Settings
from boostbp.trees.basis import Polynomial

CONSTANT = replace(LAYER, basis=Polynomial(0))
sizes = st.integers(1, 10**6)


@given(sizes, st.integers(1, 500), st.integers(1, 20), sizes, st.integers(1, 500), st.integers(1, 20))
def test_work_never_falls_with_rows_features_or_outputs(rows, features, outputs, more_rows, more_features, more):
    for layer in (LAYER, CONSTANT, replace(LAYER, growth=replace(GROWTH, multi_output=True))):
        least = round_work(layer, rows, features, outputs)
        assert 0 < least <= round_work(layer, rows + more_rows, features, outputs)
        assert least <= round_work(layer, rows, features + more_features, outputs)
        assert least <= round_work(layer, rows, features, outputs + more)


@given(sizes, st.integers(1, 200), st.integers(1, 10), st.integers(0, 100), st.integers(1, 100))
def test_an_epoch_costs_its_rounds(rows, features, units, rounds, more):
    def work(n_hidden, n_output, units=units, skip=False):
        layers = (replace(LAYER, n_estimators=n_hidden), replace(LAYER, n_estimators=n_output))
        return epoch_work(Settings(layers=layers, units=(units,), skip=skip), rows, features, 1)

    assert work(0, 0) == 0
    assert work(rounds, rounds) == pytest.approx(work(rounds, 0) + work(0, rounds))
    assert work(rounds + more, 0) == pytest.approx(work(rounds, 0) + work(more, 0))
    assert work(rounds, more, skip=True) >= work(rounds, more)  # the output layer sees the features, too
    assert work(more, more, units=units + 1) > work(more, more)


def test_deeper_trees_leaf_regressions_and_more_features_per_tree_cost_more():
    def work(layer=CONSTANT, **growth):
        return round_work(replace(layer, growth=replace(GROWTH, **growth)), 10_000, 20, 1)

    assert work(max_depth=2) < work(max_depth=4) < work(max_depth=8)
    assert work(colsample_bytree=0.2) < work(colsample_bytree=0.5) < work()
    assert work(CONSTANT) < work(LAYER)
    shared = replace(LAYER, growth=replace(GROWTH, multi_output=True))
    assert round_work(shared, 10_000, 20, 1) == round_work(shared, 10_000, 20, 5)


def test_ten_times_the_rows_are_at_most_ten_times_the_work_and_a_bit():
    """With so many rows that a tree has all its leaves: what is done for each row, and what is not."""
    few, many = (round_work(LAYER, n, 10, 1) for n in (10_000, 100_000))
    assert few < many < 10 * few
    assert round_work(LAYER, 10**8, 10, 1) == pytest.approx(10 * round_work(LAYER, 10**7, 10, 1), rel=0.01)


X, Y = make_friedman1(300, n_features=5, random_state=0)


FAST = {"n_estimators": 5, "epochs": 2, "random_state": 0}


def regressor(sizes=(3,), **changes):
    return BoostBPRegressor(sizes, **parameters(**FAST | changes))


def test_each_rung_may_cost_more_than_the_one_below():
    assert list(LEVELS) == [1, 2, 3, 4, 5]
    assert BoostBPRegressor().quality == BoostBPClassifier().quality == DEFAULT_QUALITY
    for networks in (False, True):
        efforts = [level.effort(networks=networks) for level in LEVELS.values()]
        costs = [effort.work * effort.members for effort in efforts]
        assert costs == sorted(costs)
    assert [quality for quality, level in LEVELS.items() if level.networks is None] == [1]


def test_a_quality_may_be_a_number_of_numpy():
    rows = np.random.default_rng(0).normal(size=(40, 2))
    one, other = (regressor(quality=quality).fit(rows, rows[:, 0]) for quality in (1, np.int64(1)))
    np.testing.assert_array_equal(other.predict(rows), one.predict(rows))


@pytest.mark.parametrize("quality", [0, 6, np.int64(6), 2.5, -1, "3", "best", None])
def test_other_qualities_are_refused_by_name(quality):
    message = re.escape(f"quality={quality!r} is not known: use one of 1, 2, 3, 4, 5")
    for deep in ("auto", True, False):
        with pytest.raises(ValueError, match=message):
            regressor(quality=quality, deep=deep).fit(X, Y)
