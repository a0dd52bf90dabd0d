"""Thresholds: those of splits by their numbers among the different ones of their feature, which are few."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats
from boostbp.trees.tree import offsets


class Thresholds(NamedTuple):
    """Thresholds of splits.

    Attributes
    ----------
    threshold_number : (splits,) int32
        Number of each among those of its feature, -1 of a split by a set of categories.
    thresholds : (different thresholds,) float64
        Those of a feature side by side, ascending.
    first_threshold : (features in use + 1,) int64
        Where those of each feature begin.
    """

    threshold_number: NDArray[np.int32]
    thresholds: Floats
    first_threshold: NDArray[np.int64]

    @classmethod
    def of(cls, feature: NDArray[np.int32], threshold: Floats, n_features: int = 0) -> Thresholds:
        """Number the thresholds of splits, NaN of sets of categories, of at least so many features."""
        number = np.full(len(feature), -1, np.int32)
        numeric = np.flatnonzero(~np.isnan(threshold))
        order = numeric[np.lexsort((threshold[numeric], feature[numeric]))]
        of_feature, value = feature[order], threshold[order]
        is_new = np.ones(len(order), bool)
        is_new[1:] = (of_feature[1:] != of_feature[:-1]) | (value[1:] != value[:-1])
        count = np.bincount(of_feature[is_new], minlength=max(n_features, int(feature.max(initial=-1)) + 1))
        first = offsets(count)
        number[order] = np.cumsum(is_new) - 1 - first[of_feature]
        return cls(number, value[is_new], first)

    def of_splits(self, feature: NDArray[np.int32]) -> Floats:
        """Return the threshold of each split, NaN of those by sets.

        Raises
        ------
        ValueError
            If the numbers do not fit to the features.
        """
        number, first, known = self.threshold_number, self.first_threshold, self.threshold_number != -1
        fit = len(number) == len(feature) and len(first) == int(feature.max(initial=-1)) + 2
        fit = fit and bool(feature.min(initial=0) >= 0 and first[0] == 0 and first[-1] == len(self.thresholds))
        count = np.diff(first)
        if not fit or (count < 0).any() or ((number < -1) | (number >= count[feature])).any():
            raise ValueError("This is not a forest: the thresholds of splits do not fit to them.")
        threshold = np.full(len(number), np.nan)
        threshold[known] = self.thresholds[first[feature[known]] + number[known]]
        return threshold
