"""Losses whose raw output is a logarithm: of a predicted amount, of odds, or of class probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from boostbp.losses.base import LEAST_HESSIAN, LinkName, Task, log_mean, refuse
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats


class _Likelihood:
    """Members of a negative log-likelihood, from a formula that returns value, gradient and hessian together."""

    __slots__ = ()
    scale_free = False
    _formula: Callable[[Floats, Floats], tuple[Floats, Floats, Floats]]

    def derivatives(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return value, gradient and hessian."""
        return self._formula(h, y)

    def value(self, h: Floats, y: Floats) -> Floats:
        """Return the negative log-likelihood, up to a constant."""
        return self._formula(h, y)[0]

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Return the derivative of the value."""
        return self._formula(h, y)[1]

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """Return the Newton weight."""
        return self._formula(h, y)[2]

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the logarithm of the weighted mean; ``log(1e-6)`` for an output that is always 0."""
        # At a constant h, the sum of the gradient is 0 at the mean.
        return log_mean(y, weight)


class LogLink(_Likelihood):
    """Link and traits of a loss whose raw output is the logarithm of the prediction.

    Exponentials are computed only between `lowest` and `highest`. Beyond, losses continue as their tangents, so that
    value and gradient do not overflow, even in float32, in which libraries store gradients.
    """

    __slots__ = ()
    name: str
    task: ClassVar[Task] = "regression"
    link_name: ClassVar[LinkName] = "log"
    # exp(40) is 2e17, so products of two such numbers fit float32, whose limit is 3e38.
    lowest: ClassVar[float] = -40.0
    highest: ClassVar[float] = 40.0

    def link(self, h: Floats) -> Floats:
        """Return the exponential."""
        return np.exp(self._within(h))

    def inverse_link(self, prediction: Floats) -> Floats:
        """Return the logarithm of predictions, or of 1e-10 (as in LightGBM) for smaller ones of another loss."""
        return np.log(np.maximum(prediction, 1e-10))

    def _refuse_out_of_range(self, y: Floats) -> None:
        low, high = np.exp([self.lowest, self.highest])
        # Losses that accept y = 0 are finite there: 0 is the limit of small predictions.
        wrong = (y > high) | ((y > 0) & (y < low))
        refuse(y, wrong, f"loss={self.name!r} predicts {low:.1g} to {high:.1g}. Multiply y by a constant.")

    def _within(self, h: Floats) -> Floats:
        return np.clip(h, self.lowest, self.highest)


