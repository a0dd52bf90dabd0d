"""The command line, as tests call it."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from boostbp.cli import app


def run(*arguments: object) -> Any:
    """Run a command; whatever happens, it must not end in a traceback."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result
