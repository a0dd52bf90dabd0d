"""Text that spells numbers or dates: the code that turns it into numbers, for messages, and the conversion itself."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

# What tells that the comma is the decimal sign, as 1.234,5  1.234.567  0,5  ,5 do. Exchanged, that the point is.
_DECIMAL_COMMA = re.compile(r"\..*[,.]|,(?!\d{3}(?!\d))|(?<!\d)0?,")
_EXCHANGED = str.maketrans(",.", ".,")
CURRENCIES = "$\u20ac\u00a3\u00a5"
_SIGNS = CURRENCIES + "%_'\u2019"  # and what separates thousands besides point, comma and blanks
_TIME_ONLY, _ORDERED = re.compile(r"\s*\d{1,2}:"), re.compile(r"\s*\d{1,2}[-/.](\d{1,2})[-/.]")
SHOWN = 3  # values without a number that a message lists


def _replacements(texts: Collection[str]) -> list[tuple[str, str]] | None:
    """Return patterns and their replacements that turn numbers as people write them into plain ones, in order.

    Returns None if the comma is the decimal sign in some of them, and the point in others. A comma that may be either,
    as in ``"2,340"``, separates thousands.
    """
    comma = has_decimal_comma(texts)
    if comma and any(_DECIMAL_COMMA.search(text.translate(_EXCHANGED)) for text in texts):
        return None
    removed = {sign for text in texts for sign in text if sign.isspace() or sign in _SIGNS + ",."[comma]}
    steps = [(f"[{''.join(sorted(removed))}]", "")] if removed else []
    steps += [("[\u2212\u2013]", "-"), (r"^\((.*)\)$", r"-\1"), *([(",", ".")] if comma else [])]
    return [step for step in steps if any(re.search(step[0], text.strip()) for text in texts)]


def has_decimal_comma(texts: Iterable[str]) -> bool:
    """Return whether the comma is the decimal sign of a number."""
    return any(_DECIMAL_COMMA.search(text) for text in texts)


def numbers_of_text(texts: Sequence[str]) -> list[float]:
    """Return the numbers that all texts spell; raise ValueError if one spells none, or they are not written alike."""
    if (steps := _replacements({*texts})) is None:
        raise ValueError("some numbers have a decimal comma, and others a decimal point")
    if 0 < sum("%" in text for text in texts) < len(texts):
        raise ValueError("some numbers have a percent sign, and others none")
    if len({sign for text in {*texts} for sign in text if sign in CURRENCIES}) > 1:
        raise ValueError("they are amounts of several currencies")
    numbers = []
    for text in texts:
        plain = text
        for pattern, replacement in steps:
            plain = re.sub(pattern, replacement, plain)
        try:
            numbers.append(float(plain))
        except ValueError:
            raise ValueError(f"{text!r} is none") from None
    return numbers


def code_for_numbers(texts: Sequence[str], others: Sequence[str], name: str) -> str:
    """Return pandas code that turns a column `name` into numbers, for a message.

    `texts` are the values that spell numbers, and `others` those that do not and become missing.
    """
    if (steps := _replacements(texts)) is None:
        return "with one decimal sign, as some have a decimal comma, and others a decimal point"
    if not steps and not others:
        return f"numpy.asarray({name}, float)"
    column = _column(name, others) + "".join(f".replace({step[0]!r}, {step[1]!r}, regex=True)" for step in steps)
    code = f"pandas.to_numeric({column}{_coerce(others)})"
    reading = {"[,]": "thousands=','", "[.]": "thousands='.'", ",": "decimal=','"}
    if len(others) > SHOWN or not all(pattern in reading for pattern, _ in steps):
        return code
    options = [reading[pattern] for pattern, _ in steps] + ([f"na_values={[*others]!r}"] if others else [])
    missing = " ".join(f"--missing {other!r}" for other in others)
    command = f" (on the command line, {missing} and --numeric)" if others and not steps else ""
    return f"{code}, or read the file with {', '.join(options)}{command}"


def code_for_dates(texts: Sequence[str], others: Sequence[str], name: str) -> str:
    """Return pandas code that turns dates or times in a column `name` into days; see `code_for_numbers`."""
    column, order, hint = _column(name, others), "", ""
    if texts and all(_TIME_ONLY.match(text) for text in texts):
        column = f"('1970-01-01 ' + {column})"
    elif ordered := [match for text in texts if (match := _ORDERED.match(text))]:
        day_first = all(int(match[1]) <= 12 for match in ordered)
        order, hint = f", dayfirst={day_first}", " (dayfirst=False if the month is first)" if day_first else ""
    moments = f"pandas.to_datetime({column}, format='mixed', utc=True{order}{_coerce(others)})"
    return f"({moments} - pandas.Timestamp(0, tz='UTC')) / pandas.Timedelta(days=1){hint}"


def _column(name: str, others: Sequence[str]) -> str:
    column = f"pandas.Series({name}, dtype=object)"
    return f"{column}.replace({[*others]!r}, None)" if 0 < len(others) <= SHOWN else column


def _coerce(others: Sequence[str]) -> str:
    return ", errors='coerce'" if len(others) > SHOWN else ""
