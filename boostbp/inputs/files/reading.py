"""Tables in files as data frames and arrays: features, the target and other columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boostbp.inputs.categories import check_text
from boostbp.inputs.conversions import CURRENCIES, code_for_dates, has_decimal_comma, numbers_of_text
from boostbp.inputs.files.parts import arrow, files_of, format_of, is_compressed, is_text
from boostbp.inputs.files.tables import ColumnRoles, TableFiles, is_number, open_table
from boostbp.runtime import messages
from boostbp.runtime.messages import named_in_errors, require

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

EXACT = 2.0**53  # float64 represents all whole numbers up to this one


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return a pandas frame of float64, with NaN for missing, and categories."""
    require("pandas", extra="frames", what="reading a CSV or Parquet file")
    return table.to_pandas(strings_to_categorical=True)


def typed_values(column: pa.ChunkedArray, kind: pa.DataType, name: str, text: bool | None = None) -> NDArray[Any]:
    """Return target values, (rows,): whole numbers as integers, other numbers as float64, other values as text.

    `kind` is the type of the column in its file; `text` overrides it, and False reads text such as "$1,234" as numbers.
    Missing values and dates are refused.
    """
    pa = arrow()
    if column.null_count:
        gap = f"is missing in {column.null_count} rows, which only features may be"
        raise ValueError(f"Column {name!r} {gap}: remove these rows.")
    if pa.types.is_temporal(kind):
        days = code_for_dates((), (), "column")
        raise ValueError(f"Target {name!r} holds {kind}: turn it into numbers, such as days, in the file: {days}.")
    if not (is_number(kind) if text is None else not text):
        return np.asarray(column.cast(pa.string()).to_pylist())
    if is_text(column.type):
        column = arrow("pyarrow.compute").utf8_trim_whitespace(column)
    for whole in (pa.int64(), pa.uint64()):  # float64 is not exact for large ones
        with suppress(pa.ArrowInvalid):  # not whole, or too large
            return np.asarray(column.cast(whole).to_numpy())
    try:
        values = np.asarray(column.cast(pa.float64()).to_numpy())
    except pa.ArrowException:
        return _spelt_numbers(column.cast(pa.string()).to_pylist(), name)
    if not (np.all(np.isfinite(values)) and np.all(values == np.trunc(values))):
        return values
    if np.abs(values).max(initial=0.0) < EXACT:
        return values.astype(np.int64)
    _refuse_merged(column.cast(pa.string()).unique().to_pylist(), name)
    return values


def _spelt_numbers(texts: list[str], name: str) -> NDArray[Any]:
    """Return the numbers that text spells, such as "$1,234", and warn of how it is read."""
    try:
        numbers = numbers_of_text(texts)
    except ValueError as error:
        raise ValueError(f"Column {name!r} must hold numbers: {error}.") from error
    number, text = max(zip(numbers, texts, strict=True), key=lambda pair: len(pair[1]))
    messages.warn(f"Column {name!r} holds text, such as {text!r}, which is read as {number:.12g}.")
    return np.asarray(numbers)


def refuse_another_way(column: pa.ChunkedArray, name: str, known: dict[str, object]) -> None:
    """Raise ValueError if text of a batch writes numbers in another way than that of earlier ones, which `known` keeps.

    Read batch by batch, "1,100" would be 1100 in one, and "1,10" be 1.1 in the next.
    """
    if not is_text(column.type):
        return
    compute = arrow("pyarrow.compute")

    def has(sign: str) -> bool:
        return bool(compute.any(compute.match_substring(column, sign)).as_py())

    way: dict[str, object] = {"a percent sign": has("%")}
    if currencies := [sign for sign in CURRENCIES if has(sign)]:
        way["a currency"] = "".join(currencies)
    if has(",") or has("."):
        way["a decimal comma"] = has(",") and has_decimal_comma(filter(None, column.to_pylist()))
    for what, value in way.items():
        if known.setdefault(what, value) != value:
            cure = "write all of them alike, or store numbers"
            raise ValueError(f"Column {name!r} must hold numbers: {what} is not that of all rows: {cure}.")


