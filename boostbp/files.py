"""Files: tables in CSV and Parquet, or folders of such files, read whole or in chunks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp import spelling
from boostbp.extras import require

# Types of a CSV file are inferred from its first block, so the block is larger than pyarrow's.
_CSV_BLOCK = 8 << 20
_PARQUET_ROWS = 16_384  # decoded at a time: more of them take more memory than a row group as it is stored
_SUFFIXES = (".csv", ".parquet")


class Columns(NamedTuple):
    """Which columns of a file are read, and as what; what is not named is typed by the file."""

    # columns that become features, in this order; None takes all that have no other part
    features: tuple[str, ...] | None = None
    categorical: Collection[str] = ()  # features that are categories whatever they look like
    # features that are numbers whatever they look like, such as columns that are empty at first
    numeric: Collection[str] = ()
    # columns that are carried along as they stand: text from CSV, the stored type from Parquet
    verbatim: Collection[str] = ()
    drop: Collection[str] = ()  # columns that are not read
    missing: Collection[str] = ()  # text that means missing, beside empty cells and the likes of NA

    def chosen(self, names: list[str], source: str) -> list[str]:
        """Features among the columns `names` of `source`, in order; ValueError if a named column is not there."""
        parts = (self.features or (), self.categorical, self.numeric, self.verbatim, self.drop)
        named = dict.fromkeys(name for part in parts for name in part)
        missing = [name for name in named if name not in names]
        if missing:
            listed = ", ".join(map(repr, missing))
            raise ValueError(f"{source} has no column {listed}: its columns are {', '.join(names)}.")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{source} has more than one column {', '.join(map(repr, twice))}: rename them.")
        if self.features is not None:
            return list(self.features)
        return [name for name in names if name not in self.drop and name not in self.verbatim]


def format_of(path: Path) -> str:
    """``"csv"`` or ``"parquet"``, by the end of the name; ValueError if it is another."""
    suffix = path.suffix.lower()
    if suffix in _SUFFIXES:
        return suffix[1:]
    raise ValueError(f"{str(path)!r} has an unknown format: give a file that ends in .csv or .parquet.")


def files_of(path: Path) -> list[Path]:
    """The CSV or Parquet files in a folder, and in folders there, by name; of a file, itself.

    Names that begin with ``_`` or ``.`` are left out: what writes tables keeps notes under them. Raises
    FileNotFoundError if there is no such file or folder, and ValueError if the folder has none, or files of both kinds.
    """
    if not path.is_dir():
        format_of(path)
        if not path.is_file():
            raise FileNotFoundError(f"{str(path)!r} is neither a file nor a folder.")
        return [path]
    files = [file for file in sorted(path.rglob("*")) if file.suffix.lower() in _SUFFIXES and file.is_file()]
    files = [file for file in files if not any(part[0] in "_." for part in file.relative_to(path).parts)]
    if not files:
        raise ValueError(f"The folder {str(path)!r} has no file that ends in .csv or .parquet: give another one.")
    if len({format_of(file) for file in files}) > 1:
        raise ValueError(f"The folder {str(path)!r} has CSV and Parquet files: give one with files of one kind.")
    return files


def _arrow(module: str = "pyarrow") -> Any:
    return require(module, extra="frames", what="reading or writing a CSV or Parquet file")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say what a file is to be like, where its reader says what is wrong."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"The header of {path.name} holds bytes that are not UTF-8: save the file in UTF-8."
        ) from error
    except _arrow().ArrowInvalid as error:
        raise ValueError(
            f"{path.name}: {error}. (Columns are separated by commas, in UTF-8. Types are inferred from the first "
            f"{_CSV_BLOCK >> 20} MB of a CSV file: name a column of text categorical, say which text means missing "
            "(--missing '?'), or drop the column.)"
        ) from error


def schema_of(path: Path, missing: Collection[str] = ()) -> Any:
    """Names and types, from the footer of a Parquet file or the first block of a CSV file; of a folder's first file."""
    path = files_of(path)[0]
    form = format_of(path)
    with _explained(path):
        if form == "parquet":
            schema = _arrow("pyarrow.parquet").read_schema(path)
        else:
            with _open_csv(path, missing) as reader:
                schema = reader.schema
        _ = schema.names  # decoded here, where an error is explained
    return schema


def _open_csv(path: Path, missing: Collection[str], **options: Any) -> Any:
    csv = _arrow("pyarrow.csv")
    null_values = [*csv.ConvertOptions().null_values, *missing]
    return csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=_CSV_BLOCK),
        convert_options=csv.ConvertOptions(strings_can_be_null=True, null_values=null_values, **options),
    )


