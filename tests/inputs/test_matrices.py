"""Columns become one matrix, and a cell that is infinite is named."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from boostbp.inputs.matrices import dense_rows, finite_rows, matrix_of, n_row_blocks
from boostbp.inputs.sources import open_source
from boostbp.trees.sparse import CELLS, Sparse

rng = np.random.default_rng(0)


def test_columns_of_any_type_are_one_matrix():
    columns = [rng.integers(0, 9, 9_000).astype(kind) for kind in (np.uint8, np.int64, np.float32)]
    X = matrix_of(columns)
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    np.testing.assert_array_equal(X, np.column_stack(columns))


def test_rows_have_the_columns_that_replace_others():
    block = rng.normal(size=(30, 4)).astype(np.float32)
    X = dense_rows(block, {2: np.arange(30.0)}, slice(10, 20))
    np.testing.assert_array_equal(X, np.column_stack([block[:, :2], np.arange(30.0), block[:, 3]])[10:20])
    assert not np.may_share_memory(X, block)


@pytest.mark.parametrize("wrap", [lambda X: X, lambda X: Sparse.of(sp.csr_matrix(X))])
def test_an_infinite_cell_is_named_by_its_row_of_the_table(wrap):
    X = rng.normal(size=(20, 3))
    source = open_source(X)
    assert finite_rows(wrap(X), source) is not None
    X[4, 1] = -np.inf
    with pytest.raises(ValueError, match=r"Column 1, row 104 \(counted from 0\) holds -inf"):
        finite_rows(wrap(X), source, 100)


def test_blocks_are_limited_by_their_numbers():
    assert n_row_blocks(10, 5, 1) == 1
    assert n_row_blocks(8 * CELLS, 4, 1) == 32
