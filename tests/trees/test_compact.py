"""A rounded forest is the same but for rows that a leaf never saw, and for less than half a unit of each weight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from boostbp import BoostBPRegressor
from boostbp.network.network import Network
from boostbp.trees.compact import LEAST_CENTER_BITS, RANGE_BITS, _short_scalings, rounded
from tests.support.helpers import MATRIX, Case, fitted, of_any_library, training_rows

FINE = 40  # bits of weights, whose rounding is then beside the point
RICH = Case("lightgbm", missing=True, base=True, categorical=True)


def ends(forest):
    """Lower and upper end of what each path column is clipped to, (path columns, 2)."""
    center, inverse, lower, upper = forest.leaves.scaling[varying(forest)].T
    return center[:, None] + np.c_[lower, upper] / inverse[:, None]


def varying(forest):
    _, inverse, lower, upper = forest.leaves.scaling.T
    return (inverse > 0) & (lower < upper)


def by_leaf(forest, weight):
    """Weights of each leaf, a list of (terms, outputs)."""
    leaves = forest.leaves
    n_outputs = np.repeat(leaves.tree_output[:, 1], np.diff(leaves.tree_leaf))
    parts = np.split(weight, leaves.weight_start[1:-1])
    return [part.reshape(-1, m) for part, m in zip(parts, n_outputs, strict=True)]


@of_any_library(MATRIX)
def test_ranges_are_rounded_without_a_change_on_training_rows(case):
    forest, X = fitted(case).layer.forest, training_rows(case)[0]
    X = X[~np.isnan(X).any(axis=1)]
    expected = forest.predict(X)
    np.testing.assert_allclose(rounded(forest, FINE).predict(X), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@of_any_library(MATRIX)
def test_ranges_are_of_few_bits_and_hold_what_a_leaf_saw(case):
    forest = fitted(case).layer.forest
    short, grid = rounded(forest, FINE), 2.0**RANGE_BITS
    kept = varying(forest)
    center, inverse, lower, upper = short.leaves.scaling[kept].T
    assert set(np.frexp(inverse)[0]) <= {0.5}
    for number in (center * inverse, lower, upper):
        np.testing.assert_array_equal(number * grid, np.rint(number * grid))
    room, rounding = 1.0 / (grid * inverse), 1e-12 * np.abs(ends(forest)).max(axis=1, initial=0.0)
    wider = (ends(short) - ends(forest)) * [-1.0, 1.0]
    assert (wider >= -rounding[:, None]).all()
    assert (wider <= (room + rounding)[:, None]).all()
    np.testing.assert_array_equal(short.leaves.scaling[~kept], forest.leaves.scaling[~kept])


def test_rows_that_miss_columns_are_given_a_mean_that_is_as_near():
    forest, X = fitted(RICH).layer.forest, training_rows(RICH)[0]
    short = rounded(forest, FINE)
    missing = np.full((1, X.shape[1]), np.nan)
    slopes = sum(np.abs(part[1:]).sum() for part in by_leaf(short, short.leaves.weight))
    change = np.abs(short.predict(missing) - forest.predict(missing)).max()
    assert 0 < change <= slopes / 2.0**RANGE_BITS


@pytest.mark.parametrize("bits", [8, 11])
@of_any_library(MATRIX)
def test_weights_are_the_nearest_multiples_of_a_unit_of_their_leaf(case, bits):
    forest = fitted(case).layer.forest
    exact, short = by_leaf(forest, rounded(forest, 52).leaves.weight), rounded(forest, bits).leaves.weight
    largest = np.concatenate([np.abs(part).max(axis=0) for part in exact])
    usual = np.sqrt(np.square(largest[largest > 0]).mean())
    for before, after in zip(exact, by_leaf(forest, short), strict=True):
        top = np.minimum(np.abs(before).max(axis=0), usual)
        unit = 2.0 ** (np.ceil(np.log2(np.where(top > 0, top, 1.0))) - bits)
        np.testing.assert_array_equal(after, np.rint(after / unit) * unit)
        assert (np.abs(after - before) <= (0.5 + 1e-3) * unit).all()


def test_what_is_not_finite_or_does_not_vary_stays_as_it_is():
    forest = fitted(RICH).layer.forest
    scaling = forest.leaves.scaling.copy()
    odd = np.array(
        [
            [0.0, 0.0, 0.0, 0.0],
            [np.nan] * 4,
            [1e308, 1e-308, -1.0, 1.0],
            [0.0, np.inf, -1.0, 1.0],
            [0.0, -1.0, 0.0, 1.0],
        ]
    )
    scaling[: len(odd)] = odd
    weight = np.zeros_like(forest.leaves.weight)
    weight[-1] = 5e-324
    wild = replace(forest, leaves=forest.leaves._replace(scaling=scaling, weight=weight))
    short = rounded(wild, 11)
    np.testing.assert_array_equal(short.leaves.scaling[[0, 1, 3, 4]], odd[[0, 1, 3, 4]])
    assert np.isfinite(short.leaves.weight).all()
    assert short.leaves.weight[-1] in (0.0, 5e-324, 1e-323)


@pytest.mark.slow
def test_averages_are_rounded_and_hardly_others(monkeypatch):
    X, y = load_diabetes(return_X_y=True)
    model = BoostBPRegressor(quality=2, random_state=0)
    short = model.fit(X[:300], y[:300]).predict(X)
    scaling = np.concatenate([layer.forest.leaves.scaling[varying(layer.forest)] for layer in model.network_.layers])
    assert len(scaling)
    assert set(np.frexp(scaling[:, 1])[0]) == {0.5}
    monkeypatch.setattr(Network, "rounded", lambda network: network)
    exact = model.fit(X[:300], y[:300]).predict(X)
    change = (short - exact) / exact.std()
    assert 0 < np.sqrt(np.square(change).mean()) < 1e-2


def test_centers_are_numbers_of_float32_where_that_hardly_moves_them():
    """Years, near numbers, those that float32 can just tell apart, and those that it cannot."""
    scaling = np.array(
        [
            [1991.3, 1 / 40.0, -1.0, 1.0],
            [-0.0788189840, 1e7, -1.0, 1.0],
            [1e9 + 33.3, 1 / 40.0, -1.0, 1.0],
            [1.7e9 + 33.3, 1e3, -1.0, 1.0],
        ]
    )
    short, ratio, shift = _short_scalings(scaling)
    assert [np.float64(np.float32(center)) == center for center in short[:, 0]] == [True, True, False, False]
    assert (np.abs(shift) <= 2.0**-LEAST_CENTER_BITS).all()  # a row that misses the column is no further from its mean
    z = scaling[:, 0] + np.array([[-1.0], [0.0], [1.0]]) / scaling[:, 1]
    before, after = (z - scaling[:, 0]) * scaling[:, 1], (z - short[:, 0]) * short[:, 1]
    np.testing.assert_allclose(ratio * after + shift, before, atol=1e-5)  # z itself is rounded
    assert (after >= short[:, 2]).all()
    assert (after <= short[:, 3]).all()
