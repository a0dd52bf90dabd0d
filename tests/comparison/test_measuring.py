"""The comparison: one split for all, honest measures, and no model that takes the others down."""

from __future__ import annotations

import signal
import sys

import lightgbm
import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from benchmarks.rivals.contenders import trees_of
from boostbp.comparison.contenders import SINGLE_LAYER, deep
from boostbp.comparison.measuring import Job, Peak, compare_models, measure, rehearse, splits

QUICK = {"epochs": 1, "hidden_layer_sizes": (2,), "n_estimators": 3, "deep": True}
DEEP = [deep(backend, QUICK) for backend in ("lightgbm", "xgboost")]


@pytest.mark.slow
def test_same_seed_gives_same_scores():
    X, y = load_diabetes(return_X_y=True)
    models = [DEEP[0], SINGLE_LAYER[0]]
    once, again = (compare_models(splits(X, y, "regression", seed=3), models, seed=3) for _ in range(2))
    assert [result.scores for result in once] == [result.scores for result in again]
    assert all(set(result.scores) == {"r2", "rmse"} for result in once)


def split(X, y, task):
    (data,) = splits(X, y, task)
    return data


def test_rehearsal_learns_nothing_and_ends_soon():
    data = split(*load_iris(return_X_y=True), "classification")
    fitted = rehearse(Job(deep("lightgbm", {**QUICK, "deep": "auto"}), 1, 0), data)
    np.testing.assert_array_equal(fitted.model.classes_, [0, 1, 2])
    assert 0 < trees_of(fitted.model) < 1000  # thousands if boosting went on to its end


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_split_keeps_test_rows_apart(task):
    X = np.arange(200.0)[:, None]
    y = np.repeat([0, 1], [150, 50])
    data = split(X, y, task)
    parts = [data.split.X[:, 0], data.split.X_valid[:, 0], data.X_test[:, 0]]
    assert [len(part) for part in parts] == [120, 30, 50]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), X[:, 0])
    if task == "classification":
        shares = [data.split.y.mean(), data.split.y_valid.mean(), data.y_test.mean()]
        np.testing.assert_allclose(shares, 0.25, atol=0.02)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_each_row_is_a_test_row_in_one_fold(task):
    X = np.arange(100.0)[:, None]
    y = np.repeat([0, 1], [75, 25])
    folds = list(splits(X, y, task, folds=4))
    np.testing.assert_array_equal(np.sort(np.concatenate([data.X_test[:, 0] for data in folds])), X[:, 0])
    for data in folds:
        parts = [data.split.X[:, 0], data.split.X_valid[:, 0], data.X_test[:, 0]]
        assert [len(part) for part in parts] == [60, 15, 25]
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), X[:, 0])
        np.testing.assert_array_equal(data.y_test, y[data.X_test[:, 0].astype(int)])
        if task == "classification":
            assert 0.2 < data.y_test.mean() < 0.3


@pytest.mark.parametrize(("folds", "rows"), [(1, 40), (41, 40)])
def test_folds_that_do_not_split_are_refused(folds, rows):
    with pytest.raises(ValueError, match=f"folds={folds} does not split {rows} rows"):
        splits(np.zeros((rows, 2)), np.arange(rows), "regression", folds=folds)


def trained_by_hand(data, **params):
    train_set = lightgbm.Dataset(data.split.X, data.split.y)
    held = lightgbm.Dataset(data.split.X_valid, data.split.y_valid, reference=train_set)
    shared = {"learning_rate": 0.05, "num_threads": 1, "verbosity": -1, "seed": 0}
    stop = lightgbm.early_stopping(50, verbose=False)
    return lightgbm.train({**shared, **params}, train_set, 2000, valid_sets=[held], callbacks=[stop])


def test_scores_of_a_classifier_match_the_library_used_by_hand():
    X, y = load_iris(return_X_y=True)
    data = split(X, y, "classification")
    outcome = measure(Job(SINGLE_LAYER[0], 1, 0), data)
    booster = trained_by_hand(data, objective="multiclass", num_class=3)
    predicted = booster.predict(data.X_test)
    log_loss = -np.mean(np.log(predicted[np.arange(len(predicted)), data.y_test]))
    assert outcome.scores["log_loss"] == pytest.approx(log_loss, rel=1e-12)
    assert outcome.scores["accuracy"] == np.mean(predicted.argmax(axis=1) == data.y_test)
    assert outcome.length == booster.best_iteration


def test_scores_of_a_regressor_match_the_library_used_by_hand():
    X, y = load_diabetes(return_X_y=True)
    data = split(X, y, "regression")
    outcome = measure(Job(SINGLE_LAYER[1], 1, 0), data)
    booster = trained_by_hand(data, objective="regression", linear_tree=True)
    residual = data.y_test - booster.predict(data.X_test)
    assert outcome.scores["rmse"] == pytest.approx(np.sqrt(np.mean(residual**2)), rel=1e-12)
    r2 = 1.0 - np.mean(residual**2) / np.var(data.y_test)
    assert outcome.scores["r2"] == pytest.approx(r2, rel=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_library_that_kills_its_process_leaves_the_others_alone(xgboost_that):
    xgboost_that("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    X, y = load_iris(return_X_y=True)
    results = compare_models(splits(X, y, "classification"), SINGLE_LAYER[::2])
    assert [result.state for result in results] == ["ran", "failed"]
    assert "code -9" in results[-1].reason


@pytest.mark.slow
def test_model_that_raises_is_reported_with_its_reason():
    X, y = load_iris(return_X_y=True)
    [result] = compare_models(splits(X, y, "classification"), [deep("catboost", {})])
    assert (result.state, result.scores) == ("failed", {})
    assert "catboost" in result.reason


def test_class_too_small_to_split_is_refused():
    with pytest.raises(ValueError, match=r"smallest with 3 rows.*merge small classes"):
        splits(np.zeros((40, 2)), np.repeat([0, 1], [37, 3]), "classification")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can reset its high-water mark")
def test_peak_counts_what_was_held_since_and_only_that():
    before = bytearray(200_000_000)
    del before
    peak = Peak()
    ballast = bytearray(100_000_000)
    del ballast
    held = peak.bytes()
    assert 95_000_000 < held < 130_000_000, held
    assert Peak().bytes() < 20_000_000


@pytest.mark.parametrize("params", [{}, {"deep": True, "backprop": {"output_target": "moved"}}])
@pytest.mark.usefixtures("everything")
def test_hidden_representations_are_of_the_network_that_is_compared(params, weights_of):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 1))  # of one feature there are no directions
    data = split(X, np.sin(6 * X[:, 0]), "regression")
    weights_of(lambda one: 1.0)
    job = Job(deep("lightgbm", {"epochs": 2, "hidden_layer_sizes": (2,), **params}), 1, 0, evidence=True)
    evidence = measure(job, data).evidence
    best = evidence.history.best_epoch
    assert evidence.history.weight() > 0.0
    assert set(evidence.hidden) == ({0, best} if params else {best})
    if params:
        assert {H.shape for H in evidence.hidden.values()} == {(50, 2)}
