"""Blocks: rows beyond memory, read once, block by block, into files of numbers that are mapped into memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.cautions import named_in_errors
from boostbp.floats import Floats
from boostbp.inputs.array_files import array_blocks, read_array
from boostbp.inputs.categories import Factors, check_categories
from boostbp.inputs.columns import DECLARED
from boostbp.inputs.schema import Schema
from boostbp.inputs.sources import Source, TableFiles, blocks_of_table, is_dataset, open_source, warn_of_row_index
from boostbp.inputs.targets import read_numbers, read_target
from boostbp.trees import interrupts
from boostbp.trees.disk_arrays import scratch_folder
from boostbp.trees.sparse import Sparse

BLOCK_ROWS = 65_536  # of an array in a file


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that were read, in the place of what a user passes as X."""

    X: Floats  # (rows, features) float64: with codes in the place of categories
    schema: Schema
    first: Source  # the first block

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.X)

    def __getitem__(self, rows: Any) -> Any:
        """Some of the rows, for who splits them."""
        return self.X[rows]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return len(self.X), self.schema.n_features


def is_blocks(X: Any) -> bool:
    """Whether an input is a path, a dataset, or an iterator of blocks, and no array, frame or list."""
    if isinstance(X, np.ndarray):  # of which abstract classes would ask for half a microsecond
        return False
    if isinstance(X, str | os.PathLike | TableFiles) or is_dataset(X):
        return True
    return isinstance(X, Iterator) and not hasattr(X, "__arrow_c_stream__")


def rows_of(
    X: Any, beside: Mapping[str, Any], *, labels: bool, categorical_features: Any, schema: Schema | None
) -> tuple[Any, dict[str, Any]]:
    """Read all rows, and what `fit` takes beside them: arrays of all rows, in files.

    Raises ValueError if there are no rows, or blocks or files do not fit together, and OSError if the disk is full.

    Parameters
    ----------
    X : path, TableFiles or iterator
        A file in CSV, Parquet or NumPy's format, a folder of the first two, or blocks ``(X, y)`` or
        ``(X, y, sample_weight)``.
    beside : mapping
        ``y``, ``sample_weight``, ``offset`` and ``groups`` as they were passed: names of columns of a table, files of
        NumPy, arrays of all rows, None.
    labels : bool
        Whether targets are labels of classes.
    schema : Schema or None
        How to read the rows, if that is known already.
    """
    if _is_array_file(X):
        return read_array(X), {
            name: read_array(value) if _is_array_file(value) else value for name, value in beside.items()
        }
    named: set[Any] = set()  # columns that are categories whatever they look like
    if isinstance(X, Iterator):
        if beside["y"] is not None:
            raise ValueError(
                f"y is given, a {type(beside['y']).__name__}, with an iterator of blocks: let blocks be (X, y) or "
                "(X, y, sample_weight), and leave y out."
            )
        read, blocks = {"y", "sample_weight"}, _blocks_of_pairs(X)
    else:
        table, columns = TableFiles.of(X).open(), TableFiles.of(X).columns
        names = {name: columns_of for name, value in beside.items() if (columns_of := _names(value))}
        if beside["y"] is None:
            listed = ", ".join(map(repr, table.names))
            raise ValueError(f"y=None with a table in files: name the column of the target, one of {listed}.")
        columns = table.roles(
            columns, beside=[name for part in names.values() for name in part], categorical=_names(categorical_features)
        )
        read, blocks = set(names), blocks_of_table(table, columns, names)
        named |= set(columns.categorical)
    with closing(_Reader(labels, categorical_features, schema, named)) as reader:
        for number, (features, values) in enumerate(blocks):
            interrupts.check()
            with named_in_errors(f"block {number} of X"):
                reader.add(features, values)
        rows, arrays = reader.rows()
    return rows, {name: arrays.get(name) if name in read else value for name, value in beside.items()}


def blocks_of(X: Any, schema: Schema) -> Iterator[Any]:
    """Blocks of the features of some rows, as tables that an estimator with this schema reads.

    `X` is as in `rows_of`, but an iterator gives blocks of features alone. Raises ValueError if there are no rows.
    """
    count = 0
    for count, block in enumerate(_blocks_of(X, schema), 1):  # noqa: B007
        yield block
    if not count:
        raise ValueError("X has no rows: give at least one block of them.")


def _blocks_of(X: Any, schema: Schema) -> Iterator[Any]:
    if _is_array_file(X):
        yield from array_blocks(X, BLOCK_ROWS)
    elif isinstance(X, Iterator):
        yield from X
    else:
        files_of_table = TableFiles.of(X, schema.columns())
        table = files_of_table.open()
        yield from (features for features, _ in table.batches(table.roles(files_of_table.columns)) if len(features))


def _is_array_file(X: Any) -> bool:
    return isinstance(X, str | os.PathLike) and Path(X).suffix.lower() == ".npy"


def _names(value: Any) -> list[str]:
    """Names of columns, if a value is one or several."""
    if isinstance(value, str):
        return [value]
    several = isinstance(value, list | tuple) and len(value) and all(isinstance(name, str) for name in value)
    return list(value) if several else []


