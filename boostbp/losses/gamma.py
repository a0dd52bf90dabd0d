"""Gamma: positive amounts whose standard deviation grows with their mean, such as the sizes of insurance claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from boostbp.losses.base import LEAST_HESSIAN, refuse
from boostbp.losses.log_link import LogLink

__all__ = ["Gamma"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gamma(LogLink):
    """``h + y exp(-h)`` for ``y > 0``; baseline: log of the weighted mean.

    The negative log-likelihood of a gamma distribution with mean ``exp(h)``, divided by its shape, but for a constant:
    half the unit deviance of McCullagh and Nelder (1989, table 2.1) is what it exceeds its value at ``exp(h) = y`` by.
    Gradient ``1 - y / exp(h)`` and hessian ``y / exp(h)`` are those of LightGBM and XGBoost.
    """

    name: ClassVar[str] = "gamma"
    aliases: ClassVar[tuple[str, ...]] = ("reg:gamma",)
    default_metric: ClassVar[str] = "gamma"

    def value(self, h: Floats, y: Floats) -> Floats:
        """Negative log-likelihood but for a constant."""
        # beyond the range the tangent there, near + ratio + (1 - ratio) (h - near)
        near = self._within(h)
        ratio = y * np.exp(-near)
        return (h + ratio * (1.0 + near - h)).sum(axis=1)

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """One minus target by predicted mean."""
        return 1.0 - self._ratio(h, y)

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """Target by predicted mean."""
        return np.maximum(self._ratio(h, y), LEAST_HESSIAN)

    def check(self, y: Floats) -> None:
        """Refuse targets that are not positive, and those that predictions do not reach."""
        refuse(
            y, ~(y > 0), "loss='gamma' takes numbers above 0. Drop these rows, or use loss='tweedie', which takes 0."
        )
        self._refuse_out_of_range(y)

    def _ratio(self, h: Floats, y: Floats) -> Floats:
        return y * np.exp(-self._within(h))
