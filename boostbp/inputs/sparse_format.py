"""Format of sparse matrices: compiled loops trust their arrays, and leave memory if these contradict the shape."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def check_format(X: sp.spmatrix | sp.sparray, name: str) -> Any:
    """Return a sparse matrix of any format in one that can be converted safely; raise ValueError if it is malformed.

    CSR, CSC, BSR and COO are returned as they are, after one pass over the indices of the entries.
    """
    if len(X.shape) != 2:
        _refuse(X, name, "it does not have two axes")
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X, name)
    elif X.format == "coo":
        _check_indices(X, name, "row indices", X.row, X.shape[0])
        _check_indices(X, name, "column indices", X.col, X.shape[1])
        _check_lengths(X, name, row=len(X.row), col=len(X.col), data=len(X.data))
    else:
        return check_format(_as_csr(X, name), name)
    return X


def _check_compressed(X: Any, name: str) -> None:
    block = X.data.shape[1:] if X.format == "bsr" else (1, 1)
    if X.data.ndim != (3 if X.format == "bsr" else 1) or np.remainder(X.shape, block).any():
        _refuse(X, name, f"its data have the shape {X.data.shape}")
    sizes = np.floor_divide(X.shape, block).tolist()
    (n_parts, n_indices), of_index = (sizes[::-1], "row") if X.format == "csc" else (sizes, "column")
    _check_lengths(X, name, indices=len(X.indices), data=len(X.data))
    _check_lengths(X, name, indptr=len(X.indptr), **{f"{n_parts} + 1": n_parts + 1})
    _check_indices(X, name, "offsets (indptr)", X.indptr, len(X.indices) + 1)
    if X.indptr[0] or (X.indptr[1:] < X.indptr[:-1]).any():
        _refuse(X, name, "its offsets (indptr) do not ascend from 0")
    _check_indices(X, name, f"{of_index} indices", X.indices[: X.indptr[-1]], n_indices)


def _check_indices(X: Any, name: str, what: str, indices: NDArray[Any], end: int) -> None:
    if indices.dtype.kind not in "iu" or indices.ndim != 1:
        _refuse(X, name, f"its {what} are {indices.dtype} of shape {indices.shape}, not a row of integers")
    # as unsigned numbers, negative ones are the largest: one pass in place of two
    if indices.view(indices.dtype.str.replace("i", "u")).max(initial=0) >= max(end, 1):
        wrong = indices[(indices < 0) | (indices >= end)][0]
        _refuse(X, name, f"its {what} hold {wrong}, outside 0 to {end - 1}")


def _check_lengths(X: Any, name: str, **lengths: int) -> None:
    if len({*lengths.values()}) > 1:
        stated = " and ".join(f"{array} has the length {length}" for array, length in lengths.items())
        _refuse(X, name, f"its lengths differ: {stated}")


def _as_csr(X: Any, name: str) -> Any:
    try:
        if X.format == "lil" and not ([*map(len, X.rows)] == [*map(len, X.data)] and len(X.rows) == X.shape[0]):
            raise ValueError("rows differ in the numbers of columns and values, or are not those of the shape")
        if X.format == "dia" and X.data.shape[:-1] != X.offsets.shape:
            raise ValueError("it has other numbers of offsets and diagonals")
        return X.tocsr()
    except (IndexError, TypeError, ValueError) as error:
        _refuse(X, name, f"SciPy cannot read it: {error}")


def _refuse(X: Any, name: str, fault: str) -> NoReturn:
    cure = "build it again from rows, columns and values: scipy.sparse.coo_array((values, (rows, columns)), shape)"
    raise ValueError(f"{name} is a malformed {X.format} matrix of shape {X.shape}, as {fault}: {cure}.")
