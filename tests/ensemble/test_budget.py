"""Work: what pieces of training cost, counted alike everywhere; more of anything is more work."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import GROWTH, LAYER

from boostbp.ensemble.budget import epoch_work, round_work
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
