"""Calls of the compiled core: each prototype is declared once, and arguments are checked before a pointer is passed."""

from __future__ import annotations

import ctypes
import re
import struct
import sys
from collections.abc import Callable, Generator
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boostbp.core.stamp import stamp

SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
LIBRARY = Path(__file__).with_name(f"lib_boostbp{SUFFIX}")
_CURE = "Install the package again with pip; in a checkout, run `pip install -e .` again, or `python hatch_build.py`."
_ARGUMENT = re.compile(r"(?P<name>\w+): (?P<type>\w+)(?:\[(?P<axes>[^\]]*)\])?(?P<written> out)?")
_memory = (ctypes.c_char * 0).from_buffer  # address of a writable array, in a quarter of the time of NumPy's functions
_NUMBERS = {"int": (int, ctypes.c_int64), "float": (float, ctypes.c_double), "bool": (bool, ctypes.c_int64)}
LACKS_MEMORY = -1  # what a function of the core returns if memory is lacking


@cache
def shared_library() -> ctypes.CDLL:
    """Load the compiled core.

    Raises
    ------
    ImportError
        If it was not built, or was built for another system or from other sources.
    """
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError as error:
        raise ImportError(f"The compiled core of boostbp cannot be loaded ({error}). {_CURE}") from error
    # The functions of other sources may be absent, or take other arguments and never return.
    if (of_sources := stamp()) is not None and of_sources != _stamp_of(library):
        raise ImportError(f"The compiled core of boostbp, {LIBRARY}, was built from other sources. {_CURE}")
    return library


def _stamp_of(library: ctypes.CDLL) -> int | None:
    try:
        return ctypes.c_uint32.in_dll(library, "boostbp_stamp").value
    except ValueError:  # it has none
        return None


# Arguments of a call append what the C function takes to `values`, note the sizes of arrays in `sizes`, and append
# copies of arrays, which must outlive the call, to `kept`.
_Values: TypeAlias = list[Any]
_Sizes: TypeAlias = dict[str, int]
_Kept: TypeAlias = list[NDArray[Any]]


class _Number:
    """An integer, a float or a boolean."""

    def __init__(self, name: str, type_: str) -> None:
        self.name = name
        self.convert, c_type = _NUMBERS[type_]
        self.c_types = [c_type]

    def add_to(self, values: _Values, sizes: _Sizes, kept: _Kept, value: Any) -> None:
        values.append(self.convert(value))


class _Array:
    """A C-contiguous array. Leaf numbers are not negative and have any integer type, whose size is passed, too.

    sizes : place and name of each named axis, and the number that is added to the size of that name
    fixed : place and length of each axis of a fixed length
    """

    def __init__(self, name: str, type_: str, axes: str, *, is_written: bool) -> None:
        self.name, self.is_written = name, is_written
        self.is_leaf = type_ == "leaf"
        self.dtype = np.dtype("u1" if self.is_leaf else "?" if type_ == "bool" else type_)
        names = [axis.strip() for axis in axes.split(",")]
        self.n_axes = len(names)
        self.sizes = [
            (axis, text.partition("+")[0], int(text.partition("+")[2] or 0))
            for axis, text in enumerate(names)
            if text != "_" and not text.isdigit()
        ]
        self.fixed = [(axis, int(text)) for axis, text in enumerate(names) if text.isdigit()]
        self.c_types: list[Any] = [ctypes.c_void_p, ctypes.c_int64] if self.is_leaf else [ctypes.c_void_p]

    def add_to(self, values: _Values, sizes: _Sizes, kept: _Kept, array: Any) -> None:
        """Append the address of an array's first number, after checks; read-only arrays may be converted."""
        dtype = array.dtype
        is_plain = (
            dtype == self.dtype or (self.is_leaf and dtype.kind in "ui" and dtype.isnative)
        ) and array.flags.carray
        if not is_plain:
            array = self._converted(array)
            kept.append(array)
        shape = array.shape
        if len(shape) != self.n_axes:
            raise ValueError(f"{self.name} has {len(shape)} axes instead of {self.n_axes}.")
        for axis, size, more in self.sizes:
            n = shape[axis] - more
            if sizes.setdefault(size, n) != n or n < 0:
                raise ValueError(f"Axis {axis} of {self.name} has length {n + more} where {size}={sizes[size]}.")
        for axis, n in self.fixed:
            if shape[axis] != n:
                raise ValueError(f"Axis {axis} of {self.name} has length {shape[axis]} instead of {n}.")
        values.append(ctypes.addressof(_memory(array)) if is_plain else array.__array_interface__["data"][0])
        if self.is_leaf:
            values.append(array.itemsize)

    def _converted(self, array: Any) -> NDArray[Any]:
        """Return an array in the form that the function needs; arrays that it writes must already have it."""
        array = np.asarray(array)
        if self.is_leaf and array.dtype.kind not in "ui":
            raise TypeError(f"{self.name} has the type {array.dtype} instead of an integer one.")
        dtype = array.dtype.newbyteorder("=") if self.is_leaf else self.dtype
        is_plain = array.dtype == dtype and array.flags.carray
        if not np.can_cast(array.dtype, dtype) or (self.is_written and not is_plain):
            raise TypeError(
                f"{self.name} has the type {array.dtype} where {dtype} is needed"
                + (", C-contiguous and writable." if self.is_written else ".")
            )
        return np.require(array, dtype, ["C", "A"])


