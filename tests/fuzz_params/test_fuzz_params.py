"""No native parameter ends the process: each one here, and many combinations by ``python -m tests.fuzz_params``."""

from __future__ import annotations

import sys

import pytest

from tests.fuzz_params.__main__ import report, walked
from tests.fuzz_params.cases import BACKENDS, names
from tests.fuzz_params.children import run

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")

HARMS = ["", "import os; os.abort()", "import time; time.sleep(60)", "print('loud')", "bytearray(8 << 30)"]
HARMS += ["open('written.txt', 'w').close()", "raise RuntimeError('of a library')", ""]
CHILD = f"""
import sys
from pathlib import Path
from tests.fuzz_params import children

children.SECONDS = 1
children.do({HARMS}, lambda code: str(exec(code)), int(sys.argv[2]), Path(sys.argv[4]))
"""


@pytest.mark.slow
@on_linux
def test_each_value_of_each_parameter_ends_in_a_model_or_an_error_that_names_it():
    found = walked(50, seed=0)
    assert not found.failures, report(found)
    for name in BACKENDS:
        assert found.outcomes[f"{name}: model"] > 100
        assert sum(count for what, count in found.outcomes.items() if what.startswith(name)) > 3000


def test_names_are_those_that_the_installed_libraries_know():
    assert {"lambda_l1", "interaction_constraints", "forcedsplits_filename", "num_threads"} <= set(names("lightgbm")[0])
    assert {"reg_alpha", "sub_row", "fs", "nthread"} <= set(names("lightgbm")[1])
    if "xgboost" in BACKENDS:
        assert {"gamma", "interaction_constraints", "rate_drop", "nthread", "feature_types"} <= set(names("xgboost")[0])


@on_linux
def test_harm_is_a_failure_with_its_case_and_the_next_cases_are_done():
    found = run(HARMS, [sys.executable, "-c", CHILD])
    text = "\n".join(found.failures)
    for seen in ("code -6", "Timeout", "printed 'loud", "MemoryError", "a file 'written.txt'", "RuntimeError: of a"):
        assert seen in text
    assert "at import os; os.abort()" in text
    assert found.outcomes == {"None": 4}  # the first and the last, and those that only print or write
    assert "6 failures" in report(found).splitlines()[-1]