@dataclass(frozen=True, slots=True)
class Poisson(LogLink):
    """``exp(h) - y h``, for counts and rates ``y >= 0``; baseline: log of the weighted mean.

    Above ``h = 50`` the value continues as its tangent, and `link` stays at ``exp(50)``, about 5e21.

    Attributes
    ----------
    max_delta_step : float
        The hessian is ``exp(h + max_delta_step)``. A plain Newton step is too long where a count is far above the
        prediction: 0.7 halves it, as in LightGBM and XGBoost.
    """

    max_delta_step: float = 0.7
    name = "poisson"
    aliases: ClassVar[tuple[str, ...]] = ("count:poisson",)
    default_metric: ClassVar[str] = "poisson"
    lowest: ClassVar[float] = -np.inf  # nothing overflows there
    highest: ClassVar[float] = 50.0

    def __post_init__(self) -> None:
        checks.at_least("max_delta_step", self.max_delta_step, 0, 100)

    def _formula(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        # Above `highest`, link(h) stays at exp(highest), which is also the slope of the tangent.
        mean, excess = self.link(h), np.maximum(h - self.highest, 0.0)
        losses = (mean * (1.0 + excess) - y * h).sum(axis=1)
        return losses, mean - y, np.maximum(mean * np.exp(self.max_delta_step), LEAST_HESSIAN)

    def deviation(self, prediction: Floats) -> Floats:
        """Return the standard deviation of the target: the root of the prediction."""
        return np.sqrt(prediction)

    def check(self, y: Floats) -> None:
        """Refuse negative targets, and those that ``exp(50)`` does not reach."""
        refuse(y, ~(y >= 0), "loss='poisson' takes counts >= 0. Drop these rows, or use loss='squared_error'.")
        refuse(y, y > np.exp(self.highest), "loss='poisson' takes counts up to 5e21. Divide y by a constant.")


@dataclass(frozen=True, slots=True)
class Gamma(LogLink):
    """``h + y exp(-h)`` for ``y > 0``; baseline: log of the weighted mean.

    It is the negative log-likelihood of a gamma distribution with mean ``exp(h)``, divided by its shape, up to a
    constant. It exceeds its value at ``exp(h) = y`` by half the unit deviance of McCullagh and Nelder (1989, table
    2.1). Gradient ``1 - y / exp(h)`` and hessian ``y / exp(h)`` are those of LightGBM and XGBoost.
    """

    name = "gamma"
    aliases: ClassVar[tuple[str, ...]] = ("reg:gamma",)
    default_metric: ClassVar[str] = "gamma"

    def _formula(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        # Beyond the range the value is the tangent at its end: near + ratio + (1 - ratio) (h - near).
        near = self._within(h)
        ratio = y * np.exp(-near)
        return (h + ratio * (1.0 + near - h)).sum(axis=1), 1.0 - ratio, np.maximum(ratio, LEAST_HESSIAN)

    def deviation(self, prediction: Floats) -> Floats:
        """Return the standard deviation of the target, up to a factor: the prediction."""
        return prediction

    def check(self, y: Floats) -> None:
        """Refuse targets that are not positive, and those that predictions do not reach."""
        cure = "loss='gamma' takes numbers above 0. Drop these rows, or use loss='tweedie', which takes 0."
        refuse(y, ~(y > 0), cure)
        self._refuse_out_of_range(y)


@dataclass(frozen=True, slots=True)
class Tweedie(LogLink):
    """``p^(2 - power) / (2 - power) + y p^(1 - power) / (power - 1)`` with ``p = exp(h)``, for ``y >= 0``.

    It is the negative log-likelihood of a sum of a Poisson number of gamma variables, with mean `p` and a variance
    proportional to ``p^power``, up to its dispersion and a constant. It exceeds its value at ``p = y`` by half the unit
    deviance of Jørgensen (1987, "Exponential dispersion models"). LightGBM and XGBoost have the same loss. Baseline:
    log of the weighted mean.

    Attributes
    ----------
    power : float
        Strictly between 1, where it is the Poisson loss, and 2, where it is the gamma loss.
    """

    power: float = 1.5
    name = "tweedie"
    aliases: ClassVar[tuple[str, ...]] = ("reg:tweedie",)

    def __post_init__(self) -> None:
        checks.between("power", self.power, 1, 2)  # those of poisson and gamma

    def _formula(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        near = self._within(h)
        # p^(2 - power) and y p^(1 - power): their difference is the gradient.
        mean, target = np.exp((2.0 - self.power) * near), y * np.exp((1.0 - self.power) * near)
        # Beyond the range, mean and target are constant, and the value is linear with their difference as slope.
        tangent = (mean - target) * (h - near)  # 0 within the range
        losses = (mean / (2.0 - self.power) + target / (self.power - 1.0) + tangent).sum(axis=1)
        curvature = (2.0 - self.power) * mean + (self.power - 1.0) * target
        return losses, mean - target, np.maximum(curvature, LEAST_HESSIAN)

    def deviation(self, prediction: Floats) -> Floats:
        """Return the standard deviation of the target, up to a factor: ``prediction^(power / 2)``."""
        return prediction ** (self.power / 2.0)

    def check(self, y: Floats) -> None:
        """Refuse negative targets, and those that predictions do not reach."""
        refuse(y, ~(y >= 0), "loss='tweedie' takes numbers >= 0. Drop these rows, or use loss='squared_error'.")
        self._refuse_out_of_range(y)


class _Classes(_Likelihood):
    """Traits of losses for classes, whose targets may be probabilities."""

    __slots__ = ()
    task: ClassVar[Task] = "classification"
    default_metric: ClassVar[str] = "logloss"
    soft_labels: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Logistic(_Classes):
    """``log(1 + exp(h)) - y h`` for ``y`` 0 or 1; baseline: weighted log-odds, +-13.8 if one class is absent.

    The hessian is ``p (1 - p)``.
    """

    name = "logistic"
    aliases: ClassVar[tuple[str, ...]] = ("log_loss", "binary", "binary:logistic")
    link_name: ClassVar[LinkName] = "logit"
    max_outputs: ClassVar[int] = 1

    def _formula(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        # exp(-|h|) never overflows. Both p and 1 - p are computed from it without cancellation, so the gradient of a
        # row that is predicted with certainty does not round to 0.
        power, y0, negative = np.exp(-np.abs(h)), 1.0 - y, h < 0
        total = 1.0 + power
        likely, unlikely = 1.0 / total, power / total
        p1, p0 = np.where(negative, unlikely, likely), np.where(negative, likely, unlikely)
        losses: Floats = y * np.maximum(-h, 0.0) + y0 * np.maximum(h, 0.0) + np.log1p(power)
        return losses.sum(axis=1), y0 * p1 - y * p0, np.maximum(p1 * p0, LEAST_HESSIAN)

    def link(self, h: Floats) -> Floats:
        """Return the probability of class 1."""
        return np.asarray(expit(h))

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the weighted log-odds."""
        return log_mean(y, weight) - log_mean(1.0 - y, weight)

    def check(self, y: Floats) -> None:
        """Refuse anything but 0 and 1."""
        refuse(y, (y != 0) & (y != 1), "the logistic loss takes 0 and 1. Encode the two classes as 0 and 1.")


@dataclass(frozen=True, slots=True)
class Multilabel(Logistic):
    """The sum of `Logistic` over several labels, any number of which a row may have: ``y`` is (rows, labels)."""

    name = "multilabel"
    aliases: ClassVar[tuple[str, ...]] = ()  # a classifier chooses it by the target, from the names of `Logistic`
    min_outputs: ClassVar[int] = 2
    max_outputs: ClassVar[int | None] = None  # type: ignore[assignment]
    multilabel: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Softmax(_Classes):
    """``-log softmax(h)`` of the true class; baseline: log of the weighted class shares.

    The hessian is ``K / (K - 1) p (1 - p)`` for ``K`` classes, as in LightGBM. As `h` has one redundant degree of
    freedom and all outputs move at once, steps with the diagonal alone would be too long (twice for two classes).
    """

    name = "softmax"
    aliases: ClassVar[tuple[str, ...]] = ("log_loss", "multiclass", "multi:softprob", "multi:softmax")
    link_name: ClassVar[LinkName] = "softmax"
    min_outputs: ClassVar[int] = 2

    def _formula(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        shifted, powers, total = _powers(h)
        losses: Floats = (y.T * (np.log(total) - shifted)).sum(axis=0)
        p, n_classes = (powers / total).T, h.shape[1]
        return losses, p - y, np.maximum(n_classes / (n_classes - 1) * p * (1.0 - p), LEAST_HESSIAN)

    def link(self, h: Floats) -> Floats:
        """Return the probabilities of the classes."""
        _, powers, total = _powers(h)
        return (powers / total).T

    def check(self, y: Floats) -> None:
        """Refuse rows that are not one-hot."""
        if y.shape[1] < 2:
            raise ValueError("y has 1 column: the softmax loss takes one for each class. Use loss='logistic'.")
        refuse(y, (y != 0) & (y != 1), "the softmax loss takes one-hot rows. Encode the classes as columns of 0 and 1.")
        total = y.sum(axis=1)
        if (total != 1).any():
            row = int(np.argmax(total != 1))
            raise ValueError(f"y has {total[row]:g} classes in row {row}: the softmax loss takes one 1 in each row.")


def _powers(h: Floats) -> tuple[Floats, Floats, Floats]:
    """Return raw outputs minus the largest of their row, their exponentials, (classes, rows), and the sums of these."""
    # Classes are the first axis, as NumPy is slow at sums over the few columns of a row.
    by_class = np.ascontiguousarray(h.T)
    shifted = by_class - by_class.max(axis=0)  # no exponential overflows
    powers = np.exp(shifted)
    return shifted, powers, powers.sum(axis=0)
