"""Targets and weights of every container, and what is refused of them."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.exceptions import DataConversionWarning

from boostbp.estimators.classifier import check_classes
from boostbp.inputs.targets import read_target, read_weight

NAN = np.nan
NUMBERS = [1.0, 0.0, 2.0]
LABELS = ["b", "a", "b"]
INDICATORS = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 1]])


@given(
    arrays(
        st.sampled_from([np.int8, np.float32, np.float64]),
        array_shapes(max_dims=2, min_side=2),
        elements={"min_value": 0, "max_value": 1},
    )
)
def test_arrays_of_numbers_read_as_float64(y):
    y[y < 1e-100] = 0  # which are refused
    for given_y in (y, np.asfortranarray(y), y.astype(object), y.tolist()):
        target = read_target(given_y, len(y))
        np.testing.assert_array_equal(target, y.astype(np.float64))
        assert target.dtype == np.float64
        assert target.flags.c_contiguous


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(NUMBERS, index=[7, 8, 9]),
        pd.Series(NUMBERS, dtype="Int64"),
        pd.Series(NUMBERS, dtype="double[pyarrow]"),
        pd.Series(NUMBERS, dtype=object),
        pd.Series(NUMBERS, dtype="category"),
        pl.Series(NUMBERS),
        pl.Series(NUMBERS, dtype=pl.Decimal(10, 2)),
        pa.array(NUMBERS),
        pa.chunked_array([NUMBERS[:1], NUMBERS[1:]]),
        tuple(NUMBERS),
    ],
)
def test_series_of_numbers_read_alike(y):
    np.testing.assert_array_equal(read_target(y, 3), NUMBERS)
    np.testing.assert_array_equal(read_weight(y, 3), NUMBERS)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_of_numbers_have_an_output_for_each_column(make):
    target = read_target(make({"a": NUMBERS, "b": [1, 2, 3]}), 3)
    np.testing.assert_array_equal(target, np.column_stack([NUMBERS, [1, 2, 3]]))


@pytest.mark.parametrize("y", [np.array(NUMBERS)[:, None], pd.DataFrame({"y": NUMBERS}), pl.DataFrame({"y": NUMBERS})])
@pytest.mark.parametrize("labels", [False, True])
def test_one_column_is_read_as_one_axis_with_a_warning(y, labels):
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array was expected"):
        target = read_target(y, 3, labels=labels)
    np.testing.assert_array_equal(target, NUMBERS)


@pytest.mark.parametrize(
    "y",
    [
        LABELS,
        np.array(LABELS),
        np.array(LABELS, object),
        pd.Series(LABELS),
        pd.Series(LABELS, dtype=object),
        pd.Series(LABELS, dtype="category"),
        pl.Series(LABELS),
        pl.Series(LABELS, dtype=pl.Categorical),
        pl.Series(LABELS, dtype=pl.Enum(["a", "b", "z"])),
        pa.chunked_array([LABELS]),
        pa.chunked_array([pa.array(LABELS).dictionary_encode()]),
    ],
)
def test_labels_of_every_container_are_the_same_strings(y):
    labels = read_target(y, 3, labels=True)
    assert labels.tolist() == LABELS
    classes, number = np.unique(labels, return_inverse=True)
    assert classes.tolist() == ["a", "b"]
    assert number.tolist() == [1, 0, 1]


@pytest.mark.parametrize("dtype", ["int64", "Int64", "int8[pyarrow]", "bool", "boolean", "category"])
def test_labels_keep_their_kind(dtype):
    labels = read_target(pd.Series([1, 0, 1]).astype(dtype), 3, labels=True)
    assert labels.dtype.kind == ("b" if dtype.startswith("bool") else "i")
    assert labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, NAN, NAN], r"Input y contains NaN: 2 of 3 rows, the first in row 1 .*Drop these rows"),
        ([1.0, np.inf, 2.0], r"Input y contains infinity: 1 of 3 rows, the first in row 1"),
        ([[1.0, 2.0], [3.0, NAN], [NAN, NAN]], r"Input y contains NaN: 2 of 3 rows, the first in row 1"),
        (pl.Series([1, None, 2]), "Input y contains NaN: 1 of 3 rows"),
        (pd.Series([1, pd.NA, 2], dtype="Int64"), "Input y contains NaN: 1 of 3 rows"),
        ([1.0, None, 2.0], "Input y contains NaN: 1 of 3 rows"),
        (np.ma.masked_array([1, 2, 3], [False, True, False]), "Input y contains NaN: 1 of 3 rows, the first in row 1"),
        (["1", "x", "2"], "y holds text, such as '1': numbers are needed.*Labels of classes need a classifier"),
        (np.array([1, 2, 3], "M8[D]"), "y has dtype datetime64"),
        (pd.Series(pd.date_range("2020", periods=3)), "y has dtype Datetime"),
        (np.array([1j, 2, 3]), "Complex data not supported"),
        ([1.0, 2.0], r"inconsistent numbers of samples: \[3, 2\]"),
        (np.zeros((3, 2, 2)), "Found array with dim 3"),
        (np.zeros((3, 0)), r"0 feature\(s\)"),
        (None, "requires y to be passed, but the target y is None"),
    ],
)
def test_targets_that_are_no_finite_numbers_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        read_target(y, 3)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", None, "b"], "Input y contains NaN: 1 of 3 rows, the first in row 1.*give them a class"),
        (["a", NAN, "b"], "Input y contains NaN: 1 of 3 rows"),
        (pd.Series(["a", None, "b"], dtype="category"), "Input y contains NaN: 1 of 3 rows"),
        (pl.Series(["a", None, "b"]), "Input y contains NaN: 1 of 3 rows"),
        ([0.0, 1.0, NAN], "Input y contains NaN: 1 of 3 rows, the first in row 2"),
        ([0.0, 1.0, np.inf], "Input y contains infinity"),
        ([0.5, 1.25, 2.0], "Unknown label type: continuous"),
        ([[0, 2], [1, 0], [1, 1]], r"y should be a 1d array of labels, got an array of shape \(3, 2\)"),
        (np.array([{1}, {2}, {3}], object), r"y holds several values in a cell, such as \{"),
        (np.array([dt.date(2020, 1, 1)] * 3), "y holds dates"),
        (np.array([1, 2, 3], "M8[D]"), r"y has dtype datetime64\[D\]: .*, if it has labels, into text"),
        (np.array(["a", 1, 2], object), "y holds labels of type int and str: make all of them text, or numbers"),
        (["a", "b"], r"inconsistent numbers of samples: \[3, 2\]"),
        (INDICATORS + 1, r"got an array of shape \(3, 3\) that holds 2.*MultiOutputClassifier"),
        (INDICATORS.astype(str), r"got an array of shape \(3, 3\) instead.*MultiOutputClassifier"),
        (np.where(INDICATORS == 1, "yes", None), r"got an array of shape \(3, 3\) instead"),
        (np.where(INDICATORS == 1, np.nan, 1.0), "Input y contains NaN.*or give them labels"),
        (pd.DataFrame(INDICATORS).astype("Int64").where(INDICATORS == 1), "Input y contains NaN"),
        (INDICATORS[:2], "inconsistent numbers of samples"),
    ],
)
def test_targets_that_are_no_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        read_target(y, 3, labels=True)


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"p": LABELS, "q": LABELS}, r"2 columns \(Column 'p', Column 'q'\)"),
        ({"p": [0, 1, 0], "q": LABELS}, r"2 columns \(Column 'p', Column 'q'\)"),
        ({"p": [0.5, 1.0, 0.0], "q": LABELS, "r": LABELS}, r"3 columns \(Column 'p', Column 'q', \.\.\.\)"),
    ],
)
def test_frames_of_several_columns_of_labels_are_refused_as_such(container, columns, named):
    with pytest.raises(ValueError, match=rf"1d array of labels, got {named}.*one target.*MultiOutputClassifier"):
        read_target(container(columns), 3, labels=True)
    assert read_target(container({"q": columns["q"]})["q"], 3, labels=True).tolist() == columns["q"]


@pytest.mark.parametrize(
    ("y", "dtype"),
    [
        (INDICATORS, np.int64),
        (INDICATORS.astype(np.float32), np.float32),
        (INDICATORS.astype(bool).tolist(), bool),
        (sp.csr_array(INDICATORS), np.int64),
        (sp.csc_matrix(INDICATORS.astype(np.uint8)), np.uint8),
        (pd.DataFrame(INDICATORS, columns=list("bca")), np.int64),
        (pd.DataFrame(INDICATORS.astype(bool)), bool),
        (pd.DataFrame(INDICATORS).astype("Int64"), np.int64),
        (pl.DataFrame(INDICATORS), np.int64),
        (pa.table({"b": [0, 0, 1], "c": [1, 0, 0], "a": [True, False, True]}), np.int64),
        (INDICATORS.astype(object), np.float64),
    ],
)
def test_several_labels_are_a_column_of_0_and_1_each_in_any_container(y, dtype):
    read = read_target(y, 3, labels=True)
    assert read.dtype == dtype
    np.testing.assert_array_equal(read, INDICATORS)


NUMERALS = ["1.5", "0", "2"]


@pytest.mark.parametrize(
    "y",
    [
        NUMERALS,
        tuple(NUMERALS),
        np.array(NUMERALS),
        np.array(NUMERALS, "S"),
        np.array(NUMERALS, object),
        np.array(NUMERALS, np.dtypes.StringDType()),
        np.array(["1.5", 0.0, 2], object),
        [1.5, 0.0, "2"],
        pd.Series(NUMERALS),
        pd.Series(NUMERALS, dtype=object),
        pd.Series(NUMERALS, dtype="category"),
        pl.Series(NUMERALS),
        pl.Series(NUMERALS, dtype=pl.Categorical),
        pa.array(NUMERALS),
        pa.array(NUMERALS).dictionary_encode(),
    ],
    ids=lambda y: type(y).__name__,
)
def test_text_that_spells_numbers_is_no_number(y):
    with pytest.raises(
        ValueError, match=r"^y holds text, such as b?'(1\.5|2)': numbers are needed.*numpy.asarray\(y, float\)"
    ):
        read_target(y, 3)
    with pytest.raises(ValueError, match=r"^sample_weight holds text, such as b?'"):
        read_weight(y, 3)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_column_of_text_among_several_outputs_is_named(make):
    with pytest.raises(ValueError, match=r"^y: Column 'b' holds text, such as '(1.5|2)'"):
        read_target(make({"a": NUMBERS, "b": NUMERALS}), 3)


@pytest.mark.parametrize(
    "y", [np.array([True, False, True]), [True, False, True], np.array([True, False, True], object)]
)
def test_truth_values_are_numbers_with_a_hint(y):
    with pytest.warns(UserWarning, match="^y holds bools, which a regressor reads as 1 and 0: use BoostBPC"):
        np.testing.assert_array_equal(read_target(y, 3), [1, 0, 1])


@pytest.mark.parametrize(
    "classes",
    [
        np.arange(0, 10_200, 200),
        np.array([99.0, *np.geomspace(100, 1e6, 60).round()]),
        np.arange(1950, 2021),
        np.setdiff1d(np.arange(200), [7]),
    ],
    ids=["steps", "prices", "years", "gap"],
)
def test_many_classes_that_are_numbers_are_warned_of(classes):
    first, last = re.escape(str(classes[0])), re.escape(str(classes[-1]))
    with pytest.warns(
        UserWarning,
        match=f"^y has {len(classes)} classes, which are numbers from {first} to {last}: .*BoostBPRegressor",
    ):
        check_classes(classes, 10**6)


@pytest.mark.parametrize(
    "classes",
    [np.arange(300), np.arange(1.0, 101.0), np.arange(0, 500, 10), np.arange(0, 900, 3).astype(str)],
    ids=["numbered", "from 1", "fifty", "text"],
)
def test_labels_are_not(classes):
    check_classes(classes, 10**6)


def test_sparse_targets_are_refused():
    with pytest.raises(TypeError, match="Sparse data was passed for y, but dense data is required"):
        read_target(sp.csr_array(np.eye(3)), 3)


def test_no_weights_and_one_weight_are_one_for_each_row():
    np.testing.assert_array_equal(read_weight(None, 3), [1, 1, 1])
    np.testing.assert_array_equal(read_weight(2, 3), [2, 2, 2])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (
            [1.0, -2.0, -1.0],
            r"sample_weight contains negative values: 2 of 3 rows, the first in row 1 .* holds -2.0\. Weights must be",
        ),
        ([0.0, 0.0, 0.0], "sample_weight is zero for every row"),
        (0, "sample_weight is zero for every row"),
        ([1.0, NAN, 1.0], "Input sample_weight contains NaN: 1 of 3 rows, the first in row 1.*weight 0"),
        ([1.0, np.inf, 1.0], "Input sample_weight contains infinity"),
        ([1.0, 2.0], r"inconsistent numbers of samples: \[3, 2\]"),
        (np.ones((3, 1)), r"sample_weight must be a 1D array, \(rows,\); got shape \(3, 1\)"),
        (["a", "b", "c"], "sample_weight holds text, such as 'a': numbers are needed"),
        ("balanced", "sample_weight='balanced' is text: .* class_weight='balanced'"),
    ],
)
def test_weights_that_weigh_nothing_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        read_weight(weight, 3)
