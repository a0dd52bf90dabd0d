"""Tables in files as data frames and arrays, with the target and other columns beside the features."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp import spelling
from boostbp.cautions import named_in_errors
from boostbp.extras import require
from boostbp.files.parts import arrow
from boostbp.files.tables import Columns, is_number, open_table

EXACT = 2.0**53  # whole numbers below are told apart by float64


def _frame(table: Any, features: list[str]) -> Any:
    """A pandas frame: float64 with NaN for missing, and categories."""
    pa = arrow()
    require("pandas", extra="frames", what="reading a CSV or Parquet file")
    table = table.select(features).combine_chunks()
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(place, field.name, table[field.name].dictionary_encode())
    return table.to_pandas()


def labels_of(column: Any, kind: Any, name: str, text: bool | None = None) -> NDArray[Any]:
    """Target values; whole numbers are integers, truth values are text."""
    pa = arrow()
    if column.null_count:
        raise ValueError(
            f"Column {name!r} is missing in {column.null_count} rows, which only features may be: remove these rows."
        )
    if pa.types.is_temporal(kind):
        raise ValueError(f"Target {name!r} holds {kind}: turn dates and times into numbers or classes first.")
    if not (is_number(kind) if text is None else not text):
        return np.asarray(column.cast(pa.string()).to_pylist())
    for whole in (pa.int64(), pa.uint64()):  # float64 would not hold large ones
        try:
            return np.asarray(column.cast(whole).to_numpy())
        except pa.ArrowInvalid:  # not whole, or too large
            pass
    try:
        values = np.asarray(column.cast(pa.float64()).to_numpy())
    except pa.ArrowException as error:
        raise ValueError(f"Column {name!r} must hold numbers: {error}.") from error
    if not (np.all(np.isfinite(values)) and np.all(values == np.trunc(values))):
        return values
    if np.abs(values).max(initial=0.0) < EXACT:
        return values.astype(np.int64)
    _refuse_merged(column.cast(pa.string()).unique().to_pylist(), name)
    return values


def _refuse_merged(texts: Sequence[str], name: str) -> None:
    """Refuse whole numbers that float64 merges: two classes would become one."""
    spelled: dict[float, int] = {}
    for number in (int(text) for text in texts if re.fullmatch(r"[+-]?\d+", text)):
        if (other := spelled.setdefault(float(number), number)) != number:
            raise ValueError(
                f"Target {name!r} holds {other} and {number}, which do not fit into 64 bits and are equal in float64: "
                "write classes as text, for example with a letter before each, and amounts with fewer digits."
            )


def numbers_of(table: Any, names: Sequence[str], source: str) -> NDArray[Any] | None:
    """Return the numbers of verbatim columns, (rows,) or (rows, columns); None if no column is named.

    Raises ValueError if a cell is not a number.
    """
    with named_in_errors(source):
        columns = [labels_of(table[name], table[name].type, name, text=False) for name in names]
    return None if not columns else columns[0] if len(columns) == 1 else np.column_stack(columns)


def read(path: Path, target: str, columns: Columns, *, text: bool | None = None) -> tuple[Any, NDArray[Any]]:
    """Read a whole file as features and target: `read_beside` without the verbatim columns."""
    X, y, _ = read_beside(path, target, columns, text=text)
    return X, y


def read_beside(
    path: Path, target: str, columns: Columns, *, text: bool | None = None
) -> tuple[Any, NDArray[Any], Any]:
    """Read a whole file as features, target and verbatim columns.

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
    table = open_table(path, columns.missing)
    roles = table.roles(columns, beside=[target])
    names, batches = list(roles.features or ()), list(table.batches(roles))
    if not batches:
        raise ValueError(f"{table.name} has no rows.")
    features, kept = (arrow().concat_tables(part) for part in zip(*batches, strict=True))
    column = kept[target]
    if column.null_count:
        raise ValueError(
            f"Target {target!r} is missing in {column.null_count} rows of {table.name}: remove these rows."
        )
    X = _frame(features, names)
    for name in names:
        if X[name].dtype.kind != "f" and name not in roles.categorical:
            _refuse_numbers(X[name], table.name)
    return X, labels_of(column, table.type_of(target), target, text), kept.select(list(columns.verbatim))


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
    table = open_table(path, columns.missing)
    roles = table.roles(columns)
    for features, kept in table.batches(roles):
        yield _frame(features, list(features.column_names)), kept
