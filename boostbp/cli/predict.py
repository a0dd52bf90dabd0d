"""boostbp predict and boostbp transform: a model over a file of any size, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from boostbp.atomic_write import atomic_write
from boostbp.cli.console import Missing, Model, Offset, Out, Quiet, check_written, fail, one_line_errors, say
from boostbp.extras import require
from boostbp.files.paths import format_of, is_compressed
from boostbp.files.tables import ColumnRoles

Data = Annotated[Path, typer.Argument(help="CSV file with a header, Parquet file, or folder of either.")]
Keep = Annotated[
    list[str] | None, typer.Option("--keep", metavar="COLUMN", help="Column to copy to the output. Repeatable.")
]
Escape = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="Put ' before text in the CSV file that a spreadsheet would run (=, +, -, @ at its beginning).",
    ),
]
Threads = Annotated[int | None, typer.Option("--n-jobs", "-j", help="Threads; by default as in training.")]
Made = Callable[[Any, Any], dict[str, Any]]  # of features, and the columns beside them
# What spreadsheets run, and what some of them skip or widen before they look (OWASP, "CSV Injection").
_RUN = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@one_line_errors
def predict(
    data: Data,
    model: Model,
    out: Out,
    proba: Annotated[bool, typer.Option("--proba", help="Add a column of probability for each class.")] = False,
    offset: Offset = None,
    keep: Keep = None,
    escape: Escape = False,
    missing: Missing = None,
    n_jobs: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Predict a CSV or Parquet file, which may be larger than memory.

    Of a model that was fitted with --offset it is added again; without it, it is 0.
    """
    from boostbp import storage
    from boostbp.files.reading import numbers_of

    _check_out(out, data, model, escape)
    estimator = storage.load(model)
    if proba and not hasattr(estimator, "predict_proba"):
        raise ValueError("--proba needs a classifier, but the model is a regressor: leave it out.")

    kept = list(keep or ())
    beside = [*kept, *[name for name in offset or () if name not in kept]]

    def made(X: Any, table: Any) -> dict[str, Any]:
        known = {"offset": numbers_of(table, offset or (), data.name)}
        if not hasattr(estimator, "predict_proba"):
            predicted = estimator.predict(X, **known)
            if predicted.ndim == 1:
                return {"prediction": predicted}
            if estimator.loss == "quantile" and estimator.alpha is not None:
                return {f"quantile_{level:g}": predicted[:, k] for k, level in enumerate(estimator.alpha)}
            return _numbered("prediction", predicted)
        probability = estimator.predict_proba(X, **known)
        columns = {"prediction": estimator.classes_[probability.argmax(axis=1)]}
        if proba:
            columns |= {f"probability_{name}": probability[:, k] for k, name in enumerate(estimator.classes_)}
        return columns

    _stream(estimator, data, out, made, roles_of(estimator, beside, missing or ()), kept, escape, n_jobs, quiet)


@one_line_errors
def transform(
    data: Data,
    model: Model,
    out: Out,
    layer: Annotated[int, typer.Option(help="Hidden layer: 0 is next to the input, -1 next to the output.")] = -1,
    keep: Keep = None,
    escape: Escape = False,
    missing: Missing = None,
    n_jobs: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Write the hidden representation of a CSV or Parquet file, which may be larger than memory."""
    from boostbp import storage
    from boostbp.network.choice import weight_in_words

    _check_out(out, data, model, escape)
    estimator = storage.load(model)

    def made(X: Any, table: Any) -> dict[str, Any]:
        return _numbered("h", estimator.hidden_representation(X, layer))

    kept = list(keep or ())
    _stream(estimator, data, out, made, roles_of(estimator, kept, missing or ()), kept, escape, n_jobs, quiet)
    words = weight_in_words(estimator.history_.weight())
    if words and not quiet:
        say(f"They are the units of hidden layers with {words}.")


def _check_out(out: Path, data: Path, model: Path, escape: bool) -> None:
    check_written("--out", out, ("DATA", data), ("--model", model))
    if escape and out.suffix.lower() == ".parquet":
        raise fail(f"--escape-formulas is for CSV files, and --out is {out.name!r}: leave it out.", 2)


def _numbered(stem: str, values: Any) -> dict[str, Any]:
    return {f"{stem}{column}": values[:, column] for column in range(values.shape[1])}


def roles_of(estimator: Any, keep: Sequence[str] = (), missing: Sequence[str] = ()) -> ColumnRoles:
    """Columns of the file that the model reads, as what they were in training."""
    columns: ColumnRoles = estimator.schema_.roles()
    return columns._replace(verbatim=keep, missing=missing)


def _stream(
    estimator: Any,
    data: Path,
    out: Path,
    made: Made,
    columns: ColumnRoles,
    kept: list[str],
    escape: bool,
    n_jobs: int | None,
    quiet: bool,
) -> None:
    """Read, compute and write chunk by chunk."""
    from boostbp.files.reading import chunks

    pyarrow = require("pyarrow", extra="frames", what=f"reading {data.name}")
    if n_jobs is not None:
        estimator.set_params(n_jobs=n_jobs)
    rows = 0
    with sink(out) as write:
        for X, table in chunks(data, columns):
            outputs = made(X, table)
            table = table.select(kept)
            twice = ", ".join(repr(name) for name in outputs if name in table.column_names)
            if twice:
                raise ValueError(
                    f"--keep {twice}: what is written has a column of this name already. "
                    f"Leave it out of --keep, or rename it in {data.name}."
                )
            for name, values in outputs.items():
                table = table.append_column(name, pyarrow.array(values))
            write(without_formulas(table) if escape else table)
            rows += len(table)
    if not quiet:
        say(f"{rows} rows written to {out}.")


@contextmanager
def sink(path: Path) -> Iterator[Callable[[Any], None]]:
    """Give what writes tables of pyarrow, all of one schema, to a file; a failure leaves what was there untouched."""
    form = format_of(path)
    pyarrow, module = (
        require(name, extra="frames", what=f"writing {path.name}") for name in ("pyarrow", f"pyarrow.{form}")
    )
    opened = module.CSVWriter if form == "csv" else module.ParquetWriter
    writers: list[Any] = []
    with atomic_write(path) as part:

        def write(table: Any) -> None:
            if not writers:
                stream = pyarrow.output_stream(part, compression="gzip" if is_compressed(path) else None)
                writers.extend([opened(stream, table.schema), stream])
            writers[0].write_table(table)

        try:
            yield write
        finally:
            for writer in writers:
                writer.close()
        if not writers:
            raise ValueError(f"There are no rows to write to {str(path)!r}.")


def without_formulas(table: Any) -> Any:
    """A pyarrow.Table with ``'`` before names and texts that a spreadsheet would run; numbers stay as they are."""
    pyarrow = require("pyarrow", extra="frames", what="writing a CSV file")
    for place, field in enumerate(table.schema):
        if "string" in str(field.type):  # large ones, views and dictionaries as well
            texts = [text if text is None else _as_text(text) for text in table[field.name].to_pylist()]
            table = table.set_column(place, field.name, pyarrow.array(texts, pyarrow.string()))
    return table.rename_columns([_as_text(name) for name in table.column_names])


def _as_text(text: str) -> str:
    return f"'{text}" if text.startswith(_RUN) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
