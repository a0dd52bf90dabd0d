"""What is tried and chosen in a fit, for tests of the models that come of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from failing import failing

from boostbp.ensemble import average, constants, ensemble, race
from boostbp.ensemble.budget import LEVELS, Effort


@pytest.fixture
def tune(monkeypatch):
    """Give constants of the ensemble other values in a test: ``tune(MAX_PIECES=1)``."""

    def tune(**values):
        for name, value in values.items():
            monkeypatch.setattr(constants, name, value)

    return tune


@pytest.fixture
def everything(monkeypatch, tune):
    """Try all candidates, whatever they promise and cost, in layers of one piece each."""
    monkeypatch.setitem(LEVELS, 3, replace(LEVELS[3], layers=Effort(np.inf), networks=Effort(np.inf)))
    monkeypatch.setattr(race, "stacked_weights", lambda raws, problem: np.full(len(raws), 1.0 / len(raws)))
    tune(MAX_PIECES=1, SLOPES_LEAD=-np.inf, FIRST_NEAR=np.inf, MIN_FALL=-np.inf)


@pytest.fixture
def fails(monkeypatch):
    """Let a function raise an error where ``when(*args)``: ``fails(owner, name, error, when)``."""

    def fails(owner, name, error, when):
        monkeypatch.setattr(owner, name, failing(error, getattr(owner, name), when=when))

    return fails


@pytest.fixture
def press(monkeypatch):
    """Let Ctrl-C come as a function is called for this time; return the calls: ``press(owner, name, number)``."""
    originals = {}

    def press(owner, name, number, reason=KeyboardInterrupt):
        original, calls = originals.setdefault((owner, name), getattr(owner, name)), []

        def pressed(*args, **options):
            calls.append(1)
            if len(calls) == number:
                raise reason
            return original(*args, **options)

        monkeypatch.setattr(owner, name, pressed)
        return calls

    return press


@pytest.fixture
def weights_of(monkeypatch):
    """Let a function of the candidates' results choose the weight of each in the model."""

    def weights_of(function):
        def average_of(candidates, *rest, **options):
            by_name = [float(function(one)) for one in candidates]
            monkeypatch.setattr(average, "_weights", lambda *_: (np.array(by_name) / sum(by_name), 1.0, 0.1))
            return original(candidates, *rest, **options)

        original = average.average_of
        monkeypatch.setattr(ensemble, "average_of", average_of)

    return weights_of


@pytest.fixture
def choose(everything, weights_of):
    """Make the model of candidates in equal parts, by their names."""
    return lambda *names: weights_of(lambda one: one.name in names)
