"""Starts give hidden variables of the right size, and the same ones for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from boostbp.network.steps import STARTS, identity, noise, principal, projection, standardised, start_of, std
from boostbp.trees.sparse import Table

seeds = st.integers(0, 2**20)


def make(seed, rows=50):
    rng = np.random.default_rng(seed)
    h = rng.standard_normal((rows, 4)) * [1e-5, 1.0, 1e6, 3.0] + [0.0, 5.0, 1e7, 0.0]
    h[rng.random(h.shape) < 0.1] = np.nan
    return h, rng.uniform(0.1, 3.0, rows)


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("units", [1, 7])
def test_shape_and_seed(name, units):
    h, weight = make(0)
    first, again, other = (STARTS[name](h, weight, units, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first.shape == (50, units)
    assert first.dtype == np.float64
    np.testing.assert_array_equal(first, again)
    assert name in ("identity", "principal") or not np.isclose(first, other).any()  # what is copied is no draw


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("numbers", ["none", "constant"])
def test_categories_start_units_that_numbers_leave_constant(name, numbers):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, (200, 2)).astype(float)
    codes[::7, 1] = np.nan
    table = Table(codes if numbers == "none" else np.column_stack([codes, np.ones(200)]), (0, 1))
    h = start_of(STARTS[name], table, np.ones(200), 4, np.random.default_rng(1))
    assert (std(h, np.ones(200)) > 0.5).all()
    if name != "noise":  # rows of the same categories start alike
        same = (codes[:, 0] == 1) & (codes[:, 1] == 2)
        assert same.sum() > 1
        np.testing.assert_allclose(np.ptp(h[same], axis=0), 0.0, atol=1e-9)


def test_categories_do_not_touch_a_start_of_numbers():
    h, weight = make(0)
    table = Table(np.column_stack([h, np.arange(50.0) % 3]), (4,))
    got = start_of(projection, table, weight, 5, np.random.default_rng(1))
    np.testing.assert_array_equal(got, projection(h, weight, 5, np.random.default_rng(1)))


def test_noise_is_standard_normal_whatever_the_input():
    h, weight = make(0, rows=20_000)
    out = noise(h, weight, 3, np.random.default_rng(0))
    np.testing.assert_allclose(out.mean(0), 0.0, atol=5 / np.sqrt(20_000))
    np.testing.assert_allclose(np.cov(out.T), np.eye(3), atol=10 / np.sqrt(20_000))
    np.testing.assert_array_equal(out, noise(h * 0.0, weight, 3, np.random.default_rng(0)))


@given(seed=seeds)
def test_units_of_a_projection_have_mean_0_and_spread_1(seed):
    h, weight = make(seed)
    out = projection(h, weight, 5, np.random.default_rng(seed))
    np.testing.assert_allclose(np.average(out, axis=0, weights=weight), 0.0, atol=1e-10)
    np.testing.assert_allclose(std(out, weight), 1.0, rtol=1e-10)


@given(seed=seeds)
def test_projection_is_linear_in_the_standardised_input(seed):
    h, weight = make(seed)
    h = np.nan_to_num(h, nan=1.0)
    U = (h - np.average(h, axis=0, weights=weight)) / std(h, weight)
    out = projection(h, weight, 3, np.random.default_rng(seed))
    fitted = U @ np.linalg.lstsq(U, out, rcond=None)[0]
    np.testing.assert_allclose(out, fitted, atol=1e-8)


def test_projection_ignores_constant_and_missing_columns():
    h, weight = make(1)
    dead = h.copy()
    dead[:, 1], dead[:, 3] = 1e7 + 0.1, np.nan
    few = standardised(dead, weight)
    assert not few[:, [1, 3]].any()
    np.testing.assert_array_equal(few[:, [0, 2]], standardised(h, weight)[:, [0, 2]])
    out = projection(dead, weight, 4, np.random.default_rng(0))
    np.testing.assert_allclose(std(out, weight), 1.0, rtol=1e-10)


def test_missing_values_count_as_the_mean():
    h, weight = make(2)
    present = ~np.isnan(h)
    mean = [np.average(h[p, j], weights=weight[p]) for j, p in enumerate(present.T)]
    out, filled = standardised(h, weight), standardised(np.where(present, h, mean), weight)
    np.testing.assert_allclose(out, filled, atol=1e-8)
    assert not out[~present].any()


def test_projection_of_nothing_but_constants_is_zero():
    assert not projection(np.full((10, 3), 0.1), np.ones(10), 4, np.random.default_rng(0)).any()


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_units_of_the_input_do_not_matter(scale):
    h, weight = make(3)
    h = h / np.nanmax(np.abs(h), axis=0)
    expected = projection(h, weight, 4, np.random.default_rng(0))
    np.testing.assert_allclose(projection(h * scale, weight, 4, np.random.default_rng(0)), expected, atol=1e-8)


def test_weights_of_a_projection_are_repeated_rows():
    h, _ = make(4)
    times = np.random.default_rng(5).integers(0, 4, 50)
    weighted = projection(h, times.astype(float), 3, np.random.default_rng(0))
    repeated = projection(np.repeat(h, times, 0), np.ones(times.sum()), 3, np.random.default_rng(0))
    np.testing.assert_allclose(np.repeat(weighted, times, 0), repeated, atol=1e-9)


def test_identity_copies_the_first_columns_and_projects_for_the_rest():
    h, weight = make(3)
    out = identity(h, weight, 6, np.random.default_rng(0))
    np.testing.assert_allclose(out[:, :4], standardised(h, weight), atol=1e-9)
    np.testing.assert_allclose(std(out[:, 4:], weight), 1.0, rtol=1e-10)
    np.testing.assert_allclose(identity(h, weight, 2, np.random.default_rng(0)), out[:, :2], atol=1e-12)


@pytest.mark.parametrize("rows", [60, 400])
def test_principal_units_are_the_components_that_scikit_learn_finds(rows):
    rng = np.random.default_rng(0)
    h = rng.standard_normal((rows, 3)) @ rng.standard_normal((3, 12)) + 0.3 * rng.standard_normal((rows, 12))
    h *= np.logspace(-3, 3, 12)
    out = principal(h, np.ones(rows), 3, np.random.default_rng(1))
    U = (h - h.mean(0)) / h.std(0)
    scores = PCA(3, svd_solver="full").fit_transform(U)
    assert np.abs(np.corrcoef(out.T, scores.T)[:3, 3:]).diagonal() == pytest.approx(np.ones(3), abs=1e-6)
