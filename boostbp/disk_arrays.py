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

__all__ = ["LEAST", "carried", "is_on_disk", "on_disk", "scratch_folder"]

R = TypeVar("R")
LEAST = 1 << 20  # bytes of an array that goes to the disk
KEPT = 32  # mappings that are kept for the next arrays: pages that are there already need not be made
HEADER = 64  # bytes before an array: whether it is a mapping, its size, the next one on the stack
SET_HANDLER = 304  # of PyDataMem_SetHandler in NumPy's table of functions, the same for all of NumPy 2
ZEROS = bytes(1 << 20)
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
        yield folder
    except MemoryError as error:
        if files.failure is None:
            raise
        raise OSError(
            f"No room for arrays in the folder {str(folder)!r} ({files.failure}): free some, or name another one by "
            "the environment variable TMPDIR."
        ) from error
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
        self.failure: OSError | None = None
        self._inside = 0
        self._lock = RLock()
        self._mappings: dict[int, mmap.mmap] = {}
        self._unused: list[tuple[int, int]] = []  # size and address of mappings whose arrays are gone
        self._stack = (_Int * 1)()  # the last of those freed since
        self._callback = ctypes.CFUNCTYPE(_Int, _Int, _Int)(self._take)
        loops = _compiled(self._callback)
        self._pop_all = loops["pop_all"].ctypes
        addresses = (loops[name].address for name in ("malloc", "calloc", "realloc", "free"))
        allocator = _Allocator(ctypes.addressof(self._stack), *addresses)
        self._handler = _Handler(b"boostbp", 1, allocator)
        for kept in (self, *loops.values()):  # arrays may be freed when the interpreter has taken all else down
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        new_capsule = ctypes.pythonapi.PyCapsule_New
        new_capsule.restype, new_capsule.argtypes = (
            ctypes.py_object,
            [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
        )
        self._capsule = new_capsule(ctypes.addressof(self._handler), b"mem_handler", None)
        self._set_handler = _numpy_function(SET_HANDLER, ctypes.py_object, ctypes.py_object)

    def enter(self) -> Any:
        """Set the handler for this thread; the one before."""
        with self._lock:
            self._inside += 1
            self.failure = None
        before = self._set_handler(self._capsule)
        if np.empty(LEAST, np.uint8).ctypes.data - HEADER not in self._mappings and self.failure is None:
            self.leave(before)
            raise RuntimeError(f"NumPy {np.__version__} does not take memory from boostbp: fit on arrays in memory.")
        return before

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
        except OSError as error:
            self.failure = error
            return 0

    def _map(self, size: int) -> int:
        """Map a new file of so many bytes, all zero; its address."""
        with tempfile.TemporaryFile(dir=_folder.get()) as file:
            # a write to a mapping that the disk has no room for would end the process
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                for first in range(0, size, len(ZEROS)):
                    file.write(ZEROS[: size - first])
                file.flush()
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
            self._unused.append((size, address))
            address = following

    def _close_unused(self, most: int) -> None:
        """Close all but so many of the mappings that no array needs, those first that were freed first."""
        while len(self._unused) > most:
            _, address = self._unused.pop(0)
            self._mappings.pop(address).close()


@cache
def _files() -> _Files:
    if not np.__version__.startswith("2."):
        raise RuntimeError(f"NumPy {np.__version__} is not supported for rows beyond memory: use NumPy 2.")
    return _Files()


def _words(address: int) -> Any:
    return (_Int * 3).from_address(address)


def _numpy_function(number: int, result: Any, *kinds: Any) -> Any:
    """A function of NumPy's table, which compiled extensions call by the same number."""
    from numpy._core import _multiarray_umath

    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer_of(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
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


def _python_function(name: str, result: Any, *kinds: Any) -> Any:
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    return ctypes.CFUNCTYPE(result, *kinds)(address)


def _compiled(take: Any) -> dict[str, Any]:
    """Compile the functions of the handler: small arrays are Python's memory, large ones what `take` gives."""
    from numba import cfunc, njit, types
    from numba.extending import intrinsic

    malloc_raw, free_raw = (
        _python_function("PyMem_RawMalloc", _Int, _Int),
        _python_function("PyMem_RawFree", None, _Int),
    )
    copy_bytes = ctypes.CFUNCTYPE(_Int, _Int, _Int, _Int)(ctypes.cast(ctypes.memmove, ctypes.c_void_p).value)
    fill_bytes = ctypes.CFUNCTYPE(_Int, _Int, _Int, _Int)(ctypes.cast(ctypes.memset, ctypes.c_void_p).value)
    word = types.int64

    def pointer(builder: Any, address: Any) -> Any:
        return builder.inttoptr(address, address.type.as_pointer())

    @intrinsic  # type: ignore[misc]
    def load(typing: Any, address: Any) -> Any:
        return word(word), lambda context, builder, sig, args: builder.load(pointer(builder, args[0]))

    @intrinsic  # type: ignore[misc]
    def swap(typing: Any, address: Any, value: Any) -> Any:
        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.atomic_rmw("xchg", pointer(builder, args[0]), args[1], "seq_cst")

        return word(word, word), code

    @intrinsic  # type: ignore[misc]
    def replaced(typing: Any, address: Any, old: Any, new: Any) -> Any:
        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            both = builder.cmpxchg(pointer(builder, args[0]), args[1], args[2], "seq_cst", "seq_cst")
            return builder.extract_value(both, 1)

        return types.boolean(word, word, word), code

    @njit  # type: ignore[untyped-decorator]
    def taken(size, zeroed):  # type: ignore[no-untyped-def]
        if size >= LEAST:
            return take(size, zeroed)
        address = malloc_raw(size + HEADER)
        if address == 0:
            return 0
        swap(address, 0)
        swap(address + 8, size)
        if zeroed:
            fill_bytes(address + HEADER, 0, size)
        return address + HEADER

    @njit  # type: ignore[untyped-decorator]
    def given_back(stack, data):  # type: ignore[no-untyped-def]
        if data == 0:
            return
        address = data - HEADER
        if load(address) == 0:
            free_raw(address)
            return
        last = load(stack)
        swap(address + 16, last)
        while not replaced(stack, last, address):
            last = load(stack)
            swap(address + 16, last)

    @cfunc("int64(int64, int64)")  # type: ignore[untyped-decorator]
    def malloc(stack, size):  # type: ignore[no-untyped-def]
        return taken(size, 0)

    @cfunc("int64(int64, int64, int64)")  # type: ignore[untyped-decorator]
    def calloc(stack, count, size):  # type: ignore[no-untyped-def]
        return taken(count * size, 1)

    @cfunc("int64(int64, int64, int64)")  # type: ignore[untyped-decorator]
    def realloc(stack, data, size):  # type: ignore[no-untyped-def]
        other = taken(size, 0)
        if other != 0 and data != 0:
            copy_bytes(other, data, min(size, load(data - HEADER + 8)))
            given_back(stack, data)
        return other

    @cfunc("void(int64, int64, int64)")  # type: ignore[untyped-decorator]
    def free(stack, data, size):  # type: ignore[no-untyped-def]
        given_back(stack, data)

    @cfunc("int64(int64)")  # type: ignore[untyped-decorator]
    def pop_all(stack):  # type: ignore[no-untyped-def]
        return swap(stack, 0)

    return {"malloc": malloc, "calloc": calloc, "realloc": realloc, "free": free, "pop_all": pop_all}
