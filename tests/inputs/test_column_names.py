"""Column names of every type: their order is that of fit, and parameters name columns by them."""

from __future__ import annotations

import ast
import datetime as dt
import io
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, load, save, to_c
from boostbp.estimators.state import model_facts, model_from
from boostbp.inputs.schema import Schema
from boostbp.inputs.sources import open_source

RNG = np.random.default_rng(0)
A = np.column_stack([RNG.normal(size=(80, 2)), RNG.integers(0, 3, 80)])
Y = A[:, 0] + 2 * A[:, 1] + np.array([0.0, 5.0, -5.0])[A[:, 2].astype(int)]
DATES = [dt.date(2020, 1, day) for day in (3, 1, 2)]
NAMES = {
    "positions": pd.RangeIndex(3),
    "narrow positions": np.arange(3, dtype=np.int8),
    "objects": pd.Index([0, 1, 2], dtype=object),
    "ints": [5, -3, 9],
    "floats": [0.5, -1.5, 2.5],
    "levels": pd.MultiIndex.from_arrays([["a", "a", "b"], np.array([1, 2, 1], np.int16)]),
    "dates": pd.Index(DATES),
    "times": pd.date_range("2020", periods=3, freq="h"),
    "with NaN": [np.nan, 1.0, 2.0],
    "with None": pd.Index([None, 1, 2], dtype=object),
    "bytes": [b"a", b"b", b"c"],
    "categories": pd.CategoricalIndex([7, 8, 9]),
    "intervals": pd.interval_range(0, 3),
    "text": list("abc"),
}
kinds = pytest.mark.parametrize("kind", NAMES)


def regressor(**how):
    return BoostBPRegressor(**{"quality": 1, "n_estimators": 3, "random_state": 0} | how)


def copies(model):
    file = io.BytesIO()
    save(model, file)
    return [model, load(io.BytesIO(file.getvalue())), pickle.loads(pickle.dumps(model))]


@kinds
def test_another_order_is_an_error_that_names_it(kind):
    X = pd.DataFrame(A, columns=NAMES[kind])
    model = regressor().fit(X, Y)
    expected = model.predict(X)
    for same in copies(model):
        np.testing.assert_array_equal(same.predict(X), expected)
        if kind != "text":  # scikit-learn warns
            np.testing.assert_array_equal(same.predict(A), expected)
        cure = "same order" if kind == "text" else "pass those of fit in their order"
        for wrong in (X.iloc[:, ::-1], X.iloc[:1, [1, 0, 2]]):
            with pytest.raises(ValueError, match=cure):
                same.predict(wrong)
    assert hasattr(model, "feature_names_in_") == (kind == "text")
    assert to_c(model)


def test_the_cure_in_the_message_works():
    X = pd.DataFrame(A, columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]))
    model, wrong = regressor().fit(X, Y), X.iloc[:, [2, 0, 1]]
    with pytest.raises(ValueError, match=r"Column 0 of X is named \('b', 1\), and that of fit \('a', 1\)") as caught:
        model.predict(wrong)
    names = ast.literal_eval(re.search(r"X\[(\[.*\])\]", str(caught.value))[1])
    np.testing.assert_array_equal(model.predict(wrong[names]), model.predict(X))


def test_other_names_are_an_error():
    X = pd.DataFrame(A, columns=[5, 6, 7])
    with pytest.raises(ValueError, match=r"Column 2 of X is named 8, and that of fit 7"):
        regressor().fit(X, Y).predict(X.rename(columns={7: 8}))


@pytest.mark.parametrize("other", [pd.DataFrame(A), pd.DataFrame(A, columns=[5, 6, 7]), pd.DataFrame(A, columns=DATES)])
def test_a_frame_with_names_of_its_own_is_read_by_a_model_of_an_array(other):
    model = regressor().fit(A, Y)
    np.testing.assert_array_equal(model.predict(other), model.predict(A))


def test_a_frame_of_positions_in_another_order_is_not():
    with pytest.raises(ValueError, match=r"Column 0 of X is named 2, and that of fit 0"):
        regressor().fit(A, Y).predict(pd.DataFrame(A)[[2, 1, 0]])


