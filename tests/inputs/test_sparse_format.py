"""Sparse matrices, categories and columns of Arrow whose arrays contradict each other are refused by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.inputs.schema import learn_schema
from boostbp.inputs.sparse_format import check_format

FAR = 10**8  # beyond the memory of the process
CELLS = np.where(np.random.default_rng(0).random((60, 6)) < 0.4, 1.5, 0.0)
QUICK = {"n_estimators": 3, "deep": False, "early_stopping": False}


def with_entry(form, array, value, at=3):
    X = sp.csr_array(CELLS).asformat(form)
    getattr(X, array)[at] = value
    return X


def with_array(form, array, change):
    X = sp.csr_array(CELLS).asformat(form)
    setattr(X, array, change(getattr(X, array)))
    return X


def with_row(columns, values):
    X = sp.lil_array(CELLS)
    X.rows[3], X.data[3] = columns, values
    return X


MALFORMED = {
    "csr, column": lambda: with_entry("csr", "indices", FAR),
    "csr, column just beyond": lambda: with_entry("csr", "indices", 6),
    "csr, negative column": lambda: with_entry("csr", "indices", -FAR),
    "csc, row": lambda: with_entry("csc", "indices", FAR),
    "bsr, column": lambda: with_entry("bsr", "indices", FAR),
    "coo, row": lambda: with_entry("coo", "row", FAR),
    "coo, column": lambda: with_entry("coo", "col", -FAR),
    "lil, column": lambda: with_row([FAR], [1.0]),
    "lil, fewer values": lambda: with_row([1, 2, 3], [1.0]),
    "lil, no row": lambda: with_row(None, [1.0]),
    "lil, more rows": lambda: with_array("lil", "rows", lambda rows: np.concatenate([rows] * 1000)),
    "dia, fewer diagonals": lambda: with_array("dia", "data", lambda data: data[:1]),
    "offset": lambda: with_entry("csr", "indptr", FAR),
    "negative offset": lambda: with_entry("csr", "indptr", -FAR),
    "falling offsets": lambda: with_entry("csr", "indptr", 60),
    "first offset": lambda: with_entry("csr", "indptr", 1, at=0),
    "last offset": lambda: with_entry("csr", "indptr", FAR, at=-1),
    "fewer offsets": lambda: with_array("csr", "indptr", lambda offsets: offsets[:10]),
    "fewer values": lambda: with_array("csr", "data", lambda data: data[:10]),
    "columns of values": lambda: with_array("csr", "data", lambda data: data[:, None]),
    "indices of floats": lambda: with_array("csr", "indices", lambda indices: indices.astype(float)),
    "smaller shape": lambda: with_array("csr", "_shape", lambda shape: (shape[0], 3)),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_sparse_matrix_is_refused(name):
    with pytest.raises(ValueError, match=r"^X is a malformed \w+ matrix .*coo_array\(\(values, \(rows, columns\)\)"):
        learn_schema(BaseEstimator(), MALFORMED[name]())


def test_an_index_outside_is_named():
    with pytest.raises(ValueError, match="its column indices hold 6, outside 0 to 5"):
        check_format(MALFORMED["csr, column just beyond"](), "X")


def test_every_argument_that_may_be_sparse_is_checked():
    good, bad, y = sp.csr_array(CELLS), MALFORMED["csr, column"](), CELLS[:, 0]
    labels = with_entry("csr", "indices", FAR).astype(bool).astype(int)
    model = BoostBPRegressor(**QUICK).fit(good, y)
    for use in (
        lambda: BoostBPRegressor(**QUICK).fit(bad, y),
        lambda: BoostBPRegressor(**QUICK).fit(good, y, eval_set=(bad, y)),
        lambda: model.predict(bad),
        lambda: model.predict(iter([bad])),
        lambda: model.jacobian(bad),
        lambda: model.refit(bad, y),
        lambda: BoostBPClassifier(**QUICK).fit(CELLS, labels),
    ):
        with pytest.raises(ValueError, match=r"(X|y) is a malformed csr matrix"):
            use()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("shape", [(60, 6), (0, 6), (6, 0), (1, 1)])
def test_whole_matrices_of_every_format_pass(form, shape):
    X = sp.csr_array(CELLS[: shape[0], : shape[1]]) if all(shape) else sp.csr_array(shape)
    if form != "bsr" or all(shape):
        X = X.asformat(form)
    np.testing.assert_array_equal(check_format(X, "X").toarray(), X.toarray())


def test_unusual_arrays_that_are_whole_pass_without_a_copy():
    for change in (np.int16, np.uint32, np.int64, ">i4"):
        X = with_array("csr", "indices", lambda indices, change=change: indices.astype(change))
        assert check_format(X, "X") is X
    X = with_array("csc", "indices", lambda indices: np.append(indices, FAR))  # room for more entries
    X.data = np.append(X.data, 0.0)
    assert check_format(X, "X") is X


@pytest.mark.parametrize("code", [-2, 2, 100])
def test_codes_beyond_the_categories_are_refused(code):
    column = pd.Categorical.from_codes(np.array([0, 1] * 29 + [0, code], np.int8), ["a", "b"], validate=False)
    for use in (
        lambda: learn_schema(BaseEstimator(), pd.DataFrame({"c": column})),
        lambda: BoostBPClassifier(**QUICK).fit(CELLS, pd.Series(column)),
    ):
        with pytest.raises(ValueError, match=r"is malformed, with codes from .* of 2 categories"):
            use()


def test_columns_of_arrow_with_offsets_beyond_their_text_are_refused():
    pa = pytest.importorskip("pyarrow")
    ends = np.arange(61, dtype=np.int32)
    ends[5] = 10**9
    text = pa.Array.from_buffers(pa.string(), 60, [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"ab" * 30)])
    codes = pa.array([0, 1] * 29 + [FAR, -7], pa.int32())
    for column in (text, pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False)):
        with pytest.raises(ValueError, match=r"Column 'c' is malformed: build it again, as by pyarrow.array"):
            learn_schema(BaseEstimator(), pa.table({"c": column}))
