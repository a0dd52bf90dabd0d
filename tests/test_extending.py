"""The code of docs/extending.md, section by section."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from boostbp.ensemble.candidates import CANDIDATES
from boostbp.losses import LOSSES
from boostbp.network.steps import STEPS
from boostbp.trees.basis import BASES

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))


@pytest.fixture(autouse=True)
def forgotten():
    """What a section adds to a list is not there after it."""
    lists = (LOSSES, STEPS, BASES)
    before, candidates = [dict(known) for known in lists], list(CANDIDATES)
    yield
    for known, names in zip(lists, before, strict=True):
        known.clear()
        known.update(names)
    CANDIDATES[:] = candidates


@pytest.mark.parametrize("heading", SECTIONS)
@pytest.mark.usefixtures("here")
def test_the_code_of_a_section_runs(heading):
    names: dict = {"__name__": "extending"}
    blocks = re.findall(r"```python\n(.*?)```", SECTIONS[heading], re.S)
    assert blocks
    for code in blocks:
        exec(compile(code, heading, "exec", dont_inherit=True), names)
