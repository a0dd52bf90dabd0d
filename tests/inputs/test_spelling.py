"""What text spells, and which columns of text are numbers or dates."""

from __future__ import annotations

import datetime as dt
import math
import re

import numpy as np
import pytest
from cures import pasted
from hypothesis import given
from hypothesis import strategies as st

from boostbp.inputs.categories import fault_of_text, spells_date, spells_number


@given(st.one_of(st.integers(), st.floats()))
def test_numbers_as_python_and_people_write_them_are_numbers(number):
    written = [str(number), f" {number} ", f"{number}%", f"${number}"]
    assert all(spells_number(text) for text in (written if math.isfinite(number) else written[:2]))
    if math.isfinite(number) and abs(number) < 1e15:
        assert spells_number(f"{number:,.2f}")
        assert spells_number(f"{number:,.2f}".translate(str.maketrans(",.", ".,")))
    assert spells_number(number)


@given(st.datetimes(dt.datetime(1000, 1, 1)))
def test_dates_as_python_and_people_write_them_are_dates(moment):
    for form in ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%y", "%d.%m.%Y", "%d %b %Y", "%B %d, %Y", "%H:%M:%S"):
        assert spells_date(moment.strftime(form))
    for form in ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.%f", "%d/%m/%Y %H:%M", "%m/%d/%Y %I:%M %p"):
        assert spells_date(moment.strftime(form))
        assert not spells_number(moment.strftime(form))


@pytest.mark.parametrize(
    "text", ["?", "", "a", "A1", "12kg", "1.2.3", "10.0.0.1", "2-3 years", "1/2", "12-345", "--", "1e", "99-99-99"]
)
def test_other_text_is_neither(text):
    assert not spells_number(text)
    assert not spells_date(text)
    assert not spells_number(True)
    assert not spells_number(None)


@pytest.mark.parametrize(
    ("values", "each", "said"),
    [
        (
            [f"{x / 7:.2f}" for x in range(300)] + ["?"],
            1,
            "300 of its 301 distinct values spell numbers.*'\\?' does not",
        ),
        ([str(x) for x in range(1, 11)] + ["?"], 50, "10 of its 11 distinct values spell numbers"),
        ([*map(str, range(1, 19)), 3.0, 4, "n/a", "-"], 50, "20 of its 22 .* '1'; 'n/a', '-' do not"),
        (
            ["1,234", "2,345", "3,456"],
            100,
            "3 of its 3 distinct values spell numbers, such as '1,234' \\(with separators of thousands\\)$",
        ),
        (["12%", "9 %", "7.5%"], 100, "spell numbers"),
        (["0,5", "1,5", "2,5"], 100, "spell numbers"),
        ([f"2024-01-{day:02}" for day in range(1, 29)], 100, "28 of its 28 distinct values spell dates or times"),
        (["03/01/2024 10:00", "04/01/2024 11:30", "05/01/2024 9:15"], 100, "spell dates or times"),
        ([str(x) for x in range(300)], 1, "300 of its 300 distinct values spell numbers"),
    ],
)
def test_columns_that_spell_numbers_or_dates_are_no_categories(values, each, said):
    fault = fault_of_text(values, [each] * len(values), "x", "x")
    sentence, code = fault.holds, fault.sentence
    assert re.search(said, sentence), sentence
    numbers = pasted(code, column=values)
    assert np.isfinite(numbers).sum() == int(re.search("[0-9]+", sentence)[0])


@pytest.mark.parametrize(
    ("values", "each"),
    [
        (["1", "2", "3"], 100),  # codes
        ([str(10_000 + 7 * x) for x in range(300)], 20),
        ([f"{x:05}" for x in range(50)], 9),
        (["1.0", "2.0", "3.0"], 5),
        (["0", "1", "?"], 100),
        (["1", "2", "3", "unknown", "none"], 100),
        (["S", "M", "L", "40", "42"], 10),
        (["a", "b"], 200),
        ([True, False], 200),
        ([f"item {x}" for x in range(300)], 1),  # of which another check speaks
        ([], 1),
    ],
)
def test_codes_and_names_are_categories(values, each):
    assert fault_of_text(values, [each] * len(values), "x", "x") is None


def test_rare_slips_among_few_numbers_are_told_by_their_rows():
    ratings, slips = ["1", "2", "3", "4", "5"], ["?"]
    assert fault_of_text(ratings + slips, [100] * 5 + [3], "x", "x") is not None
    assert fault_of_text(ratings + slips, [100] * 5 + [200], "x", "x") is None  # "?" is as good a category
    assert fault_of_text(["0", "flyer", "post", "shop"], [970, 10, 10, 10], "x", "x") is None
