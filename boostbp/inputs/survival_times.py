"""Survival times of rows, in any of their forms, as the bounds between which the event happened.

Forms of a target:

- a structured array of a bool field, whether there was an event, and a time, as ``sksurv.util.Surv`` makes it; or a
  data frame of two such columns, in any order. A column that is named "event" may hold 1 and 0;
- two columns of numbers: a lower and an upper bound, as XGBoost's ``label_lower_bound`` and ``label_upper_bound``. They
  are equal for an event; the upper one is infinite for a row that is censored on the right, and the lower one 0 or
  -infinity on the left. Names with "lower" and "upper" say so in any order. Without them, a column of whole numbers up
  to 9 may be a status, unless some bound is infinite, as no time is;
- one column of numbers, as XGBoost's ``survival:cox`` takes it: the time of an event, or minus the time of censoring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length

from boostbp.inputs.sources import is_frame, open_source
from boostbp.inputs.targets import LARGEST, array_of, floats_of, read_target, refuse_text, refuse_where, target_columns
from boostbp.runtime.arrays import Floats

_BOOLS = {"True": True, "true": True, "False": False, "false": False}  # in a file, beside numbers
_EVENT_NAMES = ("event", "event_indicator", "event_observed")  # of scikit-survival and lifelines
_LARGEST_STATUS = 9
_EVENTS = "sksurv.util.Surv.from_arrays(event, time), or a data frame with a column of bools and one of times"


@dataclass
class UnnamedBounds:
    """What says whether two unnamed columns are bounds, or a status and a time, over all blocks of a target."""

    may_be_status: tuple[bool, bool] = (True, True)  # whether a column holds whole numbers up to 9 alone
    has_infinity: bool = False
    terms: tuple[str, str] | None = None  # the columns in messages; None before the first block

    def add(self, columns: list[Floats], labels: Sequence[str] | None, name: str) -> None:
        """Look at the columns of a block."""
        status = range(_LARGEST_STATUS + 1)
        first, second = (
            before and bool(np.isin(c, status).all()) for before, c in zip(self.may_be_status, columns, strict=True)
        )
        self.may_be_status = (first, second)
        self.has_infinity |= bool(np.isinf(columns).any())
        at = [f"{name}[{label!r}]" for label in labels or ()] or [f"np.asarray({name})[:, {k}]" for k in (0, 1)]
        self.terms = (at[0], at[1])

    def refuse_status(self, name: str) -> None:
        """Raise ValueError if a column may be a status; times are finite, so columns with infinity are bounds."""
        if self.terms is None or self.has_infinity or not any(self.may_be_status):
            return
        status, time = self.terms if self.may_be_status[0] else self.terms[::-1]
        raise ValueError(
            f"{name} has a column of whole numbers up to {_LARGEST_STATUS}, which may be a status or a bound: say "
            f"which. For a status that is 1 at an event, np.rec.fromarrays([{status} == 1, {time}], "
            f"names='event,time'). For bounds, np.rec.fromarrays([{', '.join(self.terms)}], names='lower,upper'). "
            "Columns of a data frame may have these names."
        )


def read_by_kind(
    y: Any,
    n_rows: int,
    kind: str | None,
    labels: Sequence[str] | None = None,
    unnamed: UnnamedBounds | None = None,
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return the target of an estimator of a kind, as in scikit-learn's tags, and strata of held-out rows, if any.

    `labels` and `unnamed` are those of `read_survival`.
    """
    if kind == "survival":
        bounds = read_survival(y, n_rows, labels=labels, unnamed=unnamed)
        return bounds, np.isfinite(bounds[:, 1])  # held-out rows keep the share of those that are not right-censored
    values = read_target(y, n_rows, labels=kind == "classifier")
    return values, values if kind == "classifier" else None


