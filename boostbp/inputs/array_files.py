"""Arrays in NumPy's files: read, never mapped, as truncating a mapped file would end the process."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from boostbp.files.parts import check_regular
from boostbp.runtime import interrupts

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class _ArrayFile(NamedTuple):
    """An array in an open file."""

    file: BinaryIO
    start: int  # byte at which its items begin
    shape: tuple[int, ...]
    is_fortran: bool  # columns lie one after the other, not rows
    dtype: np.dtype[Any]

    def items(self, first: int, count: int) -> NDArray[Any]:
        """Return items as they lie in the file, (count,)."""
        interrupts.check()
        self.file.seek(self.start + first * self.dtype.itemsize)
        items = np.fromfile(self.file, self.dtype, count)
        if len(items) < count:
            raise ValueError(f"{self.file.name!r} was truncated while it was read: write it again.")
        return items

    def whole(self) -> NDArray[Any]:
        """Return all of it."""
        return self.items(0, math.prod(self.shape)).reshape(self.shape, order="F" if self.is_fortran else "C")

    def rows(self, first: int, last: int) -> NDArray[Any]:
        """Return some rows of an array of two axes."""
        n_rows, n_columns = self.shape
        if not self.is_fortran:
            return self.items(first * n_columns, (last - first) * n_columns).reshape(last - first, n_columns)
        out = np.empty((last - first, n_columns), self.dtype, order="F")
        for j in range(n_columns):
            out[:, j] = self.items(j * n_rows + first, last - first)
        return out


def read_array(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Return the array in a file; ValueError if the file holds none or is truncated, and OSError."""
    with _opened(path) as array:
        return array.whole()


def array_blocks(path: str | os.PathLike[str], n_rows: int) -> Iterator[NDArray[Any]]:
    """Yield blocks of `n_rows` rows; the last one may have fewer. Raises what `read_array` does."""
    with _opened(path) as array:
        if len(array.shape) != 2 or not array.shape[0]:  # the reader of tables refuses it
            yield array.whole()
            return
        for first in range(0, array.shape[0], n_rows):
            yield array.rows(first, min(first + n_rows, array.shape[0]))


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[_ArrayFile]:
    name = os.fspath(path)
    check_regular(path)
    with open(path, "rb") as file:
        try:
            shape, is_fortran, dtype = _HEADERS[npy.read_magic(file)](file)
        except Exception as error:  # a damaged header may fail anywhere in its reader
            raise ValueError(f"{name!r} is not a file of one array as numpy.save writes it: {error}.") from error
        if dtype.hasobject:
            raise ValueError(f"{name!r} holds Python objects, which are code: save an array of numbers or text.")
        start = file.tell()
        needed, there = math.prod(shape) * dtype.itemsize, os.fstat(file.fileno()).st_size - start
        if min(shape, default=0) < 0 or there < needed:
            raise ValueError(
                f"{name!r} holds {there} bytes of an array {shape} of {dtype}, which takes {needed}: it is truncated."
            )
        yield _ArrayFile(file, start, shape, is_fortran, dtype)
