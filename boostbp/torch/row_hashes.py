"""RowHashes: a number of each row, by which rows are known again without being kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowHashes", "marks", "same_rows"]

RowHashes = NDArray[np.uint64]
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_BLOCK = 4096  # rows at a time, which stay in the cache


def marks(X: NDArray[np.float64]) -> RowHashes:
    """A number for each row of (rows, features), (rows,): equal for equal rows, and by chance one time in 2^64.

    It is the sum, over the features, of the bits of each value and its column, mixed (splitmix64: Steele and others
    2014). NaN is equal to NaN, and -0 to 0.
    """
    found, columns = np.empty(len(X), np.uint64), np.arange(1, X.shape[1] + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    for first in range(0, len(X), _BLOCK):
        block = X[first : first + _BLOCK] + 0.0  # no -0
        block[np.isnan(block)] = np.nan  # one of many
        found[first : first + _BLOCK] = _mixed(block.view(np.uint64) + columns).sum(axis=1)
    return found


def _mixed(bits: RowHashes) -> RowHashes:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(_FIRST)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(_SECOND)
    return bits ^ (bits >> np.uint64(31))


def same_rows(one: RowHashes | None, other: RowHashes | None) -> bool:
    """Whether they are the same rows, in whatever order."""
    return one is not None and other is not None and np.array_equal(np.sort(one), np.sort(other))
