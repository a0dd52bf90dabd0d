"""Parts of a table: its files, each with the columns that are in it and a reader of its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from boostbp.extras import require
from boostbp.files.paths import files_of, format_of, partition_of

# Types of a CSV file are inferred from its first block, so the block is larger than pyarrow's.
_CSV_BLOCK = 8 << 20
_PARQUET_ROWS = 16_384  # decoded at a time: more of them take more memory than a row group as it is stored
_PARQUET_BUFFER = 1 << 16  # bytes of a column that are read at a time; without, all of a row group
_ROW_INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__")


def arrow(module: str = "pyarrow") -> Any:
    """A module of pyarrow."""
    return require(module, extra="frames", what="reading or writing a CSV or Parquet file")


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds text."""
    types = arrow().types
    return types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"


def decoded_type(kind: Any) -> Any:
    """The type of the values that a dictionary holds; any kind of text is a string."""
    pa = arrow()
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if is_text(kind) else kind


def row_index_of(names: Iterable[str], schema: Any) -> set[str]:
    """Return the columns that are a written row index, by pandas' metadata or by the name that pandas gives one."""
    try:
        index = schema.pandas_metadata["index_columns"]
    except (AttributeError, KeyError, TypeError, ValueError):  # no metadata, or not written by pandas
        index = None
    return {name for name in names if (isinstance(index, list) and name in index) or _ROW_INDEX.fullmatch(name)}


@dataclass(frozen=True)
class Part:
    """One file of a table, or a dataset in its place."""

    name: str  # what errors call it
    schema: Any  # pyarrow.Schema of the columns in it
    # ``rows(types)``: record batches of these columns; CSV is read as these types, others keep what is stored
    rows: Callable[[dict[str, Any]], Iterator[Any]]
    partition: Mapping[str, str | None]  # columns in the names of its folders
    is_csv: bool = False  # its types are inferred

    @property
    def columns(self) -> list[str]:
        """Names of its columns, those of its folders last."""
        return [*self.schema.names, *(name for name in self.partition if name not in self.schema.names)]

    def holds(self, name: str) -> bool:
        """Whether a column is in the file itself."""
        return bool(self.schema.get_field_index(name) >= 0)

    def column(self, batch: Any, name: str) -> Any:
        """A column of a batch, dictionaries decoded; ValueError if it contradicts the name of its folder."""
        pa = arrow()
        value = self.partition.get(name)
        if not self.holds(name):
            return pa.chunked_array([pa.repeat(pa.scalar(value, pa.string()), len(batch))])
        column = batch[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if name in self.partition and not _is_constant(column, value):
            raise ValueError(
                f"Column {name!r} of {self.name} holds other values than {value!r}, which its folder is named after: "
                "rename the folder, or drop the column from the file."
            )
        return column


def _is_constant(column: Any, value: str | None) -> bool:
    """Whether all cells equal a value, which is spelled as text."""
    pa, compute = arrow(), arrow("pyarrow.compute")
    if value is None:
        return bool(column.null_count == len(column))
    for kind in (pa.float64(), column.type):
        try:
            equal = compute.equal(column.cast(kind), pa.scalar(value).cast(kind))
        except pa.ArrowException:
            continue
        return not column.null_count and compute.all(equal).as_py() is not False
    return False


@contextmanager
def explained(part: str, names: Sequence[str] = (), *, is_csv: bool = False) -> Iterator[None]:
    """Add the cure to the errors of a reader."""
    pa = arrow()
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"The header of {part} holds bytes that are not UTF-8: save the file in UTF-8.") from error
    except pa.ArrowException as error:
        reason = re.sub(r"CSV column #(\d+)", lambda found: _named(names, int(found[1])), str(error))
        cure = (
            "Columns are separated by commas, in UTF-8. Types are inferred from the first "
            f"{_CSV_BLOCK >> 20} MB of a CSV file: name a column of text categorical, say which text means missing "
            "(--missing '?'), or drop the column."
            if is_csv
            else "Write the file again if it is damaged."
        )
        raise ValueError(f"{part}: {reason}. ({cure})") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise OSError(f"{part}: {error}. Write the file again if it is damaged.") from error


def _named(names: Sequence[str], number: int) -> str:
    return f"column {names[number]!r}" if number < len(names) else f"column {number}"


def parts_of(source: Any, missing: Collection[str] = ()) -> list[Part]:
    """The files of a path, or a dataset or scanner of pyarrow's, which is one part.

    Names and types are those in the footers of Parquet files, or in the first blocks of CSV files. Raises ValueError
    or OSError if a file cannot be read.
    """
    if not isinstance(source, Path):
        is_scanner = not hasattr(source, "schema")
        schema = source.projected_schema if is_scanner else source.schema
        return [Part(type(source).__name__, schema, partial(_dataset_rows, source, is_scanner), {})]
    parts = []
    for path in files_of(source):
        below = path.relative_to(source) if path != source else Path(path.name)
        name = path.name if path == source else f"{source.name}/{below.as_posix()}"
        is_csv = format_of(path) == "csv"
        with explained(name, is_csv=is_csv):
            schema = _csv_schema(path, missing) if is_csv else arrow("pyarrow.parquet").read_schema(path)
            _ = schema.names  # decoded here, where an error is explained
        rows = partial(_csv_rows, path, missing) if is_csv else partial(_parquet_rows, path)
        parts.append(Part(name, schema, rows, partition_of(below), is_csv))
    return parts


def _open_csv(path: Path, missing: Collection[str], *, use_threads: bool = True, **options: Any) -> Any:
    csv = arrow("pyarrow.csv")
    null_values = [*csv.ConvertOptions().null_values, *missing]
    return csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=_CSV_BLOCK, use_threads=use_threads),
        convert_options=csv.ConvertOptions(strings_can_be_null=True, null_values=null_values, **options),
    )


def _csv_schema(path: Path, missing: Collection[str]) -> Any:
    with _open_csv(path, missing) as reader:
        return reader.schema


def _csv_rows(path: Path, missing: Collection[str], types: dict[str, Any]) -> Iterator[Any]:
    options: dict[str, Any] = {"column_types": types, "include_columns": list(types)}
    try:
        with _open_csv(path, missing, **options) as reader:
            yield from reader
    except arrow().ArrowInvalid:
        with _open_csv(path, missing, use_threads=False, **options) as reader:  # one thread names the row of an error
            for _ in reader:
                pass
        raise


def _parquet_rows(path: Path, types: dict[str, Any]) -> Iterator[Any]:
    # read, and not mapped: a mapping of a file that somebody cuts would end the process
    parquet = arrow("pyarrow.parquet")
    with parquet.ParquetFile(path, memory_map=False, buffer_size=_PARQUET_BUFFER, pre_buffer=False) as file:
        yield from file.iter_batches(_PARQUET_ROWS, columns=list(types))


def _dataset_rows(source: Any, is_scanner: bool, types: dict[str, Any]) -> Iterator[Any]:
    if is_scanner:
        yield from source.to_batches()
    else:
        yield from source.to_batches(columns=list(types), batch_size=_PARQUET_ROWS, batch_readahead=1)
