"""The examples in docstrings run, and print what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import boostbp
from boostbp import backends

PACKAGE = Path(boostbp.__file__).parent
# An example of AutoGluon needs its environment, and is skipped as those are that need a cluster.
FILES = [p for p in sorted(PACKAGE.rglob("*.py")) if ">>>" in p.read_text("utf-8") and p.stem != "autogluon"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).with_suffix("").as_posix())
def test_examples_of_docstrings_run(path: Path) -> None:
    if path.parent.name == "torch":
        pytest.importorskip("torch")
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    outcome = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted > 0 or "+SKIP" in path.read_text("utf-8")
    assert outcome.failed == 0, f"{outcome.failed} of {outcome.attempted} lines of {path} failed, see stdout"


def test_protocols_and_what_users_call_have_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    for thing in (backends.Backend, backends.Capabilities, backends.check_backend):
        assert any(test.examples for test in finder.find(thing)), thing
