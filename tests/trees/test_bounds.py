"""Bounds of columns: mistyped cells lie beyond them, nothing of a clean column does."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from boostbp.trees.bounds import bounded, bounds_of
from boostbp.trees.sparse import Sparse

ROWS = 1000
seeds = st.integers(0, 10**6)


def of(z):
    return bounds_of(np.asarray(z, float), np.ones(len(z)))


def ends(z):
    return float(np.min(z)), float(np.max(z))


@given(seeds, st.integers(1, 10), st.integers(0, 10))
def test_cells_off_by_ten_and_zeros_for_missing_lie_beyond(seed, tenfold, zeros):
    rng = np.random.default_rng(seed)
    right, wrong = rng.uniform(5, 10, ROWS - tenfold - zeros), 10 * rng.uniform(5, 10, tenfold)
    assert of(rng.permutation(np.r_[right, wrong, np.zeros(zeros)])) == ends(right)


CLEAN = {
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
    "normal": lambda rng, n: 3 + rng.standard_normal(n),
    "few values": lambda rng, n: rng.integers(1, 8, n),
    "two groups": lambda rng, n: rng.standard_normal(n) + 100 * (rng.random(n) < 0.1),
    "mostly zero": lambda rng, n: rng.uniform(1, 2, n) * (rng.random(n) < 0.1),
    "counts": lambda rng, n: rng.poisson(3, n),
    "indicator": lambda rng, n: rng.random(n) < 0.2,
    "rare indicator": lambda rng, n: np.arange(n) < 2,
    "rare amounts": lambda rng, n: np.where(np.arange(n) < n // 100, 10.0 ** (np.arange(n) % 9), 0),
    "constant": lambda rng, n: np.full(n, 7.5),
    "missing": lambda rng, n: np.full(n, np.nan),
}


@pytest.mark.parametrize("kind", CLEAN)
@given(seeds, st.integers(1, 3000))
def test_clean_columns_come_back_as_they_are(kind, seed, rows):
    rng = np.random.default_rng(seed)
    X = np.array(CLEAN[kind](rng, rows), float)[:, None]
    for Z in (X, np.array(-X)):
        assert bounded(Z, np.array([0]), np.ones(rows)) is Z


@pytest.mark.parametrize("draw", ["lognormal", "exponential", "standard_cauchy"])
def test_of_long_tails_next_to_nothing_lies_beyond(draw):
    clipped = []
    for seed in range(200):
        z = getattr(np.random.default_rng(seed), draw)(size=ROWS)
        lower, upper = of(z)
        clipped.append(np.count_nonzero((z < lower) | (z > upper)))
    assert np.mean(clipped) < (4 if draw == "standard_cauchy" else 0.2), np.mean(clipped)
    assert max(clipped) <= ROWS // 50


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=400), seeds)
def test_no_more_than_a_hundredth_of_the_weight_lies_beyond_either_end(values, seed):
    z, weight = np.array(values, float) ** 5, np.random.default_rng(seed).integers(0, 4, len(values)).astype(float)
    lower, upper = bounds_of(z, weight)
    assert weight[z < lower].sum() * 100 <= weight.sum()
    assert weight[z > upper].sum() * 100 <= weight.sum()
    if weight.any():
        assert {lower, upper} <= set(z[weight > 0])


@given(seeds)
def test_weights_count_as_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    z, times = np.r_[rng.integers(5, 20, 300), 0, 0, 90, 150, np.nan].astype(float), rng.integers(0, 4, 305)
    assert bounds_of(z, times.astype(float)) == of(np.repeat(z, times))


@given(seeds, st.integers(-5, 5), st.integers(-1000, 1000))
def test_bounds_turn_and_stretch_with_the_column(seed, power, shift):
    rng = np.random.default_rng(seed)
    z = np.r_[rng.integers(40, 100, 400), rng.integers(0, 1000, 4)].astype(float)
    lower, upper = of(z)
    scale = 2.0**power
    assert of(scale * z + shift) == (scale * lower + shift, scale * upper + shift)
    assert of(-scale * z + shift) == (-scale * upper + shift, -scale * lower + shift)


def test_a_sparse_input_gets_the_bounds_of_the_dense_one():
    rng = np.random.default_rng(0)
    X = np.zeros((ROWS, 7))
    X[:, 0] = rng.uniform(4, 10, ROWS)
    X[::200, 0] = 0.0  # not held
    X[:, 1] = rng.integers(0, 3, ROWS)
    X[3, 1] = 70.0
    X[:2, 2] = 1.0, 50.0
    X[:, 3] = rng.uniform(1, 2, ROWS) * (rng.random(ROWS) < 0.1)
    X[7, 3] = -20.0
    X[::9, 4] = np.nan
    X[:, 5] = rng.uniform(4, 10, ROWS)
    X[5, 5] = 70.0
    columns, weight = np.array([0, 1, 2, 3, 4]), rng.integers(1, 3, ROWS).astype(float)
    before, expected = X.copy(), bounded(X, columns, weight)
    got = bounded(Sparse.of(sp.csr_array(X)), columns, weight)
    np.testing.assert_array_equal(got.toarray(), expected)
    np.testing.assert_array_equal(X, before)
    changed = (expected != X) & ~np.isnan(X)
    assert list(np.flatnonzero(changed.any(axis=0))) == [0, 1, 3]
    assert changed.sum() == 5 + 1 + 1
    held = Sparse.of(sp.csr_array(X))
    assert bounded(held, np.array([2, 4]), weight) is held


def test_columns_at_the_ends_of_float64_stay():
    largest = np.finfo(float).max
    z = np.linspace(-1, 1, ROWS) * largest
    assert of(z) == ends(z)
    assert of(np.r_[np.linspace(1, 2, ROWS), largest]) == (1.0, 2.0)
