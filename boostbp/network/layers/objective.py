"""Objectives that the running fit of a layer minimises: a squared distance or a loss.

A fit is (rows, outputs). `outputs` is a slice of the outputs; it must be all of them if the objective is not
`separable`. Derivatives include the row weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeAlias

import numpy as np

from boostbp.losses import Loss
from boostbp.losses.checked_loss import CheckedLoss, try_loss
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.sparse import row_blocks

# Numbers of a block of rows, 256 kB: a loss allocates several such arrays, which stay in cache.
BLOCK = 1 << 15
# Smallest weight of a row in a check: its product with a hessian is still above 0.
LEAST_WEIGHT = 1e-290


@dataclass(frozen=True, slots=True)
class SquaredObjective:
    """Half the squared distance to a target, to which hidden layers are fitted (Algorithm 1)."""

    target: Floats  # (rows, outputs)
    weight: Floats  # (rows,)
    separable: ClassVar[bool] = True  # the gradient of an output depends on no other output
    curved: ClassVar[bool] = False  # the hessian is the same for any fit

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.target.shape[1]

    def gradient(self, fit: Floats, outputs: slice) -> tuple[Floats, Floats]:
        """Return ``weight * (fit - target)`` and ``weight``."""
        # w (f - t)^2 / 2 has the derivatives w (f - t), the r of Algorithm 1, and w.
        hess = np.broadcast_to(self.weight[:, None], fit.shape)
        grad = np.empty_like(fit)
        np.subtract(fit, self.target[:, outputs], out=grad)
        return np.multiply(hess, grad, out=grad), hess

    def check(self, fit: Floats, outputs: slice, grad: Floats, hess: Floats, number: int) -> None:
        """Do nothing: targets are finite."""

    def gathered(self) -> Self:
        """Return the objective of the rows of all workers."""
        target, weight = workers().allgather_rows(self.target, self.weight)
        return replace(self, target=target, weight=weight)


@dataclass(frozen=True, slots=True)
class LossObjective:
    """Objective of an output layer that is boosted on the loss itself.

    The running fit of the layer starts from `baseline`, (outputs,) or (rows, outputs). `y` and `weight` are those of
    `Loss`. Messages name the place in training by `where` and the round, counted from `first_round`.
    """

    loss: CheckedLoss
    y: Floats
    weight: Floats
    baseline: Floats
    where: str = ""
    first_round: int = 0

    @classmethod
    def of(cls, loss: Loss, y: Floats, weight: Floats, baseline: Floats) -> Self:
        """Return the objective of a loss after a trial of the loss on a few rows."""
        return cls(try_loss(loss, baseline, y), y, weight, baseline)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.y.shape[1]

    @property
    def separable(self) -> bool:
        """Whether outputs can be boosted one by one: there is only one, or the loss is a sum over outputs."""
        return self.loss.separable

    @property
    def curved(self) -> bool:
        """Whether the hessian of the loss varies."""
        return self.loss.curved

    def derivatives(self, fit: Floats) -> tuple[float, Floats, Floats]:
        """Return the weighted sum of the loss, its gradient and hessian."""
        value = np.empty(len(fit))
        grad, hess = (np.empty(fit.shape[::-1]).T for _ in range(2))  # by output, as the running fit is kept
        for rows in row_blocks(0, len(fit), fit.shape[1], BLOCK):
            weight = self.weight[rows, None]
            h = fit[rows] + (self.baseline[rows] if self.baseline.ndim > 1 else self.baseline)
            value[rows], of_fit, curvature = self.loss.derivatives(h, self.y[rows])
            np.multiply(weight, of_fit, out=grad[rows])
            np.multiply(weight, curvature, out=hess[rows])
        return float(self.weight @ value), grad, hess

    def gradient(self, fit: Floats, outputs: slice) -> tuple[Floats, Floats]:
        """Return the weighted gradient and hessian of the loss, each (rows, outputs)."""
        h, y = fit + self.baseline[..., outputs], self.y[:, outputs]
        weight = self.weight[:, None]
        return weight * self.loss.gradient(h, y), weight * self.loss.hessian(h, y)

    def check(self, fit: Floats, outputs: slice, grad: Floats, hess: Floats, number: int) -> None:
        """Refuse derivatives that are not finite, and a hessian that is not above 0, in the round `number`."""
        # Two passes over each array if they are valid. Both comparisons are False for NaN.
        finite = grad.min(initial=0.0) > -np.inf and grad.max(initial=0.0) < np.inf
        if finite and hess.min(initial=1.0) > 0.0 and hess.max(initial=1.0) < np.inf:
            return
        # A tiny weight may make the product with a valid hessian 0, so the derivatives are checked without small
        # weights.
        weight = np.maximum(self.weight, LEAST_WEIGHT)[:, None]
        hess = np.where((hess == 0.0) & (self.weight < LEAST_WEIGHT)[:, None], weight, hess)
        returned, h = {"gradient": grad / weight, "hessian": hess / weight}, fit + self.baseline[..., outputs]
        when = f"in round {self.first_round + number + 1}{self.where} of training"
        self.loss.refuse_unusable(returned, h, self.y[:, outputs], when)

    def refuse_value(self, fit: Floats) -> None:
        """Refuse a sum of values that is NaN; the error names the first row with one."""
        self.loss.value(fit + self.baseline, self.y)
        raise ValueError(f"loss={self.loss.name!r}: the sum of its values is NaN: let value() return finite numbers.")

    def gathered(self) -> Self:
        """Return the objective of the rows of all workers."""
        baseline = np.broadcast_to(self.baseline, self.y.shape)
        y, weight, baseline = workers().allgather_rows(self.y, self.weight, baseline)
        return replace(self, y=y, weight=weight, baseline=baseline)


Objective: TypeAlias = SquaredObjective | LossObjective
