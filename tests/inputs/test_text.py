"""Text that spells numbers or dates is refused; what hardly comes twice is warned of."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator

from boostbp.inputs.schema import learn_schema, read_input

ROWS = 400
rng = np.random.default_rng(0)
NUMBERS = rng.normal(size=ROWS).round(2).astype(str).astype(object)
CODES = rng.integers(1, 30, ROWS).astype(str).astype(object)
MAKERS = {
    "pandas": lambda values: pd.DataFrame({"x": pd.Series(values)}),
    "pandas object": lambda values: pd.DataFrame({"x": pd.Series(values, dtype=object)}),
    "pandas arrow": lambda values: pd.DataFrame({"x": pd.Series(values, dtype="string[pyarrow]")}),
    "polars": lambda values: pl.DataFrame({"x": list(values)}),
    "arrow": lambda values: pa.table({"x": list(values)}),
}


def spoilt(values, *slips):
    values = values.copy()
    values[: len(slips)] = slips
    return values


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_numbers_as_text_are_refused_with_the_cell_and_the_cure(fit, make):
    with pytest.raises(ValueError, match=r"Column 'x' holds text.* spell numbers.*'\?' does not.*na_values=\['\?'\]"):
        fit(make(spoilt(NUMBERS, "?")))
    days = pd.date_range("2024-01-03", periods=ROWS).strftime("%Y-%m-%d").to_numpy(object)
    with pytest.raises(ValueError, match=r"Column 'x' holds text.* spell dates or times.*to_datetime"):
        fit(make(days))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_codes_as_text_are_categories(fit, make):
    estimator, _ = fit(make(CODES))
    assert estimator.schema_.categories[0] == tuple(sorted(set(CODES)))


def test_mixed_cells_of_a_file_read_in_pieces_are_refused(fit):
    """What `pandas.read_csv` makes of a large file with one text cell: numbers, then the same as text."""
    values = np.array([*range(200), *map(str, range(200)), "?"], object)
    with pytest.raises(ValueError, match=r"Column 'x' holds text, but 400 of its 401 distinct values spell numbers"):
        fit(MAKERS["pandas object"](values))


@pytest.mark.parametrize(
    ("X", "wanted"),
    [
        (MAKERS["pandas"](spoilt(CODES, "?")), ["x"]),
        (MAKERS["pandas"](spoilt(CODES, "?")).astype("category"), "from_dtype"),
        (MAKERS["polars"](spoilt(CODES, "?")).with_columns(pl.col("x").cast(pl.Categorical)), "from_dtype"),
        (pa.table({"x": pa.array(list(spoilt(CODES, "?"))).dictionary_encode()}), "from_dtype"),
        (spoilt(CODES, "?")[:, None], [0]),
    ],
)
def test_categories_that_are_declared_may_spell_anything(fit, X, wanted):
    estimator, _ = fit(X, wanted)
    assert "?" in estimator.schema_.categories[0]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (pd.Series([f"customer {i}" for i in range(ROWS)]), "from_dtype"),
        (pd.Series([f"customer {i}" for i in range(ROWS)], dtype="category"), "from_dtype"),
        (pd.Series(NUMBERS + np.arange(ROWS).astype(str)), ["x"]),
        (pd.Series(rng.normal(size=ROWS)), ["x"]),
    ],
)
def test_a_category_for_each_row_is_warned_of(values, wanted):
    estimator = BaseEstimator()
    with pytest.warns(UserWarning, match=r"Column 'x' is read as categories, but has 400 distinct values in 400 rows"):
        schema, _ = learn_schema(estimator, values.to_frame("x"), categorical_features=wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_input(estimator, values.to_frame("x"), schema)


def test_few_rows_may_differ_and_categories_of_no_row_do_not_count(fit):
    fit(pd.DataFrame({"x": list("abcdefghijklmnopqrs")}))
    fit(pd.DataFrame({"x": pd.Categorical(CODES, categories=[*map(str, range(2000))])}))
    fit(pd.DataFrame({"x": pd.Series([None] * 50, dtype=object), "z": np.arange(50)}))