def read_survival(
    y: Any,
    n_rows: int,
    *,
    name: str = "y",
    labels: Sequence[str] | None = None,
    unnamed: UnnamedBounds | None = None,
) -> Floats:
    """Return the lower and the upper bound of each time, (rows, 2) float64; equal for an event.

    `labels` are the names of the columns of an array. With `unnamed`, `y` is one of several blocks: unnamed columns are
    only looked at, and the caller refuses a status after the last block.

    Raises ValueError if `y` is None, has another number of rows, holds missing or negative times, or is none of the
    forms above, or may be two of them.
    """
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    columns, names = _columns(y, name)
    labels = labels or names
    check_consistent_length(range(n_rows), columns[0])
    for at, column in enumerate(columns):
        if _are_bools(column):
            continue
        columns[at] = floats = floats_of(column, name)
        refuse_where(np.isnan(floats), floats, name, "Drop these rows.", "NaN")
        if labels and labels[at].lower() in _EVENT_NAMES:
            is_other = ~np.isin(floats, (0.0, 1.0))
            refuse_where(is_other, floats, name, f"{labels[at]!r} is 1 for an event, and otherwise 0.", "no events")
            columns[at] = floats == 1.0
    events = [column for column in columns if _are_bools(column)]
    numbers = [column for column in columns if not _are_bools(column)]
    if len(columns) == 1 and not events:
        event, time = ~np.signbit(numbers[0]), np.abs(numbers[0])
    elif len(columns) == 2 and len(events) == 1:
        event, time = events[0].astype(bool), numbers[0]
    elif len(columns) == 2 and not events:
        return _bounds(numbers, labels, name, unnamed)
    else:
        received = f"{len(columns)} columns, {len(events)} of them bools"
        raise ValueError(f"{name} holds {received}: give two columns of bounds, {_EVENTS}.")
    refuse_where(~((time >= 0) & (time <= LARGEST)), time, name, "Times are from 0 to 1e100.", "times out of range")
    return np.column_stack([time, np.where(event, time, np.inf)])


def _columns(y: Any, name: str) -> tuple[list[NDArray[Any]], tuple[str, ...] | None]:
    """Return the columns of a target, and their names, if it has any."""
    if is_frame(y):
        of_frame = target_columns(y, name)
        for column in of_frame:
            refuse_text(np.array([column.text()]), column.label)
        return [column.numbers() for column in of_frame], open_source(y).names
    if isinstance(y, np.ndarray) and y.dtype.names is not None:
        return [y[field] for field in y.dtype.names], y.dtype.names
    values = array_of(y, name)
    columns = list(values.reshape(len(values), -1).T)
    if values.dtype.kind == "U" and any(_BOOLS.keys() >= set(column) for column in columns):
        of_bools = [np.array([_BOOLS.get(text) for text in column]) for column in columns]
        both = zip(columns, of_bools, strict=True)
        return [column.astype(float) if None in bools else bools for column, bools in both], None
    return columns, None


def _are_bools(column: NDArray[Any]) -> bool:
    return column.dtype.kind == "b" or (column.dtype.kind == "O" and set(map(type, column)) <= {bool, np.bool_})


def _bounds(columns: list[Floats], labels: Sequence[str] | None, name: str, unnamed: UnnamedBounds | None) -> Floats:
    """Return two columns as bounds; raise ValueError if they are no bounds, or could be times and events."""
    places = [[side in label.lower() for label in labels or ()] for side in ("lower", "upper")]
    if places == [[False, True], [True, False]]:
        columns = columns[::-1]
    lower, upper = np.where(columns[0] == -np.inf, 0.0, columns[0]), columns[1]
    wrong = ~((lower >= 0) & (lower <= LARGEST) & (upper >= lower) & ((upper <= LARGEST) | (upper == np.inf)))
    if sorted(places) != [[False, True], [True, False]]:
        rows = unnamed or UnnamedBounds()
        rows.add(columns, labels, name)
        if unnamed is None or wrong.any():
            rows.refuse_status(name)
    both = np.column_stack([lower, upper])
    cure = f"They are a lower and an upper bound, with infinity for right-censored rows; give events as {_EVENTS}."
    refuse_where(wrong, both, name, cure, "bounds out of order")
    return both
