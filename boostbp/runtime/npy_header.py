"""Headers of NumPy's files, which NumPy parses as Python literals: only after a check that bounds the parser."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_LARGEST = 10_000  # characters, as in NumPy
_DEEPEST = 8  # brackets within each other: NumPy writes 4 for fields with a shape
_TEXT = r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\""""
# Texts, numbers that end an entry, truth values, and brackets between them. A sign or operator needs a number: Python's
# parser takes memory and stack for chains of them.
_LITERALS = re.compile(rf"(?:{_TEXT}|-?\d{{1,400}}L?(?=[,)\]])|True|False|[\[\](){{}},:]| )*\n?")


def read_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape, whether columns are contiguous, and the type of the array whose items follow in a file.

    Raises ValueError if a header in version 1 or 2 of the format is not one that NumPy writes.
    """
    version = npy.read_magic(file)
    if version not in _READERS:
        raise ValueError(f"it has version {version} of the format, not 1.0 or 2.0")
    start, width = file.tell(), 2 * version[0]
    size = int.from_bytes(file.read(width), "little")
    text = file.read(min(size, _LARGEST + 1)).decode("latin1")
    if len(text) > _LARGEST or not _LITERALS.fullmatch(text) or _depth(text) > _DEEPEST:
        raise ValueError(f"its header is not one that NumPy writes: {text.strip()[:99]!r}")
    file.seek(start)
    return _READERS[version](file)


def _depth(text: str) -> int:
    brackets = re.sub(rf"{_TEXT}|[^\[\](){{}}]", "", text)
    return max(accumulate(1 if bracket in "[({" else -1 for bracket in brackets), default=0)
