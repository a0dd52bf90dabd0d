"""Proportional hazards: the negative log partial likelihood of Cox, over the rows at risk at each event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from boostbp.losses.base import LEAST_HESSIAN, Task, refuse
from boostbp.losses.joint import JointLoss
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

MAX_LOG = 80.0  # of derivatives: exp(80) is 6e34, which fits float32. Only rows of weight 0 come near it


@dataclass(frozen=True, slots=True)
class Cox(JointLoss):
    """``log(sum of w exp(h) over the rows at risk) - h`` for a row with an event, 0 for a censored one; baseline: 0.

    Rows are at risk at an event if their time is not earlier; tied events have the same rows at risk (Breslow 1974).
    The hessian is the gradient plus 1 for events. The matrix of second derivatives is never larger than this diagonal,
    so that all rows may move at once.
    """

    name = "cox"
    aliases: ClassVar[tuple[str, ...]] = ("survival:cox",)
    task: ClassVar[Task] = "survival"
    columns: ClassVar[tuple[str, ...]] = ("lower", "upper")
    joint: ClassVar[Literal["rows"]] = "rows"
    default_metric: ClassVar[str] = "cox-nloglik"

    def prepare(self, y: Floats, weight: Floats) -> _RiskSets:
        """Return the loss of these rows, which knows their order in time."""
        time, event = y[:, 0], y[:, 0] == y[:, 1]
        order = np.argsort(time, kind="stable")
        first, last = (np.searchsorted(time[order], time, side) for side in ("left", "right"))
        with np.errstate(divide="ignore"):
            log_weight = np.log(weight)
        return _RiskSets(order, first, last - 1, event, log_weight)

    def inverse_link(self, prediction: Floats) -> Floats:
        """Return the prediction itself."""
        return prediction

    def check(self, y: Floats) -> None:
        """Refuse left and interval censoring, and rows without any event."""
        cure = "loss='cox' takes events and right-censored rows. Use loss='aft' for left and interval censoring."
        refuse(y, (y[:, 1:] != y[:, :1]) & (y[:, 1:] != np.inf) & [False, True], cure)
        refuse_without_events(y)


@dataclass(frozen=True, slots=True, eq=False)
class _RiskSets(JointLoss):
    """The loss of rows in their order in time."""

    order: NDArray[np.intp]  # (rows,): rows by ascending time
    # (rows,) each: places in this order of the first and the last row with the time of a row
    first: NDArray[np.intp]
    last: NDArray[np.intp]
    event: NDArray[np.bool_]
    log_weight: Floats

    def _formula(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        # Sums of exponentials as logarithms: one sum relative to the largest would round the rows of much lower risk,
        # who may be the last at risk, to 0.
        risk, order = h[:, 0], self.order
        of_later = np.logaddexp.accumulate((self.log_weight + risk)[order][::-1])[::-1]
        at_risk = of_later[self.first]  # log of the sum of w exp(h) over the rows at risk at the time of each row
        of_events = np.where(self.event, self.log_weight - at_risk, -np.inf)
        hazard = np.logaddexp.accumulate(of_events[order])[self.last]  # log of the cumulative hazard until then
        expected = np.exp(np.minimum(risk + hazard, MAX_LOG))[:, None]
        event = self.event[:, None]
        return np.where(self.event, at_risk - risk, 0.0), expected - event, np.maximum(expected, LEAST_HESSIAN)


def refuse_without_events(y: Floats) -> None:
    """Raise ValueError if all rows of all workers are censored on the right; `y` is (rows, 2): bounds."""
    if not workers().max(float(np.isfinite(y[:, 1]).any()))[0]:
        raise ValueError("y has no event: all rows are censored on the right, so nothing is known of earlier times.")
