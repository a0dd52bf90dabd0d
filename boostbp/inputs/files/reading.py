"""Tables in files as data frames and arrays: features, the target and other columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boostbp.inputs.categories import fault_of_text, warn_of_spellings
from boostbp.inputs.conversions import CURRENCIES, code_for_dates, has_decimal_comma, options_for_numbers
from boostbp.inputs.faults import Fault, refuse_faults
from boostbp.inputs.files.cells import numbers_in
from boostbp.inputs.files.options import Change, FileOptions
from boostbp.inputs.files.parts import TableSource, arrow, compression_of, files_of, format_of, is_text
from boostbp.inputs.files.tables import ColumnRoles, TableFiles, is_number, open_table
from boostbp.inputs.row_numbers import warn_of_row_index
from boostbp.inputs.sources import open_source
from boostbp.runtime import messages
from boostbp.runtime.messages import named_in_errors, require

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_REGRESSION: Change = ("task", "regression")
EXACT = 2.0**53  # float64 represents all whole numbers up to this one


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return a pandas frame of float64, with NaN for missing, and categories."""
    require("pandas", extra="frames", what="reading a CSV or Parquet file")
    return table.to_pandas(strings_to_categorical=True)


def typed_values(
    column: pa.ChunkedArray, kind: pa.DataType, name: str, text: bool | None = None, options: FileOptions | None = None
) -> NDArray[Any]:
    """Return target values, (rows,): whole numbers as integers, other numbers as float64, other values as text.

    `kind` is the type of the column in its file; `text` overrides it, and False reads text such as "$1,234" as numbers:
    as the `options` say, or as it looks. Missing values and dates are refused.
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
        if options is not None and options.spell_numbers(name):
            column = numbers_in(column, options, name, amounts=True)
    for whole in (pa.int64(), pa.uint64()):  # float64 is not exact for large ones
        with suppress(pa.ArrowInvalid):  # not whole, or too large
            return np.asarray(column.cast(whole).to_numpy())
    try:
        values = np.asarray(column.cast(pa.float64()).to_numpy())
    except pa.ArrowException:
        return _spelt_numbers(column.cast(pa.string()), name)
    if not (np.all(np.isfinite(values)) and np.all(values == np.trunc(values))):
        return values
    if np.abs(values).max(initial=0.0) < EXACT:
        return values.astype(np.int64)
    _refuse_merged(column.cast(pa.string()).unique().to_pylist(), name)
    return values


def _spelt_numbers(column: pa.ChunkedArray, name: str) -> NDArray[Any]:
    """Return the numbers that text spells, such as "$1,234", as it looks, and warn of how it is read."""
    texts = column.unique().to_pylist()
    changes = options_for_numbers(texts, (), name)
    options = FileOptions().changed(change for change in changes if change[0] != "numeric")  # which reads truth
    values = np.asarray(numbers_in(column, options, name, amounts=True).to_numpy())
    text = max(texts, key=len)
    number = values[column.index(text).as_py()]
    messages.warn(f"Column {name!r} holds text, such as {text!r}, which is read as {number:.12g}.")
    return values


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
    table: pa.Table,
    kinds: Mapping[str, pa.DataType],
    names: Sequence[str],
    text: bool | None = None,
    options: FileOptions | None = None,
) -> NDArray[Any]:
    """Return the values of some columns, (rows,) or (rows, columns), as from `typed_values`."""
    columns = [typed_values(table[name], kinds[name], name, text, options) for name in names]
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def _refuse_merged(texts: Sequence[str], name: str) -> None:
    """Refuse whole numbers that are equal in float64, as two classes would become one."""
    numbers = sorted({int(text) for text in texts if re.fullmatch(r"[+-]?\d+", text)})
    for number, following in pairwise(numbers):
        if float(number) == float(following):
            fault = f"{number} and {following}, which do not fit into 64 bits and are equal in float64"
            cure = "write classes as text, for example with a letter before each, and amounts with fewer digits"
            raise ValueError(f"Target {name!r} holds {fault}: {cure}.")


def numbers_of(
    table: pa.Table, names: Sequence[str], source: str, options: FileOptions | None = None
) -> NDArray[Any] | None:
    """Return the numbers of verbatim columns, (rows,) or (rows, columns); None if no column is named."""
    kinds = {name: table[name].type for name in names}
    with named_in_errors(source):
        return typed_columns(table, kinds, names, False, options) if names else None


def read_table(
    source: TableFiles | TableSource,
    target: str,
    roles: ColumnRoles | None = None,
    *,
    text: bool | None = None,
    labels: bool = False,
    n_rows: int | None = None,
) -> tuple[pd.DataFrame, NDArray[Any], pa.Table]:
    """Read a table as features, target and verbatim columns, which include the target.

    Features are float64 columns with NaN for missing, and categories. The target, (rows,), is text (also for bools),
    int64 if every value is whole, or float64. `text` says whether it is text or numbers, as in another file or for a
    regression; the default is inferred from this file. Only the first blocks are read if they have `n_rows`.

    Raises ValueError for a column that does not exist, a target with missing values, and, in one message, all columns
    that cannot be read as numbers or categories, or are text that spells numbers: so is the target, unless it is of
    `labels`, or `text` is stated.
    """
    table = open_table(source, roles).resolve(beside=[target])
    read = partial(_rows_of, target=target, text=text, labels=labels, n_rows=n_rows)
    X, y, verbatim, faults = read(table)
    if faults or table.noticed:
        if len(X.columns):
            warn_of_row_index(open_source(X))  # for the same command as the options
        refuse_faults(_all_faults(table, target, faults, lambda table: read(table)[3]), table.name, table.noticed)
    return X, y, verbatim


def _rows_of(
    table: TableFiles, target: str, text: bool | None, labels: bool, n_rows: int | None
) -> tuple[pd.DataFrame, Any, pa.Table, list[Fault]]:
    """Return what `read_table` does, without columns whose types are of no use, and the faults of all columns."""
    usable, faults = table.without_faults()
    batches, count, options = list[tuple[Any, Any]](), 0, table.roles.options
    for batch in usable.batches():
        batches.append(batch)
        count += len(batch[1])
        if n_rows is not None and count >= n_rows:
            break
    if not count:
        raise ValueError(f"{table.name} has no rows.")
    features, verbatim = (arrow().concat_tables(tables) for tables in zip(*batches, strict=True))
    X = _frame(features)
    for name in X.columns:
        if X[name].dtype.kind != "f" and name not in table.roles.categorical:
            counts, label = X[name].value_counts(sort=False), f"Column {name!r} of {table.name}"
            warn_of_spellings(list(counts.index), label, name)
            fault = fault_of_text(list(counts.index), counts.tolist(), label, name, decimal=options.decimal)
            if fault and fault.options and not table.parts[0].is_csv and ("dates", name) not in fault.options:
                fault = replace(fault, options=[*fault.options, ("numeric", name)])  # the type of the file is text
            faults += [fault] if fault else []
    try:
        y = typed_values(verbatim[target], table.type_of(target), target, text, options)
    except ValueError as error:
        return X, None, verbatim, [*faults, Fault(target, str(error), options=None)]
    if text is None and not labels and y.dtype.kind == "U" and (fault := _fault_of_target(y, target, options)):
        faults.append(fault)
    return X, y, verbatim, faults


def _fault_of_target(y: NDArray[Any], name: str, options: FileOptions) -> Fault | None:
    """Return why text, (rows,), may be no classes, as it spells numbers or dates."""
    values, counts = np.unique(y, return_counts=True)
    label, otherwise = f"Target {name!r}", "or state the task"
    fault = fault_of_text(values.tolist(), counts.tolist(), label, name, otherwise=otherwise, decimal=options.decimal)
    if fault is None:
        return None
    read = [change for change in fault.options or () if change[0] in ("decimal", "thousands")]
    is_lost = "spell dates" in fault.holds or (options.decimal == "," and not fault.options)
    return replace(fault, options=None if is_lost else [*read, _REGRESSION])


def _all_faults(
    table: TableFiles, target: str, faults: Sequence[Fault], faults_of: Callable[[TableFiles], Sequence[Fault]]
) -> list[Fault]:
    """Return the faults of a table, and those that remain, or come, if it is read as their options say."""
    known, latest, found = dict[str, Fault](), table, faults
    while found:
        signs = {value for fault in found for option, value in fault.changes if option == "decimal"}
        # thousands that another column's decimal sign excludes may be no fault with it
        new = [fault for fault in found if not any(("thousands", sign) in fault.changes for sign in signs)]
        if latest.roles.options.decimal != table.roles.options.decimal and any(
            not fault.options and fault.name not in known for fault in new
        ):  # the sign is not that of all columns
            return _all_faults(table, target, [_without_decimal(fault) for fault in faults], faults_of)
        for fault in new:
            known[fault.name] = replace(fault, options=()) if fault.name in known else fault
        changes = [change for fault in new for change in known[fault.name].changes]
        try:
            latest = open_table(table.source, latest.roles.changed(changes)).resolve()
            found = [fault for fault in faults_of(latest) if fault.name != target or target not in known]
        except ValueError:  # what options do not cure
            break
    return list(known.values())


def _without_decimal(fault: Fault) -> Fault:
    is_decimal = any(option == "decimal" for option, _ in fault.changes)
    return (
        replace(fault, options=[change for change in fault.changes if change == _REGRESSION]) if is_decimal else fault
    )


def columns_like(X: pd.DataFrame, options: FileOptions | None = None) -> ColumnRoles:
    """Return the columns and types of a frame from `read_table`, to read another file."""
    categorical = [name for name in X.columns if X[name].dtype.kind != "f"]
    return ColumnRoles.like(list(X.columns), categorical, options or FileOptions())


def chunks(
    source: TableFiles | TableSource, roles: ColumnRoles | None = None
) -> Iterator[tuple[pd.DataFrame, pa.Table]]:
    """Yield pieces of a file: features as in `read_table`, with the categories of the piece, and verbatim columns."""
    table = open_table(source, roles)
    refuse_faults([], table.name, table.noticed)
    for features, verbatim in table.resolve().batches():
        yield _frame(features), verbatim


def size_in_float64(path: Path) -> int:
    """Return the bytes of a Parquet table in float64, or the size of a CSV file, times ten if it is compressed."""
    paths = files_of(path)
    if format_of(paths[0]) == "csv":
        return sum(file.stat().st_size * (10 if compression_of(file) else 1) for file in paths)
    footers = map(arrow("pyarrow.parquet").read_metadata, paths)
    return sum(8 * footer.num_rows * footer.num_columns for footer in footers)
