"""A finite model or a clear error, whatever the data: some cases here, any number by ``python -m tests.fuzz``."""

from __future__ import annotations

import sys

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.__main__ import PROGRAM
from tests.fuzz.cases import Case, cases
from tests.fuzz.check import outcome_of
from tests.support.child_cases import main, run_all

HARMS = ["", "import os; os.abort()", "import time; time.sleep(60)", "print('loud')", "bytearray(8 << 30)"]
HARMS += ["open('written.txt', 'w').close()", "raise RuntimeError('of a library')", ""]
CHILD = f"""
import sys
from tests.support.child_cases import Program, main

def begin(folder, cases, seed):
    def attempt(number, note):
        note({HARMS}[number])
        return str(exec({HARMS}[number]))
    return attempt

main(Program("harm", None, {len(HARMS)}, begin, seconds=1, memory=2 << 30), sys.argv[1:])
"""


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
def test_a_run_prints_figures(capsys):
    assert main(PROGRAM, ["--cases", "3"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("3 cases in ")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")
def test_harm_is_a_failure_with_its_case_and_the_next_cases_are_tried(tmp_path):
    outcomes, failures = run_all(["-c", CHILD, "--folder", str(tmp_path)], range(len(HARMS)), tmp_path)
    text = "\n".join(failures)
    for seen in ("code -6", "Timeout", "printed 'loud", "MemoryError", "a file 'written.txt'", "RuntimeError: of a"):
        assert seen in text
    assert "case 1, import os; os.abort(): exit" in text
    assert outcomes == {"None": 4}  # the first and the last, and those that only print or write
    assert len(failures) == 6
