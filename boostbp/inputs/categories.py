"""Category values of a column, and their codes; text that spells numbers or dates, so is not categorical."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.inputs.conversions import (
    NO,
    SHOWN,
    YES,
    code_for_dates,
    code_for_numbers,
    doubt_of,
    options_for_dates,
    options_for_numbers,
    writing_of,
)
from boostbp.inputs.faults import Fault, cure
from boostbp.runtime import messages
from boostbp.runtime.arrays import Floats

Category = str | int | float | bool
Number = int | float | None

_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")  # numbers as files write them; "01" is text
_PADDED = re.compile(r"0+(\d+)")
_TRUTH = {"true": 1, "false": 0}
# Thresholds of two warnings. Arbitrary.
# A column differs from that of fit: minimum number of its rows, and share of new values
MIN_UNSEEN_ROWS, UNSEEN_SHARE = 10, 0.9
# A training column is not categorical: minimum number of its rows, and of distinct values per row
MIN_TEXT_ROWS, DISTINCT_SHARE = 20, 0.9


class Factors(NamedTuple):
    """A column as distinct values, and the index of each row's value."""

    place: NDArray[np.integer]  # (rows,) integer: index into `values`; -1 is missing
    values: list[Any]  # distinct values, Python objects, including unused ones
    ordered: bool = False  # the dtype fixes the values and their order; otherwise their order means nothing

    @classmethod
    def of(cls, place: NDArray[np.integer], values: Iterable[Any], ordered: bool = False) -> Factors:
        """Return factors of distinct values, which may be NumPy scalars and may include missing values."""
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
        missing = np.array([is_missing(value) for value in values], np.bool_)
        index = np.append(np.where(missing, -1, np.cumsum(~missing) - 1), -1)  # index -1 is the last element
        return cls(index[place], list(compress(values, ~missing)), ordered)


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, NA or NaT."""
    # comparing NA with itself raises an error, and its package may not be installed
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def factorize(values: NDArray[Any]) -> Factors:
    """Return factors of a one-dimensional array of numbers or of objects; TypeError if an object is not hashable."""
    if values.dtype.kind in "fiub":
        distinct, place = np.unique(values, return_inverse=True)
        return Factors.of(place, distinct.tolist())
    rows = values.tolist()
    index = {value: i for i, value in enumerate(dict.fromkeys(rows))}
    return Factors.of(np.fromiter(map(index.__getitem__, rows), np.int64, len(rows)), index)


def text_in(values: Iterable[object]) -> str | None:
    """Return the first string in `values`."""
    return next((value for value in values if isinstance(value, str)), None)


def categories_of(factors: Factors, label: str) -> tuple[Category, ...]:
    """Return category values in the order of their codes: the dtype's own, or numbers ascending, then strings."""
    _check_plain(factors.values, label)
    return tuple(dict.fromkeys(factors.values)) if factors.ordered else sort_categories(factors.values)


def sort_categories(values: Iterable[Category]) -> tuple[Category, ...]:
    """Return distinct categories without an order of their own: numbers ascending, then strings."""
    return tuple(sorted(dict.fromkeys(values), key=lambda value: (isinstance(value, str), value)))


def codes_of(factors: Factors, categories: Sequence[Category], label: str) -> Floats:
    """Return the code of each row's category; ``len(categories)`` if it is not among them, NaN if missing.

    Values that equal no category are compared as numbers: 1, 1.0, "1", "1.0" and True mean the same category, if fit
    had only one of them. So a column may be written as text, or as floats because a cell is missing. Raises ValueError
    if fit had strings and there are only numbers now, or vice versa, and no string spells a number.
    """
    _check_plain(factors.values, label)
    code = {value: float(i) for i, value in enumerate(categories)}
    others = [value for value in factors.values if value not in code]
    if others:
        _check_kind(factors.values, categories, label)
        code |= _codes_by_number(others, code)
    unseen = float(len(categories))
    codes = np.array([*(code.get(value, unseen) for value in factors.values), np.nan])[factors.place]
    is_unseen = codes == unseen
    if is_unseen.sum() >= max(MIN_UNSEEN_ROWS, UNSEEN_SHARE * np.count_nonzero(~np.isnan(codes))):
        value = factors.values[factors.place[np.argmax(is_unseen)]]
        at_fit = f"fit had {', '.join(map(repr, categories[:3]))}" if categories else "it was empty at fit"
        cure = "All of them are read as one unknown category: pass them as they were written then"
        messages.warn(f"{label}: almost no value was seen at fit, such as {value!r}; {at_fit}. {cure}.")
    return codes


def _codes_by_number(values: Iterable[Category], code: Mapping[Category, float]) -> dict[Category, float]:
    """Return the codes of values that equal no category, but are the same number as one."""
    of_text = _by_number(map(_number, code), code)
    # reading text as numbers loses leading zeros
    of_numbers = _by_number(map(_padded_number, code), code) | of_text
    codes = {value: (of_text if isinstance(value, str) else of_numbers).get(_number(value)) for value in values}
    return {value: at for value, at in codes.items() if at is not None}


