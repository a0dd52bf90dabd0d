"""Intervals and sets of classes: their coverage, rows that no fit sees, weights, files, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers import few_rounds
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import norm

import boostbp
from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.estimators.arguments import Arguments
from boostbp.estimators.conformal import calibration_rows
from boostbp.estimators.request import Request
from boostbp.losses import Tweedie
from boostbp.model.model import Calibration
from boostbp.trees.sparse import Table

SMALL = {"deep": True, "epochs": 2, "n_estimators": 10, "random_state": 0}
KINDS = {
    "network": SMALL,
    "average": {"epochs": 2, "random_state": 0},
    "single layer": SMALL | {"hidden_layer_sizes": ()},
}


def noisy(rows, seed=0):
    """Rows, and a target whose deviation grows with the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 3))
    return X, 50 + 10 * X[:, 1] + 5 * (1.5 + X[:, 0]) * rng.standard_normal(rows)


def mixed_classes(rows, seed=0, labels=("a", "b", "c")):
    """Rows and labels that overlap."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    score = 2 * X[:, : len(labels)] + rng.gumbel(size=(rows, len(labels)))
    return X, np.array(labels)[score.argmax(axis=1)]


def classifier(**changes):
    return BoostBPClassifier(**(SMALL | changes))


def regressor(**changes):
    return BoostBPRegressor(**(SMALL | changes))


def quantiles(**changes):
    return regressor(loss="quantile", alpha=[0.1, 0.5, 0.9], **changes)


def covered(model, X, y, coverage):
    """Whether each target lies in its interval or set."""
    if hasattr(model, "classes_"):
        return model.predict_set(X, coverage)[y[:, None] == model.classes_]
    low, high = model.predict_interval(X, coverage).T
    return (low <= y) & (y <= high)


# ---------------------------------------------------------------------------- the bound


@given(st.integers(1, 60), st.floats(0.01, 0.99), st.integers(0, 2**31))
def test_the_bound_is_the_score_of_the_finite_sample_rank(n_rows, coverage, seed):
    scores = np.random.default_rng(seed).normal(size=n_rows)
    calibration = Calibration(scores[:, None], np.ones(n_rows))
    rank = int(np.ceil(coverage * (n_rows + 1) - 1e-9))
    if rank > n_rows:
        with pytest.raises(ValueError, match=rf"coverage=.* rows of calibration, and there are {n_rows}: ask for"):
            calibration.bound(scores, coverage)
    else:
        assert calibration.bound(scores, coverage) == np.sort(scores)[rank - 1]


@pytest.mark.parametrize(("n_rows", "coverage"), [(9, 0.9), (19, 0.95), (99, 0.99), (4, 0.8)])
def test_so_many_rows_do_and_one_less_does_not(n_rows, coverage):
    scores = np.arange(float(n_rows))
    assert Calibration(scores[:, None], np.ones(n_rows)).bound(scores, coverage) == n_rows - 1
    fewer = Calibration(scores[1:, None], np.ones(n_rows - 1))
    with pytest.raises(ValueError, match=rf"needs {n_rows} rows of calibration, and there are {n_rows - 1}"):
        fewer.bound(scores[1:], coverage)


@given(st.lists(st.integers(1, 4), min_size=2, max_size=30), st.floats(0.05, 0.95), st.integers(0, 2**31))
def test_weights_are_shares_and_count_as_their_effective_number_of_rows(weights, coverage, seed):
    weight = np.array(weights, float)
    scores = np.random.default_rng(seed).normal(size=len(weight))
    effective = weight.sum() ** 2 / np.square(weight).sum()
    share = coverage * (effective + 1) / effective
    for unit in (1.0, 50.0, 1e-30, 1e30):
        calibration = Calibration(scores[:, None], unit * weight)
        if share > 1 + 1e-9:
            with pytest.raises(ValueError, match=r"rows of calibration, and there are"):
                calibration.bound(scores, coverage)
        elif abs(share - 1) > 1e-9:
            below = [s for s in np.sort(scores) if weight[scores <= s].sum() >= share * weight.sum() * (1 - 1e-9)]
            assert calibration.bound(scores, coverage) == below[0]


def test_weights_make_no_rows():
    """20 rows of weight 50 are 20, and half of them with a weight of 1,000 are little more than 10."""
    scores = np.arange(20.0)
    with pytest.raises(ValueError, match=r"needs 99 rows of calibration, and there are 20: ask for 0\.952 at most"):
        Calibration(scores[:, None], np.full(20, 50.0)).bound(scores, 0.99)
    unequal = Calibration(scores[:, None], np.repeat([1.0, 1000.0], 10))
    with pytest.raises(ValueError, match=r"there are 10\.02 by their weights, of 20: ask for 0\.909 at most"):
        unequal.bound(scores, 0.95)
    X, y = noisy(300)
    model = regressor(hidden_layer_sizes=()).fit(X[:280], y[:280])
    by_exposure = model.calibrate(X[280:], y[280:], np.full(20, 50.0)).predict_interval(X, 0.9)
    np.testing.assert_array_equal(by_exposure, model.calibrate(X[280:], y[280:]).predict_interval(X, 0.9))
    with pytest.raises(ValueError, match="needs 99 rows of calibration, and there are 20"):
        model.calibrate(X[280:], y[280:], np.full(20, 50.0)).predict_interval(X, 0.99)


WEIGHTS = {
    "alike": lambda x: np.full_like(x, 50.0),
    "exposures": lambda x: 0.1 + 2.9 * x,
    "inverse probabilities": lambda x: 1.0 / (0.05 + 0.95 * x),
}


@pytest.mark.parametrize("n_rows", [30, 120])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_coverage_of_rows_drawn_by_their_weights_is_what_was_asked_for(kind, n_rows):
    """Scores grow with x, and rows to come are drawn in proportion to the weights: exact by quadrature over x."""
    rng, weight_of, coverage, shares = np.random.default_rng(0), WEIGHTS[kind], 0.85, []
    grid = (np.arange(400) + 0.5) / 400
    for _ in range(1000):
        x = rng.uniform(size=n_rows)
        scores = np.abs(rng.normal(size=n_rows)) * (1 + 2 * x)
        bound = Calibration(scores[:, None], weight_of(x)).bound(scores, coverage)
        shares.append(np.average(2 * norm.cdf(bound / (1 + 2 * grid)) - 1, weights=weight_of(grid)))
    error = np.std(shares) / np.sqrt(len(shares))
    assert coverage - 4 * error <= np.mean(shares) <= coverage + 4 * error + 2 / n_rows, f"{np.mean(shares)}"


# ---------------------------------------------------------------------------- coverage


@pytest.mark.parametrize(
    ("make", "data"),
    [(regressor, noisy), (quantiles, noisy), (classifier, mixed_classes)],
    ids=["residuals", "quantiles", "sets"],
)
def test_coverage_over_draws_of_the_calibration_is_what_was_asked_for(make, data):
    # for a fixed model the mean over draws is k / (n + 1), k = ceil((n + 1) coverage), whatever the model
    model, draws, n_rows = make(hidden_layer_sizes=()).fit(*data(300)), 400, 19
    rows, target = data(draws * (n_rows + 25), seed=1)
    shares = {0.6: [], 0.8: [], 0.9: []}
    for X, y in zip(np.split(rows, draws), np.split(target, draws), strict=True):
        model.calibrate(X[:n_rows], y[:n_rows])
        for coverage, found in shares.items():
            found.append(covered(model, X[n_rows:], y[n_rows:], coverage).mean())
    for coverage, found in shares.items():
        expected = np.ceil((n_rows + 1) * coverage - 1e-9) / (n_rows + 1)
        error = np.std(found) / np.sqrt(draws)
        assert abs(np.mean(found) - expected) < 4 * error + 1e-9, f"{np.mean(found)} for {expected}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("make", "data"),
    [(regressor, noisy), (quantiles, noisy), (classifier, mixed_classes)],
    ids=["residuals", "quantiles", "sets"],
)
def test_rows_that_a_fit_keeps_out_give_the_coverage(make, data, kind):
    with few_rounds():
        model = make(calibration=0.3, **KINDS[kind]).fit(*data(1500))
    assert len(model.model_.calibration.weight) == 450
    X, y = data(4000, seed=1)
    for coverage in (0.8, 0.95):
        share = covered(model, X, y, coverage).mean()
        # of one calibration: Beta(k, n + 1 - k), beside the binomial error of the test rows
        error = np.sqrt(coverage * (1 - coverage) * (1 / 450 + 1 / 4000))
        assert abs(share - coverage) < 4 * error, f"{share} for {coverage}"


@pytest.mark.slow
def test_quantiles_are_wide_where_the_target_is_uncertain():
    X, y = noisy(2000)
    uncertain, certain = X[:, 0] > 0.5, X[:, 0] < -0.5
    model = quantiles(calibration=0.3, n_estimators=50).fit(X, y)
    width = np.diff(model.predict_interval(X, 0.8))[:, 0]
    assert width[uncertain].mean() > 1.5 * width[certain].mean()
    constant = np.diff(regressor(calibration=0.3).fit(X, y).predict_interval(X, 0.8))[:, 0]
    np.testing.assert_allclose(constant, constant[0], rtol=1e-9)


def test_any_coverage_is_read_from_the_levels_next_to_it():
    X, y = noisy(1500)
    model = quantiles(calibration=0.4).fit(X[:1000], y[:1000])
    for coverage in (0.1, 0.5, 0.9, 0.97):
        intervals = model.predict_interval(X[1000:], coverage)
        assert (intervals[:, 0] <= intervals[:, 1]).all()
        assert abs(covered(model, X[1000:], y[1000:], coverage).mean() - coverage) < 0.1
    prediction = model.predict(X)
    shift = model.predict_interval(X, 0.8) - prediction[:, [0, 2]]
    np.testing.assert_allclose(shift, [[shift[0, 0], -shift[0, 0]]] * len(X), atol=1e-9)


def test_quantiles_that_are_moved_past_each_other_meet():
    X, y = noisy(400)
    model = quantiles().fit(X, y)
    inside = model.predict(X)[:, [0, 2]].mean(axis=1)  # as if there were no noise
    intervals = model.calibrate(X, inside).predict_interval(X, 0.5)
    assert (intervals[:, 0] <= intervals[:, 1]).all()
    assert (intervals[:, 0] == intervals[:, 1]).any()


@pytest.mark.parametrize(("loss", "power"), [("poisson", 0.5), ("gamma", 1.0), (Tweedie(1.6), 0.8)], ids=str)
def test_intervals_of_amounts_grow_with_the_prediction_and_stay_above_zero(loss, power):
    X, _ = noisy(600)
    y = np.random.default_rng(0).poisson(np.exp(1 + 2 * X[:, 1])) + (1.0 if loss == "gamma" else 0.0)
    model = regressor(loss=loss, calibration=0.3).fit(X, y)
    prediction, (low, high) = model.predict(X), model.predict_interval(X, 0.9).T
    assert low.min() >= 0.0
    above = (high - prediction) / prediction**power
    np.testing.assert_allclose(above, above[0], rtol=1e-9)
    np.testing.assert_allclose(prediction - low, np.minimum(high - prediction, prediction), rtol=1e-6, atol=1e-9)


# ---------------------------------------------------------------------------- kept out


@pytest.mark.parametrize(("kind", "quality"), [("network", 3), ("single layer", 3), ("average", 3), ("average", 5)])
def test_nothing_of_the_fit_depends_on_rows_that_are_kept_out(kind, quality):
    X, y = noisy(400)
    with few_rounds():
        model = regressor(calibration=0.25, quality=quality, **KINDS[kind]).fit(X, y)
        rows = calibration_rows(Request.of(model), Table(X), np.ones(400), None)
        assert len(rows) == 100
        other_X, other_y = X.copy(), y.copy()
        other_X[rows], other_y[rows] = other_X[rows][:, ::-1] * 3, 1e4 + rows
        other = regressor(calibration=0.25, quality=quality, **KINDS[kind]).fit(other_X, other_y)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    np.testing.assert_array_equal(model.model_.calibration.scores[:, 0], y[rows] - model.predict(X[rows]))
    np.testing.assert_array_equal(other.model_.calibration.scores[:, 0], other_y[rows] - model.predict(other_X[rows]))


def test_classes_are_kept_out_in_proportion():
    X, y = mixed_classes(900, labels=("a", "b"))
    X, y = np.vstack([X, X[:3] + 9.0]), np.append(y, ["rare"] * 3)
    model = classifier(calibration=0.3)
    rows = calibration_rows(Request.of(model), Table(X), np.ones(903), y)
    assert set(y) == set(np.delete(y, rows))
    assert abs((y[rows] == "a").mean() - (y == "a").mean()) < 0.01


def test_rows_of_a_group_are_kept_out_together():
    X, y = noisy(300)
    groups = np.arange(300) // 5
    model = regressor(calibration=0.3).fit(X, y, groups=groups)
    rows = calibration_rows(Request.of(model, Arguments(groups=groups)), Table(X), np.ones(300), None)
    assert (np.bincount(groups[rows], minlength=60) % 5 == 0).all()
    assert len(model.model_.calibration.weight) == len(rows) == 90


def test_sets_do_not_depend_on_class_weights_of_the_calibration():
    X, y = mixed_classes(600, labels=("a", "b"))
    model = classifier(calibration=0.3, class_weight={"a": 1.0, "b": 7.0}).fit(X, y)
    np.testing.assert_array_equal(model.model_.calibration.weight, np.ones(180))


@pytest.mark.parametrize("kind", ["frame", "sparse", "missing"])
def test_containers(kind):
    X, y = noisy(500)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = 0.0 if kind == "sparse" else np.nan
    if kind == "frame":
        X = pd.DataFrame(X, columns=list("abc")).assign(d=pd.Categorical(np.where(y > 50, "high", "low")))
    elif kind == "sparse":
        X = sparse.csr_array(X)
    model = regressor(calibration=0.3).fit(X, y)
    assert 0.8 < covered(model, X, y, 0.9).mean() < 0.98
    by_hand = regressor().fit(X, y).calibrate(X, y, sample_weight=np.arange(500) % 2)
    assert len(by_hand.model_.calibration.weight) == 250


def test_several_targets_have_an_interval_each():
    X, y = noisy(600)
    Y = np.column_stack([y, -100 * y])
    model = regressor(calibration=0.4).fit(X, Y)
    intervals = model.predict_interval(X, 0.9)
    assert intervals.shape == (600, 2, 2)
    inside = (intervals[:, :, 0] <= Y) & (intervals[:, :, 1] >= Y)
    assert (np.abs(inside.mean(axis=0) - 0.9) < 0.05).all()
    model.calibrate(X, Y)
    with pytest.raises(ValueError, match="y has 1 outputs, the model 2"):
        model.calibrate(X, y)


# ---------------------------------------------------------------------------- files, other fits


@pytest.mark.parametrize(("make", "data"), [(regressor, noisy), (quantiles, noisy), (classifier, mixed_classes)])
def test_files_keep_the_calibration(make, data, tmp_path):
    X, y = data(200)
    model = make(calibration=0.3).fit(X, y)
    boostbp.save(model, tmp_path / "model")
    method = "predict_set" if make is classifier else "predict_interval"
    expected = getattr(model, method)(X, 0.7)
    for again in (boostbp.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(getattr(again, method)(X, 0.7), expected)


def test_a_calibration_belongs_to_its_fit():
    X, y = noisy(200)
    model = regressor(calibration=0.3)
    model.fit(X, y, keep_state=True).predict_interval(X)
    model.fit_more(1)
    with pytest.raises(ValueError, match=r"the last fit reserved no rows.*fit_more reserves none"):
        model.predict_interval(X)
    model.calibrate(X, y).predict_interval(X)
    model.set_params(calibration=None).fit(X, y)
    with pytest.raises(ValueError, match="the last fit reserved no rows"):
        model.predict_interval(X)


def test_a_fit_that_fails_keeps_the_calibration():
    X, y = noisy(200)
    model = regressor(calibration=0.3).fit(X, y)
    expected = model.predict_interval(X)
    with pytest.raises(ValueError, match="y"):
        model.fit(X, np.where(y > 50, np.nan, y))
    np.testing.assert_array_equal(model.predict_interval(X), expected)


@pytest.mark.parametrize("calibration", [0.0, 0.5, 1, -0.1, True, "0.2", np.nan])
def test_a_share_out_of_bounds_is_refused(calibration):
    with pytest.raises(ValueError, match=r"calibration=.* is not allowed: give a number above 0, and below 0.5"):
        regressor(calibration=calibration).fit(*noisy(50))


def test_a_coverage_out_of_bounds_is_refused():
    X, y = noisy(60)
    model = regressor(calibration=0.3).fit(X, y)
    for coverage in (0, 1, 90, "0.9", None, np.nan):
        with pytest.raises(ValueError, match=r"coverage=.* is not allowed: give a number above 0, and below 1"):
            model.predict_interval(X, coverage)


def test_a_table_without_a_row_to_spare_is_refused():
    with pytest.raises(ValueError, match=r"calibration=0.3 reserves no row"):
        regressor(calibration=0.3).fit(np.ones((1, 2)), [1.0])


def test_classes_that_the_model_does_not_know_are_refused():
    X, y = mixed_classes(200)
    with pytest.raises(ValueError, match=r"y has classes that it did not have at fit: \['d'\]"):
        classifier().fit(X, y).calibrate(X, np.where(y == "a", "d", y))


@pytest.mark.parametrize(("make", "data"), [(regressor, noisy), (quantiles, noisy), (classifier, mixed_classes)])
def test_offsets_of_rows_that_are_kept_out_count(make, data):
    X, y = data(300)
    offset = np.random.default_rng(1).normal(size=(300, 3) if make is classifier else 300)
    model = make(calibration=0.3).fit(X, y, offset=offset)
    rows = calibration_rows(Request.of(model), Table(X), np.ones(300), y if make is classifier else None)
    scores = model.model_.calibration.scores
    model.calibrate(X[rows], y[rows], offset=offset[rows])
    np.testing.assert_allclose(model.model_.calibration.scores, scores, rtol=0, atol=1e-12)
    method = "predict_set" if make is classifier else "predict_interval"
    assert (getattr(model, method)(X, 0.8, offset=offset) != getattr(model, method)(X, 0.8, offset=0)).any()


@pytest.mark.slow
def test_several_quantiles_go_on_from_a_model_and_take_one_offset():
    X, y = noisy(300)
    first = quantiles().fit(X, y)
    model = quantiles(deep="auto").fit(X, y, init_model=first)
    assert model.predict(X).shape == (300, 3)
    moved = quantiles(deep="auto").fit(X, y + X[:, 0], offset=X[:, 0])
    assert moved.predict(X, offset=X[:, 0]).shape == (300, 3)
    plain = quantiles(deep="auto").fit(X, y).predict(X) + X[:, [0]]
    assert np.corrcoef(moved.predict(X, offset=X[:, 0])[:, 1], plain[:, 1])[0, 1] > 0.95
