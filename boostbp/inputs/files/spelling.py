"""Detection of text that spells numbers or dates, and of text columns that are not categorical."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

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


def refuse_numbers_as_text(values: Sequence[Any], counts: Sequence[int], label: str) -> None:
    """Raise ValueError if the text column `label` spells numbers or dates.

    The arguments are those of `reason_not_categorical`.
    """
    if (reason := reason_not_categorical(values, counts)) is not None:
        sentence, others = reason
        missing = f", or na_values={others} where the file is read, --missing {others[0]!r}" if others else ""
        raise ValueError(
            f"{label} holds text, but {sentence}. As categories they would have no order: turn it into numbers "
            f"(pandas.to_numeric(column, errors='coerce'){missing}; of dates, days since one), drop it, or say that it "
            "holds categories (name it in categorical_features, .astype('category'), or --categorical)."
        )


def reason_not_categorical(values: Sequence[Any], counts: Sequence[int]) -> tuple[str, list[str]] | None:
    """Return why a text column should not be categorical, which is that it spells numbers or dates; otherwise None.

    `values` are the distinct values of the column without missing ones, and `counts` their numbers of rows. Returns a
    sentence, and up to three values that differ from the others. Whole numbers may be codes (of stores, for example) if
    there are no other values, and they are few or frequent.
    """
    for what, spells in (("dates or times", spells_date), ("numbers", spells_number)):
        spelt = [spells(value) for value in values]
        if _nearly_all(spelt, counts) and not (what == "numbers" and _are_codes(values, counts)):
            others = [str(value) for value, does in zip(values, spelt, strict=True) if not does][:3]
            first = next(value for value, does in zip(values, spelt, strict=True) if does)
            rest = f"; {', '.join(map(repr, others))} {'do' if len(others) > 1 else 'does'} not" if others else ""
            return f"{sum(spelt)} of its {len(values)} distinct values spell {what}, such as {first!r}{rest}", others
    return None


def _nearly_all(spelt: Sequence[bool], counts: Sequence[int]) -> bool:
    """Return whether nearly all values, or nearly all rows and most values, are in `spelt`."""
    number = sum(spelt)
    if number < FEWEST:
        return False
    rows = sum(count for does, count in zip(spelt, counts, strict=True) if does)
    share = number / len(spelt)
    return share >= NEARLY_ALL or (share >= 0.5 and rows >= NEARLY_ALL * sum(counts))


def _are_codes(values: Sequence[Any], counts: Sequence[int]) -> bool:
    repeated = len(values) <= max(FEW, sum(counts) / EACH)
    return repeated and all(_WHOLE.fullmatch(str(value)) for value in values)
