"""Objectives: what the running fit of a layer is driven by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Objective", "SquaredTo"]

Floats = NDArray[np.float64]


class Objective(Protocol):
    """What a layer's running fit is driven by."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        ...

    @property
    def separable(self) -> bool:
        """Whether the gradient of an output depends on no other output."""
        ...

    def gradient(self, fit: Floats, outputs: slice) -> tuple[Floats, Floats]:
        """Gradient and hessian in the running fit of some outputs, each (rows, outputs), row weights included.

        With ``separable`` False, `outputs` is always all of them.
        """
        ...


@dataclass(frozen=True, slots=True)
class SquaredTo:
    """Half the squared distance to a target: what hidden layers are fitted by (Algorithm 1).

    Attributes
    ----------
    target : (rows, outputs) float64
    weight : (rows,) float64
    """

    target: Floats
    weight: Floats
    separable: bool = True

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.target.shape[1]

    def gradient(self, fit: Floats, outputs: slice) -> tuple[Floats, Floats]:
        """``weight * (fit - target)`` and ``weight``."""
        hess = np.ascontiguousarray(np.broadcast_to(self.weight[:, None], fit.shape))
        return hess * (fit - self.target[:, outputs]), hess
