"""LogLink: what losses share whose raw output is the logarithm of a positive prediction."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from boostbp.losses import location
from boostbp.losses.base import LinkName, Task, refuse

__all__ = ["LogLink"]

Floats = NDArray[np.float64]


class LogLink:
    """Link, baseline and traits of a loss whose raw output is the logarithm of the prediction.

    Exponentials are taken between `lowest` and `highest` only, and losses go on as their tangents beyond, so that
    neither value nor gradient overflows, in single precision either: libraries hold gradients so.
    """

    __slots__ = ()
    name: ClassVar[str]
    task: ClassVar[Task] = "regression"
    link_name: ClassVar[LinkName] = "log"
    scale_free: ClassVar[bool] = False
    curved: ClassVar[bool] = True
    separable: ClassVar[bool] = True
    lowest: ClassVar[float] = -40.0
    highest: ClassVar[float] = 40.0

    def link(self, h: Floats) -> Floats:
        """Exponential."""
        return np.exp(self._within(h))

    def inverse_link(self, prediction: Floats) -> Floats:
        """Logarithm, of 1e-10 at least, as in LightGBM's metrics: predictions of other losses may be 0 or less."""
        return np.log(np.maximum(prediction, 1e-10))

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Log of the weighted mean; ``log(1e-6)`` for an output that is always 0."""
        return location.log_mean(y, weight)

    def _refuse_out_of_range(self, y: Floats) -> None:
        low, high = np.exp([self.lowest, self.highest])
        wrong = (y > high) | ((y > 0) & (y < low))
        refuse(y, wrong, f"loss={self.name!r} predicts {low:.1g} to {high:.1g}. Multiply y by a constant.")

    def _within(self, h: Floats) -> Floats:
        return np.clip(h, self.lowest, self.highest)
