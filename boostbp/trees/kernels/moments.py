"""Compiled sums over the columns of an input, the same bits for a dense and a sparse one.

Zeros take no part in a sum: both kinds of input then add the same numbers in the same order, and the work grows with
the entries of a sparse input. A sparse input comes as its compressed columns `indptr`, `indices`, `data`.

Standardised, a value is ``u = (z - center) * inv_scale``, 0 if missing; `zero` is that of a zero.
"""

from __future__ import annotations

from boostbp.trees.kernels.entry import INT, INT32S, INT64S, MATRIX, VECTOR, entry_point, written
from boostbp.trees.kernels.records import CENTER, INV_SCALE, internal

# Compressed columns of a sparse input; some columns, how they are standardised, what their zeros become.
ENTRIES = INT32S, INT32S, VECTOR
STANDARDISED = INT32S, MATRIX, VECTOR


@internal
def _add_entry(z, w, sums):
    sums[4] += w
    sums[5] += 1.0
    if z != z:
        sums[3] += w
        return
    sums[0] = min(sums[0], z)
    sums[1] = max(sums[1], z)
    sums[2] += w * z


@entry_point(MATRIX, VECTOR, written("f8", 2))
def column_sums(Z, weight, sums):
    """Add to the sums of each column, (columns, 6).

    Smallest and largest value, ``sum(weight * z)``, weight of the missing values, weight and number of all but zeros.
    """
    for row in range(len(Z)):
        for j in range(len(sums)):
            if Z[row, j] != 0.0:
                _add_entry(Z[row, j], weight[row], sums[j])


@entry_point(*ENTRIES, VECTOR, written("f8", 2))
def column_sums_sparse(indptr, indices, data, weight, sums):
    """See `column_sums`."""
    for j in range(len(sums)):
        for k in range(indptr[j], indptr[j + 1]):
            if data[k] != 0.0:
                _add_entry(data[k], weight[indices[k]], sums[j])


@internal
def _standardised(z, scaling):
    u = (z - scaling[CENTER]) * scaling[INV_SCALE]
    return u if u == u else 0.0


@entry_point(MATRIX, VECTOR, MATRIX, written("f8", 1))
def column_squares(Z, weight, scaling, out):
    """Add ``sum(weight * u^2)`` of each column."""
    for row in range(len(Z)):
        for j in range(len(out)):
            if Z[row, j] != 0.0:
                out[j] += weight[row] * _standardised(Z[row, j], scaling[j]) ** 2


@entry_point(*ENTRIES, VECTOR, MATRIX, written("f8", 1))
def column_squares_sparse(indptr, indices, data, weight, scaling, out):
    """See `column_squares`."""
    for j in range(len(out)):
        for k in range(indptr[j], indptr[j + 1]):
            if data[k] != 0.0:
                out[j] += weight[indices[k]] * _standardised(data[k], scaling[j]) ** 2


# The four that follow spell out their inner loop: a view of a row for each number would take ten times as long.


@entry_point(MATRIX, *STANDARDISED, MATRIX, written("f8", 2))
def add_products(Z, column, scaling, zero, V, out):
    """Add ``(U - zero) @ V`` to `out`, (rows, outputs)."""
    for row in range(len(Z)):
        for j in range(len(column)):
            z = Z[row, column[j]]
            if z != 0.0:
                factor = _standardised(z, scaling[j]) - zero[j]
                for k in range(out.shape[1]):
                    out[row, k] += factor * V[j, k]


@entry_point(*ENTRIES, *STANDARDISED, MATRIX, written("f8", 2))
def add_products_sparse(indptr, indices, data, column, scaling, zero, V, out):
    """See `add_products`."""
    for j in range(len(column)):
        for entry in range(indptr[column[j]], indptr[column[j] + 1]):
            if data[entry] != 0.0:
                factor = _standardised(data[entry], scaling[j]) - zero[j]
                for k in range(out.shape[1]):
                    out[indices[entry], k] += factor * V[j, k]


@entry_point(MATRIX, *STANDARDISED, MATRIX, written("f8", 2))
def add_moments(Z, column, scaling, zero, G, out):
    """Add ``(U - zero)' @ G`` to `out`, (columns, outputs)."""
    for row in range(len(Z)):
        for j in range(len(column)):
            z = Z[row, column[j]]
            if z != 0.0:
                factor = _standardised(z, scaling[j]) - zero[j]
                for k in range(out.shape[1]):
                    out[j, k] += factor * G[row, k]


@entry_point(*ENTRIES, *STANDARDISED, MATRIX, written("f8", 2))
def add_moments_sparse(indptr, indices, data, column, scaling, zero, G, out):
    """See `add_moments`."""
    for j in range(len(column)):
        for entry in range(indptr[column[j]], indptr[column[j] + 1]):
            if data[entry] != 0.0:
                factor = _standardised(data[entry], scaling[j]) - zero[j]
                for k in range(out.shape[1]):
                    out[j, k] += factor * G[indices[entry], k]


@entry_point(*ENTRIES, INT64S, INT, INT, written("f8", 2))
def fill(indptr, indices, data, columns, begin, end, out):
    """Write some columns of rows ``begin .. end - 1`` into `out`, (rows, columns), which is zero."""
    for place in range(len(columns)):
        last = indptr[columns[place] + 1]
        k, behind = indptr[columns[place]], last
        while k < behind:  # the first entry of these rows, by bisection
            middle = (k + behind) // 2
            if indices[middle] < begin:
                k = middle + 1
            else:
                behind = middle
        while k < last and indices[k] < end:
            out[indices[k] - begin, place] = data[k]
            k += 1
