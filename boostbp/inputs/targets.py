"""Targets, sample weights, offsets and groups of rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets

from boostbp.inputs.categories import NEARLY_ALL, SPELT_KINDS, text_in
from boostbp.inputs.conversions import SHOWN, code_for_dates
from boostbp.inputs.matrices import matrix_of
from boostbp.inputs.sources import ArrayColumn, Column, FrameColumn, is_frame, open_source
from boostbp.inputs.sparse_format import check_format
from boostbp.runtime import checks, messages
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

_LENIENT = {"ensure_2d": False, "ensure_all_finite": False}
# Limit on the sizes of targets, and the inverse of the lower limit: weighted squares then fit float64.
LARGEST = 1e100
# Limit on the largest weight, and the inverse of its lower limit: libraries store weights in float32.
HEAVIEST = 1e30


def read_target(y: ArrayLike | None, n_rows: int, *, labels: bool = False) -> NDArray[Any]:
    """Read the target of `n_rows` rows: class labels, (rows,), or numbers, (rows,) or (rows, outputs).

    With `labels`, (rows, labels) of 0 and 1 says which of several labels each row has; it may be sparse, and has two
    columns or more. Numbers become float64, C-contiguous; labels keep their dtype. Warns of a column, (rows, 1), and of
    bools instead of numbers. Raises ValueError if `y` is None, has another number of rows, contains missing, infinite
    or extreme values, or is of the other kind. Text is never read as numbers.
    """
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    table: Any = check_format(y, "y").toarray() if labels and sp.issparse(y) else y
    values = _frame_values(table, labels) if is_frame(table) else array_of(table, "y")
    if values.ndim == 2 and values.shape[1] == 1:
        cure = "Please change the shape of y to (n_samples,), for example using numpy.ravel(y)."
        messages.warn(f"A column-vector y was passed when a 1d array was expected. {cure}", DataConversionWarning)
        values = values[:, 0]
    check_consistent_length(range(n_rows), values)
    return _labels(values) if labels else _numbers(values)


def label_names(y: object) -> tuple[str, ...] | None:
    """Return the names of the columns of a target; None unless it is a frame whose names are strings."""
    return open_source(y).names if is_frame(y) else None


def _frame_values(y: object, labels: bool) -> NDArray[Any]:
    """Return the target in a frame, (rows, columns): numbers, labels in one column, or a column of 0 and 1 for each."""
    columns = target_columns(y, "y")
    if len(columns) == 1:
        return _of_column(columns[0])[:, None]
    if labels and any(column.text() is not None for column in columns):
        first = [column.label.removeprefix("y: ") for column in columns[:2]]
        named = ", ".join([*first, *["..."] * (len(columns) > 2)])
        _refuse_several(f"{len(columns)} columns ({named})")
    if labels:
        return np.column_stack([column.numbers() for column in columns])
    for column in columns:
        if column.text() is not None:
            refuse_text(np.array(column.factors.values, object), column.label)
    return matrix_of([column.numbers() for column in columns])


def target_columns(y: object, name: str) -> Sequence[Column]:
    """Return the columns of a target in a frame, which errors call by the `name` of the target and their own."""
    columns = open_source(y).columns
    for column in columns:
        column.label = f"{name}: {column.label}"
    return columns


def _labels(values: NDArray[Any]) -> NDArray[Any]:
    if values.ndim != 1:
        return _indicators(values)
    cure = "Drop these rows, or give them a class."
    if values.dtype.kind == "f":
        refuse_where(~np.isfinite(values), values, "y", cure)
    elif values.dtype.kind == "O":
        factors = ArrayColumn(values, "y").factors
        refuse_where(factors.place < 0, values, "y", cure)
        if len({isinstance(value, str) for value in factors.values}) > 1:
            kinds = sorted({type(value).__name__ for value in factors.values})
            raise ValueError(f"y holds labels of type {' and '.join(kinds)}: make all of them text, or numbers.")
    elif values.dtype.kind in "mM":
        raise ValueError(f"y has dtype {values.dtype}: {_as_numbers('y', values.dtype.kind)}.")
    check_classification_targets(values)
    return values


def _indicators(values: NDArray[Any]) -> NDArray[Any]:
    """Return which labels each row has, (rows, labels) of 0 and 1."""
    shape = f"an array of shape {values.shape}"
    if values.ndim != 2 or values.dtype.kind not in "biufO" or {str, bytes} & set(map(type, values.flat)):
        _refuse_several(shape)
    floats = _finite(values, "y", "Drop these rows, or give them labels.")
    if len(others := np.setdiff1d(floats, [0.0, 1.0])):
        _refuse_several(f"{shape} that holds {others[0]:g}")
    return floats if values.dtype.kind == "O" else values


def _numbers(values: NDArray[Any]) -> Floats:
    if values.dtype.kind == "b" or (values.dtype.kind == "O" and set(map(type, values.ravel())) <= {bool, np.bool_}):
        cure = "use BoostBPClassifier, or numpy.asarray(y, float)"
        messages.warn(f"y holds bools, which a regressor reads as 1 and 0: {cure}.")
    floats = _finite(values, "y", "Drop these rows, or fill them in.")
    refuse_extreme(floats, "y")
    return floats


def read_weight(sample_weight: ArrayLike | None, n_rows: int) -> Floats:
    """Read the weights of the rows, (rows,) float64; None means ones, and a number is the weight of all rows.

    Raises ValueError if a weight is negative, missing, infinite or text, all are zero, the largest is above 1e30 or
    below 1e-30, or there are not `n_rows`. One of several workers may have only zeros.
    """
    if isinstance(sample_weight, str):
        cure = "give a number for each row, or class_weight='balanced' to the classifier"
        raise ValueError(f"sample_weight={sample_weight!r} is text: {cure}.")
    if sample_weight is None or isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, 1.0 if sample_weight is None else sample_weight)
    values = _one_axis(sample_weight, "sample_weight", n_rows)
    weight = _finite(values, "sample_weight", "Drop these rows, or give them weight 0.")
    refuse_where(weight < 0, weight, "sample_weight", "Weights must be 0 or more.", "negative values")
    [largest] = workers().max(weight.max(initial=0.0))
    if not largest > 0:
        raise ValueError("sample_weight is zero for every row: at least one weight must be non-zero.")
    if not 1 / HEAVIEST <= largest <= HEAVIEST:
        raise ValueError(f"sample_weight has the largest value {largest:.3g}, beyond float32: divide them by it.")
    return weight


def read_offset(offset: ArrayLike, n_rows: int, n_outputs: int, name: str = "offset") -> Floats:
    """Read an offset of raw outputs, (rows,) or (rows, outputs), as (rows, outputs) float64; errors have its `name`."""
    shape = f"({n_rows},)" if n_outputs == 1 else f"({n_rows}, {n_outputs}), one number for each output"
    if isinstance(offset, str) or np.ndim(offset) == 0:
        raise ValueError(f"{name}={offset!r} is not an array: give a number for each row, {shape}.")
    if is_frame(offset):
        offset = matrix_of([column.numbers() for column in open_source(offset).columns])
    values = floats_of(array_of(offset, name), name)
    if values.shape not in ((n_rows,), (n_rows, 1), (n_rows, n_outputs)) or values.size != n_rows * n_outputs:
        raise ValueError(f"{name} has shape {values.shape}: give {shape}.")
    values = _finite(values, name, "Drop these rows, or give them an offset, such as 0.")
    refuse_where(np.abs(values) > LARGEST, values, name, "Float64 does not hold its square.", "large numbers")
    return values.reshape(n_rows, n_outputs)


def read_numbers(values: ArrayLike, n_rows: int, name: str) -> Floats:
    """Read numbers of rows, (rows,) or (rows, columns); ValueError if they are text, or not `n_rows`."""
    numbers = floats_of(array_of(values, name), name)
    check_consistent_length(range(n_rows), numbers)
    return numbers


def read_groups(groups: ArrayLike, n_rows: int, name: str = "groups") -> NDArray[np.integer]:
    """Read the groups of rows, numbers or text, as group numbers, (rows,); each row must have one."""
    if isinstance(groups, str) or np.ndim(groups) == 0:
        raise ValueError(f"{name}={groups!r} is not known: give the group of each row, (rows,), such as a column of X.")
    values = _one_axis(groups, name, n_rows)
    place = ArrayColumn(values.astype(object) if values.dtype.kind in "mMSU" else values, name).factors.place
    refuse_where(place < 0, values, name, "Drop these rows, or give each a group of its own.")
    return place


def weights_in_rows(weight: Floats) -> Floats:
    """Return weights, (rows,), as numbers of rows, the unit of penalties.

    Weights with a mean below 1, such as shares that sum to 1, are scaled to a mean of 1: otherwise penalties would
    shrink models to the mean of the target. Others are unchanged, as a weight of 2 equals the row twice.
    """
    used = weight[weight > 0]
    total, n_rows = workers().sum(used.sum(), float(len(used)))
    return weight / min(total / n_rows, 1.0)


def refuse_extreme(values: Floats, name: str) -> None:
    """Refuse numbers whose squares overflow or underflow float64: columns above 1e100, or below 1e-100 and not 0."""
    largest = np.atleast_1d(np.abs(values).max(axis=0, initial=0.0))
    wrong = largest[(largest > LARGEST) | ((largest > 0) & (largest < 1 / LARGEST))]
    if len(wrong):
        raise ValueError(f"{name} holds numbers of size {wrong[0]:.3g}, with squares beyond float64: rescale them.")


def refuse_text(values: NDArray[Any], name: str) -> None:
    """Refuse text instead of numbers, even if it spells numbers: a text column is often passed by mistake."""
    texts = values.ravel().tolist() if values.dtype.kind in "SUTO" else ()
    if texts := [value for value in texts if isinstance(value, (str, bytes))]:
        raise ValueError(f"{name} holds text, such as {texts[0]!r}: numbers are needed. {_cure_of_text(texts, name)}.")


def _cure_of_text(texts: list[str | bytes], name: str) -> str:
    decoded = [text if isinstance(text, str) else text.decode(errors="replace") for text in texts]
    for _, spells, code in SPELT_KINDS:
        spelt = [text for text in decoded if spells(text)]
        if len(spelt) >= NEARLY_ALL * len(texts):
            others = list(dict.fromkeys(decoded).keys() - spelt)
            rows = f", without the rows that hold {', '.join(map(repr, others[:SHOWN]))}" if others else ""
            return f"Turn it into numbers{rows}: {code(spelt, others, name if name.isidentifier() else 'column')}"
    return "Labels of classes need a classifier" if name.startswith("y") else "Give numbers"


def array_of(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return a list, array or column as an array of one or two axes, of any dtype; missing text is None."""
    if isinstance(values, (list, tuple)):
        # together with strings, None and NaN would become strings
        values = values if set(map(type, values)) <= {str} or text_in(values) is None else np.asarray(values, object)
    elif not isinstance(values, np.ndarray) and not sp.issparse(values):
        import narwhals as nw

        if nw.dependencies.is_into_series(values):
            values = _of_column(FrameColumn(nw.from_native(values, series_only=True), name))
    if isinstance(values, np.ma.MaskedArray):
        values = np.where(np.ma.getmaskarray(values), np.array(None), values.data)
    try:
        array = check_array(values, dtype=None, input_name=name, **_LENIENT)
    except ValueError:
        _refuse_cells(values if isinstance(values, (list, tuple)) else (), name)  # lists of different lengths
        raise
    if array.dtype.kind == "O" and array.ndim == 1:
        _refuse_cells(array, name)
    return array


