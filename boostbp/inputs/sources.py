"""An input of any kind, opened: a block of numbers, columns, or a table in files that may be beyond memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from boostbp import cautions, files
from boostbp.files.parts import arrow, row_index_of
from boostbp.files.paths import files_of, format_of, is_compressed
from boostbp.inputs.columns import ArrayColumn, Column, FrameColumn

_NUMBERS = "fiub"
_ROWS_AT_ONCE = 4096  # rows of all columns that are written together, so that they stay in cache


@dataclass(frozen=True, slots=True)
class Source:
    """An opened input."""

    original: Any  # the input, as scikit-learn can look at it for names and shape
    columns: Sequence[Column]  # one for each feature
    names: tuple[str, ...] | None = None  # column names, if the input has names and all are strings
    # (rows, features) array or sparse matrix, or None: all columns at once, where they are numbers of one dtype
    block: Any = None


def is_frame(X: Any) -> bool:
    """Whether `X` is a table with named columns (anything that narwhals reads, or an Arrow stream)."""
    if isinstance(X, (np.ndarray, list, tuple)) or sp.issparse(X):
        return False
    import narwhals as nw

    is_stream = hasattr(X, "__arrow_c_stream__") and not nw.dependencies.is_into_series(X)
    return is_stream or nw.dependencies.is_into_dataframe(X)


def open_source(X: Any, *, estimator: Any = None) -> Source:
    """Open an input, (rows, features); nothing is converted yet, but for lists and sparse matrices.

    Raises ValueError, in which the estimator is named, if `X` is not two-dimensional, is empty, or holds complex
    numbers or dates, and TypeError if it is a lazy frame.
    """
    if is_frame(X):
        return _open_frame(X, estimator)
    if sp.issparse(X):
        block = check_array(X, accept_sparse=("csr", "csc"), dtype=np.float64, **_lenient(estimator))
        return Source(block, [], block=block)
    return _open_array(X, estimator)


def warn_of_row_index(source: Source) -> None:
    """Warn of columns that look like the row index of a table that was written to a file and read again."""
    for name in sorted(row_index_of(source.names or (), getattr(source.original, "schema", None))):
        cautions.warn(
            f"Column {name!r} looks like the row index of a table that was written to a file and read again. As a "
            "feature it identifies training rows: drop it (index_col=0 in pandas.read_csv), or rename it to keep it."
        )


def matrix_of(columns: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Columns of any numeric dtype as one matrix, (rows, columns) float64, C-contiguous."""
    n_rows = len(columns[0])
    out = np.empty((n_rows, len(columns)))
    for top in range(0, n_rows, _ROWS_AT_ONCE):
        rows = slice(top, top + _ROWS_AT_ONCE)
        for j, column in enumerate(columns):
            out[rows, j] = column[rows]
    return out


def _lenient(estimator: Any) -> dict[str, Any]:
    return {"ensure_all_finite": False, "input_name": "X", "estimator": estimator}


def _open_array(X: Any, estimator: Any) -> Source:
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    elif isinstance(X, (list, tuple)):
        X = _array_of(X)
    elif not isinstance(X, np.ndarray):
        _refuse_lazy(X)
    values = check_array(X, dtype=None, **_lenient(estimator))
    if values.dtype.kind in "mMV":
        raise ValueError(f"X has dtype {values.dtype}, which holds no numbers: turn it into numbers.")
    if values.dtype.kind == "T":
        values = values.astype(object)
    columns = [ArrayColumn(values[:, j], f"Column {j}") for j in range(values.shape[1])]
    return Source(values, columns, block=values if values.dtype.kind in _NUMBERS else None)


def _array_of(X: Any) -> Any:
    try:
        values = np.asarray(X)
    except ValueError:  # ragged: scikit-learn says so
        return X
    # a list of strings and numbers would become strings
    return np.asarray(X, object) if values.dtype.kind in "SU" else values


