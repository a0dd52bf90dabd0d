"""Models where some cells are mistyped: a factor of ten, or 0 for a number that is missing."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BACKENDS
from odd_tables import mistyped_stones

from boostbp import BoostBPRegressor


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("base", "rows"), [("ridge", 1000), ("additive", 2000)])
def test_one_wrong_cell_does_not_outweigh_the_right_ones(backend, base, rows):
    X, y, _ = mistyped_stones(rows, 0, 0)
    model = BoostBPRegressor((), **parameters(base=base, backend=backend, n_estimators=100, random_state=0)).fit(X, y)
    X, y, wrong = mistyped_stones(1000, 1, 200)
    error = model.predict(X) - y
    # A length at the end of its range is four deviations off, and its share in what the three say alike is a third.
    assert np.sqrt(np.mean(error[wrong] ** 2)) < 4 / 3 * y.std()
    assert np.sqrt(np.mean(np.delete(error, wrong) ** 2)) < 0.11  # of which .09 is noise


@pytest.mark.parametrize(
    "how",
    [
        {"hidden_layer_sizes": ()},
        {"hidden_layer_sizes": (), "backend": "xgboost"},
        {"quality": 1},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"deep": False}, marks=pytest.mark.slow),
        pytest.param({"deep": True}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("mistyped", [0, 3])
def test_a_few_mistyped_cells_cost_a_table_next_to_nothing(how, mistyped):
    X, y, _ = mistyped_stones(4000, 2, mistyped)
    models = [BoostBPRegressor(**how, random_state=0), lgb.LGBMRegressor(verbose=-1, n_jobs=1)]
    X_test, y_test, _ = mistyped_stones(6000, 1, 4)
    found, expected = (np.sqrt(np.mean((model.fit(X, y).predict(X_test) - y_test) ** 2)) for model in models)
    assert found < 1.25 * expected
