"""What commands share: options, consoles, exit codes, errors and warnings in one line, files that cannot be written.

0 is success, 1 a failure, 2 a wrong command line, 130 an interrupt.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

import typer
from rich.console import Console

from boostbp.atomic_write import check_writable
from boostbp.cautions import printable

INTERRUPTED = 130  # the exit code of shells for Ctrl-C
_PIPE_WIDTH = 120

P = ParamSpec("P")
R = TypeVar("R")


def console() -> Console:
    """Where people read what goes on: the standard error, so that the standard output can be piped."""
    return _console(stderr=True)


def output() -> Console:
    """Where results go: the standard output; a pipe has no width, and 80 columns would squeeze a table."""
    return _console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)


def _console(**how: Any) -> Console:
    """A console for which the words of files are text: no markup, no names of emoji."""
    return Console(highlight=False, markup=False, emoji=False, **how)


def say(text: str) -> None:
    """Print a line to people."""
    console().print(printable(text), soft_wrap=True)


def fail(reason: str, code: int = 1) -> typer.Exit:
    """Print a reason in one line; the exit to raise."""
    say(f"error: {' '.join(reason.split())}")
    return typer.Exit(code)


def check_written(option: str, path: Path, *read: tuple[str, Path | None]) -> None:
    """Leave with exit code 2 if a file could not be written, or would replace another of the same command.

    `option` names it on the command line; `read` are the command's other files behind what names them, None for one
    that was not given.
    """
    try:
        check_writable(path)
    except OSError as error:
        raise fail(f"{option} {error}", 2) from error
    for name, other in read:
        if other is not None and _same(path, other):
            raise fail(f"{option} {str(path)!r} would replace {name} {str(other)!r}: give {option} another name.", 2)


def _same(first: Path, second: Path) -> bool:
    """Whether two paths lead to one file, or would if it were there."""
    if first.exists() and second.exists():
        return first.samefile(second)
    return os.path.realpath(first) == os.path.realpath(second)


def one_line_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn what a user can put right into one line and exit code 1, warnings into lines; bugs keep their traceback."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say_warning
                return command(*args, **kwargs)
        except (ValueError, ImportError, OSError, MemoryError) as error:
            raise fail(str(error) or type(error).__name__) from error
        except KeyboardInterrupt as interrupt:
            raise fail("interrupted.", INTERRUPTED) from interrupt

    return wrapped


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning to people, without the place in the code."""
    say(f"warning: {' '.join(str(message).split())}")


class Task(StrEnum):
    """What the target is."""

    auto = "auto"
    classification = "classification"
    regression = "regression"

    @property
    def given(self) -> Literal["classification", "regression"] | None:
        """The task, or None if the target decides."""
        if self is Task.auto:
            return None
        return "classification" if self is Task.classification else "regression"


Backend = Annotated[str | None, typer.Option("--backend", "-b", help="Library that grows the trees.")]
Categorical = Annotated[
    list[str] | None, typer.Option("--categorical", metavar="COLUMN", help="Column of categories. Repeatable.")
]
Config = Annotated[Path | None, typer.Option("--config", exists=True, dir_okay=False, help="TOML file of parameters.")]
Drop = Annotated[list[str] | None, typer.Option("--drop", metavar="COLUMN", help="Column not to use. Repeatable.")]
Jobs = Annotated[int, typer.Option("--n-jobs", "-j", help="Threads; -1 for all cores.")]
Missing = Annotated[
    list[str] | None,
    typer.Option("--missing", metavar="TEXT", help="Text that means missing, beside empty and NA. Repeatable."),
]
Model = Annotated[Path, typer.Option("--model", "-m", help="File of the model.")]
Numeric = Annotated[
    list[str] | None, typer.Option("--numeric", metavar="COLUMN", help="Column of numbers. Repeatable.")
]
Offset = Annotated[
    list[str] | None,
    typer.Option(
        "--offset",
        metavar="COLUMN",
        help="Column, no feature, that is added to the raw output, such as the logarithm of the exposure. Again for "
        "each further output.",
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="File to write: .csv, .csv.gz or .parquet.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless it fails.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of all that is random.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", "-s", metavar="KEY=VALUE", help="Parameter of the deep model. Repeatable.")
]
