"""Units in which columns are compared: standard deviations, of the logarithm where that is more symmetric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats
from boostbp.trees.bounds import ROWS, bounds_of

TENTH = 0.1  # quantiles on both sides of the median tell whether a column is symmetric
FLOOR = 1e-3  # of the least value that counts: in logarithms, 0 and less is so far below it
NEXT_FLOOR = 0.5  # of counts, whose 0 is next to 1
FAR = 1e6  # standard deviations: numbers stay representable


@dataclass(frozen=True, slots=True)
class Units:
    """Units of some columns.

    Attributes
    ----------
    column : (columns,) int64
        Of the input.
    floor : (columns,) float64
        Of columns that are compared by their logarithm, the least value that it is taken of; 0 for the others.
    center, scale : (columns,) float64
        Mean and standard deviation; the latter is infinite of a column that hardly varies, whose ``u`` is 0.
    """

    column: NDArray[np.int64]
    floor: Floats
    center: Floats
    scale: Floats

    @classmethod
    def of(cls, column: NDArray[np.integer], Z: Floats, weight: Floats) -> tuple[Units, Floats]:
        """Units of columns by their values, (rows, columns), and the values in them: isolated ones are missing."""
        floor = np.array([_floor(z, weight) for z in Z.T])
        T = _by_floor(Z, floor)
        for j, t in enumerate(T.T):
            lower, upper = bounds_of(t, weight)
            T[:, j] = np.where((t < lower) | (t > upper), np.nan, t)
        present = np.where(np.isnan(T), 0.0, weight[:, None])
        with np.errstate(all="ignore"):  # columns too wide for float64 do not take part
            total = present.sum(0)
            center = np.where(present > 0, present * T, 0.0).sum(0) / total
            scale = np.sqrt(np.where(present > 0, present * np.square(T - center), 0.0).sum(0) / total)
            varies = np.isfinite(scale) & (scale > 1e-12 * (1.0 + np.abs(center)))
        units = cls(column.astype(np.int64), floor, np.where(varies, center, 0.0), np.where(varies, scale, np.inf))
        return units, units._scaled(T)

    @property
    def varies(self) -> NDArray[np.bool_]:
        """Which columns vary, (columns,)."""
        return np.isfinite(self.scale)

    def of_values(self, Z: Floats) -> Floats:
        """Values, (rows, columns), in these units; NaN is missing."""
        return self._scaled(_by_floor(Z, self.floor))

    def values(self, j: NDArray[np.intp], u: Floats) -> Floats:
        """The values that are `u` in the units of the j-th columns; the mean, where these do not vary."""
        t = self.center[j] + u * np.where(self.varies, self.scale, 0.0)[j]
        logarithm = self.floor[j] > 0
        t[logarithm] = np.exp(t[logarithm])
        return t

    def _scaled(self, T: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.clip((T - self.center) / self.scale, -FAR, FAR)


def _by_floor(Z: Floats, floor: Floats) -> Floats:
    """Logarithms of the columns that have a floor, the others as they are; a new array."""
    T = np.array(Z)
    logarithm = floor > 0
    T[:, logarithm] = np.log(np.maximum(Z[:, logarithm], floor[logarithm]))
    return T


def _floor(z: Floats, weight: Floats) -> float:
    """The least value that a logarithm is taken of; 0 where the logarithm is less symmetric, or values are not above 0.

    Up to one in `ROWS` may be no more than 0: they may be what is mistyped, but in a column of counts.
    """
    known = ~np.isnan(z) & (weight > 0)
    z, weight = z[known], weight[known]
    if weight[z <= 0].sum() * ROWS > weight.sum() or not (z > 0).any():
        return 0.0
    a, m, b = np.quantile(z, [TENTH, 0.5, 1 - TENTH], weights=weight, method="inverted_cdf")
    if not 0 < a < m < b:
        return 0.0
    plain, logarithmic = np.log((b - m) / (m - a)), np.log(np.log(b / m) / np.log(m / a))
    if abs(logarithmic) >= abs(plain):
        return 0.0
    above = np.unique(z[z > 0])
    if above[0] <= np.diff(above).min():  # 0 is no further from the least value than values are from each other
        return float(NEXT_FLOOR * above[0])
    return float(FLOOR * max(bounds_of(z, weight)[0], above[0]))
