"""One message for all columns that cannot be used, in code or in options of the command line."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from cures import options_in

from boostbp import BoostBPRegressor
from boostbp.inputs.faults import Fault, cure, on_command_line, refuse_faults

ROWS = 60


@pytest.fixture
def command_line():
    token = on_command_line.set(True)
    yield
    on_command_line.reset(token)


def faults(count):
    return [Fault(f"c{k}", f"Column 'c{k}' is wrong: cure {k}.", "dates", [("dates", f"c{k}")]) for k in range(count)]


def message(*arguments):
    try:
        refuse_faults(*arguments)
    except ValueError as error:
        return str(error)
    raise AssertionError("not refused")


def test_nothing_is_refused_without_a_fault():
    refuse_faults([])


@pytest.mark.parametrize(("count", "told"), [(1, "Column 'c0' is wrong: cure 0."), (2, "2 columns cannot be used")])
def test_code_is_told_of_each_column(count, told):
    said = message(faults(count))
    assert said.startswith(told)
    assert said.endswith(f"Column 'c{count - 1}' is wrong: cure {count - 1}.")


def test_long_lists_are_shortened_in_code():
    said = message(faults(40))
    assert said.count("is wrong") == 3
    assert said.endswith("Nor can 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9', 'c10' and 29 more.")


def test_options_of_all_columns_are_told_once(command_line):
    said = message(faults(40), "rows.csv", [("sep", ";")])
    assert said.startswith("rows.csv cannot be used as it is: its columns are separated by ';'; 'c0' holds dates; 'c1'")
    assert said.count("holds dates") == 8
    words = options_in(said)
    assert words == ["--sep", ";", *(word for k in range(40) for word in ("--dates", f"c{k}"))]
    again = message(
        [Fault("a", "", "text", [("missing", "?")]), Fault("b", "", "text", [("missing", "?")])], "rows.csv"
    )
    assert options_in(again) == ["--missing", "?"]


def test_a_feature_without_options_is_dropped_and_a_target_is_not(command_line):
    assert options_in(message([Fault("a b", "", "lists")], "rows.csv")) == ["--drop", "a b"]
    said = message([Fault("y", "Target 'y' is missing: remove these rows.", options=None)], "rows.csv")
    assert said == "rows.csv cannot be used as it is: Target 'y' is missing: remove these rows."


def test_a_cure_is_where_the_caller_is(command_line):
    assert cure("drop it", [("drop", "a b")]) == "add --drop 'a b'"
    assert cure("drop it", []) == "drop it"
    on_command_line.set(False)
    assert cure("drop it", [("drop", "a b")]) == "drop it"


def test_all_columns_of_a_frame_are_in_one_message():
    table = pd.DataFrame({"x": np.arange(ROWS) / 7, "price": [f"${k:,}" for k in range(5000, 5000 + ROWS)]})
    table["day"] = [str(dt.date(2024, 1, 1) + dt.timedelta(days=k)) for k in range(ROWS)]
    table["when"] = pd.to_datetime(table["day"])
    with pytest.raises(ValueError, match="3 columns cannot be used as they are") as refusal:
        BoostBPRegressor(quality=1).fit(table, table["x"])
    for name, code in (("when", "has dtype Datetime"), ("price", "'[$,]'"), ("day", "pandas.to_datetime")):
        assert f"Column {name!r} " in str(refusal.value)
        assert code in str(refusal.value)
