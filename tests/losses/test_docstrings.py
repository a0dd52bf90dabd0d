"""The examples in docstrings run, and print what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import boostbp

ROOMS = ("losses", "metrics", "layers")
PACKAGE = Path(boostbp.__file__).parent
FILES = [path for room in ROOMS for path in sorted((PACKAGE / room).glob("*.py")) if ">>>" in path.read_text("utf-8")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_examples_of_docstrings_run(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0
