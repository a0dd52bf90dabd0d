"""One model on one fold: honest scores, costs and failures."""

from __future__ import annotations

import sys

import lightgbm
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import recall_score
from sklearn.svm import LinearSVC

from boostbp.comparison.contenders import SINGLE_LAYER, Contender, train_contender
from boostbp.comparison.folds import folds_of
from boostbp.comparison.measures import measures_of, with_metric
from boostbp.comparison.measuring import Job, Peak, TableData, measure
from boostbp.comparison.models import contenders_of

IRIS = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


def classes(X=IRIS[0], y=IRIS[1], labels=NAMES):
    return TableData(X, y, "classification", labels)


def job_of(model, data, metric=None, **more):
    contender = model if isinstance(model, Contender) else contenders_of([model])[0]
    strata = data.y if data.task == "classification" else None
    fold = folds_of(len(data.y), 4, 1, strata=strata, groups=data.groups)[0]
    _, measures = with_metric(measures_of(data.task, data.y, data.classes), metric)
    return Job(contender, fold, measures, 1, 0, **more)


def outcome_of(model, data, metric=None, **more):
    return measure(job_of(model, data, metric, **more), data)


def by_hand(job, data, task, **params):
    """LightGBM's own API: rounds by a fifth of the training rows, then all of them."""
    from boostbp.comparison.searches import with_validation

    rows = data.rows(job.contender, job.fold[0])
    held = with_validation(rows, task, 0)
    train_set = lightgbm.Dataset(held.X, held.y)
    valid = lightgbm.Dataset(held.X_valid, held.y_valid, reference=train_set)
    shared = {"learning_rate": 0.05, "num_threads": 1, "verbosity": -1, "seed": 0, **params}
    stop = lightgbm.early_stopping(50, verbose=False)
    early = lightgbm.train(shared, train_set, 2000, valid_sets=[valid], callbacks=[stop])
    booster = lightgbm.train(shared, lightgbm.Dataset(rows.X, rows.y), early.best_iteration)
    return booster.predict(data.X[job.fold[1]]), data.y[job.fold[1]]


def test_scores_of_a_classifier_match_the_library_used_by_hand():
    data = classes()
    job = job_of("lightgbm", data)
    outcome = measure(job, data)
    predicted, y = by_hand(job, data, "classification", objective="multiclass", num_class=3)
    log_loss = -np.mean(np.log(predicted[np.arange(len(predicted)), y]))
    assert outcome.scores["log_loss"] == pytest.approx(log_loss, rel=1e-9)
    assert outcome.scores["accuracy"] == np.mean(predicted.argmax(axis=1) == y)


def test_scores_of_a_regressor_match_the_library_used_by_hand():
    X, y = load_diabetes(return_X_y=True)
    data = TableData(X, y, "regression")
    job = job_of("linear_tree", data)
    predicted, truth = by_hand(job, data, "regression", objective="regression", linear_tree=True)
    assert measure(job, data).scores["rmse"] == pytest.approx(np.sqrt(np.mean((truth - predicted) ** 2)), rel=1e-9)


def test_costs_are_measured():
    outcome = outcome_of("lightgbm", classes())
    assert outcome.state == "ran"
    assert outcome.fit_seconds > 0
    assert outcome.row_seconds > 0
    assert outcome.model_bytes > 1000
    assert outcome.predicted.shape == (38, 3)


def test_model_that_raises_or_knows_no_probability_is_reported_with_its_reason():
    failed = outcome_of(LinearSVC(), classes())
    assert (failed.state, failed.scores) == ("failed", {})
    assert "it has no predict_proba: wrap it in sklearn.calibration.CalibratedClassifierCV" in failed.reason
    with_nan = TableData(np.where(IRIS[0] > 6, np.nan, IRIS[0]), IRIS[1], "classification", NAMES)
    assert outcome_of(LogisticRegression(), with_nan).reason.startswith("ValueError: Input X contains NaN")


def test_a_library_that_is_absent_is_skipped(without):
    without("xgboost")
    outcome = outcome_of("xgboost", classes())
    assert outcome.state == "skipped"
    assert "pip install 'boostbp[xgboost]'" in outcome.reason


class Seen(DummyClassifier):
    """Keeps the target that it gets."""

    def fit(self, X, y):
        Seen.y = y
        return super().fit(X, y)


@pytest.mark.parametrize("model", [Seen(), "lightgbm", "quality=1"])
def test_scorers_see_labels_and_estimators_of_the_user_too(model):
    outcome = outcome_of(model, classes(), score)
    assert outcome.state == "ran", outcome.reason
    assert outcome.scores["score"] > 0.5 or isinstance(model, Seen)
    if isinstance(model, Seen):
        assert set(Seen.y) == set(NAMES)


def score(model, X, y):
    assert set(y) <= set(NAMES)
    assert set(model.predict(X)) <= set(NAMES)
    return recall_score(y, model.predict(X), labels=["virginica"], average="macro")


