"""Large arrays of a thread lie on the disk: inside of a block, in a folder that errors name."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

from boostbp.inputs.disk_arrays import IS_SUPPORTED, on_disk
from boostbp.runtime.arrays import is_on_disk, scratch_folder
from boostbp.runtime.threads import parallel_map
from tests.core.test_allocation import NUMBERS, is_mapped, mappings, needs_proc

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(not IS_SUPPORTED, reason="arrays are in memory on this system")


@needs_proc
def test_only_large_arrays_lie_on_the_disk_and_only_inside(scratch):
    assert not is_on_disk()
    with on_disk():
        assert is_on_disk()
        assert not mappings(scratch)
        small = np.arange(NUMBERS - 1)
        assert not mappings(scratch)
        large = np.arange(NUMBERS)
        assert len(mappings(scratch)) == 1
        assert not list(scratch.iterdir())  # files have no name, so nothing can be left behind
    np.arange(NUMBERS)
    assert len(mappings(scratch)) == 1
    np.testing.assert_array_equal(large[:-1], small)  # usable after the end
    del large
    assert not mappings(scratch)


def test_arrays_of_other_threads_lie_there_too(scratch):
    def made(_):
        return np.ones(NUMBERS)

    with on_disk():
        assert all(map(is_mapped, parallel_map(made, range(4), 2)))
    assert not any(map(is_mapped, parallel_map(made, range(4), 2)))


def test_blocks_may_lie_in_blocks(scratch):
    with on_disk():
        inner = on_disk()(np.ones)(NUMBERS)
        assert is_mapped(inner)
        assert is_mapped(np.ones(NUMBERS))


@pytest.fixture
def small_files():
    """Files of at most 16 MB."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 24, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_no_room_is_an_error_that_names_the_folder(scratch, small_files):
    message = r"No space for the rows and arrays of the fit in the folder .*another folder by .*TMPDIR"
    with pytest.raises(OSError, match=message) as caught, on_disk():
        np.empty(1 << 25, np.uint8)
    assert caught.value.errno == errno.EFBIG
    assert get_handler_name(np.empty(NUMBERS)) != "boostbp"


def test_other_errors_stay_what_they_are(scratch):
    with pytest.raises(FileNotFoundError, match="no such"), on_disk():
        raise FileNotFoundError(errno.ENOENT, "no such")
    with pytest.raises(MemoryError), on_disk():
        raise MemoryError


def test_the_folder_is_the_one_that_the_environment_names(scratch, monkeypatch):
    assert scratch_folder() == scratch
    monkeypatch.delenv("TMPDIR")
    assert scratch_folder() == (Path("/var/tmp") if os.access("/var/tmp", os.W_OK) else Path(tempfile.gettempdir()))
