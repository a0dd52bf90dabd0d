"""Step functions, Breslow's estimate of the baseline hazard, and checks of events, times and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_consistent_length

from boostbp.runtime.arrays import Floats

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction:
    """A step function ``y[i]`` of points from `x[i]` up to `x[i + 1]`, as in scikit-survival.

    Attributes
    ----------
    x, y : (points,)
        Places of the steps, ascending, and values. Points from 0 to `x[0]` have the value at `x[0]`.
    """

    x: Floats
    y: Floats

    @property
    def domain(self) -> tuple[float, float]:
        """First and last point."""
        return 0.0, float(self.x[-1])

    def __call__(self, x: ArrayLike) -> Any:
        """Return the values at points, in their shape; ValueError if one is outside of the domain."""
        points, (lower, upper) = np.asarray(x, float), self.domain
        if not ((points >= lower) & (points <= upper)).all():
            raise ValueError(f"the step function is defined from {lower:g} to {upper:g}, got other points.")
        step = np.maximum(np.searchsorted(self.x, points, side="right") - 1, 0)
        return self.y[step]


def breslow(
    risk_scores: ArrayLike, time: ArrayLike, event: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> StepFunction:
    """Return Breslow's estimate of the cumulative baseline hazard of a proportional hazards model.

    It steps at each distinct time by the number of events, divided by the sum of ``exp(risk_scores)`` of rows at risk.

    Parameters
    ----------
    risk_scores : (rows,)
        Logarithms of the hazards relative to the baseline, such as the raw outputs of a Cox model.
    time, event : (rows,)
        Times, and whether each row has an event.
    sample_weight : (rows,)
        Weights of the rows.
    """
    exits, has_event = numbers_of_rows(time, "time"), read_events(event, "event")
    risk, weight = numbers_of_rows(risk_scores, "risk_scores"), weights_of_rows(sample_weight, len(exits))
    check_consistent_length(exits, has_event, risk)
    counted = weight > 0
    times, place = np.unique(exits[counted], return_inverse=True)
    has_event, risk, weight = has_event[counted], risk[counted], weight[counted]
    largest = risk.max()  # relative to it, no exponential overflows
    at_risk = np.cumsum(np.bincount(place, weight * np.exp(risk - largest))[::-1])[::-1]
    return StepFunction(times, np.cumsum(np.bincount(place, weight * has_event) / at_risk) * np.exp(-largest))


def read_events(event: ArrayLike, name: str) -> Bools:
    """Return whether each row has an event, (rows,), from truth values or 0 and 1."""
    numbers = numbers_of_rows(event, name)
    if not np.isin(numbers, (0, 1)).all():
        raise ValueError(f"{name} must say for each row whether it has an event: True or False, 1 or 0.")
    return numbers == 1


def numbers_of_rows(values: ArrayLike, name: str) -> Floats:
    """Return finite numbers, (rows,)."""
    numbers = check_array(values, ensure_2d=False, dtype=np.float64, input_name=name)
    if numbers.ndim != 1:
        raise ValueError(f"{name} must be a 1D array, (rows,); got shape {numbers.shape}.")
    return numbers


def weights_of_rows(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[Any]:
    """Return weights, (rows,): of float64, or integer ones if there are none."""
    if sample_weight is None:
        return np.ones(n_rows, np.int64)
    weight = numbers_of_rows(sample_weight, "sample_weight")
    check_consistent_length(range(n_rows), weight)
    if (weight < 0).any() or not weight.any():
        raise ValueError("sample_weight must be 0 or more, and not 0 for all rows.")
    return weight
