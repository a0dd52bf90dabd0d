"""Tables whose signal is in cells that look wrong: no model is worse there than LightGBM."""

from __future__ import annotations

from functools import cache, partial

import lightgbm as lgb
import numpy as np
import odd_tables
import pytest
from sklearn.metrics import roc_auc_score

from boostbp import BoostBPClassifier, BoostBPRegressor

ROWS = 4000
ONE_LAYER = {"hidden_layer_sizes": ()}
WAYS = [
    pytest.param(ONE_LAYER, id="one layer"),
    pytest.param(ONE_LAYER | {"backend": "xgboost"}, id="one layer, xgboost"),
    pytest.param({"quality": 1}, id="quality=1"),
    pytest.param({"quality": 1, "backend": "xgboost"}, id="quality=1, xgboost", marks=pytest.mark.slow),
    pytest.param({"deep": False}, id="deep=False", marks=pytest.mark.slow),
    pytest.param({"deep": True, "epochs": 15}, id="deep=True", marks=pytest.mark.slow),
    pytest.param({}, id="default", marks=pytest.mark.slow),
]
CLASSES = {
    "two sensors": odd_tables.sensors,
    "three sensors": partial(odd_tables.sensors, count=3),
    "three sensors, 1.5 %": partial(odd_tables.sensors, count=3, share=0.015),
    "amounts": odd_tables.amounts,
}
NUMBERS = {
    "candles": odd_tables.candles,
    "currencies": odd_tables.currencies,
    "rare levels": odd_tables.rare_levels,
    "gaps": odd_tables.gaps,
    "sentinels": odd_tables.sentinels,
}


def auc(model, table, seed=1):
    X, y = table(2 * ROWS, seed)
    return roc_auc_score(y, model.predict_proba(X)[:, 1])


def error(model, table):
    X, y = table(2 * ROWS, 1)
    return np.sqrt(np.mean((model.predict(X) - y) ** 2)) / y.std()


@cache
def rival(table, kind=lgb.LGBMClassifier):
    return kind(verbose=-1, n_jobs=1).fit(*table(ROWS, 0))


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("table", CLASSES.values(), ids=CLASSES)
def test_classes_that_cells_off_by_much_tell_apart(table, how):
    model = BoostBPClassifier(**how, random_state=0).fit(*table(ROWS, 0))
    assert auc(model, table) > auc(rival(table), table) - 0.01


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("table", NUMBERS.values(), ids=NUMBERS)
def test_targets_that_cells_off_by_much_determine(table, how):
    model = BoostBPRegressor(**how, random_state=0).fit(*table(ROWS, 0))
    assert error(model, table) < error(rival(table, lgb.LGBMRegressor), table)


@pytest.mark.full_length
@pytest.mark.parametrize("how", [WAYS[0], pytest.param({"quality": 1}, marks=pytest.mark.slow)])
def test_emergencies_whose_readings_disagree(how):
    """A single table of 30 emergencies decides by luck: a mean over eight."""
    models = [BoostBPClassifier(**how, random_state=0), lgb.LGBMClassifier(verbose=-1, n_jobs=1)]
    found, expected = (
        np.mean([auc(model.fit(*odd_tables.glucose(ROWS, seed)), odd_tables.glucose, 100 + seed) for seed in range(8)])
        for model in models
    )
    assert found > expected - 0.01


@pytest.mark.full_length
@pytest.mark.parametrize("how", WAYS)
def test_a_forecast_follows_the_last_value(how):
    """Five lags of 0 and a high one never were in training: the truth is .95 times the last."""
    X, y = odd_tables.forecasts(ROWS, 0)
    model = BoostBPRegressor(**how, random_state=0).fit(X, y)
    rows = np.zeros((3, X.shape[1]))
    rows[:, -1] = last = np.array([2.0, 2.5, 3.0])
    assert last.max() < X.max()
    off, expected = (
        np.abs(each.predict(rows) - 0.95 * last).max()
        for each in (model, rival(odd_tables.forecasts, lgb.LGBMRegressor))
    )
    assert off < expected


@pytest.mark.parametrize("how", WAYS)
def test_the_code_of_a_missing_value_is_a_value(how):
    X, y = odd_tables.sentinels(ROWS, 0)
    model = BoostBPRegressor(**how, random_state=0).fit(X, y)
    X, y = odd_tables.sentinels(2 * ROWS, 1)
    coded = X[:, 1] == -999
    assert np.abs(model.predict(X[coded]) - y[coded]).mean() < 0.5  # of which .24 is noise
