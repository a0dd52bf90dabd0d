"""Losses of classes: two of them in one output, or an output for each. Conventions: `losses`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from boostbp.losses import location
from boostbp.losses.base import LEAST_HESSIAN, LinkName, Task, refuse
from boostbp.runtime.arrays import Floats


class _Classes:
    """Traits of the losses of classes, and their members by the derivatives that they compute together."""

    __slots__ = ()
    task: ClassVar[Task] = "classification"
    default_metric: ClassVar[str] = "logloss"
    soft_labels: ClassVar[bool] = True
    scale_free: ClassVar[bool] = False

    def _formula(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return value, gradient and hessian; a derived class may override each, also by one another."""
        raise NotImplementedError

    def derivatives(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return value, gradient and hessian, computed together."""
        return self._formula(h, y)

    def value(self, h: Floats, y: Floats) -> Floats:
        """Return the negative log-likelihood; `y` may hold probabilities."""
        return self._formula(h, y)[0]

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Return probabilities minus target."""
        return self._formula(h, y)[1]

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """Return the Newton weight."""
        return self._formula(h, y)[2]

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the logarithm of the weighted class shares; ``log(1e-6)`` for an absent class."""
        return location.log_mean(y, weight)


@dataclass(frozen=True, slots=True)
class Logistic(_Classes):
    """``log(1 + exp(h)) - y h`` for ``y`` 0 or 1; baseline: weighted log-odds, +-13.8 if one class is absent.

    The hessian is ``p (1 - p)``.
    """

    name: ClassVar[str] = "logistic"
    aliases: ClassVar[tuple[str, ...]] = ("log_loss", "binary", "binary:logistic")
    link_name: ClassVar[LinkName] = "logit"
    max_outputs: ClassVar[int] = 1

    def _formula(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        # exp(-|h|) never overflows, and with both p and 1 - p computed from it nothing cancels: the gradient of a row
        # that is predicted surely is not rounded to 0.
        power = np.exp(-np.abs(h))
        likely, unlikely = 1.0 / (1.0 + power), power / (1.0 + power)
        p1, p0 = np.where(h < 0, unlikely, likely), np.where(h < 0, likely, unlikely)
        losses: Floats = y * np.maximum(-h, 0.0) + (1.0 - y) * np.maximum(h, 0.0) + np.log1p(power)
        return losses.sum(axis=1), (1.0 - y) * p1 - y * p0, np.maximum(p1 * p0, LEAST_HESSIAN)

    def link(self, h: Floats) -> Floats:
        """Return the probability of class 1."""
        return np.asarray(expit(h))

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the weighted log-odds."""
        return location.log_mean(y, weight) - location.log_mean(1.0 - y, weight)

    def check(self, y: Floats) -> None:
        """Refuse anything but 0 and 1."""
        refuse(y, (y != 0) & (y != 1), "the logistic loss takes 0 and 1. Encode the two classes as 0 and 1.")


@dataclass(frozen=True, slots=True)
class Softmax(_Classes):
    """``-log softmax(h)`` of the true class; baseline: log of the weighted class shares.

    The hessian is ``K / (K - 1) p (1 - p)`` for ``K`` classes, as in LightGBM: `h` has one degree
    of freedom too many, all outputs move at once, and the bare diagonal would step too far
    (twice too far for two classes).
    """

    name: ClassVar[str] = "softmax"
    aliases: ClassVar[tuple[str, ...]] = ("log_loss", "multiclass", "multi:softprob", "multi:softmax")
    link_name: ClassVar[LinkName] = "softmax"
    min_outputs: ClassVar[int] = 2

    def _formula(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        # Classes come first: numpy is slow at sums over the few columns of a row.
        by_class = np.ascontiguousarray(h.T)
        shifted = by_class - by_class.max(axis=0)  # no exponential overflows
        powers = np.exp(shifted)
        total = powers.sum(axis=0)
        losses: Floats = (y.T * (np.log(total) - shifted)).sum(axis=0)
        p, n_classes = (powers / total).T, h.shape[1]
        return losses, p - y, np.maximum(n_classes / (n_classes - 1) * p * (1.0 - p), LEAST_HESSIAN)

    def link(self, h: Floats) -> Floats:
        """Return the probabilities of the classes."""
        by_class = np.ascontiguousarray(h.T)
        powers = np.exp(by_class - by_class.max(axis=0))
        return (powers / powers.sum(axis=0)).T

    def check(self, y: Floats) -> None:
        """Refuse rows that are not one-hot."""
        if y.shape[1] < 2:
            raise ValueError("y has 1 column: the softmax loss takes one for each class. Use loss='logistic'.")
        refuse(y, (y != 0) & (y != 1), "the softmax loss takes one-hot rows. Encode the classes as columns of 0 and 1.")
        total = y.sum(axis=1)
        wrong = total != 1
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"y has {total[row]:g} classes in row {row}: the softmax loss takes one 1 in each row.")