def typed_columns(
    table: pa.Table, kinds: Mapping[str, pa.DataType], names: Sequence[str], text: bool | None = None
) -> NDArray[Any]:
    """Return the values of some columns, (rows,) or (rows, columns), as from `typed_values`."""
    columns = [typed_values(table[name], kinds[name], name, text) for name in names]
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def _refuse_merged(texts: Sequence[str], name: str) -> None:
    """Refuse whole numbers that are equal in float64, as two classes would become one."""
    numbers = sorted({int(text) for text in texts if re.fullmatch(r"[+-]?\d+", text)})
    for number, following in pairwise(numbers):
        if float(number) == float(following):
            fault = f"{number} and {following}, which do not fit into 64 bits and are equal in float64"
            cure = "write classes as text, for example with a letter before each, and amounts with fewer digits"
            raise ValueError(f"Target {name!r} holds {fault}: {cure}.")


def numbers_of(table: pa.Table, names: Sequence[str], source: str) -> NDArray[Any] | None:
    """Return the numbers of verbatim columns, (rows,) or (rows, columns); None if no column is named."""
    kinds = {name: table[name].type for name in names}
    with named_in_errors(source):
        return typed_columns(table, kinds, names, text=False) if names else None


def read_table(
    path: Path, target: str, roles: ColumnRoles | None = None, *, text: bool | None = None
) -> tuple[pd.DataFrame, NDArray[Any], pa.Table]:
    """Read a whole file as features, target and verbatim columns, which include the target.

    Features are float64 columns with NaN for missing, and categories. The target, (rows,), is text (also for bools),
    int64 if every value is whole, or float64. `text` says whether it is text or numbers, as in another file or for a
    regression; the default is inferred from this file. Raises ValueError for a column that does not exist, cannot be
    read as numbers or categories, is text that spells numbers, or a target with missing values.
    """
    table = open_table(path, roles).resolve(beside=[target])
    batches = list(table.batches())
    if not batches:
        raise ValueError(f"{table.name} has no rows.")
    features, verbatim = (arrow().concat_tables(tables) for tables in zip(*batches, strict=True))
    if n_missing := verbatim[target].null_count:
        raise ValueError(f"Target {target!r} is missing in {n_missing} rows of {table.name}: remove these rows.")
    X = _frame(features)
    for name in X.columns:
        if X[name].dtype.kind != "f" and name not in table.roles.categorical:
            counts = X[name].value_counts(sort=False)
            check_text(list(counts.index), counts.tolist(), f"Column {name!r} of {table.name}")
    return X, typed_values(verbatim[target], table.type_of(target), target, text), verbatim


def columns_like(X: pd.DataFrame, missing: Collection[str] = ()) -> ColumnRoles:
    """Return the columns and types of a frame from `read_table`, to read another file."""
    numeric = [name for name in X.columns if X[name].dtype.kind == "f"]
    return ColumnRoles(tuple(X.columns), [name for name in X.columns if name not in numeric], numeric, missing=missing)


def chunks(path: Path, roles: ColumnRoles | None = None) -> Iterator[tuple[pd.DataFrame, pa.Table]]:
    """Yield pieces of a file: features as in `read_table`, with the categories of the piece, and verbatim columns."""
    for features, verbatim in open_table(path, roles).resolve().batches():
        yield _frame(features), verbatim


def first_rows(
    table: TableFiles, target: str, n_rows: int, *, text: bool | None = None
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return features, as in `read_table`, and the target of at least the first `n_rows` rows of a resolved table."""
    kind = table.type_of(target)
    first, parts = None, list[NDArray[Any]]()
    for features, verbatim in table.batches():
        first = features if first is None else first
        parts.append(typed_values(verbatim[target], kind, target, text))
        if sum(map(len, parts)) >= n_rows:
            break
    if first is None:
        raise ValueError(f"{table.name} has no rows.")
    return _frame(first), np.concatenate(parts)


def size_in_float64(path: Path) -> int:
    """Return the bytes of a Parquet table in float64, or the size of a CSV file, times ten if it is gzipped."""
    paths = files_of(path)
    if format_of(paths[0]) == "csv":
        return sum(file.stat().st_size * (10 if is_compressed(file) else 1) for file in paths)
    footers = map(arrow("pyarrow.parquet").read_metadata, paths)
    return sum(8 * footer.num_rows * footer.num_columns for footer in footers)
