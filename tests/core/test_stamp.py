"""A compiled core of other sources is refused before any of its functions is called."""

from __future__ import annotations

import _ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hatch_build
from boostbp.core import binding, stamp

CALL = "import numpy as np; from boostbp import core; core.column_squares(np.ones((2, 1)), np.ones(2), "
CALL += "np.array([[0.0, 1.0, 0.0, 9.0]]), out := np.zeros(1)); print(out)"
REFUSAL = r"was built from other sources\. .*run `pip install -e \.` again, or `python hatch_build\.py`"


@pytest.fixture
def checkout(tmp_path):
    """A copy of the core and of what builds it."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(hatch_build.CORE, tmp_path / "boostbp" / "core", ignore=ignored)
    (tmp_path / "boostbp" / "__init__.py").touch()
    shutil.copy(hatch_build.__file__, tmp_path)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, whose package comes first."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, *arguments], env=environment, cwd=folder, capture_output=True, text=True)


def change(folder: Path, name: str) -> None:
    """Change a file of the core, as another commit would."""
    with (folder / "boostbp" / "core" / name).open("a", encoding="utf-8") as file:
        file.write("\n")


@pytest.mark.parametrize("name", ["moments.c", "boostbp.h", "__init__.py"])
def test_a_library_of_other_sources_is_refused_with_the_cure(checkout, name):
    assert run(checkout, "-c", CALL).stdout == "[2.]\n"
    change(checkout, name)
    refused = run(checkout, "-c", CALL)
    assert refused.stdout == ""
    assert re.search(f"ImportError: The compiled core of boostbp, .* {REFUSAL}", refused.stderr)


@pytest.mark.slow
@pytest.mark.skipif(hatch_build.compiler() is None, reason="needs a C compiler")
def test_the_cure_of_the_message_helps(checkout):
    change(checkout, "moments.c")
    assert "run `pip install -e .` again, or `python hatch_build.py`" in run(checkout, "-c", CALL).stderr
    assert run(checkout, "hatch_build.py").returncode == 0
    assert run(checkout, "-c", CALL).stdout == "[2.]\n"


def test_a_library_without_a_stamp_is_refused(monkeypatch):
    monkeypatch.setattr(binding, "LIBRARY", Path(_ctypes.__file__))
    with pytest.raises(ImportError, match=REFUSAL):
        binding.shared_library.__wrapped__()


def test_a_library_is_taken_where_its_sources_are_not_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(stamp, "FOLDER", tmp_path)
    assert stamp.stamp() is None
    assert binding.shared_library.__wrapped__()
