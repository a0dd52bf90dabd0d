"""The command line. Commands import packages when they run, so that `--help` is fast."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option, Typer, echo

from boostbp.cli.compare import compare_file
from boostbp.cli.console import ModelFile, Quiet, UsageError, check_output, one_line_errors, say, with_file_options
from boostbp.cli.fit import fit_file
from boostbp.cli.inspect import inspect
from boostbp.cli.plot import plot
from boostbp.cli.predict import predict_file, transform_file

__all__ = ["app", "main"]

Format = StrEnum("Format", ["onnx", "c"])


def export(
    model: ModelFile,
    out: Annotated[Path, Argument(help="File to write.")],
    to: Annotated[Format, Option("--to", help="An ONNX graph, or a C file without dependencies.")],
    float32: Annotated[bool, Option("--float32", help="Smaller ONNX graph; predictions differ by about 1e-6.")] = False,
    prefix: Annotated[
        str, Option(help="Prefix of all names in a C file; each model of a program needs its own.")
    ] = "boostbp",
    quiet: Quiet = False,
) -> None:
    """Write a model as an ONNX graph or as C, with the same predictions."""
    from boostbp import storage
    from boostbp.export import to_c, to_onnx
    from boostbp.runtime.atomic_write import atomic_write

    check_output("OUT", out, ("MODEL", model))
    if float32 and to is Format.c:
        raise UsageError("--float32 is for ONNX graphs, and --to is 'c': leave it out.")
    estimator = storage.load(model)
    if to is Format.onnx:
        content = to_onnx(estimator, dtype="float32" if float32 else "float64").SerializeToString()
    else:
        content = to_c(estimator, prefix=prefix).encode()
    with atomic_write(out) as part:
        part.write_bytes(content)
    say(f"Written to {out}, {len(content) / 1e6:.2f} MB.", quiet)


_HELP = "Multi-layered gradient boosted trees trained by back-propagation."
app = Typer(name="boostbp", help=_HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
_COMMANDS: list[Callable[..., None]] = [fit_file, predict_file, transform_file, inspect, plot, export, compare_file]
for _command in _COMMANDS:
    app.command(_command.__name__.removesuffix("_file"))(with_file_options(one_line_errors(_command)))


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, Option("--version", help="Print the version and leave.")] = False) -> None:
    if version:
        from boostbp.runtime.versions import __version__

        echo(f"boostbp {__version__}")
        raise Exit


def main() -> None:
    """Run the command line of this process."""
    app()