def _by_number(numbers: Iterable[Number], code: Mapping[Category, float]) -> dict[Number, float | None]:
    """Return the codes of categories by their number, None for numbers of several categories, and for no number."""
    codes: dict[Number, float | None] = {None: None}
    for number, at in zip(numbers, code.values(), strict=True):
        codes[number] = None if number in codes else at
    return codes


def _number(value: Category) -> Number:
    """Return the number that a label is, or spells as files do; whole numbers are exact."""
    if not isinstance(value, str):
        return value
    if not _PLAIN.fullmatch(value):
        return _TRUTH.get(value.lower())
    number = float(value)
    if not np.isfinite(number):
        return None
    digits, _, fraction = value.partition(".")
    return int(digits) if not fraction.strip("0") and "e" not in value.lower() else number


def _padded_number(value: Category) -> Number:
    """Return the number of a label of digits without its leading zeros."""
    digits = _PADDED.fullmatch(value) if isinstance(value, str) else None
    return int(digits[1]) if digits and np.isfinite(float(digits[1])) else None


def _check_plain(values: Iterable[Any], label: str) -> None:
    """Refuse values that are not strings, finite numbers or bools."""
    for value in values:
        if not isinstance(value, (str, int, float)):
            kind = f"type {type(value).__name__} (such as {value!r})"
            cure = "make them strings or numbers, as by column.astype(str)"
            raise ValueError(f"{label} holds categories of {kind}: {cure}.")
        if isinstance(value, float) and np.isinf(value):
            raise ValueError(f"Input X contains infinity: {label} holds the category {value!r}. Make it missing (NaN).")


def _check_kind(values: Sequence[Category], categories: Sequence[Category], label: str) -> None:
    """Refuse numbers instead of text, or text instead of numbers, if no text spells a number."""
    is_text_now = {isinstance(value, str) for value in values}
    is_text_at_fit = {isinstance(value, str) for value in categories}
    if is_text_now and is_text_at_fit and is_text_now.isdisjoint(is_text_at_fit):
        texts = categories if True in is_text_at_fit else values
        if all(_number(value) is None and _padded_number(value) is None for value in texts):
            at_fit = f"held values such as {categories[0]!r} at fit: pass it with the type it had then"
            raise ValueError(f"{label} holds categories such as {values[0]!r}, but {at_fit}.")


def fault_of(factors: Factors, label: str, name: str, *, declared: bool) -> Fault | None:
    """Return what makes a training column no categories: text that spells numbers or dates, unless it is declared.

    Warns of nearly distinct values. `name` is that of the column on the command line.
    """
    counts = np.bincount(factors.place[factors.place >= 0], minlength=len(factors.values))
    used = np.flatnonzero(counts)
    values = [factors.values[i] for i in used]
    n_rows = counts.sum()
    if not declared:
        if (fault := fault_of_text(values, counts[used].tolist(), label, name)) is not None:
            return fault
        warn_of_spellings(values, label, name)
    if n_rows >= MIN_TEXT_ROWS and len(values) >= DISTINCT_SHARE * n_rows:
        drop = cure("drop it", [("drop", name)])
        how = f"which say nothing about other rows: {drop}, group its values, or pass numbers as numbers"
        what = f"{len(values)} distinct values in {n_rows} rows, such as {values[0]!r:.99}"
        messages.warn(f"{label} is read as categories, but has {what}, {how}.")
    return None


# Text that spells numbers or dates
_SIGN, _CURRENCY = "[-+\u2212\u2013]", "[$\u20ac\u00a3\u00a5]"
# 1234  1,234.5  1.234,5  1 234  1_234  1'234  .5  ,5
_DIGITS = r"(?:\d{1,3}(?P<sep>[,.'\u2019\s_])\d{3}(?:(?P=sep)\d{3})*|\d+)(?:[.,]\d*)?|[.,]\d+"
_NUMBER = re.compile(rf"\(?{_SIGN}?\s*{_CURRENCY}?\s*{_SIGN}?(?:{_DIGITS})(?:[eE]{_SIGN}?\d+)?\s*(?:%|{_CURRENCY})?\)?")
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_TO_31 = r"(?:0?[1-9]|[12]\d|3[01])"
_DAY = (
    rf"(?:\d{{4}}([-/.]){_TO_31}\1{_TO_31}|{_TO_31}([-/.]){_TO_31}\2(?:\d{{4}}|\d{{2}})"
    rf"|{_TO_31}[-\s]{_MONTH}[-,\s]+(?:\d{{4}}|\d{{2}})|{_MONTH}\s{_TO_31},?\s\d{{4}})"
)
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp][Mm])?(?:\s?(?:Z|UTC|GMT|[-+]\d{2}:?\d{2}))?"
_DATE = re.compile(rf"{_DAY}(?:[T,\s]+{_TIME})?|{_TIME}", re.IGNORECASE)
_WHOLE = re.compile(r"\d+(?:\.0*)?")

