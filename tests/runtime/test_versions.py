"""Versions: what a report of a fault begins with."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import boostbp
from boostbp.runtime.versions import versions

ROOT = Path(__file__).parents[2]


def test_version_is_that_of_the_distribution():
    assert boostbp.__version__ == importlib.metadata.version("boostbp")
    assert f"version: {boostbp.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_versions_are_printed_one_to_a_line(capsys):
    boostbp.show_versions()
    printed = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert printed == versions()
    assert printed["numpy"] == importlib.metadata.version("numpy")
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", printed["python"])