def _refuse_cells(cells: Iterable[object], name: str) -> None:
    """Refuse cells that are dates, or hold several values, such as tuples of labels."""
    for cell in {type(cell): cell for cell in cells}.values():
        if isinstance(cell, dt.date | dt.timedelta):
            kind = "m" if isinstance(cell, dt.timedelta) else "M"
            raise ValueError(f"{name} holds dates, such as {cell!r}: {_as_numbers(name, kind)}.")
        if checks.is_container(cell):
            cure = "for labels, pass sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)"
            cure += "; for events and times, pandas.DataFrame([*y], columns=['event', 'time'])"
            cure = cure if name == "y" else "give one value in each"
            raise ValueError(f"{name} holds several values in a cell, such as {checks.shown(cell)}: {cure}.")


def _one_axis(values: ArrayLike, name: str, n_rows: int) -> NDArray[Any]:
    values = array_of(values, name)
    if values.ndim != 1:
        raise ValueError(f"{name} must be a 1D array, (rows,); got shape {values.shape}.")
    check_consistent_length(range(n_rows), values)
    return values


def _of_column(column: Column) -> NDArray[Any]:
    if isinstance(column, FrameColumn) and column.dtype in ("Array", "List", "Object", "Struct"):
        _refuse_cells(column.series.to_list(), column.label)
    if not column.is_categorical:
        return column.numbers()
    place, values, _ = column.factors
    if text_in(values) is None and (place >= 0).all():
        return np.asarray(values)[place]
    return np.array([*values, None], object)[place]


