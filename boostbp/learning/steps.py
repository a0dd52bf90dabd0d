"""Steps: how a hidden variable moves along its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Memory", "Normalised", "Plain", "Step", "spread"]

Floats = NDArray[np.float64]


class Memory(NamedTuple):
    """What a step remembers of a hidden layer; the driver keeps it.

    Attributes
    ----------
    m : (rows, units) float64
        Momentum.
    peak : (units,) float64
        Largest root mean square of the momentum so far.
    """

    m: Floats
    peak: Floats

    @classmethod
    def of(cls, h: Floats) -> Memory:
        """The memory before the first step."""
        return cls(np.zeros_like(h), np.zeros(h.shape[1]))


class Step(Protocol):
    """A rule that moves hidden variables."""

    @property
    def alpha(self) -> float:
        """Step size."""
        ...

    def move(self, h: Floats, memory: Memory, g: Floats, weight: Floats) -> tuple[Floats, Memory]:
        """Move one hidden layer.

        Parameters
        ----------
        h : (rows, units) float64
            The hidden variable.
        memory : Memory
        g : (rows, units) float64
            dL/dh of each row's own loss, not divided by rows.
        weight : (rows,) float64
            Row weights, for spreads over rows.

        Returns
        -------
        target : (rows, units) float64
            Where the layer below is to be fitted to.
        memory : Memory
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

    def move(self, h: Floats, memory: Memory, g: Floats, weight: Floats) -> tuple[Floats, Memory]:
        """See `Step.move`."""
        m = self.mu * memory.m + (1 - self.mu) * g
        return h - self.alpha * m, memory._replace(m=m)


@dataclass(frozen=True, slots=True)
class Normalised:
    """A step in spreads: each unit moves by ``alpha * spread(h) * m / peak``.

    `peak` is the largest root mean square of the unit's momentum so far. So the first moves, and those
    against the largest gradients, have the size of `alpha` spreads whatever the scale of the loss; as
    the gradients fade, so do the moves. A unit without gradient stays where it is.
    """

    alpha: float = 0.8
    mu: float = 0.8

    def move(self, h: Floats, memory: Memory, g: Floats, weight: Floats) -> tuple[Floats, Memory]:
        """See `Step.move`."""
        m = self.mu * memory.m + (1 - self.mu) * g
        scale = np.abs(m).max(axis=0, initial=0.0)  # squares of very small or large gradients stay representable
        scaled = np.divide(m, scale, out=np.zeros_like(m), where=scale > 0)
        size = scale * np.sqrt(weight @ np.square(scaled) / weight.sum())
        peak = np.maximum(memory.peak, size)
        direction = np.divide(m, peak, out=np.zeros_like(m), where=peak > 0)
        return h - self.alpha * spread(h, weight) * direction, Memory(m, peak)
