"""An input of any kind, opened: a block of numbers, or columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from boostbp.files.parts import is_dataset, row_index_of
from boostbp.inputs.columns import ArrayColumn, Column, FrameColumn
from boostbp.runtime import messages
from boostbp.runtime.arrays import Floats

_BLOCK_ROWS = 4096  # of all columns that are copied together: 1 MB of 30 columns stays in the cache


@dataclass(frozen=True, slots=True)
class Source:
    """An opened input."""

    original: Any  # the input, as scikit-learn can look at it for names and shape
    columns: Sequence[Column]  # one for each feature; none of a sparse matrix
    names: tuple[str, ...] | None = None  # column names, if the input has names and all are strings
    # (rows, features) array or sparse matrix, or None: all columns at once, where they are numbers of one dtype
    block: Any = None

    def column(self, j: int) -> Column:
        """Return a column; of a sparse matrix, made dense."""
        if self.columns:
            return self.columns[j]
        return ArrayColumn(self.block[:, [j]].toarray()[:, 0], f"Column {j}")


def is_frame(X: object) -> bool:
    """Return whether `X` is a table with named columns (anything that narwhals reads, or an Arrow stream)."""
    if isinstance(X, (np.ndarray, list, tuple)) or sp.issparse(X):
        return False
    import narwhals as nw

    is_stream = hasattr(X, "__arrow_c_stream__") and not nw.dependencies.is_into_series(X)
    return is_stream or nw.dependencies.is_into_dataframe(X)


def open_source(X: Any, *, estimator: Any = None) -> Source:
    """Open an input, (rows, features); only lists and sparse matrices are converted.

    Raises ValueError, in which the estimator is named, if `X` is not two-dimensional, is empty, or holds complex
    numbers or dates, and TypeError if it is a lazy frame.
    """
    lenient = {"ensure_all_finite": False, "input_name": "X", "estimator": estimator}
    if is_frame(X):
        return _open_frame(X, lenient)
    if sp.issparse(X):
        block = check_array(X, accept_sparse=("csr", "csc"), dtype=np.float64, **lenient)
        return Source(block, [], block=block)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    elif isinstance(X, (list, tuple)):
        X = _array_of_rows(X)
    elif not isinstance(X, np.ndarray):
        _refuse_lazy(X)
    values = check_array(X, dtype=None, **lenient)
    if values.dtype.kind in "mMV":
        raise ValueError(f"X has dtype {values.dtype}, which holds no numbers: turn it into numbers.")
    if values.dtype.kind == "T":
        values = values.astype(object)
    columns = [ArrayColumn(column, f"Column {j}") for j, column in enumerate(values.T)]
    return Source(values, columns, block=values if values.dtype.kind in "fiub" else None)


def _array_of_rows(X: list[Any] | tuple[Any, ...]) -> Any:
    try:
        values = np.asarray(X)
    except ValueError:  # ragged: scikit-learn says so
        return X
    # a list of strings and numbers would become strings
    return np.asarray(X, object) if values.dtype.kind in "SU" else values


def _open_frame(X: Any, lenient: dict[str, Any]) -> Source:
    import narwhals as nw

    if not nw.dependencies.is_into_dataframe(X):
        X = nw.from_arrow(X, backend="pyarrow")
    try:
        frame = nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"X has several columns of one name: rename them. {error}") from error
    if 0 in frame.shape:
        check_array(np.empty(frame.shape), **lenient)
    columns = [FrameColumn(series, f"Column {series.name!r}") for series in frame.iter_columns()]
    names = tuple(frame.columns)
    return Source(frame.to_native(), columns, names if all(isinstance(name, str) for name in names) else None)


def _refuse_lazy(X: object) -> None:
    import narwhals as nw

    kind = "an iterator" if isinstance(X, Iterator) else ""
    kind = f"the path {str(X)!r}" if isinstance(X, str | os.PathLike) else kind
    kind = f"a {type(X).__name__} of pyarrow" if is_dataset(X) else kind
    if kind:
        raise TypeError(
            f"X is {kind}, which only fit, predict, predict_proba and transform of BoostBPRegressor and "
            "BoostBPClassifier read block by block: pass an array or a data frame."
        )
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        raise TypeError(
            f"X is a {type(X).__name__} of {type(X).__module__}, which is lazy: call .collect() or the like."
        )


def warn_of_row_index(source: Source) -> None:
    """Warn of columns that look like the row index of a table that was written to a file and read again."""
    for name in sorted(row_index_of(source.names or (), getattr(source.original, "schema", None))):
        messages.warn(
            f"Column {name!r} looks like the row index of a table that was written to a file and read again. As a "
            "feature it identifies training rows: drop it (index_col=0 in pandas.read_csv), or rename it to keep it."
        )


def matrix_of(columns: Sequence[NDArray[Any]]) -> Floats:
    """Return columns of any numeric dtype as one matrix, (rows, columns) float64, C-contiguous."""
    out = np.empty((len(columns[0]), len(columns)))
    for first in range(0, len(out), _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        for j, column in enumerate(columns):
            out[rows, j] = column[rows]
    return out
