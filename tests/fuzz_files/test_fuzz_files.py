"""Files with damages and a right checksum: some hundreds here, any number by ``python -m tests.fuzz_files``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz_files.__main__ import PROGRAM, outcome_of
from tests.fuzz_files.corpus import Item
from tests.support.child_cases import tried

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured as Linux does")


@pytest.mark.slow
def test_every_damage_is_refused_or_harmless():
    outcomes, failures = tried(PROGRAM, 700, seed=1)
    assert (outcomes.total(), failures) == (700, [])


def fails(path):
    raise TypeError("raw")


def hoards(path):
    np.ones(50 << 20).sum()
    return [np.zeros(3)]


KNOWN = [np.zeros(3)], 0  # what an intact file gives, and the memory that it takes


@pytest.mark.parametrize(
    ("use", "numeric", "outcome"),
    [
        (lambda path: [np.zeros(3)], False, "read"),
        (lambda path: [np.ones(3)], True, "changed"),
        (lambda path: int("no number"), False, "refused"),
    ],
)
def test_outcomes_are_told_apart(tmp_path, use, numeric, outcome):
    assert outcome_of(Item(Path.touch, use), tmp_path / "file", b"", KNOWN, numeric) == outcome


@pytest.mark.parametrize(
    ("use", "numeric", "error"),
    [
        (lambda path: [np.ones(3)], False, AssertionError),
        (fails, True, TypeError),
        (hoards, True, AssertionError),
        (lambda path: [np.zeros(1 << 50)], True, MemoryError),
    ],
)
def test_other_ends_are_failures(tmp_path, use, numeric, error):
    with pytest.raises(error):
        outcome_of(Item(Path.touch, use), tmp_path / "file", b"", KNOWN, numeric)
