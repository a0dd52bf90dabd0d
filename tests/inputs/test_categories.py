"""Category codes: the same in every container, whatever comes later."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbp.inputs.schema import read_input

NAN = np.nan

WORDS = st.lists(
    st.one_of(st.none(), st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)), min_size=1
)
INTEGERS = st.lists(st.one_of(st.none(), st.integers(-(2**62), 2**62)), min_size=1)


def codes_by_pandas(values):
    """Codes of sorted categories, and NaN."""
    codes = pd.Categorical(values).codes.astype(float)
    return np.where(codes < 0, NAN, codes)


@given(st.one_of(WORDS, INTEGERS))
@pytest.mark.filterwarnings("ignore:Column .* is read as categories")
def test_codes_are_those_of_pandas_categoricals_in_every_container(fit, values):
    expected = codes_by_pandas(pd.Series(values, dtype="Int64" if any(isinstance(v, int) for v in values) else object))
    objects = np.empty((len(values), 1), object)
    objects[:, 0] = values
    tables = [
        pd.DataFrame({"c": pd.Series(values, dtype=object)}),
        pl.DataFrame({"c": values}, strict=True),
        pa.table({"c": values}),
        pa.table({"c": pa.array(values).dictionary_encode()} if set(values) != {None} else {"c": values}),
    ]
    for X in tables:
        estimator, table = fit(X, ["c"])
        np.testing.assert_array_equal(table.X[:, 0], expected)
        np.testing.assert_array_equal(read_input(estimator, tables[0], estimator.schema_).X[:, 0], expected)
    np.testing.assert_array_equal(fit(objects, [0])[1].X[:, 0], expected)


@given(st.lists(st.sampled_from("zab"), min_size=1), st.permutations("abcz"))
def test_fixed_categories_keep_the_order_of_their_dtype(fit, values, order):
    pandas = pd.DataFrame({"c": pd.Categorical(values, categories=order)})
    polars = pl.DataFrame({"c": pl.Series(values, dtype=pl.Enum(order))})
    for X in (pandas, polars):
        estimator, table = fit(X)
        assert estimator.schema_.categories == {0: tuple(order)}
        np.testing.assert_array_equal(table.X[:, 0], pandas["c"].cat.codes)


def test_codes_follow_values_not_the_dtype_met_later(fit):
    estimator, _ = fit(pd.DataFrame({"c": pd.Categorical(["b", "a"], categories=["b", "a"])}))
    later = pd.DataFrame({"c": pd.Categorical(["a", "new", None, "b"], categories=["new", "a", "b"])})
    np.testing.assert_array_equal(read_input(estimator, later, estimator.schema_).X[:, 0], [1, 2, NAN, 0])


@pytest.mark.parametrize("unseen", ["c", "", "A", "aa"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_an_unseen_category_has_the_code_after_the_last(fit, make, unseen):
    estimator, _ = fit(make({"c": ["b", "a", None]}))
    later = read_input(estimator, make({"c": [unseen, "a", None]}), estimator.schema_)
    np.testing.assert_array_equal(later.X[:, 0], [2, 0, NAN])


def test_categories_may_be_bools_floats_and_mixtures(fit):
    values = [True, 2.5, "x", None, -1, NAN]
    estimator, table = fit(pd.DataFrame({"c": pd.Series(values, dtype=object)}))
    assert estimator.schema_.categories == {0: (-1, True, 2.5, "x")}
    np.testing.assert_array_equal(table.X[:, 0], [1, 2, 3, NAN, 0, NAN])


def test_columns_of_objects_without_strings_are_numbers(fit):
    X = pd.DataFrame({"d": [Decimal("1.5"), None], "b": [True, None], "n": [None, None]}, dtype=object)
    _, table = fit(X)
    assert table.categorical == ()
    np.testing.assert_array_equal(table.X, [[1.5, 1, NAN], [NAN, NAN, NAN]])
