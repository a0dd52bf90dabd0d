"""Common parts of commands: options, consoles, checks of output files, errors and warnings of one line.

Exit codes: 0 for success, 1 for a failure, 2 for a wrong command line, 130 for an interrupt.
"""

from __future__ import annotations

import functools
import inspect
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from rich.console import Console
from typer import Argument, Exit, Option

from boostbp.inputs.faults import on_command_line
from boostbp.runtime.atomic_write import check_writable
from boostbp.runtime.messages import brief, printable

INTERRUPTED = 130  # the exit code of shells for Ctrl-C
# Text from files is printed without markup and emoji names.
_PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
_PIPE_WIDTH = 120  # columns of a pipe, where rich's default of 80 is too narrow for tables


class UsageError(ValueError):
    """A wrong command line: exit code 2."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """Convert each ValueError to a `UsageError`."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error


def console() -> Console:
    """Return the console of messages: the standard error, so that the standard output can be piped."""
    return Console(stderr=True, **_PLAIN)


def output() -> Console:
    """Return the console for results, on standard output; characters outside its encoding are escaped."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, **_PLAIN)


def say(text: str, quiet: bool = False) -> None:
    """Print a message, unless the command is `quiet`."""
    if not quiet:
        console().print(printable(text), soft_wrap=True)


def fail(reason: str, code: int = 1) -> Exit:
    """Print the reason of a failure in one line, and return the exception that ends the command."""
    say(f"error: {brief(' '.join(reason.split()))}")
    return Exit(code)


def check_output(option: str, path: Path, *inputs: tuple[str, Path | None]) -> None:
    """Raise UsageError if a file cannot be written, or would replace one of the `inputs`, (option, path) each."""
    try:
        check_writable(path)
    except OSError as error:
        raise UsageError(f"{option} {error}") from error
    for name, other in inputs:
        if other is not None and _is_same_file(path, other):
            raise UsageError(f"{option} {str(path)!r} would replace {name} {str(other)!r}: give {option} another name.")


def _is_same_file(first: Path, second: Path) -> bool:
    """Return whether two paths mean the same file, which need not exist."""
    if first.exists() and second.exists():
        return first.samefile(second)
    return os.path.normcase(os.path.realpath(first)) == os.path.normcase(os.path.realpath(second))


def one_line_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Print warnings, and errors that a user can correct, in one line each; other errors keep their traceback."""

    @functools.wraps(command)
    def wrapped(*args: object, **kwargs: object) -> None:
        token = on_command_line.set(True)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_, **__: say(f"warning: {' '.join(str(message).split())}")
                command(*args, **kwargs)
        except (ValueError, ImportError, OSError, MemoryError) as error:
            code = 2 if isinstance(error, UsageError) else 1
            raise fail(str(error) or type(error).__name__, code) from error
        except KeyboardInterrupt as interrupt:
            raise fail("interrupted.", INTERRUPTED) from interrupt
        finally:
            on_command_line.reset(token)

    return wrapped


def with_file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with a parameter `file_options` the options of files, and it those that are stated, by name."""
    parameters = dict(inspect.signature(command, eval_str=True).parameters)
    if parameters.pop("file_options", None) is None:
        return command

    @functools.wraps(command)
    def wrapped(**kwargs: object) -> None:
        stated = {name: value for name in _FILE_OPTIONS if (value := kwargs.pop(name)) is not None}
        command(file_options=stated, **kwargs)

    keyword = inspect.Parameter.KEYWORD_ONLY
    of_files = [inspect.Parameter(name, keyword, default=None, annotation=hint) for name, hint in _FILE_OPTIONS.items()]
    of_command = [parameter.replace(kind=keyword) for parameter in parameters.values()]
    cast(Any, wrapped).__signature__ = inspect.Signature([*of_command, *of_files])
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in (*of_command, *of_files)}
    return wrapped


class Task(StrEnum):
    """The task of a model; ``auto`` leaves it to the target."""

    auto = "auto"
    classification = "classification"
    regression = "regression"

    @property
    def choice(self) -> Literal["classification", "regression"] | None:
        """The task, or None if the target decides."""
        return None if self is Task.auto else cast(Any, self.value)


def _repeatable(*names: str, metavar: str = "COLUMN", help: str) -> Any:
    return Option(*names, metavar=metavar, help=f"{help} Repeatable.")


_Names: TypeAlias = list[str] | None
_OFFSET = "Column, not a feature, that is added to the raw output, as log(exposure). Several outputs have one each."
Categorical = Annotated[_Names, _repeatable("--categorical", help="Column of categories.")]
Drop = Annotated[_Names, _repeatable("--drop", help="Column not to use.")]
Jobs = Annotated[int, Option("--n-jobs", "-j", help="Threads; -1 for all cores.")]
Keep = Annotated[_Names, _repeatable("--keep", help="Column to copy to the output.")]
Model = Annotated[Path, Option("--model", "-m", help="File of the model.")]
ModelFile = Annotated[Path, Argument(help="File of the model.")]
Numeric = Annotated[_Names, _repeatable("--numeric", help="Column of numbers, amounts ($1,234; 12 %) or truth.")]
Offset = Annotated[_Names, _repeatable("--offset", help=_OFFSET)]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print nothing unless it fails.")]
Seed = Annotated[int, Option("--seed", min=0, help="Seed of all random numbers.")]
Set = Annotated[_Names, _repeatable("--set", "-s", metavar="KEY=VALUE", help="Parameter of the deep model.")]
TaskOption = Annotated[Task, Option("--task", help="auto: by the target.")]

_DAY_FIRST = "Whether 03/01/2024 is in January or in March, if other dates do not tell."
_FILE_OPTIONS: dict[str, Any] = {  # fields of `boostbp.inputs.files.options.FileOptions`
    "sep": Annotated[str | None, Option("--sep", help=r"Separator of CSV columns, as ';'; '\t' is a tab.")],
    "decimal": Annotated[str | None, Option("--decimal", help="Decimal sign of numbers, as ','.")],
    "thousands": Annotated[str | None, Option("--thousands", help="Sign between thousands, as ','.")],
    "encoding": Annotated[str | None, Option("--encoding", help="Encoding of CSV text, as cp1252 or utf-16.")],
    "missing": Annotated[_Names, _repeatable("--missing", metavar="TEXT", help="Text that means missing, as NA does.")],
    "dates": Annotated[_Names, _repeatable("--dates", help="Column of dates: year, month, day, weekday, seconds.")],
    "day_first": Annotated[bool | None, Option("--day-first/--month-first", help=_DAY_FIRST)],
}
StatedOptions: TypeAlias = Mapping[str, Any]  # of files
