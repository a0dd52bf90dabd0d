"""Large arrays of a thread lie on the disk: same numbers, no anonymous memory, nothing left behind."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from boostbp.trees import disk_arrays
from boostbp.trees.disk_arrays import LEAST, on_disk, scratch_folder
from boostbp.trees.threads import parallel_map

needs_proc = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads the memory of the process from /proc"
)
NUMBERS = LEAST // 8


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def is_mapped(array):
    files = disk_arrays._files()
    return array.ctypes.data - disk_arrays.HEADER in files._mappings


def anonymous():
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def test_only_large_arrays_lie_on_the_disk_and_only_inside(folder):
    with on_disk():
        large, small = np.arange(NUMBERS), np.arange(NUMBERS - 1)
        assert is_mapped(large)
        assert not is_mapped(small)
        assert not list(folder.iterdir())  # files have no name, so that nothing can be left behind
    assert not is_mapped(np.arange(NUMBERS))
    np.testing.assert_array_equal(large, np.arange(NUMBERS))  # usable behind the end


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


def test_arrays_of_other_threads_lie_there_too(folder):
    def made(_):
        return np.ones(NUMBERS)

    with on_disk():
        assert all(map(is_mapped, parallel_map(made, range(4), 2)))
    assert not any(map(is_mapped, parallel_map(made, range(4), 2)))


def test_blocks_may_lie_in_blocks(folder):
    with on_disk():
        inner = on_disk()(np.ones)(NUMBERS)
        assert is_mapped(inner)
        assert is_mapped(np.ones(NUMBERS))


def test_files_are_closed_when_their_arrays_are_gone(folder):
    gc.collect()
    with on_disk():
        kept, gone = np.ones(NUMBERS), np.ones(NUMBERS)
        del gone
    assert is_mapped(kept)
    del kept
    with on_disk():
        pass
    assert not disk_arrays._files()._unused


def test_a_full_disk_is_an_error_that_names_the_folder(folder, monkeypatch):
    def full(file, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with on_disk():
        pass
    monkeypatch.setattr(disk_arrays, "_fill", full)
    message = r"No room for the rows .* in the folder .*another folder by .*TMPDIR"
    with pytest.raises(OSError, match=message) as caught, on_disk():
        np.empty(1000 * NUMBERS)
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert not is_mapped(np.empty(NUMBERS))


def test_an_interrupt_while_a_file_is_made_is_not_lost(folder, monkeypatch):
    def interrupted(file, size):
        raise KeyboardInterrupt

    with on_disk():
        pass
    monkeypatch.setattr(disk_arrays, "_fill", interrupted)
    with pytest.raises(KeyboardInterrupt), on_disk():
        np.empty(1000 * NUMBERS)


def test_other_errors_stay_what_they_are(folder):
    with pytest.raises(FileNotFoundError, match="no such"), on_disk():
        raise FileNotFoundError(errno.ENOENT, "no such")
    with pytest.raises(MemoryError), on_disk():
        raise MemoryError


def test_files_are_filled_where_the_system_has_no_call_for_it(folder, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    with on_disk():
        odd = np.zeros(3 * NUMBERS + 5)
        assert is_mapped(odd)
        assert not odd.any()


def test_the_folder_is_the_one_that_the_environment_names(folder, monkeypatch):
    assert scratch_folder() == folder
    monkeypatch.delenv("TMPDIR")
    assert scratch_folder() == (
        Path("/var/tmp") if os.access("/var/tmp", os.W_OK) else Path(disk_arrays.tempfile.gettempdir())
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_leaves_the_mappings_of_its_parent_alone_and_both_end_well(folder):
    code = (
        "import os, numpy as np; from boostbp.trees.disk_arrays import on_disk\n"
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
