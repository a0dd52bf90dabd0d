"""Disk arrays: while a fit is on rows beyond memory, NumPy's large arrays lie in files, not in memory.

NumPy asks a handler for the memory of each array (NEP 49). `on_disk` sets one, for this thread, by which arrays of
`LEAST` bytes and more are mappings of files that have no name any more: the operating system keeps of them in memory
what there is room for, writes the rest to the disk, and frees all of it with the process, however that ends. All code
stays as it is, that of libraries and of losses and steps of the user's, too: same operations, same bits.

What frees an array may run while an exception is on its way, or without Python's lock: compiled code puts the mapping
on a stack, and the next array takes it from there, or `on_disk` at its end.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from boostbp.trees import forks
from boostbp.trees.kernels.allocation import HEADER, LEAST, compiled

R = TypeVar("R")
KEPT = 32  # mappings that are kept for the next arrays: pages that are there already need not be made
MOST_KEPT = 1 << 28  # bytes of one that is kept: larger ones would take too much of the disk
SET_HANDLER = 304  # of PyDataMem_SetHandler in NumPy's table of functions, the same for all of NumPy 2
ZEROS = bytes(1 << 20)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_Int = ctypes.c_int64
_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


def scratch_folder() -> Path:
    """Folder of the files: ``TMPDIR`` if it is set, or where large temporary files belong.

    On Linux that is ``/var/tmp``: ``/tmp`` may be memory.
    """
    large = Path("/var/tmp")
    return Path(tempfile.gettempdir()) if "TMPDIR" in os.environ or not os.access(large, os.W_OK) else large


@contextmanager
def on_disk() -> Iterator[Path]:
    """Let large arrays that are made in this thread lie on the disk; they stay usable behind the end.

    Yields
    ------
    Path
        The folder of the files.

    Raises
    ------
    RuntimeError
        If NumPy is not of version 2, or does not take the handler.
    OSError
        If the disk is full.
    """
    files, folder = _files(), scratch_folder()
    token = _folder.set(folder)
    before = files.enter()
    try:
        files.check()
        yield folder
    except (MemoryError, OSError) as error:
        cause: BaseException | None = files.failure if isinstance(error, MemoryError) else error
        if isinstance(cause, OSError) and (cause is not error or cause.errno in _FULL):
            raise OSError(
                cause.errno,
                f"No room for the rows and arrays of the fit in the folder {str(folder)!r} ({cause.strerror}): free "
                "some, or name another folder by the environment variable TMPDIR",
            ) from error
        if cause is None or cause is error:
            raise
        raise cause from None  # such as what a signal's handler raised
    finally:
        files.leave(before)
        _folder.reset(token)


def is_on_disk() -> bool:
    """Whether large arrays of this thread lie on the disk."""
    return _folder.get() is not None


def carried(work: Callable[..., R]) -> Callable[..., R]:
    """The same work for other threads, whose large arrays lie on the disk, too, if those of this one do."""
    if _folder.get() is None:
        return work
    context = copy_context()
    return lambda *args: context.copy().run(work, *args)


class _Files:
    """Mappings of files, and the handler through which NumPy asks for them."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self._inside = 0
        self._lock = forks.through(RLock())
        self._mappings: dict[int, mmap.mmap] = {}
        self._unused: list[tuple[int, int]] = []  # size and address of mappings whose arrays are gone
        self._of_parent: set[int] = set()  # mappings that a parent process has as well, and may use
        forks.in_child(self._forget)
        self._stack = (_Int * 1)()  # the last of those freed since
        self._callback = ctypes.CFUNCTYPE(_Int, _Int, _Int)(self._take)
        loops = compiled(self._callback)
        self._pop_all = loops["pop_all"].ctypes
        addresses = (loops[name].address for name in ("malloc", "calloc", "realloc", "free"))
        allocator = _Allocator(ctypes.addressof(self._stack), *addresses)
        self._handler = _Handler(b"boostbp", 1, allocator)
        for kept in (self, *loops.values()):  # arrays may be freed when the interpreter has taken all else down
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        self._name = ctypes.create_string_buffer(b"mem_handler")  # which the capsule only points to
        new_capsule = _python_function("PyCapsule_New", ctypes.py_object, *[ctypes.c_void_p] * 3)
        self._capsule = new_capsule(ctypes.addressof(self._handler), ctypes.addressof(self._name), None)
        self._set_handler = _numpy_function(SET_HANDLER, ctypes.py_object, ctypes.py_object)

    def enter(self) -> Any:
        """Set the handler for this thread; the one before."""
        with self._lock:
            self._inside += 1
            self.failure = None
        return self._set_handler(self._capsule)

    def check(self) -> None:
        """Refuse a NumPy whose arrays lie elsewhere all the same."""
        if np.empty(LEAST, np.uint8).ctypes.data - HEADER not in self._mappings:
            raise RuntimeError(f"NumPy {np.__version__} does not take memory from boostbp: fit on arrays in memory.")

    def leave(self, before: Any) -> None:
        """Set the handler that was there before, and close mappings that no array needs."""
        self._set_handler(before)
        with self._lock:
            self._inside -= 1
            self._collect()
            self._close_unused(0 if not self._inside else KEPT)

    def _take(self, size: int, zeroed: int) -> int:
        """Address of an array of so many bytes; 0 if there is no room, which NumPy takes for a lack of memory."""
        try:
            with self._lock:
                self._collect()
                whole = -(-(size + HEADER) // mmap.PAGESIZE) * mmap.PAGESIZE
                place = next((k for k, (there, _) in enumerate(self._unused) if there == whole), None)
                if place is not None:
                    _, address = self._unused.pop(place)
                    if zeroed:
                        ctypes.memset(address + HEADER, 0, size)
                    return address + HEADER
                self._close_unused(KEPT)
                return self._map(whole) + HEADER
        except BaseException as error:  # nothing can be raised through NumPy: `on_disk` does
            self.failure = error
            return 0

    def _map(self, size: int) -> int:
        """Map a new file of so many bytes, all zero; its address."""
        with tempfile.TemporaryFile(dir=_folder.get()) as file:
            _fill(file, size)
            mapping = mmap.mmap(file.fileno(), size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        words = _words(address)
        words[0], words[1] = 1, size
        self._mappings[address] = mapping
        return address

    def _collect(self) -> None:
        """Take the mappings of arrays that were freed."""
        address = self._pop_all(ctypes.addressof(self._stack))
        while address:
            _, size, following = _words(address)
            if size > MOST_KEPT or address in self._of_parent:
                self._of_parent.discard(address)
                self._mappings.pop(address).close()
            else:
                self._unused.append((size, address))
            address = following

    def _forget(self) -> None:
        """Leave all mappings to the parent, in a child process, but for the arrays that this one sees in them."""
        self._of_parent, self._unused = set(self._mappings), []

    def _close_unused(self, most: int) -> None:
        """Close all but so many of the mappings that no array needs, those first that were freed first."""
        while len(self._unused) > most:
            _, address = self._unused.pop(0)
            self._mappings.pop(address).close()


def _fill(file: Any, size: int) -> None:
    """Fill a file with zeros: a write to a mapping that the disk has no room for would end the process."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # of file systems that cannot
                raise
    for first in range(0, size, len(ZEROS)):
        file.write(ZEROS[: size - first])
    file.flush()


@cache
def _files() -> _Files:
    if not np.__version__.startswith("2."):
        raise RuntimeError(f"NumPy {np.__version__} is not supported for rows beyond memory: use NumPy 2.")
    return _Files()


def _words(address: int) -> Any:
    return (_Int * 3).from_address(address)


def _python_function(name: str, result: Any, *kinds: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *kinds)((name, ctypes.pythonapi))


def _numpy_function(number: int, result: Any, *kinds: Any) -> Any:
    """A function of NumPy's table, which compiled extensions call by the same number."""
    functions = importlib.import_module("numpy._core._multiarray_umath")
    pointer_of = _python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    table = ctypes.cast(pointer_of(functions._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.PYFUNCTYPE(result, *kinds)(table[number])


class _Allocator(ctypes.Structure):
    """PyDataMemAllocator of NumPy."""

    _fields_ = (
        ("context", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in ("malloc", "calloc", "realloc", "free")),
    )


class _Handler(ctypes.Structure):
    """PyDataMem_Handler of NumPy."""

    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("allocator", _Allocator))
