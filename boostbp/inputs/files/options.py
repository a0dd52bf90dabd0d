"""Options of files: how their cells are read, as the command line states it and a model stores it."""

from __future__ import annotations

import codecs
import csv
import io
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, TypeAlias

Change: TypeAlias = tuple[str, Any]  # an option of the command line, without its dashes, and a value
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # the first bytes of UTF-16, which are not UTF-8
_RECORDS = 100  # records from which separators are guessed
_SEPARATORS = ";\t|,"
_TAB = r"\t"  # as a shell passes a tab


@dataclass(frozen=True, slots=True)
class FileOptions:
    """How the cells of a table in files are read; the first four hold for CSV alone."""

    sep: str = ","  # between columns
    decimal: str = "."
    encoding: str = "utf-8"
    thousands: str = ""  # between the thousands of a number; a blank means any kind of blank
    missing: tuple[str, ...] = ()  # texts that mean missing, in addition to empty cells and NA
    dates: tuple[str, ...] = ()  # columns of dates, each of which becomes numbers (`boostbp.inputs.dates`)
    day_first: bool | None = None  # whether 03/01/2024 is in January; None if no date is written so
    numeric: tuple[str, ...] = ()  # columns of text that spells amounts or truth: $1,234, 12 %, (5), yes

    def __post_init__(self) -> None:
        """Raise ValueError for an option that cannot be, with the name of its option of the command line."""
        for name in ("sep", "decimal", "thousands"):
            value = getattr(self, name)
            if len(value.encode()) != 1 and not (name == "thousands" and len(value) < 2):
                raise ValueError(f"--{name} {value!r} is not known: give one character.")
        if self.decimal == self.thousands:
            other = ",."[self.decimal == ","]
            raise ValueError(f"--thousands and --decimal are both {self.decimal!r}: give another --decimal {other!r}.")
        try:
            codecs.lookup(self.encoding)
        except LookupError as error:
            raise ValueError(f"--encoding {self.encoding!r} is not known: give utf-8, cp1252 or utf-16.") from error

    def spell_numbers(self, name: str) -> bool:
        """Return whether text of a column may spell numbers as Python does not."""
        return self.decimal != "." or bool(self.thousands) or name in self.numeric

    def changed(self, changes: Iterable[Change]) -> FileOptions:
        """Return the options with other values; those of several values are added to the ones there are."""
        values = asdict(self)
        for name, value in changes:
            if name in values:
                values[name] = tuple(dict.fromkeys([*values[name], value])) if type(values[name]) is tuple else value
        return FileOptions(**values)

    def replaced(self, stated: Mapping[str, Any]) -> FileOptions:
        r"""Return the options with those that a command line states in their place; ``\t`` is a tab."""
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in stated.items()}
        values |= {"sep": "\t"} if values.get("sep") == _TAB else {}
        return FileOptions(**{**asdict(self), **values})

    def noticed(self, head: bytes) -> list[Change]:
        """Return the changes with which the first bytes of a CSV file look like text in columns."""
        changes: list[Change] = []
        if (encoding := _encoding_of(head, self.encoding)) != self.encoding:
            changes.append(("encoding", encoding))
        text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(head)
        regular = [sep for sep in (self.sep, *_SEPARATORS) if _is_regular(text, sep)]
        if regular and regular[0] != self.sep:
            changes.append(("sep", regular[0]))
        return changes


def _encoding_of(head: bytes, encoding: str) -> str:
    """Return the first encoding that decodes some bytes, of which the last may be half a character."""
    if head[:2] in _MARKS and "16" not in encoding:
        return "utf-16"
    for name in (encoding, "cp1252"):
        with suppress(UnicodeDecodeError):
            codecs.getincrementaldecoder(name)().decode(head)
            return name
    return "latin-1"


def _is_regular(text: str, sep: str) -> bool:
    """Return whether the first records have the same number of columns, two or more."""
    with suppress(csv.Error):
        widths = {len(row) for row in islice(csv.reader(io.StringIO(text), delimiter=sep), _RECORDS) if row}
        return len(widths) == 1 and widths != {1}
    return False


def flags(changes: Iterable[Change]) -> str:
    """Return changes as options of the command line, to be pasted."""
    return " ".join(dict.fromkeys([_flag(name, value) for name, value in changes]))


def _flag(name: str, value: Any) -> str:
    if name == "day_first":
        return "--day-first" if value else "--month-first"
    return f"--{name} {shlex.quote(value.replace(chr(9), _TAB) if name == 'sep' else value)}"
