"""No native parameter ends the process: each one here, and many combinations by ``python -m tests.fuzz_params``."""

from __future__ import annotations

import sys

import pytest

from tests.fuzz_params.__main__ import PROGRAM
from tests.fuzz_params.cases import BACKENDS, names
from tests.support.child_cases import tried


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")
def test_each_value_of_each_parameter_ends_in_a_model_or_an_error_that_names_it():
    outcomes, failures = tried(PROGRAM, 50)
    assert not failures
    for name in BACKENDS:
        assert outcomes[f"{name}: model"] > 100
        assert sum(count for what, count in outcomes.items() if what.startswith(name)) > 3000


def test_names_are_those_that_the_installed_libraries_know():
    assert {"lambda_l1", "interaction_constraints", "forcedsplits_filename", "num_threads"} <= set(names("lightgbm")[0])
    assert {"reg_alpha", "sub_row", "fs", "nthread"} <= set(names("lightgbm")[1])
    if "xgboost" in BACKENDS:
        assert {"gamma", "interaction_constraints", "rate_drop", "nthread", "feature_types"} <= set(names("xgboost")[0])
