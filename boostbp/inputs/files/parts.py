"""Parts of a table: its files, each with its columns and a reader of its rows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard
from urllib.parse import unquote

from boostbp.inputs.files.options import Change, FileOptions
from boostbp.runtime.messages import require

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset, Scanner

TableSource: TypeAlias = "str | os.PathLike[str] | Dataset | Scanner"
# Bytes of a block. pyarrow infers the types of a CSV file from its first block, for which its 1 MB are often too few.
_CSV_BLOCK = 8 << 20
# Rows that are decoded at a time, and bytes of a column that are read at a time. pyarrow.dataset decodes whole row
# groups: it takes 205 MB for a group of 144 MB, this 98 MB.
_PARQUET_ROWS = 16_384
_PARQUET_BUFFER = 1 << 16
_HEAD = 1 << 20  # bytes of a CSV file from which its encoding and separator are guessed
_ENDINGS = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst", ".parquet")
_ENDINGS_IN_WORDS = ".csv, .csv.gz, .csv.bz2, .csv.zst or .parquet"
_HIVE_MISSING = "__HIVE_DEFAULT_PARTITION__"  # missing value in folder names of Hive, Spark and Arrow
_ROW_INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__")


def arrow(module: str = "pyarrow") -> Any:
    """Return a module of pyarrow; raise ImportError with the cure if it is not installed."""
    return require(module, extra="frames", what="reading or writing a CSV or Parquet file")


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds text."""
    return str(kind) in ("string", "large_string", "string_view")


