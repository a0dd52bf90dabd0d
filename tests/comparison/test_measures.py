"""Metrics of each task, with the values of scikit-learn, by name and as scorers of the user."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from boostbp.comparison.measures import measure_by_name, measures_of, with_metric
from boostbp.metrics import concordance_index, ndcg

RNG = np.random.default_rng(0)
P = RNG.dirichlet([1.0, 1.0], 80)
Y = (RNG.uniform(size=80) < 0.3).astype(int)


def test_two_classes_have_the_values_of_scikit_learn():
    values = {
        name: m.function(Y, P, None) for name, m in measures_of("classification", Y, np.array(["a", "b"])).items()
    }
    expected = {
        "auc": metrics.roc_auc_score(Y, P[:, 1]),
        "average_precision": metrics.average_precision_score(Y, P[:, 1]),
        "log_loss": metrics.log_loss(Y, P),
        "brier": metrics.brier_score_loss(Y, P[:, 1]),
    }
    assert values == pytest.approx(expected)


def test_average_precision_is_that_of_the_rarer_class():
    flipped = measures_of("classification", 1 - Y, np.array(["a", "b"]))["average_precision"]
    assert flipped.function(1 - Y, P[:, ::-1], None) == pytest.approx(metrics.average_precision_score(Y, P[:, 1]))
    assert "'a', the rarer class" in flipped.note


def test_several_classes_and_numbers():
    P3, y3 = RNG.dirichlet([1.0] * 3, 60), np.arange(60) % 3
    measures = measures_of("classification", y3, np.arange(3))
    assert list(measures) == ["log_loss", "balanced_accuracy", "accuracy"]
    assert measures["log_loss"].function(y3, P3.astype(np.float32).astype(float), None) == pytest.approx(
        metrics.log_loss(y3, P3), rel=1e-6
    )
    assert measures["balanced_accuracy"].function(y3, P3, None) == pytest.approx(
        metrics.balanced_accuracy_score(y3, P3.argmax(axis=1))
    )
    y, predicted = RNG.normal(size=50), RNG.normal(size=50)
    numbers = measures_of("regression", y, np.array([]))
    assert numbers["rmse"].function(y, predicted, None) == pytest.approx(np.sqrt(np.mean((y - predicted) ** 2)))
    assert measure_by_name("pinball@0.9", numbers).function(y, predicted, None) == pytest.approx(
        metrics.mean_pinball_loss(y, predicted, alpha=0.9)
    )


def test_rankings_and_survival_times():
    grades, scores, qid = RNG.integers(0, 3, 40), RNG.normal(size=40), np.arange(40) // 8
    assert measure_by_name("ndcg@5", {}).function(grades, scores, qid) == ndcg(grades, scores, qid=qid, k=5)
    assert list(measures_of("ranking", grades, np.array([]))) == ["ndcg@10", "ndcg"]
    time, event = RNG.exponential(size=40), RNG.uniform(size=40) < 0.6
    (concordance,) = measures_of("survival", time, np.array([])).values()
    signed = np.where(event, time, -time)
    assert concordance.function(signed, scores, None) == concordance_index(event, time, scores)


def test_the_metric_of_the_verdict_comes_first_and_may_be_a_scorer():
    known = measures_of("regression", np.zeros(2), np.array([]))
    assert list(with_metric(known, "mae")[1]) == ["mae", "rmse", "r2"]
    name, measures = with_metric(known, "neg_median_absolute_error")
    assert measures[name].scorer is not None
    assert measures[name].greater_is_better

    def profit(model, X, y):
        return 1.0

    assert with_metric(known, profit)[0] == "profit"
    with pytest.raises(ValueError, match=r"metric='gini' is not known: give one of rmse, mae, r2, pinball@0.9"):
        with_metric(known, "gini")
