"""Classes of which no row has weight keep their place among the probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import WITH_CATEGORIES, needs_torch
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, VotingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from boostbp import BoostBPClassifier, load, save

SMALL = {"hidden_layer_sizes": (3,), "n_estimators": 4, "epochs": 2, "random_state": 0}
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
WEIGHT = np.where(Y == 1, 0.0, 1.0)


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
@pytest.mark.parametrize(("deep", "labels"), [(True, NAMES), ("auto", Y)], ids=["network-names", "average-numbers"])
def test_a_class_without_weight_has_a_column_and_hardly_a_chance(backend, deep, labels):
    model = BoostBPClassifier(**parameters(backend=backend, deep=deep, **SMALL)).fit(X, labels, sample_weight=WEIGHT)
    other = HistGradientBoostingClassifier().fit(X, labels, sample_weight=WEIGHT)
    np.testing.assert_array_equal(model.classes_, other.classes_)
    p = model.predict_proba(X)
    assert p.shape == (150, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p[:, 1] > 0).all()
    assert p[:, 1].max() < 1e-5
    assert not np.isin(model.predict(X), model.classes_[1]).any()
    assert np.isfinite(log_loss(labels, p))
    assert 0.5 < roc_auc_score(labels, p, multi_class="ovr") < 1


@pytest.mark.parametrize("deep", [True, "auto"])
def test_of_two_classes_one_may_have_all_the_weight(deep):
    X2, y2 = X[:100], Y[:100]
    for only in (0, 1):
        model = BoostBPClassifier(**parameters(deep=deep, **SMALL)).fit(
            X2, y2, sample_weight=(y2 == only).astype(float)
        )
        assert model.classes_.tolist() == [0, 1]
        p = model.predict_proba(X)
        assert p.shape == (150, 2)
        assert (p[:, only] > 1 - 1e-5).all()
        assert (p[:, 1 - only] > 0).all()


def test_weights_of_classes_may_be_zero():
    by_class = BoostBPClassifier(**parameters(class_weight={0: 1, 1: 0, 2: 1}, **SMALL)).fit(X, Y)
    by_row = BoostBPClassifier(**parameters(**SMALL)).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))
    with pytest.raises(ValueError, match=r"class_weight=.* gives all rows weight 0: weight a class of y"):
        BoostBPClassifier(**parameters(class_weight={0: 0, 1: 0, 2: 0}, **SMALL)).fit(X, Y)


def test_evaluation_sets_may_hold_the_class():
    model = BoostBPClassifier(**parameters(deep=True, **SMALL)).fit(X, Y, sample_weight=WEIGHT, eval_set=[(X, Y)])
    assert model.history_.scores["valid_0"] == pytest.approx(log_loss(Y, model.predict_proba(X)), rel=1e-9)


def test_the_estimator_votes_is_stored_and_is_cross_validated(tmp_path):
    model = BoostBPClassifier(**parameters(deep=True, **SMALL))
    votes = VotingClassifier([("ours", model), ("theirs", HistGradientBoostingClassifier(max_iter=5))], voting="soft")
    assert votes.fit(X, NAMES, sample_weight=WEIGHT).predict_proba(X).shape == (150, 3)
    fitted = model.fit(X, NAMES, sample_weight=WEIGHT)
    save(fitted, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), fitted.predict_proba(X))
    weights = {"sample_weight": WEIGHT}
    p = cross_val_predict(model, X, Y, cv=StratifiedKFold(3), params=weights, method="predict_proba")
    assert p.shape == (150, 3)


@pytest.mark.slow
@needs_torch
def test_mixtures_have_the_column_too():
    from benchmarks.mixtures import GBDTNNClassifier, NNGBDTClassifier

    for kind in (GBDTNNClassifier, NNGBDTClassifier):
        model = kind((3,), **parameters(n_estimators=4, epochs=2, random_state=0)).fit(X, Y, sample_weight=WEIGHT)
        p = model.predict_proba(X)
        assert p.shape == (150, 3)
        assert np.isfinite(p).all()
        assert p[:, 1].max() < 0.01
