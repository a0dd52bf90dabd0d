"""Objectives: what the running fit of a layer is driven by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self

import numpy as np

from boostbp.floats import Floats
from boostbp.group import workers
from boostbp.losses import Loss, checked, traits_of

BLOCK = 1 << 15  # numbers of an array of a block: 64 kB


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

    def gathered(self) -> Self:
        """Of the rows of one worker, that of the rows of all."""
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

    def gathered(self) -> Self:
        """Of the rows of one worker, that of the rows of all."""
        target, weight = workers().together(self.target, self.weight)
        return replace(self, target=target, weight=weight)


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
        value = np.empty(len(fit))
        grad, hess = (np.empty(fit.shape[::-1]).T for _ in range(2))  # by output, as the running fit is kept
        for rows in _blocks(*fit.shape):
            weight = self.weight[rows, None]
            h = fit[rows] + (self.baseline[rows] if self.baseline.ndim > 1 else self.baseline)
            value[rows], of_fit, curvature = checked.derivatives(self.loss, h, self.y[rows])
            np.multiply(weight, of_fit, out=grad[rows])
            np.multiply(weight, curvature, out=hess[rows])
        return float(self.weight @ value), grad, hess

    def gradient(self, fit: Floats, outputs: slice) -> tuple[Floats, Floats]:
        """Weighted gradient and hessian of the loss, each (rows, outputs)."""
        h, y = fit + self.baseline[..., outputs], self.y[:, outputs]
        weight = self.weight[:, None]
        return weight * checked.gradient(self.loss, h, y), weight * checked.hessian(self.loss, h, y)

    def gathered(self) -> Self:
        """Of the rows of one worker, that of the rows of all."""
        baseline = np.broadcast_to(self.baseline, self.y.shape)
        y, weight, baseline = workers().together(self.y, self.weight, baseline)
        return replace(self, y=y, weight=weight, baseline=baseline)


def _blocks(n_rows: int, n_outputs: int) -> Iterator[slice]:
    """Rows that go through a loss together: what it computes on the way stays near the processor."""
    size = max(1, BLOCK // max(n_outputs, 1))
    return (slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size))
