"""Consoles, exit codes, and errors of the user in one line.

0 is success, 1 a failure, 2 a wrong command line, 130 an interrupt.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer
from rich.console import Console

__all__ = ["INTERRUPTED", "console", "fail", "one_line_errors", "output", "say"]

INTERRUPTED = 130  # the exit code of shells for Ctrl-C
_PIPE_WIDTH = 120

P = ParamSpec("P")
R = TypeVar("R")


def console() -> Console:
    """Where people read what goes on: the standard error, so that the standard output can be piped."""
    return Console(stderr=True, highlight=False)


def output() -> Console:
    """Where results go: the standard output; a pipe has no width, and 80 columns would squeeze a table."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def say(text: str) -> None:
    """Print a line to people; markup in it is text."""
    console().print(text, markup=False, soft_wrap=True)


def fail(reason: str, code: int = 1) -> typer.Exit:
    """Print a reason in one line; the exit to raise."""
    say(f"error: {' '.join(reason.split())}")
    return typer.Exit(code)


def one_line_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn what a user can put right into one line and exit code 1; a bug keeps its traceback."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (ValueError, ImportError, OSError, MemoryError) as error:
            raise fail(str(error) or type(error).__name__) from error
        except KeyboardInterrupt as interrupt:
            raise fail("interrupted.", INTERRUPTED) from interrupt

    return wrapped
