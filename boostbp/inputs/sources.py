"""Opened inputs of any kind: a block of numbers, or columns that can be read as numbers or as categories."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from boostbp.inputs.categories import Factors, factorize, text_in
from boostbp.inputs.conversions import code_for_dates
from boostbp.inputs.files.parts import is_dataset
from boostbp.inputs.files.tables import TableFiles
from boostbp.inputs.sparse_format import check_format
from boostbp.runtime.arrays import Floats
from boostbp.runtime.messages import named_in_errors, require

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame

DECLARED = ("Categorical", "Enum")  # dtypes of categorical columns, unlike text, which may be anything
_TEXT = (*DECLARED, "String")
NO_NUMBER = ("Array", "Binary", "Date", "Datetime", "Duration", "List", "Struct", "Time")

_name_of = cache(str)  # of a type: there may be many columns


class ArrayColumn:
    """A column of a NumPy array of numbers, strings or objects."""

    is_categorical = False  # the dtype is never categorical

    def __init__(self, values: NDArray[Any], label: str) -> None:
        self.values = values
        self.label = label  # name of the column in errors
        self.dtype = _name_of(values.dtype)

    @cached_property
    def factors(self) -> Factors:
        """Return the column as categories; raise ValueError if an object is not hashable."""
        try:
            return factorize(self.values)
        except TypeError as error:
            raise ValueError(f"{self.label} holds objects that cannot be categories: {error}.") from error

    def text(self) -> str | None:
        """Return a string that is not a number; None if there is none."""
        try:
            self.numbers()
        except ValueError:
            for text in (value for value in self.factors.values if isinstance(value, str)):
                try:
                    float(text)
                except ValueError:
                    return text
        return None

    def numbers(self) -> NDArray[Any]:
        """Return the column as numbers; strings that spell numbers are numbers, and others are refused."""
        return self.values if self.values.dtype.kind in "fiub" else self._floats

    @cached_property
    def _floats(self) -> Floats:
        values = self.values
        if values.dtype.kind == "O":  # pandas' NA and NaT are not floats
            is_na = [type(value).__name__ in ("NAType", "NaTType") for value in values]
            values = np.where(is_na, np.nan, values)
        try:
            return values.astype(np.float64)
        except OverflowError as error:
            raise ValueError(f"Input X contains infinity: {error}.") from error
        except TypeError as error:
            raise TypeError(f"{self.label}: {error}. Turn it into numbers.") from error


class FrameColumn:
    """A column of a data frame, with the members of `ArrayColumn`."""

    def __init__(self, series: nw.Series[Any], label: str) -> None:
        self.series = _without_arrow_dtype(series)
        self.label = label
        if self.series.implementation.is_pyarrow():
            # other functions of Arrow trust its offsets
            with named_in_errors(f"{label} is malformed: build it again, as by pyarrow.array(values)"):
                self.series.to_native().validate(full=True)
        self.dtype = _dtype_of(self.series)
        self._is_pandas = self.series.implementation.is_pandas_like()

    @cached_property
    def is_categorical(self) -> bool:
        """Whether the dtype is categorical or text; a column of objects is if one is a string."""
        return self.dtype in _TEXT or self.text() is not None

    @cached_property
    def factors(self) -> Factors:
        """Return the column as categories."""
        if self._is_pandas:
            return self._factors_by_pandas()
        if self.dtype in NO_NUMBER or self.dtype == "Object":
            raise self._refusal()
        import narwhals as nw

        dtype, series = self.series.dtype, _decoded(self.series)
        if series.dtype.is_float():
            return factorize(series.to_numpy())
        if isinstance(dtype, nw.Enum):
            values = list(dtype.categories)
        else:
            values = series.drop_nulls().unique(maintain_order=True).to_list()
        if not values:
            return Factors(np.full(len(series), -1), [])
        place = series.replace_strict(values, list(range(len(values))), return_dtype=nw.Float64).to_numpy()
        return Factors.of(np.nan_to_num(place, nan=-1).astype(np.int64), values, isinstance(dtype, nw.Enum))

    def _factors_by_pandas(self) -> Factors:
        native = self.series.to_native()
        if self.dtype in DECLARED:
            codes, values = native.cat.codes.to_numpy(), native.cat.categories.tolist()
            if codes.min(initial=-1) < -1 or codes.max(initial=-1) >= len(values):
                cure = "make it anew: pandas.Categorical.from_codes checks them by default"
                fault = f"codes from {codes.min()} to {codes.max()} of {len(values)} categories"
                raise ValueError(f"{self.label} is malformed, with {fault}: {cure}.")
            return Factors.of(codes, values, ordered=True)
        try:
            place, values = native.factorize()
        except (TypeError, OverflowError) as error:  # not hashable; or, in pandas 2, an integer beyond float64
            raise ValueError(f"{self.label} holds objects that cannot be categories: {error}.") from error
        return Factors.of(place, values.tolist())

    def text(self) -> str | None:
        """Return a string among the values; None if there is none."""
        if self.dtype in _TEXT or (self.dtype == "Object" and self._is_pandas):
            return text_in(self.factors.values)
        return None

    def numbers(self) -> NDArray[Any]:
        """Return the column as numbers; raise ValueError if the dtype is not numeric (dates, lists, ...)."""
        import narwhals as nw

        if self.dtype in NO_NUMBER or "complex" in self.dtype:
            raise self._refusal()
        dtype, factors = self.series.dtype, self.factors if self.dtype in (*_TEXT, "Object") else None
        try:
            if factors is not None:
                return np.array([*map(float, factors.values), np.nan])[factors.place]
            if (dtype.is_float() or dtype.is_integer() or self.dtype == "Boolean") and "128" not in self.dtype:
                values = self.series.to_numpy()
                if values.dtype.kind in "fiub":  # bools with missing values are objects
                    return values
            return self.series.cast(nw.Float64).to_numpy()
        except Exception as error:  # each library has its own errors
            raise self._refusal() from error

    def _refusal(self) -> ValueError:
        is_feature = self.label.startswith("Column")  # or a target, or a weight
        cure = "drop it or make it strings" if is_feature else "give one number or label for each row"
        if self.series.dtype.is_temporal():
            series = "pandas.Series(column)" if self.dtype == "Duration" else "pandas.Series(column).astype(str)"
            seconds = f"pandas.to_timedelta({series}).dt.total_seconds()"
            how = code_for_dates((), (), "column") if self.dtype.startswith("Date") else seconds
            cure = f"turn it into numbers: {how}; or into strings"
            cure += " named in categorical_features" if is_feature else ", if it has labels"
        return ValueError(f"{self.label} has dtype {self.dtype}, which holds no numbers: {cure}.")


Column = ArrayColumn | FrameColumn


def _without_arrow_dtype(series: nw.Series[Any]) -> nw.Series[Any]:
    """Return an Arrow-backed column of pandas as an Arrow column, as its accessors differ from those of others."""
    native = series.to_native()
    if not series.implementation.is_pandas() or type(native.dtype).__name__ != "ArrowDtype":
        return series
    import narwhals as nw

    pyarrow = require("pyarrow", extra="frames", what="a column of pandas that Arrow holds")

    values = pyarrow.array(native)
    values = values if isinstance(values, pyarrow.ChunkedArray) else pyarrow.chunked_array([values])
    return nw.from_native(values, series_only=True)


def _dtype_of(series: nw.Series[Any]) -> str:
    native = series.to_native()
    dtype = getattr(native, "dtype", getattr(native, "type", None))
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return "Object"  # narwhals would read the values of pandas' objects to name their type
    name = type(series.dtype).__name__
    return str(dtype) if name == "Unknown" else name


def _decoded(series: nw.Series[Any]) -> nw.Series[Any]:
    """Return categories as their values."""
    import narwhals as nw

    if series.implementation.is_pyarrow():
        # missing values of Arrow's dictionaries become a category in NumPy, and its views cannot be filtered
        native = series.to_native()
        native = native.cast(getattr(native.type, "value_type", native.type))
        native = native.cast("large_string") if str(native.type) == "string_view" else native
        return nw.from_native(native, series_only=True)
    return series.cast(nw.String) if isinstance(series.dtype, (nw.Categorical, nw.Enum)) else series


@dataclass(frozen=True, slots=True)
class Source:
    """An opened input."""

    original: Any  # the input, from which scikit-learn reads names and shape
    columns: Sequence[Column]  # one for each feature; none of a sparse matrix
    names: tuple[str, ...] | None = None  # column names, if the input has names and all are strings
    labels: tuple[str, ...] | None = None  # column names of any type, as `label_of` writes them
    # (rows, features) array or sparse matrix with all columns, if they are numbers of one dtype; otherwise None
    block: Any = None

    def column(self, j: int) -> Column:
        """Return a column, which is dense even if the input is sparse."""
        return self.columns[j] if self.columns else ArrayColumn(self.block[:, [j]].toarray()[:, 0], f"Column {j}")


def is_frame(X: object) -> TypeGuard[IntoDataFrame]:
    """Return whether `X` is a table with named columns (anything that narwhals reads, or an Arrow stream)."""
    if isinstance(X, (np.ndarray, list, tuple)) or sp.issparse(X):
        return False
    import narwhals as nw

    is_stream = hasattr(X, "__arrow_c_stream__") and not nw.dependencies.is_into_series(X)
    return is_stream or nw.dependencies.is_into_dataframe(X)


def open_source(X: object, *, estimator: BaseEstimator | None = None) -> Source:
    """Open an input, (rows, features); only lists and sparse matrices are converted. Errors name the estimator."""
    lenient = {"ensure_all_finite": False, "input_name": "X", "estimator": estimator}
    if is_frame(X):
        return _open_frame(X, lenient)
    if sp.issparse(X):
        X = check_format(X, "X")
        block = check_array(X, accept_sparse=("csr", "csc"), dtype=np.float64, **lenient)
        return Source(block, [], block=block)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    elif isinstance(X, (list, tuple)):
        X = _array_of_rows(X)
    elif not isinstance(X, np.ndarray):
        _refuse_lazy(X)
    values = check_array(X, dtype=None, **lenient)
    if values.dtype.kind in "mMV":
        raise ValueError(f"X has dtype {values.dtype}, which holds no numbers: turn it into numbers.")
    if values.dtype.kind == "T":
        values = values.astype(object)
    columns = [ArrayColumn(column, f"Column {j}") for j, column in enumerate(values.T)]
    return Source(values, columns, block=values if values.dtype.kind in "fiub" else None)


def _array_of_rows(X: list[Any] | tuple[Any, ...]) -> Any:
    try:
        values = np.asarray(X)
    except ValueError:  # rows of different lengths: scikit-learn raises the error
        return X
    # a list of strings and numbers would become strings
    return np.asarray(X, object) if values.dtype.kind in "SU" else values


def _open_frame(X: IntoDataFrame, lenient: dict[str, Any]) -> Source:
    import narwhals as nw

    if not nw.dependencies.is_into_dataframe(X):
        X = nw.from_arrow(X, backend="pyarrow")
    try:
        frame = nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"X has several columns of one name: rename them. {error}") from error
    if 0 in frame.shape:
        check_array(np.empty(frame.shape), **lenient)
    columns = [FrameColumn(series, f"Column {series.name!r}") for series in frame.iter_columns()]
    names, labels = tuple(frame.columns), tuple([label_of(name) for name in frame.columns])
    if len({*labels}) < len(labels):  # NaN, which equals no name
        raise ValueError(f"X has several columns of one name: rename them. They are {', '.join(labels)}.")
    text = all(isinstance(name, str) for name in names)
    return Source(frame.to_native(), columns, names if text else None, labels)


def label_of(name: object) -> str:
    """Return a column name of any type as text that no name of another type has."""
    return repr(_in_python(name))


def places_of(names: Collection[Any], labels: Sequence[str] | None, parameter: str) -> list[int]:
    """Return the number of the column of each name; ValueError with the `parameter` if there is none."""
    if unknown := [name for name in names if label_of(name) not in (labels or ())]:
        known = "X has no column names" if labels is None else f"the columns are [{', '.join(labels)}]"
        raise ValueError(f"{parameter} names {unknown}, but {known}.")
    return [(labels or ()).index(label_of(name)) for name in names]


def _in_python(name: object) -> object:
    if isinstance(name, tuple):
        return tuple([_in_python(part) for part in name])
    return name.item() if isinstance(name, np.generic) else name


def _refuse_lazy(X: object) -> None:
    import narwhals as nw

    if isinstance(X, Iterator | str | os.PathLike) or is_dataset(X):
        kind = "an iterator" if isinstance(X, Iterator) else f"a {type(X).__name__} of pyarrow"
        kind = f"the path {str(X)!r}" if isinstance(X, str | os.PathLike) else kind
        readers = "fit, predict, predict_proba and transform of estimators with a target"
        raise TypeError(f"X is {kind}, which only {readers} read block by block: pass an array or a data frame.")
    if type(X).__name__ in ("DMatrix", "QuantileDMatrix", "ExtMemQuantileDMatrix", "Dataset", "Pool"):
        cure = "pass the array or data frame that it was made of, and its label as y"
        raise TypeError(f"X is a {type(X).__name__} of {type(X).__module__}, which is no table: {cure}.")
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        cure = "pass narwhals.from_native(X).collect().to_native()"
        raise TypeError(f"X is a {type(X).__name__} of {type(X).__module__}, which is lazy: {cure}.")


def is_blocks(X: object) -> bool:
    """Return whether an input is a path, a dataset or an iterator of blocks, not an array, frame or list."""
    if isinstance(X, np.ndarray):  # checks of abstract classes would take half a microsecond
        return False
    if isinstance(X, str | os.PathLike | TableFiles) or is_dataset(X):
        return True
    return isinstance(X, Iterator) and not hasattr(X, "__arrow_c_stream__")