def _open_frame(X: Any, estimator: Any) -> Source:
    import narwhals as nw

    if not nw.dependencies.is_into_dataframe(X):
        X = nw.from_arrow(X, backend="pyarrow")
    try:
        frame = nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"X has several columns of one name: rename them. {error}") from error
    if 0 in frame.shape:
        check_array(np.empty(frame.shape), **_lenient(estimator))
    columns = [FrameColumn(series, f"Column {series.name!r}") for series in frame.iter_columns()]
    names = tuple(frame.columns)
    return Source(frame.to_native(), columns, names if all(isinstance(name, str) for name in names) else None)


def _refuse_lazy(X: Any) -> None:
    import narwhals as nw

    if isinstance(X, str | os.PathLike | Iterator) or is_dataset(X):
        what = f"the path {str(X)!r}" if isinstance(X, str | os.PathLike) else "an iterator"
        what = f"a {type(X).__name__} of pyarrow" if is_dataset(X) else what
        raise TypeError(
            f"X is {what}, which only fit, predict, predict_proba and transform of BoostBPRegressor and "
            "BoostBPClassifier read block by block: pass an array or a data frame."
        )
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        raise TypeError(
            f"X is a {type(X).__name__} of {type(X).__module__}, which is lazy: call .collect() or the like."
        )


class TableFiles(NamedTuple):
    """A table in a file, or in the files of a folder, and what its columns are."""

    source: Any  # Path, or a dataset or scanner of pyarrow's
    columns: files.Columns = files.Columns()  # but for those that are no features by what `fit` is told

    @classmethod
    def of(cls, X: Any, columns: files.Columns | None = None) -> TableFiles:
        """The table that a user means; its columns as they are known, if they are not said."""
        if isinstance(X, TableFiles):
            return X
        return cls(Path(X) if isinstance(X, str | os.PathLike) else X, columns or files.Columns())

    def open(self) -> files.Table:
        """Look at the files."""
        return files.open_table(self.source, self.columns.missing)


def is_dataset(X: Any) -> bool:
    """Whether an input is a dataset or a scanner of pyarrow's, which need not be imported."""
    return type(X).__module__ == "pyarrow._dataset" and hasattr(X, "to_batches")


def blocks_of_table(
    table: files.Table, columns: files.Columns, names: Mapping[str, list[str]]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Blocks of a table's features, and of what `fit` takes beside them: `names` has its columns by its name there."""
    kinds = {name: table.type_of(name) for name in columns.verbatim}
    for block, verbatim in table.batches(columns):
        if len(block):
            values = {
                name: [files.labels_of(verbatim[column], kinds[column], column) for column in part]
                for name, part in names.items()
            }
            yield block, {name: np.column_stack(part) if len(part) > 1 else part[0] for name, part in values.items()}


def first_rows(table: TableFiles, target: str, most: int) -> tuple[Any, NDArray[Any]]:
    """Some features of a table, as `files.read` gives them, and the target of so many rows, or of all there are."""
    kind = table.open().type_of(target)
    X, parts = None, []
    for features, beside in files.chunks(table.source, table.columns._replace(verbatim=(target,))):
        X = features if X is None else X
        parts.append(files.labels_of(beside[target], kind, target))
        if sum(map(len, parts)) >= most:
            break
    if X is None:
        raise ValueError(f"{table.source.name} has no rows.")
    return X, np.concatenate(parts)


def numbers_in(path: Path) -> int:
    """Bytes that a table takes as numbers: 8 for each cell of Parquet files; CSV is about as large, gzipped a tenth."""
    paths = files_of(path)
    if format_of(paths[0]) == "csv":
        return sum(file.stat().st_size * (10 if is_compressed(file) else 1) for file in paths)
    read = arrow("pyarrow.parquet").read_metadata
    return sum(8 * metadata.num_rows * metadata.num_columns for metadata in map(read, paths))
