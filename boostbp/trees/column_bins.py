"""ColumnBins: the bin of each value of an input, one byte a value, in the order of the values of its column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.trees import kernels

CUTS = 254
SAMPLE = 2048  # rows that the cuts are quantiles of: any cuts give exact routing, those of even bins are fast


@dataclass(frozen=True, slots=True)
class ColumnBins:
    """Bins of values, by which most splits are decided without looking at the input.

    Attributes
    ----------
    bins : (features, rows) uint8
        Number of a value's bin, in order; 255 where missing.
    lower, upper : (features, 256) float64
        Smallest and largest value in each bin.
    """

    bins: NDArray[np.uint8]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @classmethod
    def of(cls, X: NDArray[np.float64]) -> ColumnBins:
        """Return the bins of a dense input, (rows, features)."""
        n_rows, n_features = X.shape
        cuts = np.full((n_features, CUTS + 1), np.inf)
        ordered = np.sort(X[:: max(1, n_rows // SAMPLE)], axis=0)  # NaN comes last
        known = len(ordered) - np.isnan(ordered).sum(axis=0)
        at = (np.arange(CUTS)[:, None] * known) // CUTS
        if len(ordered):
            cuts[:, :CUTS] = np.where(known > 0, np.take_along_axis(ordered, at, axis=0), np.inf).T
        bins = np.empty((n_features, n_rows), np.uint8)
        lower, upper = np.empty((n_features, 256)), np.empty((n_features, 256))
        kernels.put_in_bins(X, cuts, bins, lower, upper)
        return cls(bins, lower, upper)
