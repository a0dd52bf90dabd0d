"""Tweedie: amounts of which many are 0 and the others positive, such as what each policy of an insurance costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from boostbp.losses.base import LEAST_HESSIAN, refuse
from boostbp.losses.log_link import LogLink

__all__ = ["Tweedie"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tweedie(LogLink):
    """``p^(2 - power) / (2 - power) + y p^(1 - power) / (power - 1)`` with ``p = exp(h)``, for ``y >= 0``.

    The negative log-likelihood of a sum of gamma variables, as many as a Poisson variable says, with mean `p`
    and a variance that grows as ``p^power``; but for its dispersion and a constant. Half the unit deviance of
    Jørgensen (1987, "Exponential dispersion models") is what it exceeds its value at ``p = y`` by. The same loss as in
    LightGBM and XGBoost; baseline: log of the weighted mean.

    Attributes
    ----------
    power : float
        Strictly between 1, where it is the Poisson loss, and 2, where it is the gamma loss.
    """

    power: float = 1.5
    name: ClassVar[str] = "tweedie"
    aliases: ClassVar[tuple[str, ...]] = ("reg:tweedie",)

    def __post_init__(self) -> None:
        """Refuse a power outside (1, 2)."""
        if not 1 < self.power < 2:
            raise ValueError(
                f"power={self.power!r} is not between 1 and 2: use e.g. Tweedie(power=1.5); loss='poisson' has the "
                "power 1, and loss='gamma' 2."
            )

    def value(self, h: Floats, y: Floats) -> Floats:
        """Negative log-likelihood but for a constant."""
        near = self._within(h)
        mean, target = self._parts(near, y)
        tangent = (mean - target) * (h - near)  # 0 but beyond the range
        return (mean / (2.0 - self.power) + target / (self.power - 1.0) + tangent).sum(axis=1)

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """``p^(2 - power) - y p^(1 - power)``."""
        mean, target = self._parts(self._within(h), y)
        return mean - target

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """``(2 - power) p^(2 - power) + (power - 1) y p^(1 - power)``."""
        mean, target = self._parts(self._within(h), y)
        return np.maximum((2.0 - self.power) * mean + (self.power - 1.0) * target, LEAST_HESSIAN)

    def check(self, y: Floats) -> None:
        """Refuse negative targets, and those that predictions do not reach."""
        refuse(y, ~(y >= 0), "loss='tweedie' takes numbers >= 0. Drop these rows, or use loss='squared_error'.")
        self._refuse_out_of_range(y)

    def _parts(self, h: Floats, y: Floats) -> tuple[Floats, Floats]:
        """``p^(2 - power)`` and ``y p^(1 - power)``, each (rows, outputs)."""
        return np.exp((2.0 - self.power) * h), y * np.exp((1.0 - self.power) * h)