def floats_of(values: NDArray[Any], name: str) -> Floats:
    """Return an array of any dtype as float64; raise ValueError for text and dates."""
    if values.dtype.kind in "mM":
        raise ValueError(f"{name} has dtype {values.dtype}: {_as_numbers(name, values.dtype.kind)}.")
    refuse_text(values, name)
    try:
        return check_array(values, dtype=np.float64, order="C", input_name=name, **_LENIENT)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must hold numbers: {error}") from error


def _as_numbers(name: str, kind: str) -> str:
    """Return how to turn dates, of NumPy's kind "M", or durations, "m", into numbers, for a message."""
    name = name if name.isidentifier() else "column"
    days = f"numpy.array({name}, 'm8[us]') / numpy.timedelta64(1, 'D')" if kind == "m" else code_for_dates((), (), name)
    return f"turn it into numbers, such as days: {days}; or, if it has labels, into text: numpy.array({name}, str)"


def _finite(values: NDArray[Any], name: str, cure: str) -> Floats:
    floats = floats_of(values, name)
    refuse_where(~np.isfinite(floats), floats, name, cure)
    return floats


def _refuse_several(received: str) -> NoReturn:
    cure = "For several targets with classes, use sklearn.multioutput.MultiOutputClassifier(BoostBPClassifier())"
    takes = "a classifier has one target, or several labels as columns of 0 and 1, as MultiLabelBinarizer makes them"
    raise ValueError(f"y should be a 1d array of labels, got {received} instead: {takes}. {cure}.")


def refuse_where(bad: NDArray[np.bool_], values: NDArray[Any], name: str, cure: str, kind: str = "") -> None:
    """Raise ValueError if a value in an array of any shape is bad: of `kind` or, by default, infinite or missing."""
    if bad.any():
        rows = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))
        infinite = values.dtype.kind == "f" and not np.isnan(values[bad]).any()
        kind = kind or ("infinity" if infinite else "NaN")
        first = f"the first in row {rows[0]} (counted from 0), which holds {values[rows[0]]}"
        raise ValueError(f"Input {name} contains {kind}: {len(rows)} of {len(bad)} rows, {first}. {cure}")
