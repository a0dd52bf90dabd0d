"""The page on what happens to data: each of its switches is a parameter that exists, and does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from boostbp import BoostBPRegressor
from boostbp.network.layers import BoundInput

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "data_handling.md"
ROWS = 400
ONE_LAYER = {"hidden_layer_sizes": (), "n_estimators": 20, "random_state": 0}
AVERAGE = {"quality": 2, "random_state": 0}


def numbers(seed=0, columns=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, columns))
    return X, X[:, 0] + X[:, 1] ** 2 + 0.1 * rng.normal(size=ROWS)


def beyond_the_range():
    X, y = numbers()
    return ONE_LAYER, X, y, 3.0 * X, {}


def missing_values():
    X, y = numbers()
    return ONE_LAYER, X, y, np.full((1, 3), np.nan), {}


def many_values():
    rng = np.random.default_rng(0)
    X = rng.random((3000, 1))
    return ONE_LAYER | {"min_samples_leaf": 1}, X, (X[:, 0] > 0.50001) * 1.0, X, {}


def more_columns_than_are_compared():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1010, 1001))
    return ONE_LAYER | {"n_estimators": 1}, X, X[:, 0], X, {}


def columns_that_say_the_same():
    X, y = numbers()
    X[:, 1] = X[:, 0] + 1e-3 * X[:, 1]
    return ONE_LAYER, X, y, X, {}


def codes_of_text():
    X, y = numbers()
    X[:, 0] = np.round(X[:, 0])
    return ONE_LAYER, np.char.mod("%g", X).astype(object), y, np.char.mod("%g", X).astype(object), {}


def categories_that_are_numbers():
    X, y = numbers()
    frame = pd.DataFrame({"a": pd.Categorical(np.round(X[:, 0])), "b": X[:, 1]})
    return ONE_LAYER, frame, y, frame, {}


def light_weights():
    X, y = numbers()
    return ONE_LAYER, X, y, X, {"sample_weight": np.full(ROWS, 0.01)}


def noise():
    X, _ = numbers()
    return AVERAGE, X, np.random.default_rng(1).normal(size=ROWS), X, {}


def one_column_that_counts():
    X, _ = numbers(columns=12)
    return {"quality": 1, "random_state": 0}, X, np.sin(3.0 * X[:, 0]), X, {}


def plain():
    X, y = numbers()
    return ONE_LAYER, X, y, X, {}


def amounts():
    X, y = numbers()
    return ONE_LAYER | {"loss": "gamma"}, X, np.exp(y), X, {}


def several_levels():
    X, y = numbers()
    return ONE_LAYER | {"loss": "quantile", "alpha": [0.1, 0.5, 0.9]}, X, y, X, {}


# the switch as the page writes it: a table on which it changes what is predicted
SWITCHES = {
    'hidden={"clip": False}, output={"clip": False}': beyond_the_range,
    'hidden={"basis": "constant", "base": "zero"}, output={"basis": "constant", "base": "zero"}': missing_values,
    'hidden={"max_bins": 5000}, output={"max_bins": 5000}': many_values,
    'hidden={"base": "zero"}, output={"base": "zero"}': more_columns_than_are_compared,
    'output={"base_lambda": 0.0}': columns_that_say_the_same,
    "quality=2": one_column_that_counts,
    "categorical_features=[0]": codes_of_text,
    "categorical_features=None": categories_that_are_numbers,
    "early_stopping=False": plain,
    "validation=(train, held)": plain,
    'output={"reg_lambda": 100.0}': light_weights,
    "hidden_layer_sizes=()": noise,
    'loss="squared_error"': amounts,
    "alpha=0.9": several_levels,
}
NAMES = {"train": np.arange(40, ROWS), "held": np.arange(40)}
# what says which rows or settings are meant, in words beside it
IN_WORDS = {"validation=", "eval_set="}


def on_the_page():
    """Every switch in the last column of the page's tables."""
    rows = [line.split(" | ")[-1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    codes = [code for cell in rows for code in re.findall(r"`([^`]*)`", cell)]
    return {code for code in codes if re.match(r"[a-z_]+=", code)} - IN_WORDS


def test_every_switch_of_the_page_is_tried_here():
    assert on_the_page() == set(SWITCHES)


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.filterwarnings("ignore:.*no effect")
def test_a_switch_changes_the_model(switch):
    how, X, y, X_new, beside = SWITCHES[switch]()
    changed = eval(f"dict({switch})", {}, NAMES)
    model = BoostBPRegressor(**how).fit(X, y, **beside)
    other = BoostBPRegressor(**how | changed).fit(X, y, **beside)
    assert not np.array_equal(model.predict(X_new), other.predict(X_new))


def test_predictions_follow_a_change_of_unit():
    _, X, y, X_new, _ = plain()
    model = BoostBPRegressor(**ONE_LAYER).fit(X, y)
    other = BoostBPRegressor(**ONE_LAYER).fit(X, 1000.0 * y + 5.0)
    np.testing.assert_allclose(other.predict(X_new), 1000.0 * model.predict(X_new) + 5.0, rtol=1e-6, atol=1e-3)


def test_light_weights_that_are_all_equal_are_those_of_one_row_each():
    _, X, y, X_new, _ = plain()
    how = ONE_LAYER | {"early_stopping": False}
    weighed = BoostBPRegressor(**how).fit(X, y, sample_weight=np.full(ROWS, 0.01))
    expected = BoostBPRegressor(**how).fit(X, y).predict(X_new)
    np.testing.assert_allclose(weighed.predict(X_new), expected, rtol=0, atol=1e-12)


def test_cells_reach_splits_and_regressions_as_they_are(before):
    """In training every layer on the table is bound to the very numbers that `fit` was given, however far off."""
    X, y = numbers()
    X[3, 0], X[5, 1], X[7, 2] = 1e9, -1e9, 0.0
    layers = []
    before(BoundInput, "__init__", lambda _, bound, *how: layers.append(bound))
    BoostBPRegressor(**ONE_LAYER, early_stopping=False).fit(X, y)
    assert layers
    for bound in layers:
        np.testing.assert_array_equal(bound.table.X, X)
        np.testing.assert_array_equal(bound.Z, X)
