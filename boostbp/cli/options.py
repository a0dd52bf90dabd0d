"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer


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
Out = Annotated[Path, typer.Option("--out", "-o", help="File to write: .csv or .parquet.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless it fails.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of all that is random.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="Parameter of the deep model. Repeatable."),
]
