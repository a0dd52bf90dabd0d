"""Rivals by name, and the same random search for all of them."""

from __future__ import annotations

import importlib.util
from itertools import islice

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from benchmarks.rivals import tuning
from benchmarks.rivals.contenders import CONTROLS, RIVALS, TRAINERS, average, rival, train, trees_of
from benchmarks.rivals.spaces import SPACES
from benchmarks.rivals.tuning import score_of, tune
from boostbp.comparison.contenders import Contender, Split, deep
from boostbp.search import sample

NEEDS_TORCH = {"mlp", "gbdt-nn", "nn-gbdt"}
NAMES = [name for name in RIVALS | CONTROLS if name not in NEEDS_TORCH or importlib.util.find_spec("torch")]


def split_of(X, y):
    rows = np.random.default_rng(0).permutation(len(y))
    fit, valid = rows[len(y) // 4 :], rows[: len(y) // 4]
    return Split(X[fit], y[fit], X[valid], y[valid])


NUMBERS = split_of(*load_diabetes(return_X_y=True))
LABELS = split_of(*load_iris(return_X_y=True))
TINY = {"hidden_layer_sizes": (2,), "epochs": 2, "output__n_estimators": 5}


def quick(name):
    """A rival that is trained in no time; what is given here is not searched."""
    ours = {"epochs": 2, "output__n_estimators": 5} if name in {*CONTROLS, "gbdt-nn", "nn-gbdt"} else {}
    return rival(name, **{**ours, **RIVALS.get(name, CONTROLS.get(name)).params})


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_rival_can_be_searched(name):
    tuned = tune(quick(name), NUMBERS, task="regression", trials=2, seed=0)
    assert [trial.reason for trial in tuned.trials] == ["", ""]
    residual = NUMBERS.y_valid - tuned.model.predict(NUMBERS.X_valid)
    assert tuned.score == pytest.approx(np.sqrt(np.mean(residual**2)))
    assert tuned.score == min(trial.score for trial in tuned.trials) < NUMBERS.y_valid.std()
    tuned = tune(quick(name), LABELS, task="classification", trials=2, seed=1)
    assert [trial.reason for trial in tuned.trials] == ["", ""]
    proba = tuned.model.predict_proba(LABELS.X_valid)
    assert proba.shape == (len(LABELS.y_valid), 3)
    assert tuned.score == pytest.approx(-np.log(proba[np.arange(len(proba)), LABELS.y_valid]).mean())


def test_one_trial_is_the_model_as_it_is():
    tuned = tune(rival("lightgbm"), NUMBERS, task="regression", trials=1, seed=3)
    plain = train(rival("lightgbm"), NUMBERS, task="regression", n_jobs=1, seed=3)
    np.testing.assert_array_equal(tuned.model.predict(NUMBERS.X), plain.model.predict(NUMBERS.X))
    assert (tuned.params, tuned.length, len(tuned.trials)) == ({}, plain.length, 1)


@pytest.mark.slow
def test_search_is_the_same_again_and_hands_out_parameters_of_the_model():
    one, two = (tune(rival("single"), NUMBERS, task="regression", trials=3, seed=5) for _ in range(2))
    assert [trial.params for trial in one.trials] == [trial.params for trial in two.trials]
    assert [trial.score for trial in one.trials] == [trial.score for trial in two.trials]
    params = one.model.get_params()
    assert one.params == {name: params[name] for name in one.params}


def test_search_goes_on_until_its_seconds_are_used():
    search = {"task": "regression", "seed": 0}
    seconds = tune(rival("lightgbm"), NUMBERS, trials=2, **search).seconds
    tuned = tune(rival("lightgbm"), NUMBERS, trials=2, min_seconds=2 * seconds, **search)
    assert tuned.seconds >= 2 * seconds
    assert len(tuned.trials) == 2 or tuned.seconds - tuned.trials[-1].seconds < 2 * seconds
    assert len(tune(rival("lightgbm"), NUMBERS, trials=3, min_seconds=1e-9, **search).trials) == 3


def test_candidate_that_fails_is_noted_and_passed_over():
    def fails_at_first(contender, *how):
        if not contender.params:
            raise FloatingPointError("exploded")
        return TRAINERS["lightgbm"](contender, *how)

    trainers = {"lightgbm": fails_at_first}
    tuned = tune(rival("lightgbm"), NUMBERS, task="regression", trials=2, seed=0, trainers=trainers)
    assert [trial.reason for trial in tuned.trials] == ["FloatingPointError: exploded", ""]
    assert tuned.score == tuned.trials[1].score
    with pytest.raises(RuntimeError, match="LightGBM could not be trained: FloatingPointError: exploded"):
        tune(rival("lightgbm"), NUMBERS, task="regression", trials=1, seed=0, min_seconds=9.0, trainers=trainers)


def test_other_metric_chooses_by_itself():
    tuned = tune(rival("lightgbm"), LABELS, task="classification", trials=4, seed=0, metric="error")
    wrong = tuned.model.predict(LABELS.X_valid) != LABELS.y_valid
    assert tuned.score == pytest.approx(wrong.mean())


def test_score_of_predictions_that_are_not_finite_is_the_worst():
    class Lost:
        def predict(self, X):
            return np.full(len(X), np.nan)

    assert score_of("rmse", Lost(), NUMBERS.X, NUMBERS.y) == np.inf


def test_average_has_the_trees_that_it_must_have():
    fitted = train(average(400), NUMBERS, task="regression", n_jobs=1, seed=0)
    trees = [trees_of(model) for model in fitted.model.models]
    assert sum(trees) == trees_of(fitted.model) >= 400 > sum(trees[:-1])
    assert trees[0] == len(fitted.model.models[0].booster_.dump_model(num_iteration=trees[0])["tree_info"])
    each = [model.predict(NUMBERS.X) for model in fitted.model.models]
    np.testing.assert_allclose(fitted.model.predict(NUMBERS.X), np.mean(each, axis=0))
    assert not np.array_equal(each[0], each[1])


def test_controls_are_the_deep_model_without_what_they_control_for():
    linear = train(rival("linear-hidden", **TINY, deep=True), NUMBERS, task="regression", n_jobs=1, seed=0).model
    assert linear.network_.layers[0].forest.n_trees == 1  # the ridge regression
    before = train(
        rival("before", **TINY | {"epochs": 0, "deep": True}), NUMBERS, task="regression", n_jobs=1, seed=0
    ).model
    stack = train(deep("lightgbm", TINY | {"deep": True}), NUMBERS, task="regression", n_jobs=1, seed=0).model
    assert (before.n_iter_, stack.n_iter_) == (0, 2)
    assert before.history_.loss[0] == stack.history_.loss[0]
    assert trees_of(before) == sum(layer.forest.n_trees for layer in before.network_.layers)


@pytest.mark.parametrize(("change", "message"), [({"name": "catboost"}, "'catboost' is not known"), ({}, "trials=0")])
def test_what_is_not_known_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        tune(rival(**{"name": "hist", **change}), NUMBERS, task="regression", trials=0, seed=0)


def test_library_that_is_not_there_is_no_failed_candidate(without):
    without("xgboost")
    with pytest.raises(ImportError, match="XGBoost needs the xgboost package"):
        tune(Contender("XGBoost", "xgboost"), NUMBERS, task="regression", trials=2, seed=0)


def test_what_a_search_found_is_trained_again_as_it_was():
    found = tune(rival("linear_tree"), NUMBERS, task="regression", trials=3, seed=0)
    again = train(rival("linear_tree", **found.params), NUMBERS, task="regression", n_jobs=1, seed=0)
    assert score_of("rmse", again.model, NUMBERS.X_valid, NUMBERS.y_valid) == pytest.approx(found.score)
    assert again.length == found.length
    assert found.params != {"linear_tree": True}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CONTROLS])
