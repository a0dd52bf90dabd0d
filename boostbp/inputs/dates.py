"""Dates as numbers: year, month, day, weekday and seconds since 1970, in UTC."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime.arrays import Floats
from boostbp.runtime.messages import named_in_errors, require

PARTS = ("year", "month", "day", "weekday", "seconds")
TIME_ONLY = re.compile(r"\s*\d{1,2}:")
_WEEKDAY = r"\s*(?:(?i:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*)[.,]*\s+)?"
# A day and a month, in any order, before a year
ORDERED = re.compile(_WEEKDAY + r"(\d{1,2})\s*([-/.\s])\s*(\d{1,2})\s*[-/.,\s]\s*(\d+)")
# Four digits of a year before a month, or anywhere beside the name of a month: 2024-01-03, 20240103T10, 3 Jan 2024
_CLEAR = re.compile(
    _WEEKDAY + r"\d{4}(?:[-/.\s](?:0?[1-9]|1[0-2])(?![\d:])|\d{4}[T\s])"
    r"|(?=.*(?<!\d)(?:1[5-9]|2\d)\d\d(?!\d))"
    r".*(?<![A-Za-z])(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
)
_NUMBER = re.compile(r"\s*[-+]?\d+(?:\.\d*)?\s*")
_MISSING = ("", "nan", "nat")  # what pandas reads as missing


def part_names(name: str) -> list[str]:
    """Return the names of the columns that a column of dates becomes."""
    return [f"{name}_{part}" for part in PARTS]


def source_columns(names: Iterable[str], dates: Sequence[str]) -> list[str]:
    """Return the columns of a table from which features come: those of `dates` in place of their numbers."""
    column = {part: name for name in dates for part in part_names(name)}
    return list(dict.fromkeys(column.get(name, name) for name in names))


def date_numbers(moments: NDArray[np.datetime64]) -> list[Floats]:
    """Return the numbers of moments, (rows,) in UTC, one array for each of `PARTS`; NaN where they are missing.

    Monday is weekday 0.
    """
    index = require("pandas", extra="frames", what="reading dates").DatetimeIndex(moments)
    seconds = np.where(np.isnat(moments), np.nan, moments.astype("M8[us]").astype(np.int64) / 1e6)
    return [
        *(np.asarray(part, np.float64) for part in (index.year, index.month, index.day, index.day_of_week)),
        seconds,
    ]


def is_order_open(texts: Iterable[str]) -> bool:
    """Return whether a text is a date such as 03/01/2024, whose order no convention tells; with points it does."""
    return any(match[2] != "." for text in texts if (match := ORDERED.match(text)))


def day_order(texts: Iterable[str]) -> bool | None:
    """Return whether the day comes first in dates such as 13/01/2024; None if no number tells it.

    Raises ValueError if it does in some, and not in others, or a year has two digits.
    """
    matches = [match for text in texts if (match := ORDERED.match(text))]
    for match in matches:
        refuse_unclear(match.string)
    first, second = ([match.string for match in matches if int(match[group]) > 12] for group in (1, 3))
    if first and second:
        raise ValueError(f"{first[0]!r:.99} has the day first, and {second[0]!r:.99} the month")
    return bool(first) if first or second else None


def refuse_unclear(text: str) -> None:
    """Raise ValueError for text that may mean several moments, or another one later: 20240103, 24-01-03, today."""
    if _NUMBER.fullmatch(text):
        cure = "or in Python pass pandas.to_datetime(column.astype(str), format='%Y%m%d'), or with unit='s'"
        what = "is a number, which may count days or seconds"
        raise ValueError(f"{text!r:.99} {what}: write dates as 2024-03-01, {cure}")
    ordered = ORDERED.match(text)
    if not (len(ordered[4]) == 4 if ordered else _CLEAR.match(text) or TIME_ONLY.match(text)):
        what = "is neither a time nor a date with a four-digit year and a clear month"
        raise ValueError(f"{text!r:.99} {what}: write dates as 2024-03-01")


def moments_of(values: Sequence[Any], day_first: bool | None = None) -> NDArray[np.datetime64]:
    """Return the moments, in UTC, that dates or texts mean, (rows,); a time without a date is of 1970-01-01.

    Raises ValueError if a text is no date, or `day_first` contradicts it, or does not say what 03/01/2024 means; also
    for numbers.
    """
    pandas = require("pandas", extra="frames", what="reading dates")
    for value in values:
        if isinstance(value, str | Number) and str(value).lower() not in _MISSING:
            refuse_unclear(str(value))
    texts = [f"1970-01-01 {value}" if TIME_ONLY.match(str(value)) else value for value in values]
    is_ordered = np.array([isinstance(text, str) and ORDERED.match(text) is not None for text in texts], np.bool_)
    if day_first is None and is_ordered.any():
        which = "pass dates, not text, or say --day-first or --month-first"
        raise ValueError(f"{texts[is_ordered.argmax()]!r:.99} may have the day or the month first: {which}")
    if (order := day_order(text for text in texts if isinstance(text, str))) not in (None, day_first):
        raise ValueError(f"the {'day' if order else 'month'} comes first in some dates, and not in others")
    moments = np.full(len(texts), "NaT", "M8[us]")
    for chosen, first in ((is_ordered, bool(day_first)), (~is_ordered, False)):
        some = pandas.Series(texts, dtype=object)[chosen]
        parsed = pandas.to_datetime(some, format="mixed", utc=True, dayfirst=first)
        moments[chosen] = parsed.dt.tz_localize(None).to_numpy("M8[us]")
    return moments


def with_date_numbers(X: Any, dates: Sequence[str], day_first: bool | None = None) -> Any:
    """Return a data frame in which some columns of dates, in their place, are columns of their numbers."""
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or not {*dates} & {*frame.columns}:
        return X
    order: list[str] = []
    for name in frame.columns:
        order += part_names(name) if name in dates else [name]
        if name in dates:
            with named_in_errors(f"Column {name!r} must hold dates"):
                numbers = date_numbers(moments_of(frame[name].to_list(), day_first))
            series = zip(part_names(name), numbers, strict=True)
            frame = frame.with_columns(*(nw.new_series(*part, backend=frame.implementation) for part in series))
    return frame.select(order).to_native()
