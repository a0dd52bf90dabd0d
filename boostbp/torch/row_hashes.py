"""Row hashes: recognise rows that came before without keeping them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RowHashes = NDArray[np.uint64]
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_BLOCK = 4096  # rows at a time, which stay in the cache


def row_hashes(X: NDArray[np.float64]) -> RowHashes:
    """Return a hash of each row of (rows, features), (rows,).

    Equal rows have equal hashes, other rows by chance one time in 2^64. A hash is the sum, over the features, of the
    bits of the value plus a multiple of the column's number, mixed by splitmix64 (Steele, Lea and Flood 2014). NaN is
    equal to NaN, and -0 to 0.
    """
    hashes, columns = np.empty(len(X), np.uint64), np.arange(1, X.shape[1] + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    for first in range(0, len(X), _BLOCK):
        block = X[first : first + _BLOCK] + 0.0  # -0 becomes 0
        block[np.isnan(block)] = np.nan  # NaN has many bit patterns: take one
        hashes[first : first + _BLOCK] = _mix(block.view(np.uint64) + columns).sum(axis=1)
    return hashes


def _mix(bits: RowHashes) -> RowHashes:
    """Return the bits mixed by the finaliser of splitmix64, a bijection of 64-bit integers."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(_FIRST)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(_SECOND)
    return bits ^ (bits >> np.uint64(31))


def same_rows(hashes: RowHashes | None, other: RowHashes | None) -> bool:
    """Return whether both are known and are hashes of the same rows, in any order."""
    return hashes is not None and other is not None and np.array_equal(np.sort(hashes), np.sort(other))
