"""Targets, sample weights, and groups of rows."""

from __future__ import annotations

from numbers import Real
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets

from boostbp import cautions
from boostbp.backends.base import Table
from boostbp.group import workers
from boostbp.inputs.categories import is_missing, text_in
from boostbp.inputs.columns import ArrayColumn, Column, FrameColumn
from boostbp.inputs.sources import is_frame, matrix_of, open_source

LARGEST = 1e100  # of targets, and its inverse the least: beyond, float64 does not hold weighted squares
HEAVIEST = 1e30  # of weights, and its inverse the least that the largest may be: libraries see them in float32


def read_target(y: Any, n_rows: int, *, labels: bool = False) -> NDArray[Any]:
    """Read a target of an input with so many rows: labels of classes, (rows,), or numbers, (rows,) or (rows, outputs).

    Numbers become float64, C-contiguous; labels stay as they are. A column, (rows, 1), is warned of, as are truth
    values in the place of numbers. Raises ValueError if `y` is None, has another number of rows, holds missing,
    infinite or extreme values, or is not of that kind. Text that spells numbers is text.
    """
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    names = [column.label for column in open_source(y).columns] if labels and is_frame(y) else []
    if len(names) > 1:
        _refuse_several(f"{len(names)} columns ({names[0]}, {names[1]}{', ...' if len(names) > 2 else ''})")
    values = _values(y)
    if values.ndim == 2 and values.shape[1] == 1:
        cautions.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
            "(n_samples,), for example using ravel().",
            DataConversionWarning,
        )
        values = values[:, 0]
    check_consistent_length(range(n_rows), values)
    return _labels(values) if labels else _numbers(values)


