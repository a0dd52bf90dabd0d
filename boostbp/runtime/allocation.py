"""Compiled functions through which NumPy asks for memory: that of the C library for small arrays, files for large ones.

They call the C library alone, so they may run while an exception is on its way, without Python's lock, in a forked
child, or when the interpreter has taken all else down.

A context is an array of int64: address and size of the pattern of file names, the number of the last error, the number
of blocks that use the context, and slots with the addresses of mappings that no array needs any more. These are kept
for the next arrays of their size while a block lasts: to fill 24 MB takes 10 ms in new pages of a file, 2 ms in NumPy's
own memory, and 1 ms in pages that are there already.
"""

from __future__ import annotations

import ctypes
from errno import EINTR
from functools import cache

from numba import cfunc, njit, types
from numba.extending import intrinsic

LEAST = 1 << 20  # bytes of an array in a file; smaller ones are blocks of rows, which take no memory to speak of
HEADER = 64  # bytes before an array, so that it begins at a cache line
SIZE, PROCESS = 0, 8  # bytes at which a header has the size with it, and the process that made its file, 0 if in memory
PATTERN, LENGTH, ERROR, USERS, SLOTS = 0, 8, 16, 24, 32  # bytes at which the words of a context begin
N_SLOTS = 32  # an epoch makes some thirty sizes of arrays
MOST_KEPT = 1 << 28  # bytes of a mapping in a slot; larger ones would take too much of the disk
_READ_WRITE, _SHARED = 3, 1  # PROT_READ | PROT_WRITE and MAP_SHARED of mmap, on all systems with posix_fallocate


def _c(name, result, *arguments):
    """Return a function of the C library; results and arguments are integers of so many bytes."""
    kinds = {4: ctypes.c_int32, 8: ctypes.c_int64, None: None}
    function = getattr(ctypes.CDLL(None), name)
    function.restype, function.argtypes = kinds[result], [kinds[size] for size in arguments]
    return function


@intrinsic
def _load(typing_context, address):
    """Return the word at an address."""

    def code(context, builder, signature, args):
        return builder.load(builder.inttoptr(args[0], args[0].type.as_pointer()))

    return types.int64(types.int64), code


@intrinsic
def _swap(typing_context, address, value):
    """Write a word to an address, in one step for all threads; return the one that was there."""

    def code(context, builder, signature, args):
        return builder.atomic_rmw("xchg", builder.inttoptr(args[0], args[0].type.as_pointer()), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), code


@cache
def compiled():
    """Return malloc, calloc, realloc and free of a handler, and a function of a context that empties its slots."""
    least = LEAST
    malloc, calloc, free = _c("malloc", 8, 8), _c("calloc", 8, 8, 8), _c("free", None, 8)
    copy, fill, getpid = _c("memcpy", 8, 8, 8, 8), _c("memset", 8, 8, 4, 8), _c("getpid", 4)
    mkstemp, unlink, close = _c("mkstemp", 4, 8), _c("unlink", 4, 8), _c("close", 4, 4)
    allocate = _c("posix_fallocate", 4, 4, 8, 8)
    mmap, munmap = _c("mmap", 8, 8, 8, 4, 4, 4, 8), _c("munmap", 4, 8, 8)

    @njit
    def unmap(address):
        munmap(address, _load(address + SIZE))

    @njit
    def kept(context, size):
        """Take a mapping of this size from the slots; 0 if there is none. Those of a parent process are not used."""
        for slot in range(SLOTS, SLOTS + 8 * N_SLOTS, 8):
            address = _swap(context + slot, 0)
            if address != 0:
                if _load(address + SIZE) == size and _load(address + PROCESS) == getpid():
                    return address
                other = _swap(context + slot, address)
                if other != 0:
                    unmap(other)
        return 0

    @njit
    def keep(context, address):
        """Put a mapping into the first slot and move the others on; the last one falls out."""
        is_small = _load(address + SIZE) <= MOST_KEPT
        if _load(context + USERS) > 0 and is_small and _load(address + PROCESS) == getpid():
            for slot in range(SLOTS, SLOTS + 8 * N_SLOTS, 8):
                address = _swap(context + slot, address)
                if address == 0:
                    return
        unmap(address)

    @njit
    def map_file(context, size):
        """Address of a new file of zeros, mapped; 0 if there is no room, which NumPy takes for a lack of memory."""
        length = _load(context + LENGTH)
        name = malloc(length)
        copy(name, _load(context + PATTERN), length)
        file = mkstemp(name)
        if file >= 0:
            unlink(name)
        free(name)
        if file < 0:
            return 0
        # a write to a page that the disk has no room for would end the process
        error = EINTR
        while error == EINTR:  # a signal came
            error = allocate(file, 0, size)
        _swap(context + ERROR, error)
        address = mmap(0, size, _READ_WRITE, _SHARED, file, 0) if error == 0 else -1
        close(file)
        return address if address != -1 else 0

    @njit
    def make(context, size, zeroed):
        whole, process = size + HEADER, 0
        if size < least:
            address = calloc(1, whole) if zeroed else malloc(whole)
        else:
            process, address = getpid(), kept(context, whole)
            if address == 0:
                address = map_file(context, whole)
            elif zeroed:
                fill(address, 0, whole)
        if address == 0:
            return 0
        _swap(address + SIZE, whole)
        _swap(address + PROCESS, process)
        return address + HEADER

    @njit
    def release(context, data):
        if data != 0:
            address = data - HEADER
            if _load(address + PROCESS) != 0:
                keep(context, address)
            else:
                free(address)

    @cfunc("int64(int64, int64)")
    def handler_malloc(context, size):
        return make(context, size, False)

    @cfunc("int64(int64, int64, int64)")
    def handler_calloc(context, count, size):
        return make(context, count * size, True)

    @cfunc("int64(int64, int64, int64)")
    def handler_realloc(context, data, size):
        other = make(context, size, False)
        if other != 0 and data != 0:
            copy(other, data, min(size, _load(data - HEADER + SIZE) - HEADER))
            release(context, data)
        return other

    @cfunc("void(int64, int64, int64)")
    def handler_free(context, data, size):  # of an empty array, NumPy names another size than it asked for
        release(context, data)

    @cfunc("void(int64)")
    def empty_slots(context):
        for slot in range(SLOTS, SLOTS + 8 * N_SLOTS, 8):
            address = _swap(context + slot, 0)
            if address != 0:
                unmap(address)

    return handler_malloc, handler_calloc, handler_realloc, handler_free, empty_slots
