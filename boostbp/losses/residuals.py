"""Losses of a residual ``h - y``: squared, absolute, Huber, quantile, several quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from boostbp.losses.base import LinkName, Task, huber_centre, refuse, weighted_mean, weighted_quantile
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats


@dataclass(frozen=True, slots=True)
class _Regression:
    """The hessian, link, check and traits that losses of a residual ``h - y`` share."""

    task: ClassVar[Task] = "regression"
    link_name: ClassVar[LinkName] = "identity"
    scale_free = True

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """Return ones."""
        # The curvature of squared error. That of the other losses is 0 in places, where a Newton step would be
        # infinite, so their trees fit the negative gradient, as in LightGBM.
        return np.ones_like(h)

    def link(self, h: Floats) -> Floats:
        """Return the raw output itself."""
        return h

    def check(self, y: Floats) -> None:
        """Refuse NaN and infinity."""
        refuse(y, ~np.isfinite(y), "targets must be finite. Drop these rows.")


@dataclass(frozen=True, slots=True)
class SquaredError(_Regression):
    """``(h - y)^2 / 2``; baseline: weighted mean."""

    name = "squared_error"
    aliases: ClassVar[tuple[str, ...]] = ("l2", "mse", "mean_squared_error", "regression", "reg:squarederror")
    default_metric: ClassVar[str] = "rmse"
    least_squares: ClassVar[bool] = True

    def value(self, h: Floats, y: Floats) -> Floats:
        """Return half the squared residual."""
        return 0.5 * np.square(h - y).sum(axis=1)

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Return the residual."""
        return h - y

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the weighted mean."""
        return weighted_mean(y, weight)


@dataclass(frozen=True, slots=True)
class AbsoluteError(_Regression):
    """``|h - y|``, with gradient 0 at 0; baseline: weighted median."""

    name = "absolute_error"
    aliases: ClassVar[tuple[str, ...]] = ("l1", "mae", "mean_absolute_error", "regression_l1", "reg:absoluteerror")
    default_metric: ClassVar[str] = "mae"
    robust: ClassVar[bool] = True
    homogeneous: ClassVar[bool] = True

    def value(self, h: Floats, y: Floats) -> Floats:
        """Return the absolute residual."""
        return np.abs(h - y).sum(axis=1)

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Return the sign of the residual."""
        # 0 at the kink, where any number from -1 to 1 is a subgradient: a row that fits exactly does not move.
        return np.sign(h - y)

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the weighted median."""
        return weighted_quantile(y, weight, 0.5)


@dataclass(frozen=True, slots=True)
class Huber(_Regression):
    """``r^2 / 2`` for a residual ``|r| <= delta``, ``delta (|r| - delta / 2)`` beyond.

    Attributes
    ----------
    delta : float
        Residual at which the loss changes from quadratic to linear, **in units of the target that the loss receives**.
        Training divides `y` by its standard deviation, estimated as that of a Gaussian with the same quartiles, so 1 is
        one standard deviation of the target. `baseline` must receive the divided target.
    """

    delta: float = 1.0
    name = "huber"
    robust: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.at_least("delta", self.delta, 1 / checks.LARGEST_SCALE, checks.LARGEST_SCALE)

    def value(self, h: Floats, y: Floats) -> Floats:
        """Return half the squared residual up to `delta`, and its tangent beyond."""
        # near (size - near / 2) is size^2 / 2 if near = size, and delta (size - delta / 2) beyond.
        size = np.abs(h - y)
        near = np.minimum(size, self.delta)
        return (near * (size - 0.5 * near)).sum(axis=1)

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Return the residual, clipped to ``[-delta, delta]``."""
        return np.clip(h - y, -self.delta, self.delta)

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the weighted Huber centre."""
        return huber_centre(y, weight, self.delta)


@dataclass(frozen=True, slots=True)
class Quantile(_Regression):
    """``alpha (y - h)`` below the target, ``(1 - alpha) (h - y)`` above; baseline: weighted quantile.

    Attributes
    ----------
    alpha : float
        Level between 0 and 1; 0.5 is half the absolute error.
    """

    alpha: Any = 0.5  # a float; `Quantiles` has several
    name = "quantile"
    aliases: ClassVar[tuple[str, ...]] = ("reg:quantileerror",)
    robust: ClassVar[bool] = True
    homogeneous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.between("alpha", self.alpha, 0, 1)

    def value(self, h: Floats, y: Floats) -> Floats:
        """Return the pinball loss."""
        # One of the two products is negative, the other one is the loss. Levels of columns broadcast.
        short, level = y - h, np.asarray(self.alpha)
        return np.maximum(level * short, (level - 1) * short).sum(axis=1)

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Return ``-alpha`` below the target, ``1 - alpha`` above, 0 on it."""
        # 0 on the target, between both slopes, so that a row that fits exactly does not move.
        level = np.asarray(self.alpha)
        return np.select([h < y, h > y], [-level, 1 - level], 0.0)

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the weighted quantile, or one for each level."""
        return weighted_quantile(y, weight, self.alpha)


@dataclass(frozen=True, slots=True)
class Quantiles(Quantile):
    """Sum of the losses of `Quantile` at several levels, with an output for each; baseline: weighted quantiles.

    The columns of ``y`` are copies of one target; see `Traits.copies`. Raw outputs may cross; `link` sorts those of a
    row, which never increases the error (Chernozhukov, Fernández-Val and Galichon, Econometrica 78, 2010).

    Attributes
    ----------
    alpha : tuple of float
        Ascending levels between 0 and 1.
    """

    alpha: tuple[float, ...] = (0.1, 0.5, 0.9)
    name = "quantiles"
    aliases: ClassVar[tuple[str, ...]] = ()
    link_name: ClassVar[LinkName] = "sorted"
    max_outputs: ClassVar[int] = 1

    def __post_init__(self) -> None:
        levels = np.array(self.alpha, object).ravel().tolist()
        numbers = levels and all(isinstance(level, Real) for level in levels)
        if not numbers or not all(a < b for a, b in pairwise((0.0, *levels, 1.0))):
            raise ValueError(f"alpha={self.alpha!r} must be ascending levels in (0, 1): use e.g. [0.1, 0.5, 0.9].")
        object.__setattr__(self, "alpha", tuple(map(float, levels)))

    @property
    def copies(self) -> int:
        """Number of levels."""
        return len(self.alpha)

    def link(self, h: Floats) -> Floats:
        """Return the raw outputs of each row in ascending order."""
        return np.sort(h, axis=1)
