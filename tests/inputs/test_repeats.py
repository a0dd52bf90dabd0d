"""Row hashes: equal for equal rows, and different for all others."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from boostbp.inputs.repeats import row_hashes

tables = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(width=16))


@given(tables, st.randoms(use_true_random=False))
def test_equal_rows_have_equal_hashes_and_no_others(X, random):
    hashes = row_hashes(X)
    equal = [[np.array_equal(a, b, equal_nan=True) for a in X] for b in X]
    np.testing.assert_array_equal(hashes[:, None] == hashes, equal)
    order = random.sample(range(len(X)), len(X))
    np.testing.assert_array_equal(row_hashes(X[order]), hashes[order])


def test_values_in_other_columns_or_rows_have_other_hashes():
    X = np.random.default_rng(0).normal(size=(200, 3))
    assert len(np.unique(row_hashes(X))) == 200
    assert not np.isin(row_hashes(X[:, ::-1]), row_hashes(X)).any()
    assert not np.isin(row_hashes(X + 1e-12), row_hashes(X)).any()
