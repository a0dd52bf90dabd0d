"""Accelerated failure time: times whose logarithm is the raw output plus noise of a known distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, log_ndtr, logit, ndtri

from boostbp.losses.base import LEAST_HESSIAN, Task, refuse
from boostbp.losses.cox import refuse_without_events
from boostbp.losses.log_link import LogLink
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

MAX_EXPONENT = 40.0  # of the extreme distribution, whose hazard is exp(z); beyond, it continues as a tangent
FAR = 1e4  # raw output beyond which the loss continues as its tangent; logarithms of times are within 40
NARROW = 1e-6  # in standard units: an interval as narrow has the density of its middle
BOUNDS = (-9.0, 5.0)  # of the logarithm of an estimated scale: 1e-4 to 150


def _risk(z: Floats) -> Floats:
    return np.exp(np.minimum(z, MAX_EXPONENT))


def _sum_of_risk(z: Floats) -> Floats:
    return _risk(z) * (1.0 + np.maximum(z - MAX_EXPONENT, 0.0))


class _Distribution(NamedTuple):
    """A distribution of the noise, in standard units: functions of z, and of a share."""

    log_density: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]  # of the log density
    curvature: Callable[[Floats], Floats]  # minus its second derivative
    log_survival: Callable[[Floats], Floats]
    quantile: Callable[[Floats], Floats]
    symmetric: bool = True


_DISTRIBUTIONS = {
    "normal": _Distribution(
        lambda z: -0.5 * (z * z + np.log(2 * np.pi)), np.negative, np.ones_like, lambda z: log_ndtr(-z), ndtri
    ),
    "logistic": _Distribution(
        lambda z: log_expit(z) + log_expit(-z),
        lambda z: -np.tanh(z / 2),
        lambda z: 2.0 * expit(z) * expit(-z),
        lambda z: log_expit(-z),
        logit,
    ),
    "extreme": _Distribution(
        lambda z: np.minimum(z, MAX_EXPONENT) - _sum_of_risk(z),
        lambda z: (z < MAX_EXPONENT) - _risk(z),
        _risk,
        lambda z: -_sum_of_risk(z),
        lambda share: np.log(-np.log1p(-share)),
        symmetric=False,
    ),
}


@dataclass(frozen=True, slots=True)
class AFT(LogLink):
    """Negative log-likelihood of times between `lower` and `upper`: ``log t = h + scale * noise``.

    An event has equal bounds, a row that is censored on the right an infinite upper one, and on the left a lower one of
    0. Values are those of XGBoost's survival:aft; derivatives are not clipped. The hessian is the second derivative, or
    the gradient divided by 1 plus the distance of the time in standard units, if that is larger: a Newton step from far
    away is then no longer than the distance. Baseline: the best constant.

    Attributes
    ----------
    distribution : {"normal", "logistic", "extreme"}
        Distribution of the noise: times are log-normal, log-logistic or Weibull.
    scale : float or None
        Scale of the noise. None: `BoostBPSurvival` estimates it; elsewhere 1, as in XGBoost.
    """

    distribution: Literal["normal", "logistic", "extreme"] = "normal"
    scale: Any = None  # a float or None
    name = "aft"
    aliases: ClassVar[tuple[str, ...]] = ("survival:aft",)
    task: ClassVar[Task] = "survival"
    columns: ClassVar[tuple[str, ...]] = ("lower", "upper")
    default_metric: ClassVar[str] = "aft-nloglik"

    def __post_init__(self) -> None:
        checks.one_of("distribution", self.distribution, (*_DISTRIBUTIONS,))
        if self.scale is not None:
            checks.at_least("scale", self.scale, 1 / checks.LARGEST_SCALE, checks.LARGEST_SCALE)

    @property
    def _noise(self) -> _Distribution:
        return _DISTRIBUTIONS[self.distribution]

    @property
    def _unit(self) -> float:
        return 1.0 if self.scale is None else float(self.scale)

    def _formula(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        unit, parts = self._unit, np.empty((3, len(y)))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            log_y = np.log(y)
            near = np.clip(h, -FAR, FAR)
            low, high = ((log_y - near) / unit).T
            event, exact = y[:, 0] == y[:, 1], high - low <= NARROW
            parts[:, exact] = self._of_density((low[exact] + high[exact]) / 2)
            parts[:, ~exact] = self._of_mass(low[~exact], high[~exact])
            value, slope, hessian = parts
            value[event] += np.log(unit) + log_y[event, 0]
            narrow = exact & ~event
            value[narrow] -= np.log(high[narrow] - low[narrow])
            gradient = slope[:, None] / unit
            value += (gradient * (h - near))[:, 0]
        return value, gradient, np.maximum(hessian, LEAST_HESSIAN)[:, None] / unit**2

    def _of_density(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Return minus the log density, its slope in a raw output of scale 1, and the Newton weight."""
        slope = self._noise.slope(z)
        return -self._noise.log_density(z), slope, np.maximum(self._noise.curvature(z), _of_far(slope, z))

    def _of_mass(self, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
        """Return minus the logarithm of the mass between bounds, its slope, and the Newton weight."""
        noise, log_mass = self._noise, self._log_mass(low, high)
        # (2, rows): density at the upper and the lower bound, divided by the mass between them; 0 at infinity
        ends = np.stack([high, low])
        finite = np.isfinite(ends)
        ratio = np.where(finite, np.exp(noise.log_density(ends) - log_mass), 0.0)
        bend = np.where(finite, noise.slope(ends) * ratio, 0.0)
        slope = ratio[0] - ratio[1]
        # Rounding errors of the curvature are largest far away, where these bounds are close: that of a mass is at most
        # that of the densities, and that of the extreme distribution is exp(low) and at most 1 more.
        floor = 0.0 if noise.symmetric else noise.curvature(low)
        curvature = np.nan_to_num(np.square(slope) - (bend[0] - bend[1]))
        curvature = np.clip(curvature, floor, floor + noise.curvature(np.zeros(1)))
        nearest = np.where(finite, np.abs(ends), np.inf).min(axis=0)
        return -log_mass, slope, np.maximum(curvature, _of_far(slope, nearest))

    def _log_mass(self, low: Floats, high: Floats) -> Floats:
        """Return the logarithm of the probability between two bounds in standard units."""
        if self._noise.symmetric:  # in the upper tail, where survival is small and so exact
            low, high = np.where(low + high < 0, [-high, -low], [low, high])
        at_low, at_high = self._noise.log_survival(low), self._noise.log_survival(high)
        fall = at_low - at_high  # of the logarithm; in the lower tail of the extreme distribution it rounds to 0
        log_fall = np.log(fall) if self._noise.symmetric else high + np.log(-np.expm1(low - high))
        return at_low + np.where(fall < 1e-9, log_fall, np.log(-np.expm1(-fall)))

    def log_survival(self, h: Floats, times: Floats) -> Floats:
        """Return the logarithm of the probability to survive each time, (rows, times)."""
        with np.errstate(divide="ignore"):
            return self._noise.log_survival((np.log(times) - h) / self._unit)

    def quantiles(self, h: Floats, shares: Floats) -> Floats:
        """Return the times by which the shares have had the event, (rows, shares)."""
        return self.link(h + self._unit * self._noise.quantile(shares))

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the constant of the largest likelihood."""
        low, high = _range(y[weight > 0])
        if not high > low:
            return np.array([low])

        def loss(constant: float) -> float:
            return float(weight @ self.value(np.full((len(y), 1), constant), y))

        margin = 10.0 * self._unit
        found = minimize_scalar(loss, bounds=(low - margin, high + margin), method="bounded", options={"xatol": 1e-8})
        return np.array([found.x])

    def estimated(self, y: Floats, weight: Floats, h: Floats, *, shifted: bool) -> Self:
        """Return the loss with the most likely scale for raw outputs, or with `shifted` for these plus a constant."""
        share = weight / weight.sum()
        low, high = _range(y[weight > 0]) if shifted else (0.0, 0.0)

        def loss(log_scale: float, constant: float) -> float:
            scaled = replace(self, scale=float(np.exp(np.clip(log_scale, *BOUNDS))))
            return float(share @ scaled.value(h + constant, y))

        start = [np.log(max(high - low, 1.0) / 4), *([(low + high) / 2 - h[weight > 0].mean()] if shifted else [])]
        found = minimize(lambda point: loss(*point, *([] if shifted else [0.0])), start, method="Nelder-Mead")
        return replace(self, scale=float(np.exp(np.clip(found.x[0], *BOUNDS))))

    def check(self, y: Floats) -> None:
        """Refuse events at time 0 and times out of range, and rows without any event."""
        cure = "loss='aft' takes times above 0. Drop these rows, or use loss='cox'."
        refuse(y, (y[:, 1:] == 0) & [False, True], cure)
        self._refuse_out_of_range(np.where(np.isfinite(y), y, 1.0))
        refuse_without_events(y)
        if not workers().max(float((y[:, 0] > 0).any()))[0]:
            raise ValueError("y has no time with a lower bound: all rows are censored on the left, down to time 0.")


def _of_far(slope: Floats, distance: Floats) -> Floats:
    """Return the Newton weight with which a step goes as far as the time, in standard units, and one further."""
    return np.abs(slope) / (1.0 + np.abs(distance))


def _range(y: Floats) -> tuple[float, float]:
    """Return the smallest and the largest logarithm of the finite bounds above 0."""
    log_y = np.log(y[(y > 0) & np.isfinite(y)])
    return float(log_y.min()), float(log_y.max())
