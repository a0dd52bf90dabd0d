"""Objectives: what the running fit of a layer is driven by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from boostbp.losses import Loss, checked, traits_of

__all__ = ["LossObjective", "Objective", "SquaredObjective"]

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

    @property
    def curved(self) -> bool:
        """Whether the hessian varies with the fit."""
        ...

    def derivatives(self, fit: Floats) -> tuple[float, Floats, Floats]:
        """Weighted sum over rows, and the gradient and hessian of all outputs, each (rows, outputs)."""
        ...

    def gradient(self, fit: Floats, outputs: slice) -> tuple[Floats, Floats]:
        """Gradient and hessian in the running fit of some outputs, each (rows, outputs), row weights included.

        With ``separable`` False, `outputs` is always all of them.
        """
        ...


@dataclass(frozen=True, slots=True)
class SquaredObjective:
    """Half the squared distance to a target: what hidden layers are fitted by (Algorithm 1).

    Attributes
    ----------
    target : (rows, outputs) float64
    weight : (rows,) float64
    """

    target: Floats
    weight: Floats
    separable: ClassVar[bool] = True
    curved: ClassVar[bool] = False

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.target.shape[1]

    def derivatives(self, fit: Floats) -> tuple[float, Floats, Floats]:
        """Half the weighted squared distance, its gradient and hessian."""
        grad, hess = self.gradient(fit, slice(0, self.n_outputs))
        return float(np.sum(grad * (fit - self.target))) / 2, grad, hess

    def gradient(self, fit: Floats, outputs: slice) -> tuple[Floats, Floats]:
        """``weight * (fit - target)`` and ``weight``."""
        hess = np.broadcast_to(self.weight[:, None], fit.shape)
        grad = np.empty_like(fit)
        np.subtract(fit, self.target[:, outputs], out=grad)
        return np.multiply(hess, grad, out=grad), hess


@dataclass(frozen=True, slots=True)
class LossObjective:
    """Objective of an output layer that is boosted on the loss itself.

    The running fit of the layer starts from `baseline`, (outputs,) or (rows, outputs); `y` and `weight` as in the loss.
    """

    loss: Loss
    y: Floats
    weight: Floats
    baseline: Floats

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.y.shape[1]

    @property
    def separable(self) -> bool:
        """Whether the outputs can be boosted one by one: a single one, or a loss that is a sum over outputs."""
        return self.n_outputs == 1 or traits_of(self.loss).separable

    @property
    def curved(self) -> bool:
        """Whether the loss says that its hessian varies."""
        return traits_of(self.loss).curved

    def derivatives(self, fit: Floats) -> tuple[float, Floats, Floats]:
        """Weighted sum of the loss, its gradient and hessian."""
        weight = self.weight[:, None]
        value, grad, hess = checked.derivatives(self.loss, fit + self.baseline, self.y)
        return float(self.weight @ value), weight * grad, weight * hess

    def gradient(self, fit: Floats, outputs: slice) -> tuple[Floats, Floats]:
        """Weighted gradient and hessian of the loss, each (rows, outputs)."""
        h, y = fit + self.baseline[..., outputs], self.y[:, outputs]
        weight = self.weight[:, None]
        return weight * checked.gradient(self.loss, h, y), weight * checked.hessian(self.loss, h, y)
