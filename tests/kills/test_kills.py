"""A default fit that is killed at any moment goes on to the model that it would have been."""

from __future__ import annotations

import signal

import pytest
from helpers import BACKENDS

from tests.kills.__main__ import run


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_killed_default_fit_goes_on_to_the_same_model(backend):
    if backend not in BACKENDS:
        pytest.skip(f"needs {backend}")
    small = {"epochs": 4, "n_estimators": 3, "n_jobs": 2}
    counts = run({"task": "regression", "backend": backend, "parameters": small}, 2)
    assert {what.split(",")[0] for what in counts} == {"the same model"}
    assert sum(counts.values()) == 2
