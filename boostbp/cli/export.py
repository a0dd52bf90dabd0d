"""boostbp export: a model for runtimes without Python."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from boostbp.cli.console import ModelFile, Quiet, UsageError, check_output, say

Format = StrEnum("Format", ["onnx", "c"])


def export(
    model: ModelFile,
    out: Annotated[Path, typer.Argument(help="File to write.")],
    to: Annotated[Format, typer.Option("--to", help="An ONNX graph, or a C file without dependencies.")],
    float32: Annotated[
        bool, typer.Option("--float32", help="Smaller ONNX graph; predictions differ by about 1e-6.")
    ] = False,
    prefix: Annotated[
        str, typer.Option(help="Prefix of all names in a C file, so that several models link into one program.")
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
    if not quiet:
        say(f"Written to {out}, {len(content) / 1e6:.2f} MB.")
