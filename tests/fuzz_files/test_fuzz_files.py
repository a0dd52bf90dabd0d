"""Files with damages and a right checksum: some hundreds here, any number by ``python -m tests.fuzz_files``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz_files import __main__ as fuzz
from tests.fuzz_files.corpus import Item
from tests.support.child_cases import run_all

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured as Linux does")


@pytest.mark.slow
def test_every_damage_is_refused_or_harmless(capsys):
    assert fuzz.main(["--cases", "700", "--seed", "1"]) == 0, capsys.readouterr().out
    assert "700 cases" in capsys.readouterr().out


def fails(path):
    raise TypeError("raw")


def hoards(path):
    np.ones(50 << 20).sum()
    return [np.zeros(3)]


@pytest.mark.parametrize(
    ("use", "numeric", "outcome"),
    [
        (lambda path: [np.zeros(3)], False, "read"),
        (lambda path: [np.ones(3)], False, "failure"),
        (lambda path: [np.ones(3)], True, "changed"),
        (fails, True, "failure"),
        (hoards, True, "failure"),
        (lambda path: [np.zeros(1 << 50)], True, "failure"),
        (lambda path: int("no number"), False, "refused"),
    ],
)
def test_outcomes_are_told_apart(tmp_path, use, numeric, outcome):
    found, _ = fuzz._outcome(Item(Path.touch, use), tmp_path / "file", b"", ([np.zeros(3)], 0), numeric)
    assert found == outcome


@pytest.mark.parametrize("ending", ["os.abort()", "os.kill(os.getpid(), 14)"])
def test_a_child_that_dies_names_its_case_and_another_goes_on(tmp_path, monkeypatch, ending):
    child = tmp_path / "child"
    child.write_text(
        f"#!{sys.executable}\nimport json, os, sys\nfor case in range(int(sys.argv[-3]), int(sys.argv[-1])):\n"
        "    print(json.dumps({'case': case, 'outcome': 'begins'}), flush=True)\n"
        f"    if case == 1: {ending}\n"
        "    print(json.dumps({'case': case, 'outcome': 'read', 'why': ''}), flush=True)\n"
    )
    os.chmod(child, 0o700)
    monkeypatch.setattr(sys, "executable", str(child))
    outcomes, failures = run_all(["-m", "tests.fuzz_files"], range(3))
    assert dict(outcomes) == {"read": 2, "failure": 1}
    assert failures[0].startswith("case 1: exit code -")
