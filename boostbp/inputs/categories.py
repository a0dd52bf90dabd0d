"""Category values of a column, and their codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Category", "Factors", "categories_of", "codes_of", "factorize", "is_missing", "text_in"]

Category = str | int | float | bool


class Factors(NamedTuple):
    """A column as distinct values and the place of each row's value among them.

    Attributes
    ----------
    place : (rows,) integer
        Index into `values`; -1 is missing.
    values : list
        Distinct values, Python objects; some may be missing, some may belong to no row.
    ordered : bool
        The dtype fixes the values and their order; otherwise their order means nothing.
    """

    place: NDArray[np.integer]
    values: list[Any]
    ordered: bool = False


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NA or NaT."""
    # NA refuses to say whether it equals itself, and its package may not be installed
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def factorize(values: NDArray[Any]) -> Factors:
    """Factors of a one-dimensional array of numbers or of objects.

    Raises
    ------
    TypeError
        If an object is not hashable.
    """
    if values.dtype.kind in "fiub":
        distinct, place = np.unique(values, return_inverse=True)
        return Factors(place, distinct.tolist())
    rows = values.tolist()
    index = {value: i for i, value in enumerate(dict.fromkeys(rows))}
    return Factors(np.fromiter(map(index.__getitem__, rows), np.int64, len(rows)), list(index))


def text_in(values: Iterable[Any]) -> str | None:
    """The first string among some values."""
    return next((value for value in values if isinstance(value, str)), None)


def categories_of(factors: Factors, label: str) -> tuple[Category, ...]:
    """Category values in the order of their codes: the dtype's own, or numbers ascending, then strings.

    Raises
    ------
    ValueError
        If a value is not a string, a finite number or a bool.
    """
    values = dict.fromkeys(_plain(factors.values, label))
    return tuple(values if factors.ordered else sorted(values, key=lambda value: (isinstance(value, str), value)))


def codes_of(factors: Factors, categories: Sequence[Category], label: str) -> NDArray[np.float64]:
    """Code of each row's category; ``len(categories)`` if it is not among them, NaN if missing.

    Raises
    ------
    ValueError
        If strings were seen at fit and there are only numbers now, or the other way round.
    """
    present = _plain(factors.values, label)
    _check_kind(present, categories, label)
    code = {value: float(i) for i, value in enumerate(categories)}
    unseen = float(len(categories))
    table = [np.nan if is_missing(value) else code.get(_scalar(value), unseen) for value in factors.values]
    return np.array([*table, np.nan])[factors.place]


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _plain(values: list[Any], label: str) -> list[Category]:
    plain = [_scalar(value) for value in values if not is_missing(value)]
    for value in plain:
        if not isinstance(value, (str, int, float)):
            raise ValueError(
                f"{label} holds categories of type {type(value).__name__} (such as {value!r}): "
                "make them strings or numbers, for example with .astype(str)."
            )
        if isinstance(value, float) and np.isinf(value):
            raise ValueError(f"Input X contains infinity: {label} holds the category {value!r}. Make it missing (NaN).")
    return plain


def _check_kind(present: list[Category], categories: Sequence[Category], label: str) -> None:
    text_now = {isinstance(value, str) for value in present}
    text_then = {isinstance(value, str) for value in categories}
    if text_now and text_then and text_now.isdisjoint(text_then):
        raise ValueError(
            f"{label} holds categories such as {present[0]!r}, but held values such as {categories[0]!r} at fit: "
            "pass it with the type it had then."
        )
