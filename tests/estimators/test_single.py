"""Estimators without a hidden layer: a single layer of boosted trees."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import layer_of, parameters
from helpers import BACKENDS, assert_close, interrupted_fit, needs_torch
from sklearn.datasets import load_diabetes, load_iris

from benchmarks.mixtures import GBDTNNRegressor
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, load, save
from boostbp.ensemble import refits
from boostbp.ensemble.problem import Problem
from boostbp.network.history import REFITTED, Stop
from boostbp.network.layers.layer import rounds_of
from boostbp.trees.basis import Polynomial

X, Y = load_diabetes(return_X_y=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_regressor_is_one_layer_fitted_to_the_target(backend):
    shape = {
        "n_estimators": 12,
        "max_depth": 3,
        "backend": backend,
        "random_state": 0,
        "base": "ridge",
        "extra_trees": False,
    }
    model = BoostBPRegressor((), **parameters(early_stopping=False, reg_lambda=1.0, **shape)).fit(X, Y)
    layer = layer_of(X, (Y - Y.mean()) / Y.std(), **shape)
    assert_close(model.predict(X), layer.predict(X)[:, 0] * Y.std() + Y.mean(), 1e-6)
    assert model.n_iter_ == 0


@pytest.mark.parametrize("basis", ["quadratic", Polynomial(0), Polynomial(1)])
def test_classifier_keeps_the_rounds_that_validation_likes_and_can_be_stored(tmp_path, basis):
    flowers, y = load_iris(return_X_y=True)
    model = BoostBPClassifier(
        (), **parameters(n_estimators=200, learning_rate=0.5, max_depth=3, basis=basis, random_state=0)
    )
    model.fit(flowers[::2], y[::2], eval_set=[(flowers[1::2], y[1::2])])
    assert model.network_.layers[0].forest.n_trees < 1 + 3 * 200
    save(model, tmp_path / "single.boostbp")
    np.testing.assert_array_equal(
        load(tmp_path / "single.boostbp").predict_proba(flowers), model.predict_proba(flowers)
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_that_were_held_out_are_learnt_from_in_the_end(backend, before_refit):
    """By as many rounds as they chose, and in the units of the rows that were learnt from before."""
    how = {"n_estimators": 40, "backend": backend, "random_state": 0}
    model = BoostBPRegressor((), **parameters(**how)).fit(X, Y)
    before = before_refit(BoostBPRegressor((), **parameters(**how)), X, Y)
    forest, chosen = (one.network_.layers[0].forest for one in (model, before))
    rounds = rounds_of(chosen)
    assert rounds_of(forest) == rounds < 40
    assert model.history_.scores == before.history_.scores
    assert [REFITTED in one.summary() for one in (model, before)] == [True, False]
    alone = BoostBPRegressor((), **parameters(**{**how, "n_estimators": rounds}, early_stopping=False)).fit(X, Y)
    assert_close(model.predict(X), alone.predict(X), 0.02 * Y.std())  # but for units, of nine tenths of the rows
    assert np.abs(before.predict(X) - alone.predict(X)).max() > 0.1 * Y.std()


def test_a_single_layer_outlives_an_interrupt_before_it_is_grown_again(press, before_refit):
    how = {"n_estimators": 20, "random_state": 0}
    kept = before_refit(BoostBPRegressor((), **parameters(**how)), X, Y)
    press(Problem, "on_all_rows", 1)
    model = interrupted_fit(BoostBPRegressor((), **parameters(**how)), X, Y)
    assert model.history_.stop is Stop.INTERRUPTED
    assert not model.history_.refitted
    np.testing.assert_array_equal(model.predict(X), kept.predict(X))


def test_a_single_layer_is_not_grown_again_without_time(before_refit):
    how = {"n_estimators": 20, "max_time": 1e-9, "random_state": 0}
    model, before = (BoostBPRegressor((), **parameters(**how)) for _ in range(2))
    np.testing.assert_array_equal(model.fit(X, Y).predict(X), before_refit(before, X, Y).predict(X))
    assert not model.history_.refitted


def test_a_single_layer_stays_as_it_is_where_fitting_it_again_is_interrupted(before_refit, press):
    how = parameters(n_estimators=20, random_state=0)
    before = before_refit(BoostBPRegressor((), **how), X, Y)
    press(refits, "boost_again", 1)
    model = interrupted_fit(BoostBPRegressor((), **how), X, Y)
    assert model.history_.stop is Stop.INTERRUPTED
    np.testing.assert_array_equal(model.predict(X), before.predict(X))


def test_there_is_nothing_hidden_to_show():
    model = BoostBPRegressor((), **parameters(n_estimators=3)).fit(X, Y)
    with pytest.raises(ValueError, match=r"layer=-1 does not exist: this model has no hidden layer"):
        model.transform(X)


@pytest.mark.parametrize("kind", [BoostBPAutoencoder, pytest.param(GBDTNNRegressor, marks=needs_torch)])
def test_what_lives_by_its_hidden_layer_asks_for_one(kind):
    with pytest.raises(ValueError, match=r"hidden_layer_sizes=\(\) must hold 1 layers"):
        kind(()).fit(X, Y)


def test_native_leaves_of_one_layer_draw_no_thresholds_by_default():
    """As in estimators."""
    how = {"n_estimators": 3, "backend": "lightgbm", "leaves": "native", "base": "zero", "basis": "linear"}
    by_default, best, drawn = (layer_of(X, Y, extra_trees=extra, **how) for extra in ("auto", False, True))
    np.testing.assert_array_equal(by_default.predict(X), best.predict(X))
    assert np.abs(drawn.predict(X) - best.predict(X)).max() > 0