def read_weight(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Read the weights of the rows, (rows,) float64: ones for None, and a number for all.

    Raises ValueError if a weight is negative, missing, infinite or text, all are zero, the largest is beyond 1e30 or
    below 1e-30, or there are not `n_rows`. Of several workers, some may have zeros alone.
    """
    if sample_weight is None:
        sample_weight = 1.0
    if isinstance(sample_weight, str):
        raise ValueError(
            f"sample_weight={sample_weight!r} is text: give a number for each row. Weights of classes are a parameter "
            "of the classifier, such as class_weight='balanced'."
        )
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, sample_weight)
    weight = _one_or_two_axes(sample_weight, "sample_weight")
    if weight.ndim != 1:
        raise ValueError(f"sample_weight must be a number or a 1D array, (rows,); got shape {weight.shape}.")
    check_consistent_length(range(n_rows), weight)
    weight = _as_floats(weight, "sample_weight")
    _refuse_where(~np.isfinite(weight), weight, "sample_weight", "Drop these rows, or give them weight 0.")
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(
            f"Negative values in sample_weight: {int((weight < 0).sum())} of {n_rows}, the first in row {row} "
            f"({weight[row]}). Weights must be 0 or more."
        )
    [largest] = workers().max(weight.max(initial=0.0))
    if not largest > 0:
        raise ValueError("sample_weight is zero for every row: at least one weight must be non-zero.")
    if not 1 / HEAVIEST <= largest <= HEAVIEST:
        raise ValueError(
            f"sample_weight has the largest value {largest:.3g}, but trees are grown in float32, which ends at "
            f"1e-38 and 1e38: divide the weights by {largest:.3g}."
        )
    return weight


def read_offset(offset: Any, n_rows: int, n_outputs: int, name: str = "offset") -> NDArray[np.float64]:
    """Read what is added to the raw output of each row, (rows,) or (rows, outputs), as (rows, outputs) float64.

    Raises ValueError, with its `name`, if it is of another shape, or holds text, or what is not finite, or beyond
    1e100.
    """
    wanted = f"({n_rows},)" if n_outputs == 1 else f"({n_rows}, {n_outputs}), one number for each output"
    if isinstance(offset, str) or np.ndim(offset) == 0:
        raise ValueError(f"{name}={offset!r} is not an array: give a number for each row, {wanted}.")
    values = matrix_of([c.numbers() for c in open_source(offset).columns]) if is_frame(offset) else offset
    values = _as_floats(_one_or_two_axes(values, name), name)
    if values.shape not in ((n_rows,), (n_rows, 1), (n_rows, n_outputs)) or values.size != n_rows * n_outputs:
        raise ValueError(f"{name} has shape {values.shape}: give {wanted}.")
    _refuse_where(~np.isfinite(values), values, name, "Drop these rows, or give them an offset, such as 0.")
    largest = np.abs(values).max(initial=0.0)
    if largest > LARGEST:
        raise ValueError(f"{name} holds numbers of size {largest:.3g}, whose squares float64 does not hold.")
    return values.reshape(n_rows, n_outputs)


def read_numbers(values: Any, n_rows: int, name: str) -> NDArray[np.float64]:
    """Read numbers of rows, (rows,) or (rows, columns); ValueError if they are text, or not `n_rows`."""
    numbers = _as_floats(_one_or_two_axes(values, name), name)
    check_consistent_length(range(n_rows), numbers)
    return numbers


def read_groups(groups: Any, n_rows: int) -> NDArray[np.integer]:
    """Read the groups that rows belong to, numbers or text, as a number for each group, (rows,).

    Raises ValueError if a row has no group, or there are not `n_rows`.
    """
    if isinstance(groups, str) or np.ndim(groups) == 0:
        raise ValueError(f"groups={groups!r} is not known: give the group of each row, (rows,), as a column of yours.")
    values = _one_or_two_axes(groups, "groups")
    if values.ndim != 1:
        raise ValueError(f"groups must be a 1D array, (rows,); got shape {values.shape}.")
    check_consistent_length(range(n_rows), values)
    factors = ArrayColumn(values.astype(object) if values.dtype.kind in "mMSU" else values, "groups").factors
    missing = np.array([is_missing(value) for value in factors.values])[factors.place]
    _refuse_where(missing, values, "groups", "Drop these rows, or give each a group of its own.")
    return factors.place


def drop_zero_weight(
    table: Table, y: NDArray[np.float64], weight: NDArray[np.float64]
) -> tuple[Table, NDArray[np.float64], NDArray[np.float64]]:
    """Leave out the rows without weight: they are no rows, and must not count in `min_samples_leaf` either.

    The weights of the others are those of `weights_in_rows`.
    """
    used = weight > 0
    if not used.all():
        table, y, weight = table.take(used), y[used], weight[used]
    return table, y, weights_in_rows(weight)


def weights_in_rows(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights, (rows,), as numbers of rows, which penalties are counted in.

    Those of less than 1 on average, such as shares that sum to 1, are brought to an average of 1: a penalty would leave
    nothing of them but the mean. Others stay, as a weight of 2 is a row twice.
    """
    counted = weight[weight > 0]
    total, n_rows = workers().sum(counted.sum(), float(len(counted)))
    return weight / min(total / n_rows, 1.0)


def refuse_extreme(values: NDArray[np.float64], name: str) -> None:
    """Refuse numbers, (rows,) or (rows, columns), whose squares float64 does not hold.

    Raises ValueError if the largest size in a column is beyond 1e100, or below 1e-100 and not 0.
    """
    largest = np.atleast_1d(np.abs(values).max(axis=0, initial=0.0))
    wrong = largest[(largest > LARGEST) | ((largest > 0) & (largest < 1 / LARGEST))]
    if len(wrong):
        raise ValueError(
            f"{name} holds numbers of size {wrong[0]:.3g}, whose squares float64 does not hold: divide by a constant."
        )


def refuse_text(values: NDArray[Any], name: str) -> None:
    """Refuse text where numbers belong, even if it spells some: a column of it is often another than was meant.

    Raises ValueError if an array of any shape is one of strings or bytes, or of objects of which one is.
    """
    kinds = (str, bytes)
    first = None
    if values.dtype.kind in "SUT":
        first = next(iter(values.ravel().tolist()), None)
    elif values.dtype.kind == "O":
        first = next((value for value in values.ravel() if isinstance(value, kinds)), None)
    if isinstance(first, kinds):
        raise ValueError(
            f"{name} holds text, such as {first!r}: numbers belong there. Turn text that spells them into numbers, as "
            "by .astype(float); labels of classes are for a classifier."
        )


def _values(y: Any) -> NDArray[Any]:
    if is_frame(y):
        columns = open_source(y).columns
        if len(columns) == 1:  # it may hold labels
            return _of_column(columns[0])[:, None]
        for column in columns:
            refuse_text(np.array([column.text()]), f"y: {column.label}")
        return matrix_of([column.numbers() for column in columns])
    return _one_or_two_axes(y, "y")


def _one_or_two_axes(y: Any, name: str) -> NDArray[Any]:
    if isinstance(y, (list, tuple)):
        # beside strings, None and NaN would become strings
        y = y if set(map(type, y)) <= {str} or text_in(y) is None else np.asarray(y, object)
    elif not isinstance(y, np.ndarray) and not sp.issparse(y):
        import narwhals as nw

        if nw.dependencies.is_into_series(y):
            y = _of_column(FrameColumn(nw.from_native(y, series_only=True), name))
    if isinstance(y, np.ma.MaskedArray):
        y = np.where(np.ma.getmaskarray(y), np.array(None), y.data)
    return check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name=name)


