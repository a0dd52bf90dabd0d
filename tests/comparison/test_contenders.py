"""The models of a comparison: what each library is trained with, and what is absent."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from boostbp.comparison.contenders import SINGLE_LAYER, deep
from boostbp.comparison.measuring import Job, compare_models, measure, splits
from tests.comparison.test_measuring import DEEP, split

SINGLE = ["LightGBM", "LightGBM linear_tree", "XGBoost"]


@pytest.mark.slow
def test_every_model_runs_on_classification():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    seen = []
    parts = splits(X, names[y], "classification")
    results = compare_models(parts, [*DEEP, *SINGLE_LAYER], watch=lambda label, fold: seen.append(label))
    assert [result.model for result in results] == ["boostbp (lightgbm)", "boostbp (xgboost)", *SINGLE] == seen
    for result in results:
        assert (result.state, result.reason) == ("ran", "")
        assert set(result.scores) == {"accuracy", "log_loss"}
        assert 0.6 < result.scores["accuracy"] <= 1.0
        assert result.fit_seconds > 0.0
        assert result.predict_seconds > 0.0


@pytest.mark.slow
def test_missing_library_is_skipped_with_the_cure(xgboost_that):
    xgboost_that("raise ModuleNotFoundError('No module', name='xgboost')")
    X, y = load_iris(return_X_y=True)
    results = compare_models(splits(X, y, "classification"), [DEEP[1], *SINGLE_LAYER[::2]])
    assert [result.state for result in results] == ["skipped", "ran", "skipped"]
    assert "pip install 'boostbp[xgboost]'" in results[0].reason
    assert "XGBoost needs the xgboost package" in results[-1].reason


@pytest.mark.parametrize("params", [{}, {"deep": True, "epochs": 2, "hidden_layer_sizes": (2,)}])
def test_length_of_a_deep_model_is_that_of_its_leading_piece(params):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 3))
    data = split(X, np.sin(6 * X[:, 0]) + X[:, 1], "regression")
    outcome = measure(Job(deep("lightgbm", params), 1, 0, evidence=True), data)
    assert outcome.length == outcome.evidence.history.best_iteration
    assert outcome.length > 0 or not outcome.evidence.history.by_rounds
    assert outcome.unit == ("rounds" if outcome.evidence.history.by_rounds else "epochs")
    assert outcome.depth == outcome.evidence.history.choice.depth_in_words
