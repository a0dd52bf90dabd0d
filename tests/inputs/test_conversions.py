"""Code in messages turns text that spells numbers into numbers."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cures import pasted

from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.inputs.conversions import options_for_dates
from tests.test_cures import AMOUNTS, DATES, ROWS, SPELT, X, message_of, y


def fit(X, y, kind=BoostBPRegressor, **params):
    return kind(**{"quality": 1, "n_estimators": 2, "random_state": 0} | params).fit(X, y)


@pytest.mark.parametrize("spelling", [*AMOUNTS, *DATES])
def test_a_feature_that_spells_numbers_becomes_them(spelling):
    column = (AMOUNTS | DATES)[spelling]
    message = message_of(fit, X.assign(x=column), y)
    numbers = pasted(message, column=X.assign(x=column)["x"])
    np.testing.assert_allclose(numbers, SPELT[spelling])
    assert fit(X.assign(x=numbers), y).schema_.categories == {}
    declared = pasted(message, r"column\.astype", column=pd.Series(column))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Column 'x' is read as categories, but has .* distinct values")
        assert list(fit(X.assign(x=declared), y).schema_.categories) == [0]


@pytest.mark.parametrize("spelling", [*AMOUNTS, *DATES])
@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series], ids=["list", "array", "pandas", "polars"])
def test_a_target_that_spells_numbers_becomes_them(spelling, make):
    target = make((AMOUNTS | DATES)[spelling])
    for kind in (BoostBPRegressor, BoostBPClassifier):
        message = message_of(fit, X, target, kind)
        np.testing.assert_allclose(pasted(message, y=target), SPELT[spelling])
    labels = pasted(message, r"\[f'class", y=target)  # the message of the classifier
    assert fit(X, [*labels[:20]] * 3, BoostBPClassifier).n_classes_ == len({*labels[:20]})


@pytest.mark.parametrize("others", [["?"], ["?", "n/a"], ["a", "b", "c", "d"]])
@pytest.mark.parametrize("spelling", ["plain", "$", "decimal comma", "ISO"])
def test_slips_become_missing_and_nothing_else_does(spelling, others):
    column = [*(AMOUNTS | DATES)[spelling], *others]
    table = pd.DataFrame({"x": column, "z": np.arange(len(column)) / 7})
    numbers = pasted(message_of(fit, table, table["z"]), column=table["x"])
    np.testing.assert_allclose(numbers, [*SPELT[spelling], *[np.nan] * len(others)])


def test_two_decimal_signs_in_a_column_are_not_guessed():
    for target in (["1.5", "0,5", "2.25"] * 20, ["1,234.5", "0,25", "3.5"] * 20):
        assert "some have a decimal comma" in message_of(fit, X, target)
        assert "pandas.to_numeric" not in message_of(fit, X, target)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([f"1,{row + 100:03d}" for row in range(ROWS)], [f"1,{row + 10:02d}" for row in range(ROWS)]),
        ([f"${row}" for row in range(ROWS)], [f"\u20ac{row}" for row in range(ROWS)]),
    ],
)
@pytest.mark.filterwarnings("ignore:Column 'y' holds text")
def test_files_that_write_a_target_in_two_ways_are_refused(tmp_path, first, second):
    for name, texts in (("a", first), ("b", second)):
        X.assign(y=texts).to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.raises(ValueError, match=r"Column 'y' .* is not that of all rows: write all of them alike"):
        BoostBPRegressor(quality=1).fit(tmp_path, "y")


@pytest.mark.parametrize("text", ["3/1/24", "2024/13/01", "3 Jan 24"])
def test_no_option_reads_dates_that_may_mean_several(text):
    assert options_for_dates(["2024-01-03", "3 Jan 2024"], [], "x") == [("dates", "x")]
    assert options_for_dates(["2024-01-03", text], [], "x") == []
    table = X.assign(x=[text, *(f"2024-01-{day:02}" for day in range(1, 20))] * 3)
    assert f"({text!r} is neither a time nor a date with a four-digit year" in message_of(fit, table, y)


@pytest.mark.parametrize("texts", [["12%", "0.5"], ["$12", "\u20ac12"]])
def test_a_column_that_mixes_units_is_refused(tmp_path, texts):
    X.assign(y=texts * (ROWS // 2)).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=r"Column 'y' must hold numbers: (some .* a percent|they are amounts)"):
        BoostBPRegressor(quality=1).fit(tmp_path / "a.csv", "y")
