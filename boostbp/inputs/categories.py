"""Category values of a column, and their codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp import cautions, spelling

Category = str | int | float | bool

_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")  # as files hold numbers; "01" is another text
_PADDED = re.compile(r"0+(\d+)")
_TRUTH = {"true": 1, "false": 0}
ENOUGH_ROWS = 10  # to say that a column is not what it was: a few rows may well hold a new category
UNKNOWN = 0.9  # share of unseen values at which it is said
DISTINCT = 0.9  # distinct values per row from which on a category tells nothing
FEWEST_ROWS = 20  # below, few rows may well differ


class Factors(NamedTuple):
    """A column as distinct values and the place of each row's value among them."""

    place: NDArray[np.integer]  # (rows,) integer: index into `values`; -1 is missing
    values: list[Any]  # distinct values, Python objects; some may be missing, some may belong to no row
    ordered: bool = False  # the dtype fixes the values and their order; otherwise their order means nothing


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NA or NaT."""
    # NA refuses to say whether it equals itself, and its package may not be installed
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def factorize(values: NDArray[Any]) -> Factors:
    """Factors of a one-dimensional array of numbers or of objects; TypeError if an object is not hashable."""
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

    Raises ValueError if a value is not a string, a finite number or a bool.
    """
    values = _plain(factors.values, label)
    return tuple(dict.fromkeys(values)) if factors.ordered else in_order(values)


def in_order(values: Iterable[Category]) -> tuple[Category, ...]:
    """Distinct categories of no order of their own: numbers ascending, then strings."""
    return tuple(sorted(dict.fromkeys(values), key=lambda value: (isinstance(value, str), value)))


def codes_of(factors: Factors, categories: Sequence[Category], label: str) -> NDArray[np.float64]:
    """Code of each row's category; ``len(categories)`` if it is not among them, NaN if missing.

    Labels that are not among the categories as they stand are compared as numbers: 1, 1.0, "1", "1.0" and True are one
    category, if only one of fit's is, so that a column may be written as text, or as floats for want of a cell.

    Raises ValueError if strings were seen at fit and there are only numbers now, or the other way round, and no string
    spells one; warns if hardly a value was seen at fit.
    """
    values = [_scalar(value) for value in factors.values]
    code = {value: float(i) for i, value in enumerate(categories)}
    present = _plain(factors.values, label)
    if any(value not in code for value in present):
        _check_kind(present, categories, label)
        code |= dict(_same_numbers(values, code))
    unseen = float(len(categories))
    table = [np.nan if is_missing(value) else code.get(value, unseen) for value in values]
    codes = np.array([*table, np.nan])[factors.place]
    new = codes == unseen
    if new.sum() >= max(ENOUGH_ROWS, UNKNOWN * np.count_nonzero(~np.isnan(codes))):
        _warn_of_unseen(values[factors.place[np.argmax(new)]], categories, label)
    return codes


def _same_numbers(values: list[Any], code: dict[Any, float]) -> Iterator[tuple[Any, float]]:
    """Yield values that equal no category but are the same number as one, each with the code of that category."""
    plain = _by_number((_number(category), at) for category, at in code.items())
    # a reader that made numbers of text took the zeros before them away
    padded = _by_number((_padded(category), at) for category, at in code.items())
    for value in values:
        if not is_missing(value) and value not in code:
            number = _number(value)
            code_of = plain if isinstance(value, str) else padded | plain
            if number is not None and code_of.get(number) is not None:
                yield value, code_of[number]


def _by_number(pairs: Iterable[tuple[Any, float]]) -> dict[Any, Any]:
    """Return the codes by number; None for a number that several categories are."""
    code_of: dict[Any, Any] = {}
    for number, code in pairs:
        if number is not None:
            code_of[number] = None if number in code_of else code
    return code_of


def _number(value: Category) -> int | float | None:
    """Return the number that a label is, or spells as files do; exactly, if it is a whole one."""
    if not isinstance(value, str):
        return value
    if not _PLAIN.fullmatch(value):
        return _TRUTH.get(value.lower())
    number = float(value)
    if not np.isfinite(number):
        return None
    digits, _, fraction = value.partition(".")
    return int(digits) if not fraction.strip("0") and "e" not in value.lower() else number


def _padded(value: Category) -> int | None:
    """The number after the zeros that a label of digits begins with."""
    digits = _PADDED.fullmatch(value) if isinstance(value, str) else None
    return int(digits[1]) if digits and np.isfinite(float(digits[1])) else None


def _warn_of_unseen(value: Category, categories: Sequence[Category], label: str) -> None:
    had = f"fit had {', '.join(map(repr, categories[:3]))}" if categories else "it was empty at fit"
    cautions.warn(
        f"{label}: hardly a value was seen at fit, such as {value!r}; {had}. All of them are read as one unknown "
        "category: pass them as they were written then.",
        UserWarning,
    )


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
    """Refuse numbers in the place of text, or text in the place of numbers, where no text spells a number."""
    text_now = {isinstance(value, str) for value in present}
    text_then = {isinstance(value, str) for value in categories}
    if text_now and text_then and text_now.isdisjoint(text_then):
        texts = categories if True in text_then else present
        if all(_number(value) is None and _padded(value) is None for value in texts):
            raise ValueError(
                f"{label} holds categories such as {present[0]!r}, but held values such as {categories[0]!r} at fit: "
                "pass it with the type it had then."
            )


def check_categories(factors: Factors, label: str, *, declared: bool) -> None:
    """Look at a training column that is to be categories, and warn if nearly all of its values are distinct.

    Raises ValueError if it spells numbers or dates, and neither the user nor the dtype `declared` categories: it only
    is text.
    """
    counts = np.bincount(factors.place[factors.place >= 0], minlength=len(factors.values))
    present = [i for i, value in enumerate(factors.values) if counts[i] and not is_missing(value)]
    values, rows = [factors.values[i] for i in present], counts[present]
    fault = None if declared else spelling.fault(values, rows.tolist())
    if fault is not None:
        sentence, others = fault
        missing = f", or na_values={others} where the file is read" if others else ""
        raise ValueError(
            f"{label} holds text, but {sentence}. As categories they would have no order: turn it into numbers "
            f"(pandas.to_numeric(column, errors='coerce'){missing}; of dates, days since one), or say that it holds "
            "categories (name it in categorical_features, or .astype('category'))."
        )
    if rows.sum() >= FEWEST_ROWS and len(values) >= DISTINCT * rows.sum():
        cautions.warn(
            f"{label} is read as categories, but has {len(values)} distinct values in {rows.sum()} rows, such as "
            f"{values[0]!r}: what hardly comes twice tells nothing of other rows. Drop it, group its values, or, if "
            "they are numbers, pass them as numbers."
        )
