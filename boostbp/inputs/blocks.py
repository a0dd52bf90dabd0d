"""Rows beyond memory: read once, block by block, into memory-mapped files of numbers.

Arrays in NumPy's files are read, not mapped, as truncation of a mapped file would end the process.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sized
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp.inputs.categories import Factors, fault_of
from boostbp.inputs.faults import refuse_faults
from boostbp.inputs.files.parts import TableSource, check_regular
from boostbp.inputs.files.reading import refuse_another_way, typed_columns
from boostbp.inputs.files.tables import TableFiles, open_table, quoted
from boostbp.inputs.row_numbers import warn_of_row_index
from boostbp.inputs.schema import CategoricalFeatures, RowsOnDisk, Schema
from boostbp.inputs.sources import DECLARED, Source, open_source
from boostbp.inputs.survival_times import UnnamedBounds, read_by_kind
from boostbp.inputs.targets import read_numbers
from boostbp.runtime import interrupts
from boostbp.runtime.arrays import Floats, scratch_folder
from boostbp.runtime.messages import named_in_errors
from boostbp.runtime.npy_header import read_header
from boostbp.trees.sparse import Sparse

Blocks: TypeAlias = "TableFiles | TableSource | Iterator[Any]"
NO_ROWS = "X has no rows: give at least one block of them."
READ_ROWS = 65_536  # rows of a block of an array in a file: 16 MB with 30 columns


def rows_of(
    X: Blocks,
    beside: Mapping[str, Any],
    *,
    kind: str | None,
    categorical_features: CategoricalFeatures,
    schema: Schema | None,
) -> tuple[Any, dict[str, Any]]:
    """Read all rows, with targets, weights, offsets and groups, as arrays in files.

    `X` is a file in CSV, Parquet or NumPy's format, a folder of the first two, or blocks ``(X, y)`` or
    ``(X, y, sample_weight)``. `beside` has ``y``, ``sample_weight``, ``offset`` and ``groups`` as the user passed them:
    column names of a table, NumPy files, arrays of all rows, or None. `kind` is that of the
    estimator, as in scikit-learn's tags, and `schema` that of the rows if it is already known. Raises ValueError if
    there are no rows, or blocks or files are inconsistent, and OSError if the disk is full.
    """
    if _is_array_file(X):
        array = read_array(X)
        return array, {name: read_array(value) if _is_array_file(value) else value for name, value in beside.items()}
    names: dict[str, list[str]]  # columns of a table, by the name of the argument of `fit`
    if isinstance(X, Iterator):
        if beside["y"] is not None:
            raise ValueError(f"y is given, a {type(beside['y']).__name__}, with blocks: let these be (X, y).")
        blocks, names, declared = _blocks_of_tuples(X), {"y": [], "sample_weight": []}, set[Any]()
    else:
        table = open_table(X)
        refuse_faults([], table.name, table.noticed)
        if beside["y"] is None:
            raise ValueError(f"y=None with a table in files: name the target, one of {quoted(table.names)}.")
        names = {name: columns for name, value in beside.items() if (columns := _names(value))}
        table = table.resolve(beside=list(chain(*names.values())), categorical=_names(categorical_features))
        blocks, declared = _blocks_of_table(table, names, kind), {*table.roles.categorical}
    with closing(_BlockReader(kind, categorical_features, schema, names.get("y", []))) as reader:
        for number, (features, values) in enumerate(blocks):
            interrupts.check()
            with named_in_errors(f"block {number} of X"):
                reader.add(features, values)
        rows, arrays = reader.rows(declared)
    return rows, {name: arrays.get(name) if name in names else value for name, value in beside.items()}


def blocks_of(X: Blocks, schema: Schema) -> Iterator[Any]:
    """Yield blocks of features from an `X` as in `rows_of`, or from an iterator over them; ValueError without rows."""
    if _is_array_file(X):
        blocks = array_blocks(X, READ_ROWS)
    elif isinstance(X, Iterator):
        blocks = X
    else:
        table = open_table(X, schema.roles())
        refuse_faults([], table.name, table.noticed)
        blocks = (features for features, _ in table.resolve().batches() if len(features))
    if (first := next(blocks, None)) is None:
        raise ValueError(NO_ROWS)
    yield first
    yield from blocks


def _is_array_file(X: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(X, str | os.PathLike) and Path(X).suffix.lower() == ".npy"


def _names(value: object) -> list[str]:
    """Return the column names in a value, which may be one name or several."""
    names = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
    return names if all(isinstance(name, str) for name in names) else []


def _blocks_of_tuples(blocks: Iterator[Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    for number, block in enumerate(blocks):
        if not isinstance(block, tuple) or len(block) not in (2, 3):
            received = f"a tuple of {len(block)}" if isinstance(block, tuple) else f"a {type(block).__name__}"
            raise ValueError(f"block {number} of X is {received}: give tuples (X, y) or (X, y, sample_weight).")
        yield block[0], dict(zip(("y", "sample_weight"), block[1:], strict=False))


def _blocks_of_table(
    table: TableFiles, names: Mapping[str, list[str]], kind: str | None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield blocks of a table's features, with the columns in `names`; a regressor's y is numbers, however spelt."""
    text = {"y": False} if kind == "regressor" else {}
    kinds = {column: table.type_of(column) for column in table.roles.verbatim}
    ways: dict[str, dict[str, object]] = {column: {} for name in text for column in names.get(name, ())}
    for features, verbatim in table.batches():
        if len(features):
            for column, known in ways.items():
                refuse_another_way(verbatim[column], column, known)
            yield (
                features,
                {
                    name: typed_columns(verbatim, kinds, columns, text.get(name), table.roles.options)
                    for name, columns in names.items()
                },
            )


