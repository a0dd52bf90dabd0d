"""Estimators on the tables that people hold: data frames, categories, missing values, labels, weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from flat_parameters import parameters
from helpers import WITH_CATEGORIES
from sklearn.utils.class_weight import compute_sample_weight

from boostbp import BoostBPClassifier, BoostBPRegressor

SMALL = {"hidden_layer_sizes": (4,), "epochs": 2, "n_estimators": [5, 20], "random_state": 0, "deep": True}
rng = np.random.default_rng(0)
ROWS = 500


def table():
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=ROWS),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], ROWS)),
            "weight": rng.normal(size=ROWS),
        }
    )
    y = frame["size"] * (frame["colour"] == "red") + frame["weight"]
    frame.loc[rng.choice(ROWS, 40, replace=False), "weight"] = np.nan
    frame.loc[rng.choice(ROWS, 40, replace=False), "colour"] = None
    return frame, y.to_numpy()


FRAME, Y = table()


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
@pytest.mark.parametrize("multi_strategy", ["one_output_per_tree", "multi_output_tree"])
def test_categories_are_learned_from_the_raw_table(backend, multi_strategy):
    model = BoostBPRegressor(**parameters(**SMALL, backend=backend, multi_strategy=multi_strategy)).fit(FRAME, Y)
    assert model.score(FRAME, Y) > 0.8
    assert (model.network_.layers[0].forest.nodes.cat_start >= 0).any()
    assert model.feature_names_in_.tolist() == ["size", "colour", "weight"]


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_categoriesof_few_rows_are_split_by_the_defaults(backend):
    X, group = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) % 4  # 75 rows each
    y = X[:, 0] + np.array([3.0, -1.0, 1.0, -3.0])[group]
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(group=pd.Categorical(group.astype(str)))
    model = BoostBPRegressor(**parameters(**SMALL, backend=backend)).fit(frame, y)
    assert model.importance("split")[2] > 0
    assert model.score(frame, y) > 0.9


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_the_kind_of_data_frame_does_not_matter(backend):
    arrow = pa.Table.from_pandas(FRAME, preserve_index=False)
    predictions = [
        BoostBPRegressor(**parameters(**SMALL, backend=backend)).fit(frame, Y).predict(frame)
        for frame in (FRAME.assign(colour=FRAME["colour"].astype(object)), pl.from_arrow(arrow), arrow)
    ]
    np.testing.assert_array_equal(predictions[0], predictions[1])
    np.testing.assert_array_equal(predictions[0], predictions[2])


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_what_is_missing_or_new_at_predict_gives_finite_numbers(backend):
    model = BoostBPRegressor(**parameters(**SMALL, backend=backend)).fit(FRAME, Y)
    changed = FRAME.copy()
    changed["size"] = np.nan  # never missing in training
    changed["colour"] = "violet"  # never seen
    with pytest.warns(UserWarning, match=r"Column 'colour': almost no value was seen at fit, such as 'violet'"):
        assert np.isfinite(model.predict(changed)).all()
    with pytest.warns(UserWarning, match="almost no value was seen"):
        slopes = model.jacobian(changed)
    assert np.isfinite(slopes).all()
    assert not slopes[:, :, 0].any()  # a missing feature has no slope


def test_one_wild_cell_stays_within_bounds():
    model = BoostBPRegressor(**parameters(**SMALL, base="zero")).fit(FRAME, Y)
    wild = FRAME.head(1).assign(size=1e30)
    assert abs(model.predict(wild)[0] - Y.mean()) < 10 * np.ptp(Y)


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_labels_are_the_users_own(backend):
    labels = np.where(np.digitize(Y, [-0.5, 0.5]) == 0, "low", np.where(Y > 0.5, "high", "middle"))
    model = BoostBPClassifier(**parameters(**SMALL, backend=backend)).fit(FRAME, labels)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    assert set(model.predict(FRAME)) <= set(labels)
    assert model.score(FRAME, labels) > 0.8
    np.testing.assert_allclose(model.predict_proba(FRAME).sum(axis=1), 1.0, rtol=1e-12)


def test_class_weight_is_a_sample_weight():
    positive = Y > 1.0
    weights = compute_sample_weight("balanced", positive)
    by_class = BoostBPClassifier(**parameters(**SMALL, class_weight="balanced")).fit(FRAME, positive)
    by_row = BoostBPClassifier(**parameters(**SMALL)).fit(FRAME, positive, sample_weight=weights)
    np.testing.assert_array_equal(by_class.predict_proba(FRAME), by_row.predict_proba(FRAME))


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_several_outputs_and_evaluation_sets(backend):
    both = np.column_stack([Y, -3 * Y + 100])
    sets = [(FRAME.tail(100), both[-100:]), (FRAME.head(50), both[:50], np.ones(50))]
    model = BoostBPRegressor(**parameters(**SMALL, backend=backend, eval_metric="mae")).fit(
        FRAME.head(400), both[:400], eval_set=sets
    )
    assert model.predict(FRAME).shape == (ROWS, 2)
    assert model.score(FRAME, both) > 0.8
    history = model.history_
    error = np.abs(model.predict(FRAME.tail(100)) - both[-100:]).mean()
    assert history.scores["valid_0"] == pytest.approx(error, rel=1e-9)
    assert set(history[0].metrics) == {"valid_0", "valid_1"}


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_codes_are_the_same_categories_when_a_missing_cell_changes_their_type(backend):
    codes = pd.DataFrame({"store": rng.integers(1, 6, ROWS), "z": rng.normal(size=ROWS)})
    y = np.array([0.0, 5.0, -5.0, 2.0, 9.0, -8.0])[codes["store"]] + codes["z"]
    model = BoostBPRegressor(**parameters(**SMALL, backend=backend, categorical_features=["store"])).fit(codes, y)
    assert model.importance("split")[0] > 0
    for later in ("float64", "Int64", "object", "str", "category"):
        now = codes.astype({"store": later})
        now.loc[0, "store"] = None
        np.testing.assert_array_equal(model.predict(now)[1:], model.predict(codes)[1:], later)