def test_evaluation_sets_and_other_estimators_have_the_order_of_fit():
    X = pd.DataFrame(A)
    with pytest.raises(ValueError, match=r"Column 0 of X is named 2"):
        regressor().fit(X, Y, eval_set=[(X[[2, 1, 0]], Y)])
    coder = BoostBPAutoencoder((2,), epochs=1, random_state=0, categorical_features=None).fit(X)
    with pytest.raises(ValueError, match=r"Column 0 of X is named 2"):
        coder.transform(X[[2, 1, 0]])
    classifier = BoostBPClassifier(quality=1, n_estimators=2, random_state=0).fit(X, Y > 0)
    with pytest.raises(ValueError, match=r"Column 0 of X is named 2"):
        classifier.predict_proba(X[[2, 1, 0]])


@pytest.mark.parametrize("names", [["a", "b", "c"], [5, 6, 7]])
def test_blocks_have_the_order_of_fit(names):
    X = pd.DataFrame(A, columns=names)
    first = regressor().fit(X, Y)
    for again in ({}, {"init_model": first}):
        with pytest.raises(ValueError, match=r"of block 1 has|block 1 of X.*is named"):
            regressor().fit(iter([(X[:40], Y[:40]), (X[40:].iloc[:, ::-1], Y[40:])]), **again)
    with pytest.raises(ValueError, match=r"block 0 of X.*is named"):
        regressor().fit(iter([(X.iloc[:, ::-1], Y)]), init_model=first)


def test_libraries_with_text_alone():
    named = {name: A[:, j] for j, name in enumerate("abc")}
    for frame in (pl.DataFrame(named), pa.table(named)):
        model = regressor().fit(frame, Y)
        with pytest.raises(ValueError, match=r"order|is named"):
            model.predict(frame.select(["c", "b", "a"]))


@pytest.mark.parametrize("names", [["a", "a", "b"], [1, 1, 2], pd.Index([np.nan, np.nan, 2.0])])
def test_repeated_names_are_refused(names):
    with pytest.raises(ValueError, match="several columns of one name"):
        regressor().fit(pd.DataFrame(A, columns=names), Y)


@kinds
def test_categorical_features_by_name_number_and_mask(kind):
    X = pd.DataFrame(A, columns=NAMES[kind])
    source = open_source(X)

    def chosen(features):
        return Schema.of(source, categorical_features=features).categorical

    assert chosen([False, False, True]) == chosen(X.columns == X.columns[2]) == (2,)
    if kind not in ("ints", "categories"):
        assert chosen(X.columns[2:]) == chosen([X.columns[2]]) == (2,)
    if kind not in ("ints", "categories"):
        assert chosen([2]) == chosen(np.array([2])) == (2,)


@pytest.mark.parametrize("item", [2, 9, 5, -3])
def test_a_number_that_may_be_a_name_is_refused_with_cures_that_work(item):
    X = pd.DataFrame(A, columns=[5, -3, 9])
    with pytest.raises(ValueError, match=rf"categorical_features=\[{item}\] may be names .* which differ") as caught:
        regressor(categorical_features=[item]).fit(X, Y)
    by_name, by_number = re.findall(r"X\.columns\.isin\(.*?\)+(?= if)", str(caught.value))
    if item == 2:
        assert eval(by_number).tolist() == [False, False, True]
    else:
        assert eval(by_name).tolist() == [name == item for name in X.columns]


def test_numbers_beside_names_of_text_are_positions():
    source = open_source(pd.DataFrame(A, columns=["a", "b", "1"]))
    assert Schema.of(source, categorical_features=[2]).categorical == (2,)
    assert Schema.of(source, categorical_features=["1"]).categorical == (2,)


@pytest.mark.parametrize("kind", sorted(NAMES.keys() - {"dates", "times", "bytes", "intervals"}))  # no file holds these
def test_monotone_constraints_by_name(kind):
    X = pd.DataFrame(A, columns=NAMES[kind])
    how = {"hidden_layer_sizes": (), "min_samples_leaf": 3}
    by_name = regressor(**how, output={"monotone_constraints": {X.columns[1]: -1}}).fit(X, Y)
    expected = regressor(**how, output={"monotone_constraints": [0, -1, 0]}).fit(X, Y)
    np.testing.assert_array_equal(by_name.predict(X), expected.predict(X))
    with pytest.raises(ValueError, match=r"names \['other'\], but the columns are \["):
        regressor(**how, output={"monotone_constraints": {"other": 1}}).fit(X, Y)


def test_files_without_names_of_other_types_are_read():
    model = regressor().fit(pd.DataFrame(A), Y)
    facts, arrays = model_facts(model.model_)
    assert facts["schema"].pop("other_names") == {"tuple": ["0", "1", "2"]}
    assert model_from(BoostBPRegressor, facts, arrays).schema.labels is None