def test_a_length_that_was_found_is_trained_again_on_all_rows(name):
    found = train(quick(name), NUMBERS, task="regression", n_jobs=1, seed=0)
    X, y = np.concatenate([NUMBERS.X, NUMBERS.X_valid]), np.concatenate([NUMBERS.y, NUMBERS.y_valid])
    whole = train(quick(name), Split(X, y), task="regression", n_jobs=1, seed=0, length=found.length)
    assert whole.length == found.length
    if name not in {"mlp", "hist", "gbdt-nn", "nn-gbdt"}:
        assert trees_of(whole.model) == trees_of(found.model)
    held = NUMBERS.y_valid
    errors = [np.mean((held - model.predict(NUMBERS.X_valid)) ** 2) for model in (found.model, whole.model)]
    assert errors[1] < errors[0] < held.var()  # it has seen them now


def test_a_network_holds_rows_out_itself_where_none_are_given():
    one = train(rival("linear-hidden", epochs=2), Split(NUMBERS.X, NUMBERS.y), task="regression", n_jobs=1, seed=0)
    assert one.model.history_.refitted


def test_rows_to_stop_by_or_a_length():
    with pytest.raises(ValueError, match="LightGBM needs validation rows for early stopping, or a length"):
        train(rival("lightgbm"), Split(NUMBERS.X, NUMBERS.y), task="regression", n_jobs=1, seed=0)
    with pytest.raises(ValueError, match="MLP needs validation rows for early stopping, or a length"):
        train(rival("mlp"), Split(NUMBERS.X, NUMBERS.y), task="regression", n_jobs=1, seed=0)
    with pytest.raises(ValueError, match="average of LightGBM needs rows to stop by"):
        train(average(10), Split(NUMBERS.X, NUMBERS.y), task="regression", n_jobs=1, seed=0, length=5)
    with pytest.raises(ValueError, match="no rows to validate on"):
        tune(rival("lightgbm"), Split(NUMBERS.X, NUMBERS.y), task="regression", trials=1, seed=0)


def test_one_hidden_layer_may_be_a_number():
    model = train(
        deep("lightgbm", {**TINY, "hidden_layer_sizes": 2, "deep": True}), NUMBERS, task="regression", n_jobs=1, seed=0
    ).model
    assert model.transform(NUMBERS.X).shape[0] == len(NUMBERS.X)


def test_a_search_begins_with_the_model_as_it_is():
    given = {"hidden_layer_sizes": (4, 4), "hidden__n_estimators": 0, "max_depth": 3}
    first, *drawn = islice(tuning.candidates(np.random.default_rng(0), SPACES["deep"], given), 5)
    assert first == {"hidden_layer_sizes": (4, 4), "hidden": {"n_estimators": 0}, "max_depth": 3}
    rng = np.random.default_rng(0)
    assert drawn == [sample(rng, SPACES["deep"], given) for _ in range(4)]
