"""Leaves that are not well conditioned, missing values and rows without weight behave as documented."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close, at, one_leaf, plain_leaf, plain_terms, unfitted, values
from known_leaves import fit_leaves

from boostbp.trees.leaves import coefficients
from boostbp.trees.ridge import Ridge


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_fewer_rows_than_terms_interpolate_without_penalty(rows, standardize):
    rng = np.random.default_rng(6)
    Z, y = rng.standard_normal((rows, 6)), rng.standard_normal((rows, 1))
    model = one_leaf(Z, y, Ridge(0.0, standardize=standardize), degree=2)
    assert_close(at(model, Z), y, 1e-8)
    assert np.count_nonzero(model.weight) <= 13
    assert np.isfinite(model.weight).all()


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_fewer_rows_than_terms_match_closed_form_with_penalty(rows, standardize):
    rng = np.random.default_rng(7)
    Z, y = rng.standard_normal((rows, 6)), rng.standard_normal((rows, 2))
    settings = Ridge(0.5, standardize=standardize)
    fresh = rng.standard_normal((20, 6))
    if rows == 1 and standardize:  # all columns are constant in the leaf, and left out
        expected = np.broadcast_to(y / 1.5, (20, 2))
    else:
        expected = plain_leaf(Z, y, np.ones(rows), settings, 2)(fresh)
    assert_close(at(one_leaf(Z, y, settings, degree=2), fresh), expected, 1e-9)


def test_leaf_without_rows_is_zero():
    paths = unfitted([0, 2, 4], [0, 1, 0, 1], degree=2, outputs=2)
    Z = np.random.default_rng(8).standard_normal((50, 2))
    for settings in (Ridge(), Ridge(0.0), Ridge(0.0, standardize=False)):
        model = fit_leaves(np.zeros(50, np.int32), paths, Z, -Z, np.ones(50), settings)
        assert not values(model, np.ones(50, np.int32), Z).any()
        assert np.abs(values(model, np.zeros(50, np.int32), Z)).max() > 0.1


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("constant", [0.0, 1.0, 1e7, -1e-5, 0.1])
def test_constant_column_has_no_weight(constant, degree):
    rng = np.random.default_rng(9)
    Z, y = rng.standard_normal((50, 2)), rng.standard_normal((50, 1))
    both = np.column_stack([Z[:, 0], np.full(50, constant), Z[:, 1]])
    for settings in (Ridge(0.5), Ridge(0.0), Ridge(0.5, penalize_constant=False)):
        model = one_leaf(both, y, settings, degree=degree)
        assert_close(at(model, both), at(one_leaf(Z, y, settings, degree=degree), Z), 1e-9)
        away = both + np.array([0.0, 5.0, 0.0])
        np.testing.assert_array_equal(at(model, away), at(model, both))
        assert not coefficients(model, 0)[[2, 5] if degree == 2 else [2]].any()


def test_constant_column_shares_the_constant_term_in_the_papers_units():
    rng = np.random.default_rng(10)
    Z = np.column_stack([rng.standard_normal(50), np.full(50, 2.0)])
    y = 1.0 + rng.standard_normal((50, 1))
    settings = Ridge(0.5, standardize=False)
    fresh = rng.uniform(-3, 3, (20, 2))
    model = one_leaf(Z, y, settings, degree=2)
    assert_close(at(model, fresh), plain_leaf(Z, y, np.ones(50), settings, 2)(fresh), 1e-9)
    assert coefficients(model, 0)[2, 0] != 0.0
    edge = values(model, np.zeros(20, np.int32), fresh, clip=True)  # clipped to the one value that the leaf saw
    held = np.column_stack([np.clip(fresh[:, 0], Z[:, 0].min(), Z[:, 0].max()), np.full(20, 2.0)])
    np.testing.assert_allclose(edge, at(model, held), rtol=1e-12)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("standardize", [True, False])
def test_collinear_columns_predict_as_least_squares_does(degree, standardize):
    rng = np.random.default_rng(11)
    A, y = rng.standard_normal((60, 2)), rng.standard_normal((60, 2))
    Z = np.column_stack([A, A[:, 0], 2.0 * A[:, 1] - 1.0])
    expected = plain_terms(A, degree) @ np.linalg.lstsq(plain_terms(A, degree), y, rcond=None)[0]
    model = one_leaf(Z, y, Ridge(0.0, standardize=standardize), degree=degree)
    assert_close(at(model, Z), expected, 1e-8)
    assert not coefficients(model, 0)[3].any(), "a repeated column has weight 0"


def test_repeated_columns_share_the_weight_with_penalty():
    rng = np.random.default_rng(12)
    z, y = rng.standard_normal(60), rng.standard_normal((60, 1))
    model = one_leaf(np.column_stack([z, z]), y, Ridge(0.5))
    first, second = coefficients(model, 0)[1:, 0]
    assert first == pytest.approx(second, rel=1e-9)
    expected = plain_leaf(np.column_stack([z, z]), y, np.ones(60), Ridge(0.5), 1)(np.column_stack([z, z]))
    assert_close(at(model, np.column_stack([z, z])), expected, 1e-9)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("reg_lambda", [0.0, 1e-9])
def test_large_offset_beside_a_small_column_predicts_as_on_centred_data(degree, reg_lambda):
    rng = np.random.default_rng(13)
    u = rng.standard_normal((200, 2))
    Z = np.column_stack([1e7 + 0.5 * u[:, 0], 1e-3 * u[:, 1]])
    y = 2.0 * u[:, 0] - 3.0 * u[:, 1] + 0.1 * rng.standard_normal(200)
    centred = Z - [1e7, 0.0]  # exact: the offset is a whole number
    Phi = plain_terms(centred * [2.0, 1e3], degree)
    expected = Phi @ np.linalg.lstsq(Phi, y[:, None], rcond=None)[0]
    model = one_leaf(Z, y, Ridge(reg_lambda), degree=degree)
    assert_close(at(model, Z), expected, 1e-8)
    if degree == 1:
        slopes = np.linalg.lstsq(Phi, y, rcond=None)[0][1:] * [2.0, 1e3]
        np.testing.assert_allclose(coefficients(model, 0)[1:, 0], slopes, rtol=1e-6)
        in_users_units = plain_terms(Z, 1) @ coefficients(model, 0)
        assert_close(in_users_units, expected, 1e-6)


@pytest.mark.parametrize("scale", [1e300, 1e150, 1e-150, 1e-300])
@pytest.mark.parametrize("degree", [1, 2])
def test_scale_of_a_column_does_not_matter(scale, degree):
    rng = np.random.default_rng(14)
    Z, y = rng.standard_normal((60, 2)), rng.standard_normal((60, 1))
    expected = at(one_leaf(Z, y, Ridge(0.3), degree=degree), Z)
    stretched = Z * [scale, 1.0]
    model = one_leaf(stretched, y, Ridge(0.3), degree=degree)
    assert_close(at(model, stretched), expected, 1e-9)
    slopes = coefficients(one_leaf(Z, y, Ridge(0.3), degree=1), 0)[1:]
    np.testing.assert_allclose(
        coefficients(one_leaf(stretched, y, Ridge(0.3)), 0)[1:] * [[scale], [1.0]], slopes, rtol=1e-9
    )


@pytest.mark.parametrize("scale", [1e308, 1e300, 1e200, 1e-200, 1e-300, 1e-310])
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("reg_lambda", [0.0, 1.0])
def test_extreme_columns_leave_a_finite_fit_that_is_no_worse_than_without_them(scale, degree, standardize, reg_lambda):
    rng = np.random.default_rng(15)
    Z = rng.uniform(-1.0, 1.0, (60, 2))
    y = Z[:, :1] + Z[:, 1:] + 0.1 * rng.standard_normal((60, 1))
    extreme = Z * [scale, 1.0]
    settings = Ridge(reg_lambda, standardize=standardize)
    got = at(one_leaf(extreme, y, settings, degree=degree), extreme)
    assert np.isfinite(got).all()
    alone = at(one_leaf(Z[:, 1:], y, settings, degree=degree), Z[:, 1:])
    assert np.square(got - y).sum() <= np.square(alone - y).sum() * (1 + 1e-9)


def test_range_beyond_float64_leaves_the_column_out():
    rng = np.random.default_rng(16)
    Z, y, h = rng.standard_normal((60, 2)), rng.standard_normal((60, 1)), np.full(60, 1e-3)
    wide = np.column_stack([np.where(np.arange(60) < 50, -1.7e308, 1.7e308), Z[:, 1]])
    for standardize in (True, False):
        settings = Ridge(1e-4, standardize=standardize)
        expected = at(one_leaf(Z[:, 1:], y, settings, h=h), Z[:, 1:])
        assert_close(at(one_leaf(wide, y, settings, h=h), wide), expected, 1e-9)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("degree", [1, 2])
def test_missing_value_counts_as_the_weighted_mean_of_the_leaf(standardize, degree):
    rng = np.random.default_rng(17)
    Z, y, h = rng.uniform(1, 4, (80, 2)), rng.standard_normal((80, 1)), rng.uniform(0.5, 2, 80)
    Z[rng.random(Z.shape) < 0.2] = np.nan
    mean = [np.average(z[~np.isnan(z)], weights=h[~np.isnan(z)]) for z in Z.T]
    filled = np.where(np.isnan(Z), mean, Z)
    settings = Ridge(0.5, standardize=standardize)
    holes, full = (one_leaf(A, y, settings, h=h, degree=degree) for A in (Z, filled))
    assert_close(at(holes, Z), at(full, filled), 1e-10)
    fresh = np.array([[np.nan, 2.0], [3.0, np.nan], [np.nan, np.nan]])
    assert_close(at(holes, fresh), at(full, np.where(np.isnan(fresh), mean, fresh)), 1e-10)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("reg_lambda", [0.0, 0.5])
def test_column_that_is_always_missing_has_no_weight(standardize, reg_lambda):
    rng = np.random.default_rng(18)
    Z, y = rng.standard_normal((50, 1)), rng.standard_normal((50, 1))
    settings = Ridge(reg_lambda, standardize=standardize)
    model = one_leaf(np.column_stack([Z, np.full(50, np.nan)]), y, settings, degree=2)
    fresh = np.column_stack([Z, rng.standard_normal(50)])
    assert_close(at(model, fresh), at(one_leaf(Z, y, settings, degree=2), Z), 1e-10)


@pytest.mark.parametrize("standardize", [True, False])
def test_rows_without_weight_do_not_matter(standardize):
    rng = np.random.default_rng(19)
    Z, y, h = rng.uniform(-1, 1, (80, 2)), rng.standard_normal((80, 1)), rng.uniform(0.5, 2, 80)
    Z[:2] = [[-1.0, -1.0], [1.0, 1.0]]  # the range of the column is that of all rows, weighted or not
    h[40:] = 0.0
    y[40:] = 1e6
    settings = Ridge(0.0, standardize=standardize)
    assert_close(at(one_leaf(Z, y, settings, h=h), Z), at(one_leaf(Z[:40], y[:40], settings, h=h[:40]), Z), 1e-9)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("reg_lambda", [0.0, 0.5])
def test_leaf_without_weight_is_zero(standardize, reg_lambda):
    Z = np.random.default_rng(20).standard_normal((20, 2))
    model = one_leaf(Z, np.ones((20, 1)), Ridge(reg_lambda, standardize=standardize), h=np.zeros(20), degree=2)
    assert not at(model, Z).any()
