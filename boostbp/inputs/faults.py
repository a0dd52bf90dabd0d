"""Faults: columns that cannot be used as they are, told in one message with what to do, in code or in options."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from boostbp.inputs.files.options import Change, flags

on_command_line: ContextVar[bool] = ContextVar("on_command_line", default=False)  # whether cures are options, not code
_IN_CODE, _IN_OPTIONS = 3, 8  # columns that a message describes: code is long. Arbitrary
_NOTICED = {"sep": "its columns are separated by {!r}", "encoding": "its text is in {}"}
_OTHERWISE = "or, for one of these columns, --categorical COLUMN if its values are names, --drop COLUMN to leave it out"
_MONTH_FIRST = "with --month-first in place of --day-first if the month comes first"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a column cannot be used as it is, and what makes it usable."""

    name: str  # of the column
    sentence: str  # that says so with the cure in Python
    holds: str = ""  # such as "text, but ..."
    options: Sequence[Change] | None = ()  # of the command line that read a feature, if any do; None for a target

    @property
    def changes(self) -> Sequence[Change]:
        """Options that make the table usable, if only without this feature."""
        return [] if self.options is None else self.options or [("drop", self.name)]

    @property
    def in_options(self) -> str:
        """What the column holds, and, if it must be cured elsewhere, how."""
        unread = "" if self.options else ", which no option reads with the other columns"
        return f"{self.name!r:.99} holds {self.holds}{unread}" if self.changes else self.sentence.removesuffix(".")


def cure(code: str, options: Sequence[Change]) -> str:
    """Return what to do where the caller is: in Python, or on the command line, if options do it."""
    return f"add {flags(options)}" if options and on_command_line.get() else code


def refuse_faults(faults: Sequence[Fault], name: str = "X", noticed: Sequence[Change] = ()) -> None:
    """Raise ValueError with all columns that cannot be used, and the options that a table `name` needs to be read."""
    if faults or noticed:
        raise ValueError((_in_options if on_command_line.get() else _in_code)(faults, name, noticed))


def _in_code(faults: Sequence[Fault], name: str, noticed: Sequence[Change]) -> str:
    reader = ", ".join(f"{option}={value!r}" for option, value in noticed)
    told = [f"{name} needs other options: pass pandas.read_csv(path, {reader})."] if noticed else []
    told += [f"{len(faults)} columns cannot be used as they are."] if len(faults) > 1 else []
    return " ".join([*told, *[fault.sentence for fault in faults[:_IN_CODE]], *_rest(faults[_IN_CODE:])])


def _in_options(faults: Sequence[Fault], name: str, noticed: Sequence[Change]) -> str:
    told = [_NOTICED[option].format(value) for option, value in noticed]
    told += [fault.in_options for fault in faults[:_IN_OPTIONS]]
    changes = [*noticed, *(change for fault in faults for change in fault.changes)]
    hints = [*([_MONTH_FIRST] if ("day_first", True) in changes else []), *([_OTHERWISE] if faults else [])]
    rest = "".join(f". {more}" for more in _rest(faults[_IN_OPTIONS:]))
    add = f" Add {flags(changes)}{'; '.join(['', *hints])}." if changes else ""
    return f"{name} cannot be used as it is: {'; '.join(told)}{rest}.{add}"


def _rest(faults: Sequence[Fault]) -> list[str]:
    names = ", ".join(f"{fault.name!r:.99}" for fault in faults[:_IN_OPTIONS])
    more = f" and {len(faults) - _IN_OPTIONS} more" * (len(faults) > _IN_OPTIONS)
    return [f"Nor can {names}{more}."] if faults else []
