"""Settings shared by all tests."""

from __future__ import annotations

import os
import sys
from contextlib import chdir, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import few_rounds
from hypothesis import HealthCheck, settings
from sklearn import datasets

from boostbp.ensemble.quality_levels import LEVELS

# No deadlines: the first call of a compiled kernel takes seconds. Derandomised, so that a red test stays red.
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=30)  # .ci/run takes "ci", a hundred
settings.register_profile("explore", deadline=None, print_blob=True)
sys.path.append(str(Path(__file__).parents[1]))  # benchmarks and examples; the package is the installed one

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(autouse=True)
def length_of_single_layers(request):
    """Few rounds, where the model need not be good: tests of what it is worth are marked ``full_length``."""
    with nullcontext() if request.node.get_closest_marker("full_length") else few_rounds():
        yield


@pytest.fixture
def here(tmp_path):
    """An empty folder that is the working directory."""
    with chdir(tmp_path):
        yield tmp_path


@pytest.fixture
def without(monkeypatch):
    """Let a package be absent: ``without("jinja2")``."""
    return lambda name: monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def openml(monkeypatch):
    """Answer in the place of OpenML, which needs the network: ``openml(answer)``, a function of the request."""
    return lambda answer: monkeypatch.setattr(datasets, "fetch_openml", answer)


@pytest.fixture
def before_refit(monkeypatch):
    """Fit a model that stays as it was chosen: ``before_refit(model, X, y, ...)``."""

    def fit(model, *args, **how):
        with monkeypatch.context() as patch:
            for quality, rung in LEVELS.items():
                patch.setitem(LEVELS, quality, replace(rung, refit=False))
            return model.fit(*args, **how)

    return fit
