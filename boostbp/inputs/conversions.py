"""Text that spells numbers or dates: code and options that read it as numbers, for messages.

Options are those of the command line; see `boostbp.inputs.files.options`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from boostbp.inputs.dates import ORDERED, TIME_ONLY, day_order, is_order_open, refuse_unclear
from boostbp.inputs.files.options import Change

# What tells that the comma is the decimal sign, as 1.234,5  1.234.567  0,5  ,5 do. Exchanged, that the point is.
_DECIMAL_COMMA = re.compile(r"\..*[,.]|,(?!\d{3}(?!\d))|(?<!\d)0?,")
_EXCHANGED = str.maketrans(",.", ".,")
CURRENCIES = "$\u20ac\u00a3\u00a5"
_SIGNS = CURRENCIES + "%_'\u2019"  # and what separates thousands besides point, comma and blanks
_THOUSANDS = re.compile(r"(?<=\d)([,.'\u2019_\s])(?=\d{3}(?!\d))")
_PLAIN = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
YES, NO = {"true", "t", "yes", "y", "1"}, {"false", "f", "no", "n", "0"}
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
    return f"{code}, or read the file with {', '.join(options)}"


def code_for_dates(texts: Sequence[str], others: Sequence[str], name: str) -> str:
    """Return pandas code that turns dates or times in a column `name` into days; see `code_for_numbers`."""
    column, order, hint = _column(name, others), "", ""
    if texts and all(TIME_ONLY.match(text) for text in texts):
        column = f"('1970-01-01 ' + {column})"
    elif ordered := [match for text in texts if (match := ORDERED.match(text))]:
        day_first = all(int(match[3]) <= 12 for match in ordered)
        order, hint = f", dayfirst={day_first}", " (dayfirst=False if the month is first)" if day_first else ""
    moments = f"pandas.to_datetime({column}, format='mixed', utc=True{order}{_coerce(others)})"
    return f"({moments} - pandas.Timestamp(0, tz='UTC')) / pandas.Timedelta(days=1){hint}"


def writing_of(texts: Collection[str]) -> str:
    """Return how numbers are written, in words to follow an example; "" if as files write them."""
    signs = {*"".join(texts)}
    groups = {sign for text in texts for sign in _THOUSANDS.findall(text)} - {",."[not has_decimal_comma(texts)]}
    words = {
        "decimal commas": has_decimal_comma(texts),
        "separators of thousands": bool(groups),
        "a currency": bool(signs & {*CURRENCIES}),
        "per cent signs": "%" in signs,
    }
    return f" (with {' and '.join(word for word, is_so in words.items() if is_so)})" * any(words.values())


def doubt_of(texts: Iterable[str]) -> str:
    """Return why no option reads dates, in words to follow an example; "" if options do."""
    try:
        for text in texts:
            refuse_unclear(text)
    except ValueError as error:
        return f" ({error})"
    return ""


def options_for_numbers(texts: Collection[str], others: Sequence[str], name: str, decimal: str = ".") -> list[Change]:
    """Return the options that read a column of these values as numbers; none if no options do.

    A `decimal` comma is that of the whole file.
    """
    comma = decimal == "," or has_decimal_comma(texts)
    point = "," if comma else "."
    groups = {" " if sign.isspace() else sign for text in texts for sign in _THOUSANDS.findall(text)} - {point}
    plain = [_THOUSANDS.sub(lambda sign: point if sign[1] == point else "", text.strip()) for text in texts]
    if len(groups) > 1 or len(others) > SHOWN or (comma and any("." in text for text in plain)):
        return []
    changes: list[Change] = [("decimal", ",")] if point != decimal else []
    changes += [("thousands", sign) for sign in groups]
    changes += [("missing", other) for other in others]
    is_plain = changes and all(_PLAIN.fullmatch(text.replace(point, ".")) for text in plain)
    return changes if is_plain else [*changes, ("numeric", name)]


def options_for_dates(texts: Collection[str], others: Sequence[str], name: str) -> list[Change]:
    """Return the options that read a column of these values as dates; none if no options do.

    The order of day and month is an option only if the dates do not tell it.
    """
    with suppress(ValueError):
        is_open = is_order_open(texts) and day_order(texts) is None
        order: list[Change] = [("day_first", True)] if is_open else []
        is_read = len(others) <= SHOWN and not doubt_of(texts)
        return [("dates", name), *order, *(("missing", other) for other in others)] if is_read else []
    return []


def _column(name: str, others: Sequence[str]) -> str:
    column = f"pandas.Series({name}, dtype=object)"
    return f"{column}.replace({[*others]!r}, None)" if 0 < len(others) <= SHOWN else column


def _coerce(others: Sequence[str]) -> str:
    return ", errors='coerce'" if len(others) > SHOWN else ""
