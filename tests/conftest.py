"""Settings shared by all tests."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import chdir, nullcontext
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from failing import failing
from helpers import few_rounds
from hypothesis import HealthCheck, settings
from sklearn import datasets
from studies import one_process as in_this_process

from boostbp.comparison import comparison
from boostbp.ensemble import average, constants, driver, ensemble
from boostbp.ensemble.budget import LEVELS, Effort
from boostbp.network.network import Network

# No deadlines, as seconds depend on the machine. Derandomised, so that a red test stays red.
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=30)  # .ci/run takes "ci", a hundred
settings.register_profile("explore", deadline=None, print_blob=True)
sys.path.append(str(Path(__file__).parents[1]))  # benchmarks and examples; the package is the installed one

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_finish():
    """Leave the many objects of the tests themselves out of collections of garbage, a fit from files being one."""
    gc.freeze()


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


@pytest.fixture
def unrounded(monkeypatch):
    """Leave networks as they were trained: with leaves to the last bit, judged as they are in the end."""
    for name in ("rounded", "with_short_hidden"):
        monkeypatch.setattr(Network, name, lambda network: network)


@pytest.fixture
def tune(monkeypatch):
    """Give constants of the ensemble, or of another module, other values: ``tune(MAX_PIECES=1)``."""

    def tune(module=constants, **values):
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)

    return tune


@pytest.fixture
def one_process(monkeypatch):
    """Models of a comparison are trained in this process; tests/comparison/test_processes.py has others."""
    monkeypatch.setattr(comparison, "model_processes", in_this_process)


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """An empty folder in which the package keeps its scratch files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.fixture
def before(monkeypatch):
    """Do something as a function is called: ``before(owner, name, do)`` has ``do(call, ...)``, of call 1 and so on."""
    originals = {}

    def before(owner, name, do):
        original, calls = originals.setdefault((owner, name), getattr(owner, name)), count(1)

        def called(*args, **options):
            do(next(calls), *args, **options)
            return original(*args, **options)

        monkeypatch.setattr(owner, name, called)

    return before


@pytest.fixture
def press(before):
    """Let Ctrl-C come as a function is called for this time; return the calls: ``press(owner, name, number)``."""

    def press(owner, name, number, reason=KeyboardInterrupt):
        calls = []

        def pressed(call, *_, **options):
            calls.append(1)
            if call == number:
                raise reason

        before(owner, name, pressed)
        return calls

    return press


@pytest.fixture
def fails(monkeypatch):
    """Let a function raise an error where ``when(*args)``: ``fails(owner, name, error, when)``."""

    def fails(owner, name, error, when=lambda *_: True):
        monkeypatch.setattr(owner, name, failing(error, getattr(owner, name), when=when))

    return fails


@pytest.fixture
def everything(monkeypatch, tune):
    """Try all candidates, whatever they promise and cost, in layers of one piece each."""
    monkeypatch.setitem(LEVELS, 3, replace(LEVELS[3], layers=Effort(np.inf), networks=Effort(np.inf)))
    tune(driver, stacked_weights=lambda raws, problem: np.full(len(raws), 1.0 / len(raws)))
    tune(MAX_PIECES=1, SLOPES_LEAD=-np.inf, FIRST_NEAR=np.inf, MIN_FALL=-np.inf)


@pytest.fixture
def weights_of(tune):
    """Let a function of the candidates' results choose the weight of each in the model."""

    def weights_of(function):
        def average_of(candidates, *rest, **options):
            by_name = [float(function(one)) for one in candidates]
            tune(average, _weights=lambda *_: (np.array(by_name) / sum(by_name), 1.0, 0.1))
            return original(candidates, *rest, **options)

        original = average.average_of
        tune(ensemble, average_of=average_of)

    return weights_of


@pytest.fixture
def choose(everything, weights_of):
    """Make the model of candidates in equal parts, by their names."""
    return lambda *names: weights_of(lambda one: one.name in names)
