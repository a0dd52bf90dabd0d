"""Losses of counts and amounts, whose raw output is the logarithm of a prediction: Poisson, gamma, Tweedie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from boostbp.losses import location
from boostbp.losses.base import LEAST_HESSIAN, LinkName, Task, refuse
from boostbp.runtime.arrays import Floats


class LogLink:
    """Link, baseline and traits of a loss whose raw output is the logarithm of the prediction.

    Exponentials are computed between `lowest` and `highest` only. Beyond, losses continue as their tangents, so that
    neither value nor gradient overflows, even in the single precision in which libraries hold gradients.
    """

    __slots__ = ()
    name: ClassVar[str]
    task: ClassVar[Task] = "regression"
    link_name: ClassVar[LinkName] = "log"
    scale_free: ClassVar[bool] = False
    lowest: ClassVar[float] = -40.0
    highest: ClassVar[float] = 40.0

    def link(self, h: Floats) -> Floats:
        """Return the exponential."""
        return np.exp(self._within(h))

    def inverse_link(self, prediction: Floats) -> Floats:
        """Return the logarithm; of predictions below 1e-10, as another loss may give, that of 1e-10 as in LightGBM."""
        return np.log(np.maximum(prediction, 1e-10))

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the logarithm of the weighted mean; ``log(1e-6)`` for an output that is always 0."""
        return location.log_mean(y, weight)

    def _refuse_out_of_range(self, y: Floats) -> None:
        low, high = np.exp([self.lowest, self.highest])
        wrong = (y > high) | ((y > 0) & (y < low))
        refuse(y, wrong, f"loss={self.name!r} predicts {low:.1g} to {high:.1g}. Multiply y by a constant.")

    def _within(self, h: Floats) -> Floats:
        return np.clip(h, self.lowest, self.highest)


@dataclass(frozen=True, slots=True)
class Poisson(LogLink):
    """``exp(h) - y h``, for counts and rates ``y >= 0``; baseline: log of the weighted mean.

    Above ``h = 50`` the value continues as its tangent, and `link` stays at ``exp(50)``, about 5e21. So the gradient
    ``link(h) - y`` is the derivative of the value everywhere, and neither overflows in single precision.

    Attributes
    ----------
    max_delta_step : float
        The hessian is ``exp(h + max_delta_step)``. A plain Newton step is too long where a count is far above the
        prediction: 0.7 halves it. LightGBM and XGBoost do the same.
    """

    max_delta_step: float = 0.7
    name: ClassVar[str] = "poisson"
    aliases: ClassVar[tuple[str, ...]] = ("count:poisson",)
    default_metric: ClassVar[str] = "poisson"
    lowest: ClassVar[float] = -np.inf  # nothing overflows there
    highest: ClassVar[float] = 50.0

    def __post_init__(self) -> None:
        """Refuse a negative or endless step."""
        if not 0 <= self.max_delta_step < np.inf:
            raise ValueError(
                f"max_delta_step={self.max_delta_step!r} is not a number >= 0: use e.g. Poisson(max_delta_step=0.7)."
            )

    def value(self, h: Floats, y: Floats) -> Floats:
        """Return the negative log-likelihood, up to a constant."""
        excess = np.maximum(h - self.highest, 0.0)
        return (self.link(h) * (1.0 + excess) - y * h).sum(axis=1)

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Return predicted mean minus target."""
        return self.link(h) - y

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """Return the predicted mean, enlarged by `max_delta_step`."""
        return np.maximum(self.link(h) * np.exp(self.max_delta_step), LEAST_HESSIAN)

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

    The negative log-likelihood of a gamma distribution with mean ``exp(h)``, divided by its shape, up to a constant. It
    exceeds its value at ``exp(h) = y`` by half the unit deviance of McCullagh and Nelder (1989, table 2.1). Gradient
    ``1 - y / exp(h)`` and hessian ``y / exp(h)`` are those of LightGBM and XGBoost.
    """

    name: ClassVar[str] = "gamma"
    aliases: ClassVar[tuple[str, ...]] = ("reg:gamma",)
    default_metric: ClassVar[str] = "gamma"

    def value(self, h: Floats, y: Floats) -> Floats:
        """Return the negative log-likelihood, up to a constant."""
        # Beyond the range this is the tangent at its end: near + ratio + (1 - ratio) (h - near).
        near = self._within(h)
        ratio = y * np.exp(-near)
        return (h + ratio * (1.0 + near - h)).sum(axis=1)

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Return 1 minus the ratio of target to predicted mean."""
        return 1.0 - self._ratio(h, y)

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """Return the ratio of target to predicted mean."""
        return np.maximum(self._ratio(h, y), LEAST_HESSIAN)

    def deviation(self, prediction: Floats) -> Floats:
        """Return the standard deviation of the target, up to a factor: the prediction."""
        return prediction

    def check(self, y: Floats) -> None:
        """Refuse targets that are not positive, and those that predictions do not reach."""
        refuse(
            y, ~(y > 0), "loss='gamma' takes numbers above 0. Drop these rows, or use loss='tweedie', which takes 0."
        )
        self._refuse_out_of_range(y)

    def _ratio(self, h: Floats, y: Floats) -> Floats:
        return y * np.exp(-self._within(h))


@dataclass(frozen=True, slots=True)
class Tweedie(LogLink):
    """``p^(2 - power) / (2 - power) + y p^(1 - power) / (power - 1)`` with ``p = exp(h)``, for ``y >= 0``.

    The negative log-likelihood of a sum of a Poisson number of gamma variables, with mean `p` and a variance that
    grows as ``p^power``, up to its dispersion and a constant. It exceeds its value at ``p = y`` by half the unit
    deviance of Jørgensen (1987, "Exponential dispersion models"). LightGBM and XGBoost have the same loss. Baseline:
    log of the weighted mean.

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
        """Return the negative log-likelihood, up to a constant."""
        near = self._within(h)
        mean, target = self._parts(near, y)
        tangent = (mean - target) * (h - near)  # 0 within the range
        return (mean / (2.0 - self.power) + target / (self.power - 1.0) + tangent).sum(axis=1)

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Return ``p^(2 - power) - y p^(1 - power)``."""
        mean, target = self._parts(self._within(h), y)
        return mean - target

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """Return ``(2 - power) p^(2 - power) + (power - 1) y p^(1 - power)``."""
        mean, target = self._parts(self._within(h), y)
        return np.maximum((2.0 - self.power) * mean + (self.power - 1.0) * target, LEAST_HESSIAN)

    def deviation(self, prediction: Floats) -> Floats:
        """Return the standard deviation of the target, up to a factor: ``prediction^(power / 2)``."""
        return prediction ** (self.power / 2.0)

    def check(self, y: Floats) -> None:
        """Refuse negative targets, and those that predictions do not reach."""
        refuse(y, ~(y >= 0), "loss='tweedie' takes numbers >= 0. Drop these rows, or use loss='squared_error'.")
        self._refuse_out_of_range(y)

    def _parts(self, h: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return ``p^(2 - power)`` and ``y p^(1 - power)``, each (rows, outputs)."""
        return np.exp((2.0 - self.power) * h), y * np.exp((1.0 - self.power) * h)
