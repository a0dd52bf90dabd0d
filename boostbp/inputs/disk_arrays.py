"""Disk arrays: during a fit on rows beyond memory, NumPy's large arrays are in files instead of memory.

NumPy requests the memory of each array from a handler (NEP 49). Within `on_disk`, new arrays of this thread with
`LEAST` bytes or more are mappings of unnamed files: the operating system keeps as much of them in memory as fits, and
frees them at the end of the process, even if it is killed. No code that creates arrays changes, nor do their bits.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from boostbp.core.binding import shared_library
from boostbp.runtime.arrays import folder_of_arrays, scratch_folder
from boostbp.runtime.messages import is_of_user

LEAST = 1 << 20  # minimum bytes of an array in a file; smaller ones are blocks of rows, which take little memory
SET_HANDLER = 304  # place of PyDataMem_SetHandler in the table of C functions of all versions of NumPy 2
# Disk space must be allocated before a file is written.
IS_SUPPORTED = hasattr(os, "posix_fallocate") and ctypes.sizeof(ctypes.c_void_p) == 8
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the disk, the quota of the user, or the file is full


@contextmanager
def on_disk() -> Iterator[Path]:
    """Put new large arrays of this thread into files in the yielded folder; they stay valid after the block.

    Without posix_fallocate they stay in memory. Raises RuntimeError without NumPy 2, and OSError if the disk is full.
    """
    folder = scratch_folder()
    files = _files_in(folder) if IS_SUPPORTED else None
    token = folder_of_arrays.set(folder)
    before = None if files is None else files.install()
    try:
        yield folder
    except (MemoryError, OSError) as error:
        number = error.errno if isinstance(error, OSError) else files and files.error()
        if number not in _FULL or (isinstance(error, OSError) and is_of_user(error)):
            raise
        fault = f"No space for the rows and arrays of the fit in the folder {str(folder)!r} ({os.strerror(number)})"
        cure = "free some, or name another folder by the environment variable TMPDIR"
        raise OSError(number, f"{fault}: {cure}") from error
    finally:
        if files is not None:
            files.remove(before)
        folder_of_arrays.reset(token)


class _Files:
    """A memory handler of NumPy, with files in one folder; see ``core/allocation.c``."""

    def __init__(self, folder: Path) -> None:
        make = _core_function("file_handler", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64)
        self._handler = make(os.fsencode(folder / "boostbp-XXXXXX"), LEAST)
        if self._handler is None:
            raise MemoryError
        self._name = ctypes.create_string_buffer(b"mem_handler")  # the capsule only points to it
        new_capsule = _python_function("PyCapsule_New", ctypes.py_object, *[ctypes.c_void_p] * 3)
        self._capsule = new_capsule(self._handler, ctypes.addressof(self._name), None)
        # Arrays may be freed at the end of interpreter shutdown, so their handler is never released.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def install(self) -> Any:
        """Set the handler for this thread; return the previous one."""
        _core_function("files_begin", None, ctypes.c_void_p)(self._handler)
        return _set_handler()(self._capsule)

    def remove(self, before: Any) -> None:
        """Restore the previous handler, and close files of freed arrays."""
        _set_handler()(before)
        _core_function("files_end", None, ctypes.c_void_p)(self._handler)

    def error(self) -> int:
        """Return the number of the last error of a file since `install`; 0 if there was none."""
        number: int = _core_function("files_error", ctypes.c_int64, ctypes.c_void_p)(self._handler)
        return number


@cache
def _files_in(folder: Path) -> _Files:
    if not np.__version__.startswith("2."):
        raise RuntimeError(f"NumPy {np.__version__} is not supported for rows beyond memory: use NumPy 2.")
    return _Files(folder)


@cache
def _set_handler() -> Callable[[Any], Any]:
    """Return PyDataMem_SetHandler from its place in the table that compiled extensions use, too."""
    functions = importlib.import_module("numpy._core._multiarray_umath")
    pointer_of = _python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    table = ctypes.cast(pointer_of(functions._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[SET_HANDLER])


def _python_function(name: str, result: Any, *kinds: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *kinds)((name, ctypes.pythonapi))


def _core_function(name: str, result: Any, *kinds: Any) -> Any:
    function = shared_library()[f"boostbp_{name}"]
    function.restype, function.argtypes = result, kinds
    return function
