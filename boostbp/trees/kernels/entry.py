"""Entry points from Python to the compiled loops: each states the kinds of its arguments and is compiled for them only.

numba compiles a loop once more, for seconds, for every new type of an argument: a read-only array, an integer of
another size, a boolean of another library. An entry point first converts its arguments to the stated kinds. There is
then exactly one version of each loop, and compiling it is a complete warm-up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.core.compiler_lock import global_compiler_lock
from numba.np.numpy_support import from_dtype

from boostbp.runtime.compiling import compiling
from boostbp.runtime.native_threads import fork_safe
from boostbp.trees.kernels.cache import KernelCache
from boostbp.trees.kernels.records import ENTERED, Leaves, Nodes

fork_safe(global_compiler_lock)  # held by a thread that compiles


class ArgumentKind(NamedTuple):
    """The kind of one argument of a loop.

    type : the type for numba
    convert : converts what callers pass; what it cannot convert stays, and numba compiles a version for it
    dtypes : of an array that is only read, its dtype; of a record of such arrays, those of its fields
    """

    type: Any
    convert: Callable[[Any], Any]
    dtypes: tuple[np.dtype[Any], ...] = ()

    @property
    def is_record(self) -> bool:
        """Whether callers pass a tuple of arrays."""
        return isinstance(self.type, types.NamedTuple)


class Loop:
    """A compiled loop that Python and other compiled loops call."""

    def __init__(self, function: Callable[..., Any], kinds: tuple[ArgumentKind, ...]) -> None:
        self.dispatcher, self.kinds = njit(**ENTERED)(function), kinds
        self.dispatcher._cache = KernelCache(function)  # in the place where numba's ``cache=True`` puts its own
        self.dispatcher.compile = _timed(self.dispatcher.compile)  # the first call of each signature uses it, too
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        places = list(enumerate(kinds))
        self._arrays = [place for place, kind in places if kind.dtypes and not kind.is_record]
        self._records = [place for place, kind in places if kind.is_record]
        self._dtypes = [dtype for place in self._arrays + self._records for dtype in kinds[place].dtypes]
        self._others = [
            (place, kind.convert) for place, kind in places if not kind.dtypes and kind.convert is not _unchanged
        ]

    @property
    def _numba_type_(self) -> Any:
        """The type that compiled callers see."""
        return self.dispatcher._numba_type_

    def __call__(self, *args: Any) -> Any:
        """Call the loop from Python.

        Nearly always all arrays have the stated kinds, so one check covers all of them: a call for each array would
        cost as much as the loop over the rows of a small tree.
        """
        arrays = [args[place] for place in self._arrays]
        for place in self._records:
            arrays += args[place]
        if [array.dtype for array in arrays] == self._dtypes and all([array.flags.carray for array in arrays]):
            converted = list(args)
            for place, convert in self._others:
                converted[place] = convert(args[place])
            return self.dispatcher(*converted)
        return self.dispatcher(*[kind.convert(arg) for kind, arg in zip(self.kinds, args, strict=True)])

    def bind_first(self, *first: Any) -> Callable[..., Any]:
        """Return the loop with its first arguments bound; later calls do not check the types of arguments."""
        converted = [kind.convert(arg) for kind, arg in zip(self.kinds, first, strict=False)]
        later = [(place, kind.convert) for place, kind in enumerate(self.kinds) if kind.convert is not _unchanged]
        later = [(place, convert) for place, convert in later if place >= len(first)]
        compiled = self.compile()

        def call(*last: Any) -> Any:
            args = [*converted, *last]
            for place, convert in later:
                args[place] = convert(args[place])
            return compiled(*args)

        return call

    def compile(self) -> Callable[..., Any]:
        """Return the one version of the loop, loaded or compiled if need be."""
        version: Callable[..., Any] = self.dispatcher.compile(tuple(kind.type for kind in self.kinds))
        return version


def _timed(compile_for: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Exclude the compiling and loading of a dispatcher from working time."""

    def timed(signature: Any) -> Any:
        with compiling():
            return compile_for(signature)

    return timed


def entry_point(*kinds: ArgumentKind) -> Callable[[Callable[..., Any]], Loop]:
    """Make a function an entry point for arguments of these kinds, with the operations in the order of IEEE 754."""
    return lambda function: Loop(function, kinds)


class _Writable:
    """The memory of a read-only array, as an array that numba takes for a writable one."""

    def __init__(self, array: Any) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = interface | {"data": (interface["data"][0], False)}
        self.owner = array


def _converted(array: Any, dtype: Any) -> Any:
    """Return an array that is only read as numba's plainest type: contiguous, aligned and writable."""
    if array.dtype == dtype and array.flags.carray:
        return array
    if not np.can_cast(array.dtype, dtype):
        return array
    array = np.require(array, dtype, ["C", "A"])
    return array if array.flags.writeable else np.asarray(_Writable(array))


def read(dtype: Any, axes: int) -> ArgumentKind:
    """Return the kind of an array that the loop only reads."""
    kind = np.dtype(dtype)
    return ArgumentKind(types.Array(from_dtype(kind), axes, "C"), lambda array: _converted(array, kind), (kind,))


def _unchanged(array: Any) -> Any:
    return array


def written(dtype: str, axes: int) -> ArgumentKind:
    """Return the kind of an array that the loop writes to."""
    return ArgumentKind(types.Array(from_dtype(np.dtype(dtype)), axes, "C"), _unchanged)


def _record(record: Any, *kinds: ArgumentKind) -> ArgumentKind:
    """A tuple of arrays that the loop only reads."""

    def convert(value: Any) -> Any:
        return record(*[kind.convert(field) for kind, field in zip(kinds, value, strict=True)])

    dtypes = tuple(dtype for kind in kinds for dtype in kind.dtypes)
    return ArgumentKind(types.NamedTuple([kind.type for kind in kinds], record), convert, dtypes)


def _numbers(leaf: Any) -> Any:
    """Return leaf numbers, (trees, rows) of any unsigned type, as bytes, (trees, rows, size): one version for all."""
    return leaf.view(np.uint8).reshape(*leaf.shape, leaf.itemsize)


_BYTES = types.Array(types.uint8, 3, "C")
INT, FLOAT, BOOL = ArgumentKind(types.int64, int), ArgumentKind(types.float64, float), ArgumentKind(types.boolean, bool)
VECTOR, MATRIX = read("f8", 1), read("f8", 2)
INT32S, INT64S = read("i4", 1), read("i8", 1)
ORDER = read("u2", 1)
LEAF = ArgumentKind(_BYTES, lambda leaf: _numbers(np.ascontiguousarray(leaf)))
LEAF_OUT = ArgumentKind(_BYTES, _numbers)
NODES = _record(Nodes, INT32S, VECTOR, INT32S, INT32S, read("?", 1), INT32S, INT32S, read("u4", 1))
LEAVES = _record(Leaves, INT64S, read("i8", 2), INT64S, INT64S, INT32S, MATRIX, INT64S, VECTOR)
