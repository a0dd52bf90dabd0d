"""Settings shared by all tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from boostbp.ensemble import constants

# No deadlines: the first call of a compiled kernel takes seconds. Derandomised, so that a red test stays red.
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, print_blob=True)
sys.path.append(str(Path(__file__).parents[1]))  # benchmarks and examples; the package is the installed one

FEW_ROUNDS = {"MAX_PIECES": 4, "PIECE_ROUNDS": 8}
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def few_rounds(request, monkeypatch):
    """Single layers and final output layers of 32 rounds at most, where the model need not be good.

    Tests of what the default model is worth are marked ``full_length``.
    """
    if request.node.get_closest_marker("full_length") is None:
        for name, value in FEW_ROUNDS.items():
            monkeypatch.setattr(constants, name, value)
