"""The folder of large temporary files, and whether the large arrays of a thread are in it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import TypeVar

R = TypeVar("R")
folder_of_arrays: ContextVar[Path | None] = ContextVar("folder_of_arrays", default=None)


def scratch_folder() -> Path:
    """Return the folder of the files: ``TMPDIR`` if it is set, otherwise the system's folder for large temporary files.

    On Linux that is ``/var/tmp``, as ``/tmp`` may be in memory.
    """
    large = Path("/var/tmp")
    return Path(tempfile.gettempdir()) if "TMPDIR" in os.environ or not os.access(large, os.W_OK) else large


def is_on_disk() -> bool:
    """Return whether new large arrays of this thread are on the disk."""
    return folder_of_arrays.get() is not None


def with_disk_arrays(work: Callable[..., R]) -> Callable[..., R]:
    """Return the same work for other threads, with large arrays on disk if this thread has them there."""
    if not is_on_disk():
        return work
    context = copy_context()  # holds NumPy's handler of memory, too
    return lambda *args: context.copy().run(work, *args)
