"""Outcomes of survival: how they are read, step functions, and the estimates of Kaplan and Meier and of Breslow.

Outcomes of rows are a structured array of two fields, (event, time), as in scikit-survival, or an array of two columns,
(time, event), with 1 for an event and 0 for a row that is censored on the right. A row of weight 2 is two rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_consistent_length

from boostbp.runtime.arrays import Floats

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction:
    """A step function ``a * y[i] + b`` of points from `x[i]` up to `x[i + 1]`, as in scikit-survival.

    Attributes
    ----------
    x, y : (points,)
        Places of the steps, ascending, and values. Points of the domain below `x[0]` have the value at `x[0]`.
    a, b : float
        Factor and offset of the values.
    domain : (float, float)
        First and last point; None stands for the first and last `x`.
    """

    x: Floats
    y: Floats
    a: float = field(default=1.0, kw_only=True)
    b: float = field(default=0.0, kw_only=True)
    domain: tuple[float | None, float | None] = field(default=(0.0, None), kw_only=True)

    def __post_init__(self) -> None:
        ends = zip(self.domain, (self.x[0], self.x[-1]), strict=True)
        object.__setattr__(self, "domain", tuple(float(x if end is None else end) for end, x in ends))

    def __call__(self, x: ArrayLike) -> Any:
        """Return the values at points, in their shape; ValueError if one is outside of the domain."""
        points, (lower, upper) = np.asarray(x, float), self.domain
        if not ((points >= lower) & (points <= upper)).all():
            raise ValueError(f"the step function is defined from {lower:g} to {upper:g}, got other points.")
        step = np.maximum(np.searchsorted(self.x, points, side="right") - 1, 0)
        return self.a * self.y[step] + self.b


def event_and_time(y: Any, name: str = "y") -> tuple[Bools, Floats]:
    """Return whether each row has an event, and its time, of a structured array or one of columns (time, event)."""
    values = np.asarray(y)
    if values.dtype.names is not None and len(values.dtype.names) == 2:
        event, time = (values[column] for column in values.dtype.names)
    elif values.dtype.names is None and values.ndim == 2 and values.shape[1] == 2:
        time, event = values.T
    else:
        form = "a structured array of two fields, (event, time), or an array of two columns, (time, event)"
        raise ValueError(f"{name} holds no survival times: give {form}.")
    return read_events(event, name), numbers_of_rows(time, name)


def kaplan_meier_estimator(
    event: ArrayLike, time_exit: ArrayLike, *, reverse: bool = False, sample_weight: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """Return the distinct times, and the Kaplan-Meier estimate of survival just after each.

    Parameters
    ----------
    event : (rows,)
        Whether each row has an event.
    time_exit : (rows,)
        Time of the event, or of censoring.
    reverse : bool
        Whether the estimate is of remaining uncensored. Events come before censoring at the same time.
    sample_weight : (rows,)
        Weights of the rows.
    """
    times, place, has_event, weight = _by_time(event, time_exit, sample_weight)
    leaving = np.bincount(place, weight)
    counted = np.bincount(place, weight * (has_event != reverse))
    # Rows at risk are those of later times and those counted, so that at the end these alone remain, and survival is 0.
    at_risk = np.append(_from_here_on(leaving)[1:], 0.0) + (counted if reverse else leaving)
    survival: Any = np.cumprod(1.0 - counted / np.where(counted > 0, at_risk, 1.0))
    return times, survival


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
    risk = numbers_of_rows(risk_scores, "risk_scores")
    times, place, has_event, weight, risk = _by_time(event, time, sample_weight, risk)
    largest = risk.max()  # relative to it, no exponential overflows
    at_risk = _from_here_on(np.bincount(place, weight * np.exp(risk - largest)))
    return StepFunction(times, np.cumsum(np.bincount(place, weight * has_event) / at_risk) * np.exp(-largest))


def survival_at(curve: tuple[Floats, Floats], time: Floats) -> Floats:
    """Return a Kaplan-Meier estimate at times; it is unknown after the last row, unless 0 there."""
    times, survival = curve
    if survival[-1] > 0 and (time > times[-1]).any():
        raise ValueError(f"the distribution of censoring is unknown after {times[-1]:g}: lower tau, or times.")
    return np.append(1.0, survival)[np.searchsorted(times, time, side="right")]


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


def _by_time(event: ArrayLike, time: ArrayLike, sample_weight: ArrayLike | None, *others: Floats) -> list[Any]:
    """Return the distinct times, and of rows with weight their places in these, events, weights and other arrays."""
    arrays = numbers_of_rows(time, "time"), read_events(event, "event"), *others
    weight = weights_of_rows(sample_weight, len(arrays[0]))
    check_consistent_length(*arrays, weight)
    exits, has_event, *others_counted = (array[weight > 0] for array in arrays)
    return [*np.unique(exits, return_inverse=True), has_event, weight[weight > 0], *others_counted]


def _from_here_on(sums: NDArray[Any]) -> Floats:
    return np.cumsum(sums[::-1])[::-1]
