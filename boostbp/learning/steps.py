"""Steps: how a hidden variable moves along its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Normalised", "Plain", "Step", "is_constant", "std"]

Floats = NDArray[np.float64]
PATIENCE = 16  # epochs without a new lowest training loss; after fewer, steps die on a plateau that they would cross


class Step(Protocol):
    """A rule that moves hidden variables."""

    @property
    def alpha(self) -> float:
        """Step size."""
        ...

    @property
    def decay(self) -> float:
        """What later moves are multiplied by when the training loss has stopped falling; see `pace_after`."""
        ...

    def move(self, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Move one hidden layer.

        Parameters
        ----------
        h : (rows, units) float64
            The hidden variable.
        m : (rows, units) float64
            Momentum; 0 before the first move.
        g : (rows, units) float64
            dL/dh of each row's own loss, not divided by rows.
        weight : (rows,) float64
            Row weights, for standard deviations over rows.

        Returns
        -------
        target : (rows, units) float64
            Where the layer below is to be fitted to.
        m : (rows, units) float64
            Momentum after the move.
        """
        ...


def std(h: Floats, weight: Floats) -> Floats:
    """Weighted standard deviation of each unit, (units,)."""
    total = weight.sum()
    mean = weight @ h / total
    deviation: Floats = np.sqrt(weight @ np.square(h - mean) / total)
    return deviation


def is_constant(h: Floats) -> NDArray[np.bool_]:
    """Which units, (units,), are the same in all rows but for rounding."""
    constant: NDArray[np.bool_] = np.ptp(h, axis=0) <= 1e-10 * np.abs(h).max(axis=0)
    return constant


def pace_after(losses: Sequence[float], decay: float) -> float:
    """What moves are multiplied by after epochs with these training losses: `decay` for each `PATIENCE` without a low.

    Layers are fitted again from scratch, so the loss jitters from epoch to epoch even where it falls: a single
    rise says nothing.
    """
    lowest, waited, pace = np.inf, 0, 1.0
    for loss in losses:
        waited = 0 if loss < lowest else waited + 1
        lowest = min(lowest, loss)
        if waited == PATIENCE:
            waited, pace = 0, pace * decay
    return pace


@dataclass(frozen=True, slots=True)
class Plain:
    """The paper's step: ``m <- mu m + (1 - mu) g``, ``h <- h - alpha m`` (equation for momentum)."""

    alpha: float = 0.5
    mu: float = 0.5
    decay: float = 1.0

    def move(self, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """See `Step.move`."""
        m = self.mu * m + (1 - self.mu) * g
        return h - self.alpha * m, m


@dataclass(frozen=True, slots=True)
class Normalised:
    """A step in standard deviations: each unit moves by ``alpha * std(h) * m / rms(m)``, for any scale of the loss.

    A unit without gradient stays where it is. Steps of one size do not settle by themselves: `decay` makes them
    shorter whenever the training loss has stopped falling.
    """

    alpha: float = 0.4
    mu: float = 0.8
    decay: float = 0.5

    def move(self, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """See `Step.move`."""
        m = self.mu * m + (1 - self.mu) * g
        scale = np.abs(m).max(axis=0, initial=0.0)  # squares of very small or large gradients stay representable
        scaled = np.divide(m, scale, out=np.zeros_like(m), where=scale > 0)
        size = np.sqrt(weight @ np.square(scaled) / weight.sum())
        direction = np.divide(scaled, size, out=np.zeros_like(m), where=size > 0)
        return h - self.alpha * std(h, weight) * direction, m