def column_names(path: Path) -> list[str]:
    """Names of a file's columns, in order."""
    return list(schema_of(path).names)


def _is_number(kind: Any) -> bool:
    types = _arrow().types
    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_decimal))


def _is_text(kind: Any) -> bool:
    types = _arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"


def _feature_type(field: Any, columns: Columns, source: str) -> Any:
    """float64 for numbers, truth values and empty columns; text for categories."""
    pa = _arrow()
    if field.name in columns.numeric:
        return pa.float64()
    if field.name in columns.categorical or _is_text(field.type):
        return pa.string()
    if _is_number(field.type) or pa.types.is_boolean(field.type) or pa.types.is_null(field.type):
        return pa.float64()
    if pa.types.is_binary(field.type):
        raise ValueError(f"Column {field.name!r} of {source} holds bytes that are not UTF-8: save the file in UTF-8.")
    raise ValueError(
        f"Column {field.name!r} holds {field.type}, which is neither numbers nor categories: "
        "drop it, name it categorical, or turn it into numbers."
    )


def batches(path: Path, columns: Columns) -> Iterator[tuple[Any, Any]]:
    """Tables of features in the wanted types, and of the verbatim columns of the same rows as they stand.

    A column may be both: an identifier that is a feature as well is more than a float64 can hold. All files of a folder
    are read with the names and types of the first one.
    """
    schema, files = schema_of(path, columns.missing), files_of(path)
    for file in files:
        other = set(column_names(file)) ^ set(schema.names) if len(files) > 1 else ()
        if other:
            raise ValueError(
                f"{file.name} and {files[0].name} differ in the columns {', '.join(map(repr, sorted(other)))}: give a "
                "folder whose files have the same columns."
            )
        yield from _batches_of(file, columns, schema, path.name)
    _arrow().default_memory_pool().release_unused()  # it would keep a hundred megabytes for files to come


def _batches_of(path: Path, columns: Columns, schema: Any, source: str) -> Iterator[tuple[Any, Any]]:
    """Those of one file, by a schema; `source` is what errors call the table."""
    pa, form = _arrow(), format_of(path)
    verbatim = {name: pa.string() if form == "csv" else schema.field(name).type for name in columns.verbatim}
    features = {
        name: _feature_type(schema.field(name), columns, source) for name in columns.chosen(schema.names, source)
    }
    read = list(features | verbatim)
    with (
        _explained(path),
        _open_csv(path, columns.missing, **_as_written(schema, features | verbatim))
        if form == "csv"
        else _arrow("pyarrow.parquet").ParquetFile(path, memory_map=True, pre_buffer=False) as file,
    ):
        for batch in file if form == "csv" else file.iter_batches(_PARQUET_ROWS, columns=read):
            table = pa.Table.from_batches([batch])
            made = {
                name: _as_feature(table[name], schema.field(name).type, kind, columns.missing)
                for name, kind in features.items()
            }
            carried = table.select(list(verbatim))  # of no columns too it knows its rows
            yield pa.table(made), carried.cast(pa.schema(list(verbatim.items())), safe=False) if verbatim else carried


def _as_feature(column: Any, kind: Any, wanted: Any, missing: Collection[str]) -> Any:
    """A column as a feature; one that was read as text, to be kept as it stands, by the type it would have had."""
    pa = _arrow()
    if missing and _is_text(column.type):
        compute = _arrow("pyarrow.compute")
        column = column.cast(pa.string())
        column = compute.if_else(compute.is_in(column, pa.array(missing, pa.string())), None, column)
    if pa.types.is_boolean(kind) and wanted == pa.float64():
        column = column.cast(pa.bool_())
    return column.cast(wanted, safe=False)


