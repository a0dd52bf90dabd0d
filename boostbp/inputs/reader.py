"""Reading an estimator's input: names and counts as scikit-learn keeps them, values by schema."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from boostbp.backends.base import Table
from boostbp.group import workers
from boostbp.inputs.blocks import Rows
from boostbp.inputs.schema import Schema
from boostbp.inputs.sources import Source, open_source, warn_of_row_index
from boostbp.trees import interrupts

SMALL = 4096  # cells that are sooner read than looked at closely


@interrupts.deferred()  # libraries of tables take what a handler raises for errors of their own
def learn_schema(estimator: Any, X: Any, *, categorical_features: Any = "from_dtype") -> tuple[Schema, Table]:
    """Read the input of `fit`, (rows, features), and learn its columns.

    The estimator gets ``n_features_in_`` and ``feature_names_in_``. Raises ValueError if `X` cannot be read.
    """
    if isinstance(X, Rows):
        validate_data(estimator, _seen_by_sklearn(X.first), reset=True, skip_check_array=True)
        return X.schema, Table(X.X, tuple(sorted(X.schema.categories)))
    source = open_source(X, estimator=estimator)
    validate_data(estimator, _seen_by_sklearn(source), reset=True, skip_check_array=True)
    warn_of_row_index(source)
    schema = Schema.common(workers().gather(Schema.of(source, categorical_features=categorical_features)))
    return schema, schema.read(source)


def read_input(estimator: Any, X: Any, schema: Schema) -> Table:
    """Read an input like that of `fit`, (rows, features); ValueError if it cannot be read, or has other columns."""
    if isinstance(X, Rows):
        return Table(X.X, tuple(sorted(X.schema.categories)))
    numbers = _plain_numbers(X, schema)
    return _read_any(estimator, X, schema) if numbers is None else Table(numbers, ())


def _plain_numbers(X: Any, schema: Schema) -> NDArray[np.float64] | None:
    """Return a small table of plain numbers, without infinities, that looks like that of `fit`; None if it is another.

    Most of the time of a prediction for one row goes to what this leaves out.
    """
    if schema.categories or getattr(X, "size", SMALL + 1) > SMALL:
        return None
    if isinstance(X, np.ndarray):
        values, alike = X, schema.names is None
    else:
        import narwhals as nw

        if not nw.dependencies.is_pandas_dataframe(X):
            return None
        alike = schema.names is not None and X.columns.tolist() == list(schema.names)
        values = X.to_numpy() if alike else np.empty(0)
    alike = alike and values.ndim == 2 and values.shape[1] == schema.n_features and len(values) > 0
    if not alike or type(values) is not np.ndarray:
        return None
    if values.dtype != np.float64 and not np.can_cast(values.dtype, np.float64):
        return None
    numbers = np.ascontiguousarray(values, np.float64)
    return None if True in np.isinf(numbers).tobytes() else numbers  # of few cells, in half the time of any()


@interrupts.deferred()
def _read_any(estimator: Any, X: Any, schema: Schema) -> Table:
    source = open_source(X, estimator=estimator)
    validate_data(estimator, _seen_by_sklearn(source), reset=False, skip_check_array=True)
    return schema.read(source)


class _Named:
    """Names and shape of a table, by the interchange protocol."""

    def __init__(self, names: tuple[str, ...], shape: tuple[int, int]) -> None:
        self.names = names
        self.shape = shape

    def __dataframe__(self) -> _Named:
        return self

    def column_names(self) -> tuple[str, ...]:
        return self.names


def _seen_by_sklearn(source: Source) -> Any:
    # before 1.9 scikit-learn knows tables other than pandas' by the interchange protocol, which polars 2 has dropped
    old = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9)
    if old and source.names is not None and not hasattr(source.original, "__dataframe__"):
        return _Named(source.names, source.original.shape)
    return source.original
