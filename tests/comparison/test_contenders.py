"""The trainers of a comparison: what each library is trained with."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.pipeline import make_pipeline

from boostbp.comparison.contenders import SINGLE_LAYER, Contender, Split, deep, length_of, train_contender
from boostbp.comparison.measuring import TableData

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(200, 3))
Y = np.sin(6 * X[:, 0]) + X[:, 1]


@pytest.mark.parametrize("params", [{}, {"deep": True, "epochs": 2, "hidden_layer_sizes": (2,)}])
def test_length_of_a_deep_model_is_that_of_its_leading_piece(params):
    split = Split(X[:150], Y[:150], X[150:], Y[150:])
    fitted = train_contender(deep("lightgbm", params), split, task="regression", n_jobs=1, seed=0)
    assert fitted.length == fitted.model.history_.best_iteration


def test_a_single_layer_needs_validation_rows_or_a_length():
    with pytest.raises(ValueError, match="LightGBM needs validation rows for early stopping, or a length"):
        length_of(SINGLE_LAYER[0], Split(X, Y), None, 10)
    assert length_of(SINGLE_LAYER[0], Split(X, Y), 7, 10) == 7
    assert length_of(SINGLE_LAYER[0], Split(X, Y, X, Y), None, 10) == 10


@pytest.mark.parametrize("contender", [SINGLE_LAYER[0], SINGLE_LAYER[2]], ids=["lightgbm", "xgboost"])
def test_a_ranking_stops_early_and_has_the_same_rounds_again(contender):
    queries, grades = np.arange(200) // 10, np.digitize(Y, [0.3, 1.0])
    parts = Split(X[:150], grades[:150], X[150:], grades[150:], queries[:150], queries[150:])
    fitted = train_contender(contender, parts, task="ranking", n_jobs=1, seed=0)
    assert 0 < fitted.length < 2000
    again = train_contender(contender, Split(X, grades, groups=queries), task="ranking", n_jobs=1, seed=0, length=4)
    assert again.length == 4


@pytest.mark.parametrize(("task", "loss"), [("regression", None), ("ranking", "YetiRank"), ("survival", "Cox")])
def test_catboost_gets_text_its_loss_and_the_queries(monkeypatch, task, loss):
    calls = {}

    class Model:
        best_iteration_ = 11

        def __init__(self, **params):
            calls["params"] = params

        def fit(self, pool, **options):
            calls["pool"], calls["options"] = pool, options
            return self

    catboost = ModuleType("catboost")
    catboost.CatBoostRegressor = catboost.CatBoostRanker = Model
    catboost.Pool = lambda X, y, **options: SimpleNamespace(X=X, y=y, **options)
    monkeypatch.setitem(sys.modules, "catboost", catboost)
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=pd.Categorical(np.where(X[:, 0] > 0.9, None, "u")))
    data = TableData(frame, Y, task, groups=np.arange(200) // 10 if task == "ranking" else None)
    contender = Contender("CatBoost", "catboost")
    rows = data.rows(contender, np.arange(200))
    fitted = train_contender(contender, rows._replace(X_valid=rows.X, y_valid=rows.y), task=task, n_jobs=2, seed=1)
    assert fitted.length == 12
    assert calls["params"].get("loss_function") == loss
    assert (calls["params"]["thread_count"], calls["params"]["n_estimators"]) == (2, 2000)
    assert calls["pool"].cat_features == ["d"]
    assert set(calls["pool"].X["d"]) == {"u", ""}  # it takes no missing category
    assert (calls["pool"].group_id is not None) == (task == "ranking")
    assert calls["options"]["early_stopping_rounds"] == 50


@pytest.mark.parametrize("nested", [False, True])
def test_estimators_of_libraries_take_the_threads_of_the_comparison(nested):
    estimator = LGBMRegressor(n_estimators=2, verbose=-1)  # its None is all cores
    contender = Contender("ours", "estimator", {"estimator": make_pipeline(estimator) if nested else estimator})
    fitted = train_contender(contender, Split(X, Y), task="regression", n_jobs=1, seed=3).model
    trained = fitted[-1] if nested else fitted
    assert (trained.n_jobs, trained.random_state) == (1, 3)
    assert trained.booster_.params["num_threads"] == 1
