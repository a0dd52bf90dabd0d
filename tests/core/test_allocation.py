"""Memory of large arrays: mappings that are used again, closed at the end, and left alone by children."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

from boostbp.inputs.disk_arrays import IS_SUPPORTED, LEAST, on_disk

needs_proc = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads the memory of the process in /proc")

pytestmark = pytest.mark.skipif(not IS_SUPPORTED, reason="arrays are in memory on this system")

NUMBERS = LEAST // 8


@pytest.fixture
def folder(scratch):
    return scratch


def mappings(folder):
    """Files of a folder that this process has mapped into memory."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if str(folder) in line]


def is_mapped(array):
    return get_handler_name(array) == "boostbp" and array.nbytes >= LEAST


def anonymous():
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


@needs_proc
def test_no_anonymous_memory_is_taken(folder):
    with on_disk():
        before = anonymous()
        ones = np.ones(25 * NUMBERS)
        assert (ones * 2 + 1).sum() == 3 * len(ones)
        assert anonymous() - before < 4 * LEAST  # of 75 MB


def test_memory_that_is_used_again_is_what_numpy_promises(folder):
    with on_disk():
        for _ in range(3):
            used = np.full(2 * NUMBERS, 7.0)
            del used
            assert not np.zeros(2 * NUMBERS).any()
        grown = np.arange(10.0)
        grown.resize(2 * NUMBERS)
        assert is_mapped(grown)
        assert grown[9] == 9
        assert not grown[10:].any()
        grown.resize(5)
        assert not is_mapped(grown)
        np.testing.assert_array_equal(grown, np.arange(5.0))
        assert np.fromiter(range(NUMBERS), np.int64)[-1] == NUMBERS - 1
        assert np.empty((0, NUMBERS)).size == 0  # NumPy asks for another size than it gives back
        assert len(np.argsort(np.random.default_rng(0).random(3 * NUMBERS))) == 3 * NUMBERS


@needs_proc
def test_files_are_used_again_inside_and_closed_at_the_end(folder):
    with on_disk():
        for _ in range(5):
            np.ones(NUMBERS)
        assert len(mappings(folder)) == 1
        for size in range(100):
            np.ones(NUMBERS + 512 * size)
        assert len(mappings(folder)) < 50
        kept = np.ones(NUMBERS)
    gc.collect()
    assert len(mappings(folder)) == 1
    assert kept.sum() == NUMBERS


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_leaves_the_mappings_of_its_parent_alone_and_both_end_well(folder):
    code = (
        "import os, numpy as np; from boostbp.inputs.disk_arrays import on_disk\n"
        "with on_disk():\n"
        f"    kept, gone = np.ones({NUMBERS}), np.ones({NUMBERS})\n"
        "    del gone\n"
        "    if os.fork() == 0:\n"
        "        copies = [kept]\n"
        "        del kept\n"
        "        copies.clear()\n"
        f"        others = [np.full({NUMBERS}, 7.0) for _ in range(4)]\n"
        "        os._exit(0 if all((other == 7).all() for other in others) else 1)\n"
        f"    mine = np.full({NUMBERS}, 2.0)\n"
        "    assert os.wait()[1] == 0\n"
        "    assert (kept == 1).all() and (mine == 2).all()\n"
        "import builtins; builtins.kept = kept, np.ones(3), mine"  # taken down last
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(folder.iterdir())