class _StoredValues:
    """Values that arrive block by block, in an unnamed file that is mapped at the end; labels are stored as numbers."""

    def __init__(self, *, of_labels: bool = False) -> None:
        self.labels: dict[Any, int] | None = {} if of_labels else None
        self.n_rows, self._dtype, self._shape = 0, np.int64 if of_labels else np.float64, ()
        self.file = tempfile.TemporaryFile(dir=scratch_folder())  # noqa: SIM115

    def add(self, values: NDArray[Any]) -> None:
        """Write the values of a block, (rows,) or (rows, columns)."""
        if self.n_rows and values.shape[1:] != self._shape:
            raise ValueError(f"it has the shape {values.shape}, earlier ones have {(self.n_rows, *self._shape)}.")
        self._shape = values.shape[1:]
        values = values if self.labels is None else _number_labels(values, self.labels)
        self.file.write(np.ascontiguousarray(values, self._dtype).data)
        self.n_rows += len(values)

    def array(self) -> NDArray[Any]:
        """Return all rows."""
        self.file.flush()
        values: NDArray[Any] = np.asarray(np.memmap(self.file, self._dtype, "r+", shape=(self.n_rows, *self._shape)))
        return values if self.labels is None else np.array(list(self.labels))[values]


def _number_labels(labels: NDArray[Any], number_of: dict[Any, int]) -> NDArray[np.intp]:
    """Return the number of each label, (rows,), and add numbers for new labels."""
    distinct, place = np.unique(labels, return_inverse=True)
    numbers = [number_of.setdefault(label, len(number_of)) for label in distinct.tolist()]
    if len({isinstance(label, str) for label in number_of}) > 1:
        text = next(label for label in number_of if isinstance(label, str))
        raise ValueError(f"y holds text, such as {text!r}, beside numbers: make all of them text, or numbers.")
    return np.array(numbers)[place]


class _BlockReader:
    """The content of the blocks so far."""

    def __init__(
        self, kind: str | None, categorical_features: CategoricalFeatures, schema: Schema | None, targets: list[str]
    ) -> None:
        self.kind, self.categorical_features, self.schema, self.targets = kind, categorical_features, schema, targets
        self.X = _StoredValues()
        self.parts: list[tuple[int, Schema]] = []  # rows and schema of each block
        self.first: Source | None = None
        self.columns: dict[str, _StoredValues] = {}
        self.bounds = UnnamedBounds()

    def add(self, features: Sized, values: Mapping[str, ArrayLike]) -> None:
        """Read a block, unless it has no rows."""
        if not (cast(Any, features).shape[0] if hasattr(features, "shape") else len(features)):
            return
        source = open_source(features)
        schema = self.schema or Schema.of(source, categorical_features=self.categorical_features, checked=False)
        if self.first is None:
            self.first = source
            labels = {"groups", "y"} if self.kind == "classifier" else {"groups"}
            self.columns = {name: _StoredValues(of_labels=name in labels) for name in values}
        X = schema.read(source).X
        if isinstance(X, Sparse):
            raise ValueError("X is sparse, which is not supported in blocks: pass X.toarray(), some rows at a time.")
        if self.parts:
            Schema.common([self.parts[0][1], schema], ["block 0", f"block {len(self.parts)}"])
        if values.keys() != self.columns.keys():
            raise ValueError("it has a sample_weight, or has none, unlike those before: give one in all, or in none.")
        for name, value in values.items():
            with named_in_errors(name):
                self.columns[name].add(self._read(name, value, len(X)))
        self.X.add(X)
        self.parts.append((len(X), schema))

    def _read(self, name: str, value: ArrayLike, n_rows: int) -> NDArray[Any]:
        if name == "y":
            return read_by_kind(value, n_rows, self.kind, self.targets, self.bounds)[0]
        return np.asarray(value) if name == "groups" else read_numbers(value, n_rows, name)

    def close(self) -> None:
        """Close the files; mapped arrays stay valid."""
        for column in (self.X, *self.columns.values()):
            column.file.close()

    def rows(self, declared: set[Any]) -> tuple[RowsOnDisk, dict[str, NDArray[Any]]]:
        """Return all rows, and the other columns. Columns in `declared` may have any categories."""
        if self.first is None:
            raise ValueError(NO_ROWS)
        self.bounds.refuse_status("y")
        X, schema, start = self.X.array(), Schema.common([schema for _, schema in self.parts]), 0
        for n_rows, schema_of_block in self.parts:
            _recode(X[start : start + n_rows], schema_of_block, schema)
            start += n_rows
        if self.schema is None:
            warn_of_row_index(self.first)
            by_name, faults = not isinstance(self.categorical_features, str), []
            for j, categories in schema.categories.items():  # checked here, as this needs all rows
                factors = Factors(np.nan_to_num(X[:, j], nan=-1.0).astype(np.int64), list(categories))
                name = j if schema.names is None else schema.names[j]
                is_declared = by_name or schema.dtypes[j] in DECLARED or name in declared
                faults.append(fault_of(factors, f"Column {name!r}", str(name), declared=is_declared))
            refuse_faults([fault for fault in faults if fault is not None])
        arrays = {name: column.array() for name, column in self.columns.items()}
        if self.kind == "survival" and "y" in arrays:  # (rows, 2), which names declare as bounds
            arrays["y"] = arrays["y"].view([("lower", np.float64), ("upper", np.float64)])[:, 0]
        return RowsOnDisk(X, schema, self.first), arrays