def test_named_scorers_of_scikit_learn_take_every_classifier():
    two = TableData(IRIS[0][:100], IRIS[1][:100], "classification", np.array([0, 1]))
    for model in ("lightgbm", "xgboost", "quality=1", LogisticRegression()):
        outcome = outcome_of(model, two, "neg_brier_score")
        assert outcome.state == "ran", outcome.reason
        assert outcome.scores["neg_brier_score"] == pytest.approx(-outcome.scores["brier"])


def test_columns_that_libraries_refuse_or_cannot_read_are_no_obstacle():
    X = pd.DataFrame(IRIS[0], columns=["a[0]", "b<c", "d,e", "f"])
    X["text"] = np.array(["u", "v", None], object)[IRIS[1]]
    for model in ("lightgbm", "xgboost", "quality=1"):
        outcome = outcome_of(model, classes(X))
        assert outcome.state == "ran", outcome.reason


def test_a_class_without_training_rows_has_probability_zero():
    data = classes()
    model = LogisticRegression(max_iter=500).fit(IRIS[0][50:], NAMES[IRIS[1][50:]])
    shares = data.predicted(Contender("ours", "estimator"), model, IRIS[0][:5])
    assert shares.shape == (5, 3)
    assert (shares[:, 0] == 0).all()


@pytest.mark.parametrize("labels", [np.arange(3), np.arange(1, 4)])
def test_probabilities_are_in_the_columns_of_their_classes_whatever_the_labels(labels):
    data, rows = classes(labels=labels), np.arange(50, 150)  # without the first class
    for model in ("lightgbm", "quality=1", LogisticRegression(max_iter=500)):
        contender = contenders_of([model])[0]
        trained = train_contender(
            contender, data.rows(contender, rows), task="classification", n_jobs=1, seed=0, length=5
        )
        shares = data.predicted(contender, trained.model, IRIS[0][rows])
        assert (shares[:, 0] == 0).all()
        assert (shares.argmax(axis=1) == IRIS[1][rows]).mean() > 0.9


def test_estimators_of_scripts_sparse_tables_and_hard_starts_are_no_obstacle():
    class Mine(Ridge):
        """Defined in a function, which pickle refuses."""

    X, y = load_diabetes(return_X_y=True)
    data = TableData(sp.csr_matrix(X), y, "regression")
    for model in (Mine(), "quality=1"):
        assert outcome_of(model, data).state == "ran"
    counts = np.sort(np.random.default_rng(0).poisson(0.5, 442)).astype(float)  # the first rows have none
    poisson = lightgbm.LGBMRegressor(objective="poisson", n_estimators=3, verbose=-1)
    assert outcome_of(poisson, TableData(X, counts, "regression")).state == "ran"


def test_a_verdict_without_a_score_is_refused():
    outcome = outcome_of(Ridge(), TableData(*load_diabetes(return_X_y=True), "regression"), lambda model, X, y: np.nan)
    assert outcome.state == "failed"
    assert "choose another metric, or other folds" in outcome.reason


def test_rankings_are_of_queries_and_survival_of_risks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    grades = np.digitize(X[:, 0] + 0.3 * rng.normal(size=240), [-0.5, 0.5]).astype(float)
    ranking = TableData(X, grades, "ranking", groups=np.arange(240) // 8)
    for model in ("lightgbm", "xgboost", "quality=1", Ridge()):
        outcome = outcome_of(model, ranking)
        assert outcome.state == "ran", outcome.reason
        assert outcome.scores["ndcg@10"] > 0.85
    time = np.exp(-X[:, 0] + 0.2 * rng.normal(size=240))
    survival = TableData(X, np.where(rng.uniform(size=240) < 0.7, time, -time), "survival")
    for model in ("xgboost", "quality=1", Risk()):
        outcome = outcome_of(model, survival)
        assert outcome.state == "ran", outcome.reason
        assert outcome.scores["concordance"] > 0.8
    assert "LightGBM has no loss of survival" in outcome_of(SINGLE_LAYER[0], survival).reason


class Risk(Ridge):
    """Takes events and times as scikit-survival does, and predicts times."""

    _predict_risk_score = False

    def fit(self, X, y):
        assert y.dtype.names == ("event", "time")
        return super().fit(X, y["time"])


def test_threads_and_seeds_are_set_where_an_estimator_has_them():
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.pipeline import make_pipeline

    from boostbp.comparison.contenders import Split

    rows = Split(*load_diabetes(return_X_y=True))
    for seed, kept in ((None, 5), (3, 3)):
        model = make_pipeline(ExtraTreesRegressor(5, n_jobs=7, random_state=seed))
        [contender] = contenders_of([model])
        fitted = train_contender(contender, rows, task="regression", n_jobs=1, seed=5).model
        assert (fitted[-1].n_jobs, fitted[-1].random_state, fitted[-1].n_estimators) == (1, kept, 5)
        assert model[-1].n_jobs == 7  # a copy was trained


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