NEARLY_ALL = 0.9  # share of a column's values, or rows, from which on the others count as mistakes
FEWEST = 3  # minimum number of such values in a column that counts as numbers or dates
FEW = 10  # up to this number of distinct whole numbers are codes for any number of rows,
EACH = 5  # and any number of them if each occurs this many times on average


def spells_number(value: object) -> bool:
    """Return whether a value is a number, or text such as ``"1,234"``, ``"12 %"``, ``"$5"``, ``"1e5"``, ``"0,5"``."""
    if not isinstance(value, str):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    text = value.strip()
    if text.isdecimal() or _NUMBER.fullmatch(text):
        return True
    with suppress(ValueError):
        float(text)  # inf, nan
        return True
    return False


def spells_date(value: object) -> bool:
    """Return whether text is a date, a time, or both: ``"2024-01-03"``, ``"03/01/2024 10:00"``, ``"3 Jan 2024"``."""
    return isinstance(value, str) and _DATE.fullmatch(value.strip()) is not None


SPELT_KINDS = (("dates or times", spells_date, code_for_dates), ("numbers", spells_number, code_for_numbers))


def warn_of_spellings(values: Sequence[Any], label: str, name: str, code_name: str = "column") -> None:
    """Warn of distinct texts that differ in case or blanks alone, or of yes and no in several spellings."""
    if text_in(values) is None or not all(isinstance(value, (str, bool)) for value in values):
        return
    folded = {value: str(value).strip().casefold() for value in values}
    spelt, column = set(folded.values()), f"pandas.Series({code_name}, dtype=object)"
    if spelt <= YES | NO and not spelt.isdisjoint({"true", "false", "yes", "no"}):
        alike = values if len(values) > 2 else ()
        code = f"{column}.map({ {value: int(text in YES) for value, text in folded.items()} })"
        code = cure(code, [("numeric", name)] if name else [])
    else:
        numbers = Counter(folded.values())
        alike = [value for value in values if numbers[folded[value]] > 1]
        code = f"{column}.str.strip().str.casefold()"
    if alike:
        shown = ", ".join(map(repr, alike[:SHOWN]))
        messages.warn(f"{label} holds {shown}, which are different categories; if some mean the same: {code}.")


_CATEGORIES = "drop it, or declare categories (in categorical_features, or by column.astype('category'))"


def refuse_numbers_as_text(
    values: Sequence[Any], counts: Sequence[float], label: str, *, code_name: str = "column", otherwise: str
) -> None:
    """Raise ValueError if a target of text spells numbers or dates; the cure ends with `otherwise`."""
    if (fault := fault_of_text(values, counts, label, "", code_name=code_name, otherwise=otherwise)) is not None:
        raise ValueError(fault.sentence)


def fault_of_text(
    values: Sequence[Any],
    counts: Sequence[float],
    label: str,
    name: str,
    *,
    code_name: str = "column",
    otherwise: str = _CATEGORIES,
    decimal: str = ".",
) -> Fault | None:
    """Return why text should not be categorical, as it spells numbers or dates, and what turns it into numbers.

    `values` are distinct, and `counts` their numbers of rows. Returns None if they are text, or whole numbers alone
    that are few or frequent, as codes (of stores, for example) are. Code calls the column `code_name`, and ends with
    what to do `otherwise`. Options call the column `name`; the file has a `decimal` sign.
    """
    for what, spells, code in SPELT_KINDS:
        spelt = [spells(value) for value in values]
        if _nearly_all(spelt, counts) and not (what == "numbers" and _are_codes(values, counts)):
            others = [str(value) for value, does in zip(values, spelt, strict=True) if not does]
            texts = [str(value) for value, does in zip(values, spelt, strict=True) if does]
            do = "do" if len(others) > 1 else "does"
            rest = f"; {', '.join(f'{other!r:.99}' for other in others[:SHOWN])} {do} not" if others else ""
            example = f"{texts[0]!r}{(writing_of if what == 'numbers' else doubt_of)(texts)}"
            count = f"{len(texts)} of its {len(values)} distinct values"
            holds = f"text, but {count} spell {what}, such as {example}{rest}"
            how = f"turn it into numbers: {code(texts, others, code_name)}; {otherwise}"
            of_numbers = partial(options_for_numbers, decimal=decimal)
            options = (of_numbers if what == "numbers" else options_for_dates)(texts, others, name)
            return Fault(name, f"{label} holds {holds}. As categories they would have no order: {how}.", holds, options)
    return None


def _nearly_all(spelt: Sequence[bool], counts: Sequence[float]) -> bool:
    """Return whether nearly all values, or nearly all rows and most values, are in `spelt`."""
    number = sum(spelt)
    if number < FEWEST:
        return False
    rows = sum(count for does, count in zip(spelt, counts, strict=True) if does)
    share = number / len(spelt)
    return share >= NEARLY_ALL or (share >= 0.5 and rows >= NEARLY_ALL * sum(counts))


def _are_codes(values: Sequence[Any], counts: Sequence[float]) -> bool:
    return len(values) <= max(FEW, sum(counts) / EACH) and all(_WHOLE.fullmatch(str(value)) for value in values)
