"""No score is told without the offset of its rows: scikit-learn passes it on, or there is an error or a warning."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import accuracy_score, make_scorer, mean_poisson_deviance, r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from boostbp import BoostBPClassifier, BoostBPRegressor, load, save

FOLDS = KFold(3)
WITHOUT = "was fitted with an offset, but none was passed"
REFUSED = "score needs the offset of its rows"


def counts(rows=300):
    """Features, logarithms of exposures, and counts of which these are most."""
    rng = np.random.default_rng(0)
    X, offset = rng.normal(size=(rows, 3)), rng.uniform(-2.0, 3.0, rows)
    return X, offset, rng.poisson(np.exp(offset + 0.5 * X[:, 0])).astype(float)


def labels(rows=300):
    """Features, log-odds, and classes that go by both."""
    rng = np.random.default_rng(1)
    X, offset = rng.normal(size=(rows, 3)), rng.normal(scale=3.0, size=rows)
    return X, offset, rng.uniform(size=rows) < expit(offset + X[:, 0])


HOW = {"hidden_layer_sizes": (), "n_estimators": 20, "random_state": 0}
CASES = {
    "counts": (BoostBPRegressor(**HOW, loss="poisson"), counts, r2_score),
    "labels": (BoostBPClassifier(**HOW), labels, accuracy_score),
}
each = pytest.mark.parametrize("case", CASES)


def scores_by_hand(model, X, y, offset, metric):
    found = []
    for train, test in FOLDS.split(X):
        fitted = clone(model).fit(X[train], y[train], offset=offset[train])
        found.append(metric(y[test], fitted.predict(X[test], offset=offset[test])))
    return found


@each
@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: make_pipeline(StandardScaler(), model)])
def test_cross_validation_scores_with_the_offset(case, wrap):
    model, data, metric = CASES[case]
    X, offset, y = data()
    expected = scores_by_hand(model, X, y, offset, metric)
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(wrap(model), X, y, params={"offset": offset}, cv=FOLDS)
    np.testing.assert_allclose(found["test_score"], expected, atol=0.02)  # a scaled column may be cut elsewhere
    assert min(expected) > 0.7


@each
def test_a_search_chooses_by_scores_with_the_offset(case):
    model, data, metric = CASES[case]
    X, offset, y = data()
    grid = {"n_estimators": [1, 20]}
    expected = [scores_by_hand(clone(model).set_params(n_estimators=n), X, y, offset, metric) for n in (1, 20)]
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(model, grid, cv=FOLDS).fit(X, y, offset=offset)
        whole = search.score(X, y, offset=offset)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], np.mean(expected, axis=1))
    assert search.best_params_ == {"n_estimators": (1, 20)[int(np.argmax(np.mean(expected, axis=1)))]}
    assert whole == metric(y, search.best_estimator_.predict(X, offset=offset))


@each
def test_without_routing_the_score_is_an_error_and_not_another_number(case):
    model, data, _ = CASES[case]
    X, offset, y = data()
    with pytest.raises(ValueError, match=REFUSED):
        cross_validate(model, X, y, params={"offset": offset}, cv=FOLDS, error_score="raise")
    with pytest.warns(UserWarning, match=rf"(?s)Scoring failed.*{REFUSED}"):
        found = cross_validate(model, X, y, params={"offset": offset}, cv=FOLDS)
    assert np.isnan(found["test_score"]).all()
    with pytest.raises(ValueError, match=REFUSED):
        GridSearchCV(model, {"n_estimators": [1]}, cv=FOLDS, error_score="raise").fit(X, y, offset=offset)
    fitted = model.fit(X, y)
    assert fitted.score(X, y) == fitted.score(X, y, offset=0) == fitted.score(X, y, offset=np.zeros(len(X)))


@each
def test_what_predicts_without_the_offset_warns(case):
    model, data, _ = CASES[case]
    X, offset, y = data()
    fitted = clone(model).set_params(calibration=0.3).fit(X, y, offset=offset)
    of_classes = ["predict_proba", "predict_log_proba", "decision_function", "predict_set"]
    for name in ["predict", *(of_classes if case == "labels" else ["predict_interval"])]:
        method = getattr(fitted, name)
        with pytest.warns(UserWarning, match=WITHOUT):
            without = method(X)
        np.testing.assert_array_equal(without, method(X, offset=0))
        np.testing.assert_array_equal(without, method(X, offset=np.zeros(len(X))))
    with pytest.warns(UserWarning, match=WITHOUT):
        next(fitted.staged_predict(X))
    with pytest.warns(UserWarning, match=WITHOUT):
        cross_val_predict(model, X, y, params={"offset": offset}, cv=FOLDS)
    scorer = make_scorer(accuracy_score if case == "labels" else r2_score)
    with pytest.warns(UserWarning, match=WITHOUT):
        scorer(fitted, X, y)
    with pytest.raises(ValueError, match="calibrate needs the offset of its rows"):
        fitted.calibrate(X, y)
    with pytest.raises(ValueError, match="init_model has an offset, this fit has none"):
        clone(model).fit(X, y, init_model=fitted)
    fitted.fit(X, y)  # the last fit counts
    np.testing.assert_array_equal(fitted.predict(X), fitted.predict(X, offset=0))


@each
def test_copies_and_files_know_that_there_was_an_offset(case, tmp_path):
    model, data, _ = CASES[case]
    X, offset, y = data()
    fitted = clone(model).fit(X, y, offset=offset)
    save(fitted, tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(fitted))):
        with pytest.raises(ValueError, match=REFUSED):
            again.score(X, y)
        assert again.score(X, y, offset=offset) == fitted.score(X, y, offset=offset)
    save(clone(model).fit(X, y), tmp_path / "model")
    assert load(tmp_path / "model").score(X, y) > 0
    clone(fitted).fit(X, y).score(X, y)


@pytest.mark.parametrize("routing", [True, False])
def test_a_scorer_of_ones_own_finds_the_offset_by_the_index(routing):
    """What the guide recommends for other metrics: scorers of scikit-learn call `predict` with the features alone."""
    model, data, _ = CASES["counts"]
    X, offset, y = data()
    frame, known = pd.DataFrame(X, columns=list("abc")), pd.Series(offset)

    def deviance(model, X, y):
        return -mean_poisson_deviance(y, model.predict(X, offset=known[X.index]))

    expected = scores_by_hand(model, X, y, offset, lambda y, predicted: -mean_poisson_deviance(y, predicted))
    with sklearn.config_context(enable_metadata_routing=routing):
        found = cross_validate(model, frame, y, params={"offset": known}, cv=FOLDS, scoring=deviance)
        search = GridSearchCV(model, {"n_estimators": [20]}, cv=FOLDS, scoring=deviance).fit(frame, y, offset=known)
    np.testing.assert_allclose(found["test_score"], expected)
    assert search.best_score_ == pytest.approx(np.mean(expected))
