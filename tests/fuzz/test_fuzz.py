"""A finite model or a clear error, whatever the data: some cases here, any number by ``python -m tests.fuzz``."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz import __main__ as fuzz
from tests.fuzz.cases import Case, cases
from tests.fuzz.check import outcome_of


@pytest.mark.slow
@settings(suppress_health_check=list(HealthCheck))
@given(cases())
def test_a_finite_model_or_a_clear_error(case):
    outcome_of(case)


def test_a_case_makes_the_same_data_each_time():
    case = Case("regressor", "lightgbm", 20, ("normal", "wide"), "normal", weight="uneven")
    for once, again in zip(case.data(), case.data(), strict=True):
        assert once.tobytes() == again.tobytes()
    assert case.data()[0].tobytes() != case.data(seed=1)[0].tobytes()


@pytest.mark.slow
def test_run_prints_figures_and_goes_on_where_it_was(tmp_path, capsys):
    file = tmp_path / "found.jsonl"
    assert fuzz.main(["--cases", "3", "--file", str(file)]) == 0
    [first] = map(json.loads, file.read_text().splitlines())
    assert (first["batch"], first["cases"], first["failure"]) == (0, 3, "")
    file.write_text(json.dumps(first | {"outcomes": {"model": 7}}) + "\n")
    assert fuzz.main(["--cases", "3", "--file", str(file)]) == 0
    assert "7 cases in 1 batches" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("ending", "seen"),
    [
        ("import os; os.abort()", "exit code -6"),
        ("raise ValueError('mine')", "ValueError: mine"),
        ("import faulthandler, time; faulthandler.dump_traceback_later(0.1, exit=True); time.sleep(60)", "Timeout"),
    ],
)
def test_a_child_that_dies_or_hangs_names_its_case(ending, seen):
    result = fuzz.result_of([sys.executable, "-c", f"print('Case 1'); print('Case 2', flush=True); {ending}"])
    assert seen in result["failure"]
    assert "at Case 2" in result["failure"]
