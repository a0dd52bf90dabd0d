"""The examples in the docstrings of the estimators."""

from __future__ import annotations

import doctest
import importlib

import pytest

ROOMS = ("estimators.regressor", "estimators.autoencoder", "storage", "estimators.single_layer")


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_hold(room):
    outcome = doctest.testmod(importlib.import_module(f"boostbp.{room}"))
    assert outcome.attempted
    assert not outcome.failed