def _blocks_of_pairs(blocks: Iterator[Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    for number, block in enumerate(blocks):
        if not isinstance(block, tuple) or len(block) not in (2, 3):
            received = f"a tuple of {len(block)}" if isinstance(block, tuple) else f"a {type(block).__name__}"
            raise ValueError(f"block {number} of X is {received}: give tuples (X, y) or (X, y, sample_weight).")
        yield block[0], dict(zip(("y", "sample_weight"), block[1:], strict=False))


class _Column:
    """Numbers that come block by block, in a file without a name, which is mapped into memory at the end."""

    def __init__(self, dtype: Any = np.float64) -> None:
        self.n_rows, self._dtype, self._shape = 0, np.dtype(dtype), ()
        self.file = tempfile.TemporaryFile(dir=scratch_folder())  # noqa: SIM115

    def add(self, values: NDArray[Any]) -> None:
        """Write the numbers of a block, (rows,) or (rows, columns)."""
        if self.n_rows and values.shape[1:] != self._shape:
            raise ValueError(f"it has the shape {values.shape}, those before have {(self.n_rows, *self._shape)}.")
        self._shape = values.shape[1:]
        self.file.write(np.ascontiguousarray(values, self._dtype).data)
        self.n_rows += len(values)

    def array(self) -> NDArray[Any]:
        """All rows."""
        self.file.flush()
        return np.asarray(np.memmap(self.file, self._dtype, "r+", shape=(self.n_rows, *self._shape)))


@dataclass
class _Labels:
    """Labels that come block by block, as codes of the distinct ones."""

    code: dict[Any, int] = field(default_factory=dict)
    codes: _Column = field(default_factory=lambda: _Column(np.int64))

    def add(self, labels: NDArray[Any]) -> None:
        """Write the labels of a block, (rows,)."""
        values, place = np.unique(labels, return_inverse=True)
        known = [self.code.setdefault(value, len(self.code)) for value in values.tolist()]
        if len({isinstance(value, str) for value in self.code}) > 1:
            text = next(value for value in self.code if isinstance(value, str))
            raise ValueError(f"y holds text, such as {text!r}, beside numbers: make all of them text, or numbers.")
        self.codes.add(np.array(known)[place])

    def array(self) -> NDArray[Any]:
        """All rows."""
        return np.array(list(self.code))[self.codes.array()]

    @property
    def file(self) -> Any:
        """Where the codes are."""
        return self.codes.file


class _Reader:
    """What was read of the blocks so far."""

    def __init__(self, labels: bool, categorical_features: Any, schema: Schema | None, named: set[Any]) -> None:
        self.labels, self.categorical_features, self.schema, self.named = labels, categorical_features, schema, named
        self.X = _Column()
        self.parts: list[tuple[int, Schema]] = []  # rows and schema of each block
        self.first: Source | None = None
        self.columns: dict[str, _Column | _Labels] = {}

    def add(self, features: Any, values: Mapping[str, Any]) -> None:
        """Read a block; one without rows is none."""
        if not (features.shape[0] if hasattr(features, "shape") else len(features)):
            return
        source = open_source(features)
        schema = self.schema or Schema.of(source, categorical_features=self.categorical_features, checked=False)
        if self.first is None:
            self.first = source
            self.columns = {name: self._column(name) for name in values}
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

    def _column(self, name: str) -> _Column | _Labels:
        return _Labels() if name == "groups" or (name == "y" and self.labels) else _Column()

    def _read(self, name: str, value: Any, n_rows: int) -> NDArray[Any]:
        if name == "y":
            return read_target(value, n_rows, labels=self.labels)
        return np.asarray(value) if name == "groups" else read_numbers(value, n_rows, name)

    def close(self) -> None:
        """Close the files; what is mapped stays."""
        for column in (self.X, *self.columns.values()):
            column.file.close()

    def rows(self) -> tuple[Rows, dict[str, NDArray[Any]]]:
        """All rows, and the columns beside them."""
        if self.first is None:
            raise ValueError("X has no rows: give at least one block of them.")
        X, schema = self.X.array(), Schema.common([schema for _, schema in self.parts])
        first = 0
        for n_rows, of_block in self.parts:
            _recode(X[first : first + n_rows], of_block, schema)
            first += n_rows
        if self.schema is None:
            warn_of_row_index(self.first)
            self._check_categories(X, schema)
        return Rows(X, schema, self.first), {name: column.array() for name, column in self.columns.items()}

    def _check_categories(self, X: Floats, schema: Schema) -> None:
        """Look at columns of categories, which only all blocks together tell from numbers or names written as text."""
        by_name = not isinstance(self.categorical_features, str)
        for j, categories in schema.categories.items():
            factors = Factors(np.nan_to_num(X[:, j], nan=-1.0).astype(np.int64), list(categories))
            name = j if schema.names is None else schema.names[j]
            declared = by_name or schema.dtypes[j] in DECLARED or name in self.named
            check_categories(factors, f"Column {name!r}", declared=declared)


def _recode(X: Floats, of_block: Schema, schema: Schema) -> None:
    """Write the codes that categories have in all blocks in the place of those that they have in one."""
    for j, categories in of_block.categories.items():
        if categories != schema.categories[j]:
            code = {category: float(number) for number, category in enumerate(schema.categories[j])}
            table = np.array([*(code[category] for category in categories), np.nan])
            X[:, j] = table[np.nan_to_num(X[:, j], nan=len(categories)).astype(np.int64)]
