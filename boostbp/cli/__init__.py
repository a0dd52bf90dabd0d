"""The command line: boostbp fit, predict, transform, inspect, plot, export, compare.

One file per command, which imports what it needs when it runs, so that `--help` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from boostbp.cli.compare import compare
from boostbp.cli.console import one_line_errors
from boostbp.cli.export import export
from boostbp.cli.fit import fit
from boostbp.cli.inspect import inspect
from boostbp.cli.plot import plot
from boostbp.cli.predict import predict, transform

__all__ = ["app", "main"]


app = typer.Typer(
    name="boostbp",
    help="Multi-layered gradient boosted trees trained by back-propagation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (fit, predict, transform, inspect, plot, export, compare):
    app.command()(one_line_errors(command))


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from boostbp.runtime.versions import __version__

        typer.echo(f"boostbp {__version__}")
        raise typer.Exit


_Version = typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)


@app.callback()
def _options(version: Annotated[bool, _Version] = False) -> None:
    pass


def main() -> None:
    """Run the command line of this process."""
    app()
