"""boostbp predict and boostbp transform: a model over a file of any size, in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from typer import Argument, Option

from boostbp.cli.console import Keep, Model, Offset, Quiet, StatedOptions, UsageError, check_output, say
from boostbp.inputs.files.parts import compression_of, format_of
from boostbp.runtime.atomic_write import atomic_write
from boostbp.runtime.messages import require

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray
    from pandas import DataFrame

    from boostbp.estimators.base import BaseBoostBP
    from boostbp.inputs.files.tables import ColumnRoles

Data = Annotated[Path, Argument(help="CSV file with a header, Parquet file, or folder of either.")]
Escape = Annotated[bool, Option("--escape-formulas", help="Put ' before CSV text that a spreadsheet runs: = + - @.")]
Out = Annotated[Path, Option("--out", "-o", help="File to write: .csv, .csv.gz, .csv.bz2, .csv.zst or .parquet.")]
Threads = Annotated[int | None, Option("--n-jobs", "-j", help="Threads; by default as in training.")]
Outputs: TypeAlias = "Mapping[str, NDArray[Any]]"  # name of a column -> its values, (rows,)
# First characters of formulas in spreadsheets, including those that some skip or convert (OWASP, "CSV Injection").
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def predict_file(
    data: Data,
    model: Model,
    out: Out,
    file_options: StatedOptions,
    proba: Annotated[bool, Option("--proba", help="Add a column of probability for each class.")] = False,
    offset: Offset = None,
    keep: Keep = None,
    escape: Escape = False,
    n_jobs: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Predict a CSV or Parquet file, which may be larger than memory, read as the training file was.

    A model that was fitted with --offset adds that of these rows; without it, the offset is 0.
    """
    from boostbp.inputs.files.reading import chunks, numbers_of

    estimator = _loaded(model, data, out, escape, n_jobs)
    is_classifier = hasattr(estimator, "predict_proba")
    if proba and not is_classifier:
        raise ValueError("--proba needs a classifier, but the model is a regressor: leave it out.")

    def outputs_of(X: DataFrame, beside: pa.Table) -> Outputs:
        offsets = numbers_of(beside, offset or (), data.name, columns.options)
        if not is_classifier:
            predicted = estimator.predict(X, offset=offsets)
            if predicted.ndim == 1:
                return {"prediction": predicted}
            if estimator.loss == "quantile" and estimator.alpha is not None:
                return {f"quantile_{level:g}": predicted[:, k] for k, level in enumerate(estimator.alpha)}
            return _numbered("prediction", predicted)
        probability = estimator.predict_proba(X, offset=offsets)
        shares = {f"probability_{name}": share for name, share in zip(estimator.classes_, probability.T, strict=True)}
        if estimator.multilabel_:
            of_labels = estimator.predict(X, offset=offsets).T
            predicted = {f"prediction_{name}": has for name, has in zip(estimator.classes_, of_labels, strict=True)}
        else:
            predicted = {"prediction": estimator.classes_[probability.argmax(axis=1)]}
        return predicted | (shares if proba else {})

    columns = roles_of(estimator, file_options, dict.fromkeys([*(keep or ()), *(offset or ())]))
    parts = ((outputs_of(X, beside), beside) for X, beside in chunks(data, columns))
    _write(out, parts, keep or [], data, escape, quiet)


def transform_file(
    data: Data,
    model: Model,
    out: Out,
    file_options: StatedOptions,
    layer: Annotated[int, Option(help="Hidden layer: 0 is next to the input, -1 next to the output.")] = -1,
    keep: Keep = None,
    escape: Escape = False,
    n_jobs: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Write the hidden representation of a CSV or Parquet file, which may be larger than memory."""
    from boostbp.inputs.files.reading import chunks
    from boostbp.network.choice import weight_in_words

    estimator = _loaded(model, data, out, escape, n_jobs)
    pieces = chunks(data, roles_of(estimator, file_options, keep))
    parts = ((_numbered("h", estimator.hidden_representation(X, layer)), beside) for X, beside in pieces)
    _write(out, parts, keep or [], data, escape, quiet)
    if words := weight_in_words(estimator.history_.weight()):
        say(f"They are the units of hidden layers with {words}.", quiet)


def roles_of(estimator: BaseBoostBP, file_options: StatedOptions, verbatim: Iterable[str] | None = None) -> ColumnRoles:
    """Return the roles of the columns that the model reads, as in training but for options that are stated."""
    columns: ColumnRoles = estimator.schema_.roles()
    return columns._replace(verbatim=list(verbatim or ()), options=columns.options.replaced(file_options))


def _loaded(model: Path, data: Path, out: Path, escape: bool, n_jobs: int | None) -> Any:
    """Return the model in a file, after a check of the output file."""
    from boostbp import storage

    check_output("--out", out, ("DATA", data), ("--model", model))
    if escape and out.suffix.lower() == ".parquet":
        raise UsageError(f"--escape-formulas is for CSV files, and --out is {out.name!r}: leave it out.")
    estimator = storage.load(model)
    return estimator if n_jobs is None else estimator.set_params(n_jobs=n_jobs)


def _numbered(stem: str, values: NDArray[np.float64]) -> Outputs:
    return {f"{stem}{column}": values[:, column] for column in range(values.shape[1])}


def _write(
    out: Path, parts: Iterable[tuple[Outputs, pa.Table]], keep: list[str], data: Path, escape: bool, quiet: bool
) -> None:
    """Write the kept columns and the outputs of each part."""
    pyarrow = require("pyarrow", extra="frames", what=f"reading {data.name}")

    def tables() -> Iterator[pa.Table]:
        for outputs, beside in parts:
            table = beside.select(keep)
            if clashes := ", ".join(repr(name) for name in outputs if name in keep):
                raise ValueError(f"--keep {clashes}: the output has such a column: rename it in {data.name}.")
            for name, values in outputs.items():
                table = table.append_column(name, pyarrow.array(values))
            yield _without_formulas(table) if escape else table

    say(f"{write_tables(out, tables())} rows written to {out}.", quiet)


def write_tables(path: Path, tables: Iterator[pa.Table]) -> int:
    """Write tables of one schema to a file; return the number of rows. After an error the old file is unchanged."""
    file_format = format_of(path)
    pyarrow = require("pyarrow", extra="frames", what=f"writing {path.name}")
    module = import_module(f"pyarrow.{file_format}")
    first = next(tables, None)
    if first is None:
        raise ValueError(f"There are no rows to write to {str(path)!r}.")
    open_writer = module.CSVWriter if file_format == "csv" else module.ParquetWriter
    compression = compression_of(path)
    with (
        atomic_write(path) as part,
        pyarrow.output_stream(part, compression=compression) as stream,
        open_writer(stream, first.schema) as writer,
    ):
        n_rows = 0
        for table in chain([first], tables):
            writer.write_table(table)
            n_rows += len(table)
    return n_rows


def _without_formulas(table: pa.Table) -> pa.Table:
    """Return a table with ``'`` before names and texts that a spreadsheet would run; numbers are unchanged."""
    pyarrow = require("pyarrow", extra="frames", what="writing a CSV file")
    for place, field in enumerate(table.schema):
        if "string" in str(field.type):  # also large strings, views and dictionaries
            texts = [text if text is None else _as_text(text) for text in table[field.name].to_pylist()]
            table = table.set_column(place, field.name, pyarrow.array(texts, pyarrow.string()))
    return table.rename_columns([_as_text(name) for name in table.column_names])


def _as_text(text: str) -> str:
    """Return a text with ``'`` before it if a spreadsheet would run it."""
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
    return text
