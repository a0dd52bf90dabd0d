"""Tables whose signal is in cells that look wrong: no model is worse there than LightGBM."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import odd_tables
import pytest
from sklearn.metrics import roc_auc_score

from boostbp import BoostBPClassifier, BoostBPRegressor

ROWS = 4000


def error_of(model, X, y):
    return np.sqrt(np.mean((model.predict(X) - y) ** 2)) / y.std()


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("table", [odd_tables.sensors, odd_tables.amounts])
def test_classes_that_cells_off_by_much_tell_apart(table, backend):
    X, y = table(ROWS, 0)
    model = BoostBPClassifier((), backend=backend, random_state=0).fit(X, y)
    X_test, y_test = table(2 * ROWS, 1)
    rival = lgb.LGBMClassifier(verbose=-1, n_jobs=1).fit(X, y)
    expected = roc_auc_score(y_test, rival.predict_proba(X_test)[:, 1])
    assert roc_auc_score(y_test, model.predict_proba(X_test)[:, 1]) > expected - 0.01


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("table", [odd_tables.candles, odd_tables.currencies, odd_tables.gaps])
def test_targets_that_cells_off_by_much_determine(table, backend):
    X, y = table(ROWS, 0)
    model = BoostBPRegressor((), backend=backend, random_state=0).fit(X, y)
    X_test, y_test = table(2 * ROWS, 1)
    rival = lgb.LGBMRegressor(verbose=-1, n_jobs=1).fit(X, y)
    assert error_of(model, X_test, y_test) < error_of(rival, X_test, y_test)
