"""Matrices: rows of a table as float64, C-contiguous, without infinities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_array

from boostbp.inputs.sources import Source
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import CHUNK
from boostbp.trees.sparse import CELLS, Matrix, Sparse, Table

_BLOCK_ROWS = 4096  # rows that are copied at a time: 1 MB with 30 columns stays in the cache


def matrix_of(columns: Sequence[NDArray[Any]]) -> Floats:
    """Return columns of any numeric dtype as one matrix, (rows, columns) float64, C-contiguous."""
    out = np.empty((len(columns[0]), len(columns)))
    for first in range(0, len(out), _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        for j, column in enumerate(columns):
            out[rows, j] = column[rows]
    return out


def n_row_blocks(n_rows: int, n_columns: int, n_threads: int) -> int:
    """Return the number of blocks of `CELLS` numbers, or larger ones to occupy all threads, but at least 8 of these."""
    return -(-n_rows // max(CELLS // n_columns, min(n_threads * CHUNK, n_rows // 8), 1))


def dense_rows(block: NDArray[Any] | None, columns: Mapping[int, NDArray[Any]], rows: slice) -> Floats:
    """Return rows of a block in which some columns are replaced, or of columns alone, as float64, C-contiguous."""
    if block is None:
        return matrix_of([column[rows] for column in columns.values()])
    with np.errstate(over="ignore"):  # wider floats may overflow: infinity is refused
        X = np.array(block[rows], np.float64, order="C", copy=True if columns else None)
    for j, column in columns.items():
        X[:, j] = column[rows]
    return X


def finite_rows(X: Matrix, source: Source, first: int = 0) -> Matrix:
    """Return the rows of a source from row `first` on; raise ValueError if they contain infinity."""
    try:
        with np.errstate(invalid="ignore"):  # it first computes a sum, which may be inf - inf
            assert_all_finite(X.entries if isinstance(X, Sparse) else X, allow_nan=True, input_name="X")
    except ValueError as error:
        row, j, value = _first_infinity(X)
        cell = f"{source.column(j).label}, row {first + row} (counted from 0) holds {value}"
        raise ValueError(f"Input X contains infinity: {cell}. Clip it, or make it missing (NaN).") from error
    return X


def _first_infinity(X: Matrix) -> tuple[int, int, float]:
    """Return the row, the column and the value of an infinity."""
    if isinstance(X, Sparse):
        cells = X.entries.tocoo()
        at = int(np.isinf(cells.data).argmax())
        return int(cells.row[at]), int(cells.col[at]), float(cells.data[at])
    row, j = divmod(int(np.isinf(X).argmax()), X.shape[1])
    return row, j, float(X[row, j])


def check_numeric(table: Table) -> None:
    """Raise an error if the input is sparse, has categorical columns, or has missing values."""
    if not isinstance(table.X, np.ndarray):
        raise TypeError("X is sparse: an auto-encoder reconstructs every entry. Use X.toarray().")
    if table.categorical:
        raise ValueError(f"X has categorical columns {list(table.categorical)}: encode them as numbers first.")
    with np.errstate(invalid="ignore"):  # check_array first sums all values
        check_array(table.X, estimator="BoostBPAutoencoder", input_name="X")
