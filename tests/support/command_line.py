"""The command line, as tests call it."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from boostbp.cli import app

QUICK = ["-s", "epochs=1", "-s", "hidden_layer_sizes=3", "-s", "n_estimators=4", "-s", "min_samples_leaf=5"]


def run(*arguments: object) -> Any:
    """Run a command; whatever happens, it must not end in a traceback."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def error_of(result: Any, code: int) -> str:
    """The one line of an error."""
    assert result.exit_code == code, result.output
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, result.stderr
    return lines[0]
