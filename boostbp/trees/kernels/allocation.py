"""Compiled functions through which NumPy asks for memory: that of Python for small arrays, mappings for large ones."""

from __future__ import annotations

import ctypes

from numba import cfunc, njit, types
from numba.extending import intrinsic

LEAST = 1 << 20  # bytes of an array that is a mapping
HEADER = 64  # bytes before an array: whether it is a mapping, its size, the address of the next one on the stack
MAPPED, SIZE, NEXT = 0, 8, 16
_Int = ctypes.c_int64


def _function(function, result, *kinds):
    """A function of Python's, which needs neither its lock nor its objects."""
    return ctypes.CFUNCTYPE(result, *kinds)(ctypes.cast(function, ctypes.c_void_p).value)


_malloc = _function(ctypes.pythonapi.PyMem_RawMalloc, _Int, _Int)
_free = _function(ctypes.pythonapi.PyMem_RawFree, None, _Int)
_copy = _function(ctypes.memmove, _Int, _Int, _Int, _Int)
_fill = _function(ctypes.memset, _Int, _Int, _Int, _Int)


def _pointer(builder, address):
    return builder.inttoptr(address, address.type.as_pointer())


@intrinsic
def load(typing_context, address):
    """The word at an address."""
    return types.int64(types.int64), lambda context, builder, signature, args: builder.load(_pointer(builder, args[0]))


@intrinsic
def swap(typing_context, address, value):
    """Write a word to an address; the one that was there."""

    def code(context, builder, signature, args):
        return builder.atomic_rmw("xchg", _pointer(builder, args[0]), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), code


@intrinsic
def replace(typing_context, address, old, new):
    """Write a word to an address, if the old one is there; whether it was."""

    def code(context, builder, signature, args):
        both = builder.cmpxchg(_pointer(builder, args[0]), args[1], args[2], "seq_cst", "seq_cst")
        return builder.extract_value(both, 1)

    return types.boolean(types.int64, types.int64, types.int64), code


def compiled(take):
    """Functions of NumPy's handler by name, whose context is the address of the stack of mappings that are free.

    They run while exceptions are on their way, in threads without Python's lock, and when the interpreter has taken
    all else down: only for a new mapping do they call Python, by ``take(size, zeroed) -> address of the array``.
    """

    @njit
    def array_of(size, zeroed):
        if size >= LEAST:
            return take(size, zeroed)
        address = _malloc(size + HEADER)
        if address == 0:
            return 0
        swap(address + MAPPED, 0)
        swap(address + SIZE, size)
        if zeroed:
            _fill(address + HEADER, 0, size)
        return address + HEADER

    @njit
    def give_back(stack, data):
        if data == 0:
            return
        address = data - HEADER
        if load(address + MAPPED) == 0:
            _free(address)
            return
        last = load(stack)
        swap(address + NEXT, last)
        while not replace(stack, last, address):
            last = load(stack)
            swap(address + NEXT, last)

    @cfunc("int64(int64, int64)")
    def malloc(stack, size):
        return array_of(size, 0)

    @cfunc("int64(int64, int64, int64)")
    def calloc(stack, count, size):
        return array_of(count * size, 1)

    @cfunc("int64(int64, int64, int64)")
    def realloc(stack, data, size):
        other = array_of(size, 0)
        if other != 0 and data != 0:
            _copy(other, data, min(size, load(data - HEADER + SIZE)))
            give_back(stack, data)
        return other

    @cfunc("void(int64, int64, int64)")
    def free(stack, data, size):
        give_back(stack, data)

    @cfunc("int64(int64)")
    def pop_all(stack):
        return swap(stack, 0)

    return {"malloc": malloc, "calloc": calloc, "realloc": realloc, "free": free, "pop_all": pop_all}