def _of_column(column: Column) -> NDArray[Any]:
    if column.is_categorical:
        place, values, _ = column.factors
        if text_in(values) is None and (place >= 0).all():
            return np.asarray(values)[place]
        return np.array([*values, None], object)[place]
    return column.numbers()


def _as_floats(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    if values.dtype.kind in "mM":
        raise ValueError(f"{name} has dtype {values.dtype}: turn it into numbers.")
    refuse_text(values, name)
    try:
        return check_array(
            values, ensure_2d=False, dtype=np.float64, order="C", ensure_all_finite=False, input_name=name
        )
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must hold numbers: {error}") from error


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind == "b" or (values.dtype.kind == "O" and set(map(type, values.ravel())) <= {bool, np.bool_}):
        cautions.warn(
            "y holds True and False, which a regressor takes for 1 and 0: use BoostBPClassifier to predict which of "
            "them, or y.astype(float) if a number is meant."
        )
    floats = _as_floats(values, "y")
    _refuse_where(~np.isfinite(floats), floats, "y", "Drop these rows, or fill them in.")
    refuse_extreme(floats, "y")
    return floats


def _labels(values: NDArray[Any]) -> NDArray[Any]:
    if values.ndim != 1:
        _refuse_several(f"an array of shape {values.shape}")
    if values.dtype.kind == "f":
        _refuse_where(~np.isfinite(values), values, "y", "Drop these rows, or give them a class.")
    elif values.dtype.kind == "O":
        factors = ArrayColumn(values, "y").factors
        missing = np.array([is_missing(value) for value in factors.values])[factors.place]
        _refuse_where(missing, values, "y", "Drop these rows, or give them a class.")
        if len({isinstance(value, str) for value in factors.values}) > 1:
            kinds = sorted({type(value).__name__ for value in factors.values})
            raise ValueError(f"y holds labels of type {' and '.join(kinds)}: make all of them text, or numbers.")
    elif values.dtype.kind in "mM":
        raise ValueError(f"y has dtype {values.dtype}, which are no labels: make them text, as by y.astype(str).")
    check_classification_targets(values)
    return values


def _refuse_several(what: str) -> NoReturn:
    raise ValueError(
        f"y should be a 1d array of labels, got {what} instead: a classifier has one target. Give one column, or fit a "
        "classifier for each, as sklearn.multioutput.MultiOutputClassifier(BoostBPClassifier()) does."
    )


def _refuse_where(bad: NDArray[np.bool_], values: NDArray[Any], name: str, cure: str) -> None:
    if not bad.any():
        return
    rows = np.any(bad.reshape(len(bad), -1), axis=1, keepdims=True)[:, 0]
    infinite = values.dtype.kind == "f" and not np.isnan(values[bad]).any()
    raise ValueError(
        f"Input {name} contains {'infinity' if infinite else 'NaN'}: {int(rows.sum())} of {len(rows)} rows, "
        f"the first in row {int(np.argmax(rows))} (counted from 0). {cure}"
    )
