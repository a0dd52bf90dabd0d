"""What a comparison measured: scores, states, costs, predictions, notes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_score

from tests.comparison.conftest import QUICK


def test_scores_are_a_frame_and_those_of_scikit_learn(numbers):
    frame = pd.DataFrame(numbers.scores)
    assert list(frame.columns) == ["model", "fold", "rmse", "mae", "r2", "fit_seconds"]
    assert len(frame) == 30
    X, y = load_diabetes(return_X_y=True)
    expected = cross_val_score(
        Ridge(alpha=0.01), X, y, cv=KFold(5, shuffle=True, random_state=0), scoring="neg_root_mean_squared_error"
    )
    np.testing.assert_allclose(frame[frame["model"] == "good"]["rmse"][:5], -expected)


def test_states_and_costs(numbers):
    assert numbers.states == {**dict.fromkeys(QUICK[:3], "ran"), "broken": "failed: RuntimeError: no luck <here>"}
    assert len(numbers.outcomes["broken"]) == 1  # it is not tried again
    assert numbers.cost("good", "model_bytes") > 0
    assert numbers.cost("broken", "fit_seconds") is None


def test_predictions_are_of_rows_that_a_model_did_not_learn_from(numbers):
    X, y = load_diabetes(return_X_y=True)
    np.testing.assert_array_equal(np.sort(numbers.predicted_rows), np.arange(442))  # of the first repeat alone
    train, test = numbers.plan.folds[0]
    expected = Ridge(alpha=0.01).fit(X[train], y[train]).predict(X[test])
    np.testing.assert_allclose(numbers.predicted["good"][: len(test)], expected)


def test_a_rare_class_is_noted(labels):
    assert labels.notes == ["Class '<sick>' is rare, with 25 of 375 rows (6.7 %)."]
    assert labels.plan.metric == "auc"