def _as_written(schema: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    """Options that read a CSV file: truth values stay so until they are cast, as `true` is no number."""
    pa = _arrow()
    types = {
        name: pa.bool_() if pa.types.is_boolean(schema.field(name).type) and kind == pa.float64() else kind
        for name, kind in wanted.items()
    }
    return {"column_types": types, "include_columns": list(wanted)}


def _frame(table: Any, features: list[str]) -> Any:
    """A pandas frame: float64 with NaN for missing, and categories."""
    pa = _arrow()
    require("pandas", extra="frames", what="reading a CSV or Parquet file")
    table = table.select(features).combine_chunks()
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(place, field.name, table[field.name].dictionary_encode())
    return table.to_pandas()


def labels_of(column: Any, kind: Any, name: str, text: bool | None = None) -> NDArray[Any]:
    """Target values; whole numbers are integers, truth values are text."""
    pa = _arrow()
    if column.null_count:
        raise ValueError(
            f"Column {name!r} is missing in {column.null_count} rows, and is no feature: remove these rows."
        )
    if pa.types.is_temporal(kind):
        raise ValueError(f"Target {name!r} holds {kind}: turn dates and times into numbers or classes first.")
    numbers = _is_number(kind) if text is None else not text
    values = np.asarray(column.cast(pa.float64() if numbers else pa.string()).to_pylist())
    if values.dtype.kind == "f" and np.all(np.isfinite(values)) and np.all(values == np.trunc(values)):
        return values.astype(np.int64)
    return values


def numbers_of(table: Any, names: Sequence[str], source: str) -> NDArray[Any] | None:
    """Numbers of verbatim columns, (rows,) or (rows, columns), None if none is named; ValueError if a cell is none."""
    try:
        columns = [labels_of(table[name], table[name].type, name, text=False) for name in names]
    except _arrow().ArrowInvalid as error:
        raise ValueError(f"Column {', '.join(map(repr, names))} of {source} must hold numbers: {error}") from error
    return None if not columns else columns[0] if len(columns) == 1 else np.column_stack(columns)


def read(path: Path, target: str, columns: Columns, *, text: bool | None = None) -> tuple[Any, NDArray[Any]]:
    """Read a whole file as features and target: `read_beside` without the columns that are carried along."""
    X, y, _ = read_beside(path, target, columns, text=text)
    return X, y


def read_beside(
    path: Path, target: str, columns: Columns, *, text: bool | None = None
) -> tuple[Any, NDArray[Any], Any]:
    """Read a whole file as features, target, and columns as they stand.

    `text` says whether the target is text or numbers, as in another file; by default it is as this file looks.

    Returns
    -------
    X : pandas.DataFrame, (rows, features)
        float64 columns with NaN for missing, and categories.
    y : (rows,) array
        Text, int64 if every value is whole, or float64. Truth values are text.
    beside : pyarrow.Table
        The verbatim columns of the same rows.

    Raises
    ------
    ValueError
        For a column that does not exist, cannot be read as numbers or categories, is text that spells numbers, or a
        target with missing values.
    """
    schema = schema_of(path, columns.missing)
    Columns(features=(target,)).chosen(schema.names, path.name)
    names = [name for name in columns.chosen(schema.names, path.name) if name != target]
    if not names:
        raise ValueError(f"{path.name} has no feature beside the target {target!r}.")
    roles = columns._replace(features=tuple(names), verbatim=(*columns.verbatim, target))
    tables = list(batches(path, roles))
    if not tables:
        raise ValueError(f"{path.name} has no rows.")
    features, kept = (_arrow().concat_tables(part) for part in zip(*tables, strict=True))
    column = kept[target]
    if column.null_count:
        raise ValueError(f"Target {target!r} is missing in {column.null_count} rows of {path.name}: remove these rows.")
    X = _frame(features, names)
    for name in names:
        if X[name].dtype.kind != "f" and name not in columns.categorical:
            _refuse_numbers(X[name], path.name)
    return X, labels_of(column, schema.field(target).type, target, text), kept.select(list(columns.verbatim))


def _refuse_numbers(column: Any, source: str) -> None:
    """Refuse a column that is text, and that nobody called categorical, if it spells numbers or dates."""
    counts = np.bincount(column.cat.codes[column.cat.codes >= 0], minlength=len(column.cat.categories))
    fault = spelling.fault(column.cat.categories.tolist(), counts.tolist())
    if fault is not None:
        sentence, others = fault
        missing = f"say which text means missing (--missing {others[0]!r}), " if others else ""
        raise ValueError(
            f"Column {column.name!r} of {source} is text, but {sentence}. As categories they would have no order: "
            f"{missing}write them as plain numbers, name the column categorical, or drop it."
        )


def columns_like(X: Any, missing: Collection[str] = ()) -> Columns:
    """The columns of a frame that `read` gave, with their types, for another file."""
    of_numbers = [name for name in X.columns if X[name].dtype.kind == "f"]
    text = [name for name in X.columns if name not in of_numbers]
    return Columns(tuple(X.columns), text, of_numbers, missing=missing)


def chunks(path: Path, columns: Columns) -> Iterator[tuple[Any, Any]]:
    """Read a file in pieces that fit into memory: features as `read` gives them, and the verbatim columns as a table.

    A piece knows its own categories only.
    """
    names = columns.chosen(column_names(path), path.name)
    for features, kept in batches(path, columns):
        yield _frame(features, names), kept
