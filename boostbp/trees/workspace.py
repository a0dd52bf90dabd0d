"""Workspace: arrays that are used again from tree to tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Workspace"]


class Workspace:
    """Lends arrays for intermediate results and takes them back.

    The first touch of fresh memory can cost more than the arithmetic on it. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._free: dict[str, list[NDArray[Any]]] = {}

    def take(self, name: str, size: int, dtype: Any = np.float64) -> NDArray[Any]:
        """Return an array, (size,), of any content; `name` keeps arrays of one type and use together."""
        free = self._free.setdefault(name, [])
        try:
            array = free.pop()
        except IndexError:
            array = np.empty(0, dtype)
        return (array if len(array) >= size else np.empty(size, dtype))[:size]

    def give(self, name: str, *arrays: NDArray[Any]) -> None:
        """Take back what `take` lent under this name; the caller must not use it any more."""
        self._free[name] += [array.base for array in arrays if array.base is not None]
