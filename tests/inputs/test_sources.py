"""Arrays and sparse matrices of any kind, and what is no table at all."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.base import BaseEstimator

from boostbp.inputs.schema import learn_schema
from tests.inputs.test_columns import COLUMNS

NAN = np.nan


DTYPES = [
    bool,
    np.int8,
    np.uint16,
    np.int64,
    np.uint64,
    np.float16,
    np.float32,
    np.float64,
    np.longdouble,
    ">f4",
    ">i8",
    object,
]


@given(st.data(), st.sampled_from(DTYPES), st.sampled_from("CF"), st.booleans())
def test_arrays_of_any_dtype_and_order_read_as_float64(fit, data, dtype, order, reverse):
    X = data.draw(arrays(np.int8, array_shapes(min_dims=2, max_dims=2), elements=st.integers(0, 100)))
    X = np.asarray(X.astype(dtype), order=order)
    X = X[::-1] if reverse else X
    before = X.copy()
    _, table = fit(X)
    np.testing.assert_array_equal(table.X, X.astype(np.float64))
    assert table.categorical == ()
    np.testing.assert_array_equal(X, before)


def test_a_float64_array_is_not_copied():
    X = np.random.default_rng(0).normal(size=(10_000, 20))
    tracemalloc.start()
    table = learn_schema(BaseEstimator(), X)[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.shares_memory(table.X, X)
    assert peak < X.nbytes / 10


def test_encoding_a_column_leaves_the_users_array_alone(fit):
    X = np.array([[7.0, 1.0], [5.0, 2.0], [7.0, NAN]])
    before = X.copy()
    _, table = fit(X, [0])
    np.testing.assert_array_equal(table.X, [[1, 1], [0, 2], [1, NAN]])
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix, sp.coo_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_sparse_zeros_are_zeros(fit, make, dtype):
    dense = np.random.default_rng(1).integers(0, 2, (30, 7)).astype(dtype)
    X = make(dense)
    X.data[::3] = 0  # explicit zeros
    _, table = fit(X)
    np.testing.assert_array_equal(table.X.toarray(), X.toarray())
    if dtype is np.float64:
        X.data[0] = NAN
        np.testing.assert_array_equal(fit(X)[1].X.toarray(), X.toarray())


def test_sparse_entries_that_come_twice_are_added_and_the_users_matrix_stays():
    X = sp.csc_matrix((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), (2, 2))
    table = learn_schema(BaseEstimator(), X)[1]
    np.testing.assert_array_equal(table.X.toarray(), [[0, 5], [3, 0]])
    assert X.nnz == 3


def test_sparse_columns_may_be_categorical(fit):
    X = sp.csr_array([[0.0, 3.0], [5.0, 0.0], [0.0, 3.0]])
    estimator, table = fit(X, [1])
    assert estimator.schema_.categories == {1: (0.0, 3.0)}
    np.testing.assert_array_equal(table.X.toarray(), [[0, 1], [5, 0], [0, 1]])


def test_missing_values_of_objects_and_masks_are_nan(fit):
    objects = np.array([[1, "2"], [None, NAN], [pd.NA, pd.NaT], [Decimal("1.5"), True]], object)
    np.testing.assert_array_equal(fit(objects)[1].X, [[1, 2], [NAN, NAN], [NAN, NAN], [1.5, 1]])
    masked = np.ma.masked_array([[1, 2], [3, 4]], [[False, True], [False, False]])
    np.testing.assert_array_equal(fit(masked)[1].X, [[1, NAN], [3, 4]])


@pytest.mark.parametrize(
    "X", [[["b", 1.5], ["a", None], [None, 2]], np.array([["b", 1.5], ["a", None], [None, 2]], object)]
)
def test_rows_of_strings_and_numbers_need_only_be_named(fit, X):
    estimator, table = fit(X, [True, False])
    assert estimator.schema_.categories == {0: ("a", "b")}
    np.testing.assert_array_equal(table.X, [[1, 1.5], [0, NAN], [NAN, 2]])
    with pytest.raises(
        ValueError, match=r"Column 0 could not be read as numbers \(the first holds 'b'\).*categorical_features"
    ):
        fit(X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros(3), ValueError, "Expected 2D array, got 1D array instead(.|\n)*Reshape your data"),
        (3.0, ValueError, "Expected 2D array, got scalar array"),
        (np.zeros((2, 2, 2)), ValueError, "Found array with dim 3"),
        (pd.Series([1, 2]), ValueError, "Expected a 2-dimensional container"),
        (pl.Series([1, 2]), ValueError, "Expected 2D array, got 1D array"),
        (np.zeros((0, 3)), ValueError, r"Found array with 0 sample\(s\).*minimum of 1 is required"),
        (np.zeros((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        (
            pd.DataFrame(index=range(3)),
            ValueError,
            r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required",
        ),
        (pl.DataFrame(COLUMNS).head(0), ValueError, r"0 sample\(s\)"),
        (np.array([[1j, 0]]), ValueError, "Complex data not supported"),
        (sp.csr_array([[1j, 0]]), ValueError, "Complex data not supported"),
        (np.array([[1, {}]], object), TypeError, "Column 1: float.. argument must be a string or a real number"),
        (np.array([[1, 10**400]], object), ValueError, "Input X contains infinity"),
        (np.array([[1.0, np.inf], [-np.inf, 0.0]]), ValueError, "Input X contains infinity: Column 1, row 0"),
        (
            sp.csc_array([[0.0, 1.0], [-np.inf, 0.0]]),
            ValueError,
            "Input X contains infinity: Column 0, row 1 .* holds -inf",
        ),
        (np.array([["2020-01-01"]], "M8[D]"), ValueError, "dtype datetime64"),
        (pl.LazyFrame(COLUMNS), TypeError, r"X is a LazyFrame of polars.*lazy: pass narwhals.from_native\(X\)"),
        (pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]), ValueError, "several columns of one name"),
    ],
)
def test_inputs_that_are_no_table_are_refused_in_the_words_of_scikit_learn(fit, X, error, message):
    with pytest.raises(error, match=message):
        fit(X)


WITHOUT_TABLE_LIBRARIES = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "polars", "pyarrow"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
from sklearn.base import BaseEstimator
from boostbp.inputs.schema import learn_schema
from boostbp.inputs.targets import read_target, read_weight

X = [["b", 1], ["a", None]]
table = learn_schema(BaseEstimator(), X, categorical_features=[0])[1]
print(table.X.tolist(), read_target([1, 2], 2), read_weight(None, 2))
"""


def test_arrays_need_no_table_library():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TABLE_LIBRARIES], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[[1.0, 1.0], [0.0, nan]] [1. 2.] [1. 1.]"