def decoded_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary; every type of text becomes string."""
    pa = arrow()
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if is_text(kind) else kind


def row_index_of(names: Iterable[str], schema: pa.Schema | None) -> set[str]:
    """Return the columns that are a row index, by the metadata of pandas or its names for an index."""
    try:
        index = schema.pandas_metadata["index_columns"]  # type: ignore[union-attr]
    except (AttributeError, KeyError, TypeError, ValueError):  # no metadata, or not written by pandas
        index = None
    return {name for name in names if (isinstance(index, list) and name in index) or _ROW_INDEX.fullmatch(name)}


@dataclass(frozen=True)
class TablePart:
    """One file of a table, or a dataset."""

    name: str  # name in errors
    schema: pa.Schema  # types of its columns
    # ``read(types)`` yields batches of these columns; CSV is read with these types, others keep the stored ones
    read: Callable[[Mapping[str, pa.DataType]], Iterator[pa.RecordBatch]]
    partition: Mapping[str, str | None]  # values of columns in the names of its folders
    is_csv: bool = False  # its types are inferred

    @property
    def columns(self) -> list[str]:
        """Names of its columns, with those in folder names last."""
        return [*self.schema.names, *(name for name in self.partition if name not in self.schema.names)]

    def holds(self, name: str) -> bool:
        """Return whether a column is in the file itself."""
        return bool(self.schema.get_field_index(name) >= 0)

    def column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        """Return a column of a batch, with dictionaries decoded; raise ValueError if it contradicts its folder name."""
        pa = arrow()
        value = pa.scalar(self.partition.get(name), pa.string())
        if not self.holds(name):
            return pa.repeat(value, len(batch))
        column = batch[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if name in self.partition and not _is_constant(column, value):
            what = f"holds other values than {value.as_py()!r}, which its folder is named after"
            raise ValueError(f"Column {name!r} of {self.name} {what}: rename the folder, or drop the column.")
        return column


def _is_constant(column: pa.Array, text: pa.Scalar) -> bool:
    """Return whether all cells equal the value of a text, as numbers or in the type of the column."""
    pa = arrow()
    for kind in (pa.float64(), column.type):
        with suppress(pa.ArrowException):  # a value is not of this type
            return set(column.cast(kind).unique().to_pylist()) <= {text.cast(kind).as_py()}
    return False


@contextmanager
def explained(part: str, names: Sequence[str] = (), options: FileOptions | None = None) -> Iterator[None]:
    """Add the file, the column and the cure to errors of a reader; a CSV file has options."""
    pa = arrow()
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{part} is not in {error.encoding}: give another --encoding, or save it in UTF-8.") from error
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:  # an error of the system, which has the file name
            raise
        name_of = dict(enumerate(names))
        reason = re.sub(r"CSV column #(\d+)", lambda at: f"column {name_of.get(int(at[1]), at[1])!r}", str(error))
        cure = "Write the file again if it is damaged."
        if options is not None and not isinstance(error, OSError):
            types = f"Types are inferred from the first {_CSV_BLOCK >> 20} MB of a CSV file"
            advice = "name a column of text categorical, say which text means missing (--missing '?'), or drop it"
            cure = f"Columns are separated by {options.sep!r} (--sep), in {options.encoding}. {types}: {advice}."
        kind = OSError if isinstance(error, OSError) else ValueError
        raise kind(f"{part}: {reason}. ({cure})") from error


def is_dataset(source: object) -> TypeGuard[Dataset | Scanner]:
    """Return whether an input is a dataset or a scanner of pyarrow, without importing it."""
    return type(source).__module__ == "pyarrow._dataset" and hasattr(source, "to_batches")


def open_parts(source: TableSource, options: FileOptions) -> tuple[list[TablePart], list[Change]]:
    """Return the files of a path as parts; a dataset or scanner of pyarrow is one part.

    Names and types come from the footers of Parquet files, or the first blocks of CSV files. If these look otherwise
    than the options say, they are read so, and the changes are returned.
    """
    if is_dataset(source):
        schema = source.schema if hasattr(source, "schema") else source.projected_schema
        return [TablePart(type(source).__name__, schema, partial(_dataset_batches, source), {})], []
    path, files = Path(source), files_of(Path(source))
    is_csv = format_of(files[0]) == "csv"
    changes = options.noticed(_head_of(files[0])) if is_csv else []
    options, parts = options.changed(changes), list[TablePart]()
    for file in files:
        below = file.relative_to(path if path.is_dir() else path.parent)
        name = f"{path.name}/{below.as_posix()}" if path.is_dir() else path.name
        with explained(name, options=options if is_csv else None):
            schema = _open_csv(file, options).schema if is_csv else arrow("pyarrow.parquet").read_schema(file)
            _ = schema.names  # decoded here, where an error is explained
        read = partial(_csv_batches, file, options) if is_csv else partial(_parquet_batches, file)
        parts.append(TablePart(name, schema, read, partition_of(below), is_csv))
    return parts, changes


def _head_of(path: Path) -> bytes:
    with explained(path.name), arrow().input_stream(path, compression="detect") as stream:
        return bytes(stream.read(_HEAD))


def _open_csv(path: Path, options: FileOptions, **types: Any) -> Any:
    csv = arrow("pyarrow.csv")
    return csv.open_csv(
        path,
        # Errors name the row only with one thread. Two threads are no faster.
        read_options=csv.ReadOptions(block_size=_CSV_BLOCK, use_threads=False, encoding=options.encoding),
        parse_options=csv.ParseOptions(delimiter=options.sep),
        convert_options=csv.ConvertOptions(
            strings_can_be_null=True,
            null_values=[*csv.ConvertOptions().null_values, *options.missing],
            decimal_point=options.decimal,
            **types,
        ),
    )


def _csv_batches(path: Path, options: FileOptions, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    with _open_csv(path, options, column_types=types, include_columns=list(types)) as reader:
        yield from reader


def _parquet_batches(path: Path, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    # Read without mapping, as truncation of a mapped file would end the process.
    parquet = arrow("pyarrow.parquet")
    with parquet.ParquetFile(path, memory_map=False, buffer_size=_PARQUET_BUFFER, pre_buffer=False) as file:
        yield from file.iter_batches(_PARQUET_ROWS, columns=list(types))


def _dataset_batches(source: Dataset | Scanner, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    options = {"columns": list(types), "batch_size": _PARQUET_ROWS, "batch_readahead": 1}
    return source.to_batches(**options) if hasattr(source, "schema") else source.to_batches()


def is_table(path: Path) -> bool:
    """Return whether the name of a file is that of a table in CSV or Parquet format."""
    return path.name.lower().endswith(_ENDINGS)


def compression_of(path: Path) -> str | None:
    """Return how a CSV file is compressed, by its name, as pyarrow calls it; None if it is not."""
    return {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(path.suffix.lower())


def format_of(path: Path) -> str:
    """Return ``"csv"`` or ``"parquet"`` from the end of the name; raise ValueError for another one."""
    if not is_table(path):
        raise ValueError(f"{str(path)!r} has an unknown format: give a file that ends in {_ENDINGS_IN_WORDS}.")
    return "parquet" if path.suffix.lower() == ".parquet" else "csv"


def files_of(path: Path) -> list[Path]:
    """Return the CSV or Parquet files in a folder and its subfolders, sorted by name; for a file, the file.

    Names that begin with ``_`` or ``.`` are skipped, as Spark and others use them for metadata. Raises OSError if there
    is no such path or it is a pipe or a device, and ValueError for a folder without such files, or with files of both
    kinds.
    """
    if not path.is_dir():
        format_of(path)
        check_regular(path)
        if not path.exists():
            raise FileNotFoundError(f"{str(path)!r} is neither a file nor a folder.")
        return [path]
    files = [
        file
        for file in sorted(path.rglob("*"), key=_parts)
        if is_table(file) and file.is_file() and not any(part[0] in "_." for part in file.relative_to(path).parts)
    ]
    if not files:
        raise ValueError(f"The folder {str(path)!r} has no file that ends in {_ENDINGS_IN_WORDS}: give another one.")
    if len(set(map(format_of, files))) > 1:
        raise ValueError(f"The folder {str(path)!r} has CSV and Parquet files: give one with files of one kind.")
    return files


def _parts(path: PurePath) -> tuple[str, ...]:
    """Return the sort key of a file: upper case before lower case, which paths of Windows ignore."""
    return path.parts


def partition_of(path: PurePath) -> dict[str, str | None]:
    """Return the columns in folder names, as in ``year=2020/month=01``, with their text or None, of a relative path."""
    columns: dict[str, str | None] = {}
    for name in (name for name in path.parent.parts if "=" in name):
        column, _, value = map(unquote, name.partition("="))
        if not column or not value or column in columns:
            wrong = f"names {column!r} twice" if column in columns else "names no column, or no value"
            raise ValueError(f"The folder {name!r} of {str(path)!r} {wrong}: rename it, as in 'year=2020'.")
        columns[column] = None if value == _HIVE_MISSING else value
    return columns


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse pipes, which could block, and devices, which may be endless."""
    if not os.path.isdir(path) and os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{os.fspath(path)!r} is not a regular file: copy its content into one.")