class _Record:
    """A tuple, passed as a pointer to a structure of what its fields pass, and of their named sizes."""

    c_types: ClassVar = [ctypes.c_void_p]

    def __init__(self, *fields: str) -> None:
        self.fields = [_argument(field) for field in fields]
        self.size_names = list(dict.fromkeys(size for field in self.fields for size in _sizes_of(field)))
        kinds = [kind for field in self.fields for kind in field.c_types]
        letters = ["d" if kind is ctypes.c_double else "q" for kind in kinds] + ["q"] * len(self.size_names)
        self._structure = struct.Struct("".join(letters)).pack

    def add_to(self, values: _Values, sizes: _Sizes, kept: _Kept, record: Any) -> None:
        passed: _Values = []
        for field, value in zip(self.fields, record, strict=True):
            field.add_to(passed, sizes, kept, value)
        values.append(self._structure(*passed, *[sizes[size] for size in self.size_names]))


def _sizes_of(argument: Any) -> list[str]:
    return [size for _, size, _ in getattr(argument, "sizes", [])]


def _argument(text: str | tuple[str, ...]) -> Any:
    if isinstance(text, tuple):
        return _Record(*text)
    match = _ARGUMENT.fullmatch(text)
    assert match, text
    if match["axes"] is None:
        return _Number(match["name"], match["type"])
    return _Array(match["name"], match["type"], match["axes"], is_written=match["written"] is not None)


class Loop:
    """A function of the core.

    Parameters
    ----------
    name : str
        The name of the C function, without the prefix ``boostbp_``.
    *arguments : str or tuple of str
        One text for each argument: ``"X: f8[rows, columns]"``, ``"begin: int"``, ``"penalty: float"``, ``"clip:
        bool"``; ``"leaf: leaf[trees, rows]"`` for leaf numbers; ``"out: f8[rows] out"`` if the function writes to it.
        Sizes of one name must agree, ``trees+1`` is one more, ``4`` is a fixed length, and ``_`` any length. A tuple is
        a record of such fields.

    Notes
    -----
    The C function takes pointers and numbers in this order, then each named size that no record has (int64), in the
    order of first appearance. Leaf numbers are a pointer and the size of a number in bytes; a record is a pointer to a
    structure of its fields and its named sizes. The function returns 0, `LACKS_MEMORY`, or a fault with a name.
    """

    def __init__(self, name: str, *arguments: str | tuple[str, ...]) -> None:
        self.__name__ = name
        self.arguments = [_argument(text) for text in arguments]
        in_records = {size for argument in self.arguments for size in getattr(argument, "size_names", [])}
        sizes = [size for argument in self.arguments for size in _sizes_of(argument)]
        self._size_names = [size for size in dict.fromkeys(sizes) if size not in in_records]

    def __call__(self, *args: Any) -> int:
        """Call the function without the interpreter lock; return its fault, or 0."""
        return self._run(self._function, {}, self.arguments, args)

    def bind_first(self, *first: Any) -> Callable[..., None]:
        """Return the function with its first arguments bound; they must not be changed afterwards."""
        values: _Values = []
        sizes: _Sizes = {}
        kept: list[Any] = list(first)
        later = self.arguments[len(first) :]
        for argument, value in zip(self.arguments, first, strict=False):
            argument.add_to(values, sizes, kept, value)
        function = partial(self._function, *values)

        def call(*last: Any) -> None:
            self._run(function, sizes.copy(), later, last)

        call.__dict__["arrays"] = kept  # keeps the arrays alive
        return call

    def _run(self, function: Callable[..., int], sizes: _Sizes, arguments: list[Any], args: tuple[Any, ...]) -> int:
        values: _Values = []
        kept: _Kept = []
        for argument, value in zip(arguments, args, strict=True):
            argument.add_to(values, sizes, kept, value)
        fault = function(*values, *[sizes[size] for size in self._size_names])
        if fault == LACKS_MEMORY:
            raise MemoryError(f"Not enough memory for {self.__name__}.")
        return fault

    @cached_property
    def _function(self) -> Any:
        function = shared_library()[f"boostbp_{self.__name__}"]
        types = [c_type for argument in self.arguments for c_type in argument.c_types]
        function.argtypes = types + [ctypes.c_int64] * len(self._size_names)
        function.restype = ctypes.c_int64
        return function


_Step = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


class CFunction:
    """A function of a number >= 0 that the core calls by its address; an error that it raises is raised by `check`.

    The core receives ``~number``, or after an error something else.
    """

    def __init__(self, function: Callable[[int], object]) -> None:
        self._errors: list[BaseException] = []
        # Neither a function of this object nor an argument of `ctypes.cast`: a cycle of references would keep arrays.
        steps = _steps(function, self._errors)
        next(steps)
        self._step = _Step(steps.send)

    @property
    def address(self) -> int:
        """Address of the C function."""
        return ctypes.c_void_p.from_buffer(self._step).value or 0

    def check(self) -> None:
        """Raise the error that ended the calls, if there was one."""
        if self._errors:
            raise self._errors.pop()


def _steps(function: Callable[[int], object], errors: list[BaseException]) -> Generator[int, int]:
    """Call a function with each number that is sent, and yield ``~number``; 0 after an error."""
    # A generator, as a signal may raise an error where a function begins: before its `try`.
    number, is_running = 0, False
    try:
        while True:
            number = yield ~number
            is_running = True
            function(number)
            is_running = False
    except BaseException as error:
        if isinstance(error, GeneratorExit) and not is_running:  # the end of this generator
            raise
        errors.append(error)
    yield 0
