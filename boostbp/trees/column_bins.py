"""ColumnBins: the order of the values of each column of an input, one byte a value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.trees import kernels

__all__ = ["ColumnBins"]

CUTS = 254
SAMPLE = 2048  # rows that the cuts are chosen by: any cuts are right, even ones are fast


@dataclass(frozen=True, slots=True)
class ColumnBins:
    """Buckets of values, by which most splits are decided without looking at the input.

    Attributes
    ----------
    codes : (features, rows) uint8
        Number of a value's bucket, in order; 255 where missing.
    lower, upper : (features, 256) float64
        Smallest and largest value in each bucket.
    """

    codes: NDArray[np.uint8]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @classmethod
    def of(cls, X: NDArray[np.float64]) -> ColumnBins:
        """Read a dense input, (rows, features)."""
        n_rows, n_features = X.shape
        cuts = np.full((n_features, CUTS + 1), np.inf)
        ordered = np.sort(X[:: max(1, n_rows // SAMPLE)], axis=0)  # NaN comes last
        known = len(ordered) - np.isnan(ordered).sum(axis=0)
        at = (np.arange(CUTS)[:, None] * known) // CUTS
        cuts[:, :CUTS] = np.where(known > 0, np.take_along_axis(ordered, at, axis=0), np.inf).T
        found = cls(np.empty((n_features, n_rows), np.uint8), np.empty((n_features, 256)), np.empty((n_features, 256)))
        kernels.encode(X, cuts, found.codes, found.lower, found.upper)
        return found
