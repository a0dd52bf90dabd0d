"""Steps: how a hidden variable moves along its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Normalised", "Plain", "Step", "spread"]

Floats = NDArray[np.float64]


class Step(Protocol):
    """A rule that moves hidden variables. Its only memory is the momentum `m`, which the driver keeps."""

    @property
    def alpha(self) -> float:
        """Size of a step."""
        ...

    @property
    def mu(self) -> float:
        """Share of the momentum that an epoch keeps."""
        ...

    def move(self, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Move one hidden layer.

        Parameters
        ----------
        h : (rows, units) float64
            The hidden variable.
        m : (rows, units) float64
            Momentum so far; zeros at first.
        g : (rows, units) float64
            dL/dh of each row's own loss, not divided by rows.
        weight : (rows,) float64
            Row weights, for spreads over rows.

        Returns
        -------
        target, m : (rows, units) float64
            Where the layer below is to be fitted to, and the new momentum.
        """
        ...


def spread(h: Floats, weight: Floats) -> Floats:
    """Weighted standard deviation of each unit, (units,)."""
    total = weight.sum()
    mean = weight @ h / total
    deviation: Floats = np.sqrt(weight @ np.square(h - mean) / total)
    return deviation


@dataclass(frozen=True, slots=True)
class Plain:
    """The paper's step: ``m <- mu m + (1 - mu) g``, ``h <- h - alpha m`` (equation for momentum)."""

    alpha: float = 0.5
    mu: float = 0.5

    def move(self, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """See `Step.move`."""
        m = self.mu * m + (1 - self.mu) * g
        return h - self.alpha * m, m


@dataclass(frozen=True, slots=True)
class Normalised:
    """A step of `alpha` spreads: each unit moves by ``alpha * spread(h) * m / rms(m)``.

    The size of the move does not depend on the scale of the loss, nor on how far the layers above
    have grown; a unit without gradient stays where it is.
    """

    alpha: float = 0.3
    mu: float = 0.8

    def move(self, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """See `Step.move`."""
        m = self.mu * m + (1 - self.mu) * g
        size = np.sqrt(weight @ np.square(m) / weight.sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(size > 0, self.alpha * spread(h, weight) / size, 0.0)
        return h - np.where(np.isfinite(rate), rate, 0.0) * m, m