def _recode(X: Floats, schema_of_block: Schema, schema: Schema) -> None:
    """Replace the codes of categories in one block by those in all blocks."""
    for j, categories in schema_of_block.categories.items():
        if categories != schema.categories[j]:
            code = {category: float(number) for number, category in enumerate(schema.categories[j])}
            codes = np.array([*(code[category] for category in categories), np.nan])
            X[:, j] = codes[np.nan_to_num(X[:, j], nan=len(categories)).astype(np.int64)]


class _ArrayFile(NamedTuple):
    """An array in an open file."""

    file: BinaryIO
    start: int  # byte at which its items begin
    shape: tuple[int, ...]
    is_fortran: bool  # whether columns are contiguous, not rows
    dtype: np.dtype[Any]

    def items(self, first: int, count: int) -> NDArray[Any]:
        """Return items in the order of the file, (count,)."""
        interrupts.check()
        self.file.seek(self.start + first * self.dtype.itemsize)
        items = np.fromfile(self.file, self.dtype, count)
        if len(items) < count:
            raise ValueError(f"{self.file.name!r} was truncated while it was read: write it again.")
        return items

    def whole(self) -> NDArray[Any]:
        """Return the whole array."""
        return self.items(0, math.prod(self.shape)).reshape(self.shape, order="F" if self.is_fortran else "C")

    def rows(self, first: int, last: int) -> NDArray[Any]:
        """Return some rows of an array of two axes."""
        n_rows, n_columns = self.shape
        if not self.is_fortran:
            return self.items(first * n_columns, (last - first) * n_columns).reshape(last - first, n_columns)
        out = np.empty((last - first, n_columns), self.dtype, order="F")
        for j in range(n_columns):
            out[:, j] = self.items(j * n_rows + first, last - first)
        return out


def read_array(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Return the array in a file; raise ValueError if it has none or is truncated, OSError if it cannot be read."""
    with _opened(path) as array:
        return array.whole()


def array_blocks(path: str | os.PathLike[str], n_rows: int) -> Iterator[NDArray[Any]]:
    """Yield blocks of `n_rows` rows; the last one may have fewer. Raises what `read_array` does."""
    with _opened(path) as array:
        if len(array.shape) != 2 or not array.shape[0]:  # the reader of tables refuses it
            yield array.whole()
            return
        for first in range(0, array.shape[0], n_rows):
            yield array.rows(first, min(first + n_rows, array.shape[0]))


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[_ArrayFile]:
    name = os.fspath(path)
    check_regular(path)
    with open(path, "rb") as file:
        try:
            shape, is_fortran, dtype = read_header(file)
        except Exception as error:  # a damaged header may cause any error
            raise ValueError(f"{name!r} is not a file of one array as numpy.save writes it: {error}.") from error
        if dtype.hasobject:
            raise ValueError(f"{name!r} holds Python objects, which are code: save an array of numbers or text.")
        start = file.tell()
        needed, there = math.prod(shape) * dtype.itemsize, os.fstat(file.fileno()).st_size - start
        if min(shape, default=0) < 0 or there < needed:
            fault = f"{there} bytes of an array {shape} of {dtype}, which takes {needed}"
            raise ValueError(f"{name!r} holds {fault}: it is truncated.")
        yield _ArrayFile(file, start, shape, is_fortran, dtype)
