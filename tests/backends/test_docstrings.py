"""The examples in the docstrings of the backends run as they stand."""

from __future__ import annotations

import doctest
from importlib import import_module
from pkgutil import walk_packages

import pytest

from boostbp import backends

MODULES = ["boostbp.backends", *(found.name for found in walk_packages(backends.__path__, "boostbp.backends."))]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    outcome = doctest.testmod(import_module(name))
    assert outcome.failed == 0, f"{outcome.failed} of {outcome.attempted} lines of {name} failed, see stdout"


def test_protocols_and_what_users_call_have_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    for thing in (backends.Backend, backends.Capabilities, backends.check_backend):
        assert any(test.examples for test in finder.find(thing)), thing
