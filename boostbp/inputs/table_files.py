"""Table files: a table that may be beyond memory, in a file or in the files of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp import files
from boostbp.extras import require
from boostbp.folders import files_of, format_of


class TableFiles(NamedTuple):
    """A table in a file, or in the files of a folder, and what its columns are.

    Attributes
    ----------
    columns : Columns
        But for those that are no features by what `fit` is told.
    """

    path: Path
    columns: files.Columns = files.Columns()


def blocks_of_table(table: TableFiles, names: Mapping[str, list[str]]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Blocks of a table's features, and of what `fit` takes beside them, by its name there.

    Parameters
    ----------
    names : mapping
        Name of an argument of `fit` -> columns that it is in.
    """
    path, columns = table
    schema, beside = files.schema_of(path, columns.missing), list({name: 0 for part in names.values() for name in part})
    columns = columns._replace(verbatim=beside)
    chosen = [name for name in columns.chosen(schema.names, path.name) if name not in beside]
    if not chosen:
        raise ValueError(f"{path.name} has no feature beside {', '.join(map(repr, beside))}.")
    for features, verbatim in files.batches(path, columns._replace(features=tuple(chosen))):
        if len(features):
            values = {
                name: [files.labels_of(verbatim[column], schema.field(column).type, column) for column in part]
                for name, part in names.items()
            }
            yield features, {name: np.column_stack(part) if len(part) > 1 else part[0] for name, part in values.items()}


def first_rows(table: TableFiles, target: str, most: int) -> tuple[Any, NDArray[Any]]:
    """Some features of a table, as `files.read` gives them, and the target of so many rows, or of all there are."""
    schema = files.schema_of(table.path, table.columns.missing)
    columns = table.columns._replace(verbatim=(target,), drop=(*table.columns.drop, *table.columns.verbatim))
    X, parts = None, []
    for features, beside in files.chunks(table.path, columns):
        X = features if X is None else X
        parts.append(files.labels_of(beside[target], schema.field(target).type, target))
        if sum(map(len, parts)) >= most:
            break
    if X is None:
        raise ValueError(f"{table.path.name} has no rows.")
    return X, np.concatenate(parts)


def numbers_in(path: Path) -> int:
    """Bytes that a table takes as numbers, 8 for each cell of Parquet files; those of CSV files are about as large."""
    paths = files_of(path)
    if format_of(paths[0]) == "csv":
        return sum(file.stat().st_size for file in paths)
    parquet = require("pyarrow.parquet", extra="frames", what="reading a CSV or Parquet file")
    return sum(8 * metadata.num_rows * metadata.num_columns for metadata in map(parquet.read_metadata, paths))
