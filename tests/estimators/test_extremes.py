"""Extreme data: a model that does not depend on units, or an error that names the argument."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import WITH_CATEGORIES
from scipy.sparse import csr_array
from sklearn.utils.multiclass import check_classification_targets

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, fit_layer

SMALL = {"hidden_layer_sizes": (2,), "n_estimators": 3, "max_depth": 2, "epochs": 2, "random_state": 0}
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
LARGEST = np.finfo(np.float64).max


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
@pytest.mark.parametrize("power", [-320, 320])
def test_units_of_the_target_do_not_matter(backend, power):
    held = [(X[40:], np.ldexp(Y[40:], power))]
    model = BoostBPRegressor(**parameters(**SMALL, backend=backend))
    scaled = model.fit(X[:40], np.ldexp(Y[:40], power), eval_set=held).predict(X)
    usual = model.fit(X[:40], Y[:40], eval_set=[(X[40:], Y[40:])]).predict(X)
    np.testing.assert_array_equal(scaled, np.ldexp(usual, power))


@pytest.mark.parametrize("value", [0.0, 1e99, -3.7, 1e-99])
def test_constant_target_is_predicted(value):
    predicted = BoostBPRegressor(**parameters(**SMALL)).fit(X, np.full(60, value)).predict(X)
    np.testing.assert_allclose(predicted, value, rtol=1e-12)


def test_noise_far_from_zero_is_learned():
    model = BoostBPRegressor(**parameters(**SMALL)).fit(X, Y + 1e13)
    assert np.corrcoef(model.predict(X) - 1e13, Y)[0, 1] > 0.9


@pytest.mark.parametrize("size", [1e-101, 1e101, LARGEST])
def test_targets_whose_squares_float64_does_not_hold(size):
    with pytest.raises(ValueError, match=r"y holds numbers of size .* rescale them"):
        BoostBPRegressor(**parameters(**SMALL)).fit(X, np.column_stack([Y, size * np.sign(Y)]))
    with pytest.raises(ValueError, match=r"targets holds numbers of size .* rescale them"):
        fit_layer(X, size * np.sign(Y))
    with pytest.raises(ValueError, match=r"X holds numbers of size .* rescale them"):
        BoostBPAutoencoder(**parameters(**SMALL)).fit(np.column_stack([X, size * np.sign(Y)]))


def test_auto_encoder_refuses_the_ends_of_float64_at_fit_only():
    model = BoostBPAutoencoder(**parameters(**SMALL)).fit(X)
    assert np.isfinite(model.predict([[LARGEST, -LARGEST, -LARGEST]])).all()


@pytest.mark.parametrize("made", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_column_at_the_end_of_float64_has_its_mean_there(made):
    weight = np.random.default_rng(5).uniform(size=60)
    with np.errstate(over="ignore"):
        assert np.isinf(weight / weight.sum() @ np.full(60, LARGEST))  # the shares sum to more than 1
    H = made(np.column_stack([X, np.full(60, LARGEST)]))
    model = BoostBPRegressor(**parameters(**SMALL, early_stopping=False)).fit(H, Y, sample_weight=weight)
    assert model.feature_summary_.center[-1] == LARGEST
    assert np.isfinite(model.feature_importances_).all()


@pytest.mark.parametrize("weight", [1e-300, 1e-31, 1e31, 1e300])
def test_weights_that_float32_does_not_hold(weight):
    with pytest.raises(ValueError, match=r"sample_weight has the largest value .* divide them by"):
        BoostBPRegressor(**parameters(**SMALL)).fit(X, Y, sample_weight=np.full(60, weight))


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_rows_of_hardly_any_weight_are_hardly_there(backend):
    wrong = np.concatenate([Y, -5 * Y])
    weight = np.repeat([1.0, 1e-300], 60)
    model = BoostBPRegressor(**parameters(**SMALL, backend=backend, min_samples_leaf=1))
    model.fit(np.concatenate([X, X]), wrong, sample_weight=weight)
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_hessians_below_float32_grow_trees(backend):
    """XGBoost does not parse a least weight of a leaf that float32 holds as subnormal."""
    layer = fit_layer(
        X, Y, {"n_estimators": 2, "base": "ridge"}, backend=backend, sample_weight=np.repeat([1e-29, 1e-300], [1, 59])
    )
    assert np.isfinite(layer.predict(X)).all()


def test_columns_at_the_ends_of_float64_are_standardised():
    wide = np.where(X > 0, LARGEST, -LARGEST)
    model = BoostBPRegressor(**parameters(**SMALL)).fit(wide, Y)
    assert np.isfinite(model.predict(wide)).all()
    assert model.score(wide, Y) > 0.3


def test_slopes_beyond_float64_are_infinite():
    model = BoostBPRegressor(**parameters(**SMALL)).fit(X * 1e-300, Y * 1e20)
    slopes = model.jacobian(X * 1e-300)
    assert np.isinf(slopes).any()
    assert not np.isnan(slopes).any()


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_slopes_beyond_float64_that_nothing_depends_on_are_zero(backend):
    """The units move by more than float64 holds in a tiny feature, and the output does not look at them."""
    x = np.array([[-1.2, -4.3e-301], [2.4, -3.8e-301]])
    model = BoostBPRegressor((2,), **parameters(backend=backend, n_estimators=3, epochs=1, deep=True, random_state=0))
    model.fit(x, [-2.5, -2.5], sample_weight=[4e-20, 5e-5])
    assert np.isinf(model.network_.layers[0].jacobian(x)).any()
    np.testing.assert_array_equal(model.jacobian(x), 0.0)


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
@pytest.mark.parametrize("code", [-1.0, 0.5, 2.0**24, 1e300])
def test_codes_of_categories(backend, code):
    codes = np.where(X[:, 0] > 0, code, np.nan)
    with pytest.raises(ValueError, match=r"categorical=\(1,\): column 1 of H holds .* Number its categories 0, 1, 2"):
        fit_layer(np.column_stack([X[:, 0], codes]), Y, categorical=(1,), backend=backend)
    with pytest.raises(ValueError, match=r"categorical=\(3,\): H has the columns 0 to 2"):
        fit_layer(X, Y, categorical=(3,), backend=backend)


@pytest.mark.parametrize(("rows", "share"), [(1, 0.1), (5, 0.9)])
def test_rows_that_cannot_be_held_out(rows, share):
    with pytest.raises(ValueError, match=rf"validation={share} of {rows} rows leaves none"):
        BoostBPRegressor(**parameters(**SMALL, early_stopping=True, validation=share)).fit(X[:rows], Y[:rows])


def test_labels_that_look_like_a_regression_warn_no_more_often_than_scikit_learn_does():
    with warnings.catch_warnings(record=True) as theirs:
        warnings.simplefilter("always")
        check_classification_targets(np.arange(60))
    with warnings.catch_warnings(record=True) as ours:
        warnings.simplefilter("always")
        BoostBPClassifier(quality=1, n_estimators=3, random_state=0).fit(X, np.arange(60))
    assert len(ours) == len(theirs) <= 1


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
@pytest.mark.parametrize("width", [1e-323, 1e-310, 1e-308])
def test_widths_whose_inverse_float64_does_not_hold_are_no_scales_of_classes(backend, width):
    """Trees of several classes share one scale of a column, which was infinite here."""
    y = np.array(list("abcabc") * 10)
    tiny = np.ldexp(np.round(X[:, :1] * 5), -1074) if width < 1e-320 else X[:, :1] * width
    settings = parameters(**SMALL, hidden={"standardize": False}, output={"standardize": False}, backend=backend)
    model = BoostBPClassifier(**settings).fit(tiny, y, eval_set=[(tiny, y)])
    p = model.predict_proba(np.vstack([tiny, [[0.0], [1e300], [-1e300]]]))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9)
    assert (p >= 0).all()
