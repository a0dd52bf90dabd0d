"""Reading an estimator's input: names and counts as scikit-learn keeps them, values by schema."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from boostbp.backends.base import Table
from boostbp.inputs.blocks import RowsOnDisk
from boostbp.inputs.schema import CategoricalFeatures, Schema
from boostbp.inputs.sources import Source, open_source, warn_of_row_index
from boostbp.runtime import interrupts
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

MAX_CELLS = 4096  # of a table that is first tried as plain numbers; arbitrary


@interrupts.deferred()  # libraries of tables take what a handler raises for errors of their own
def learn_schema(
    estimator: BaseEstimator, X: object, *, categorical_features: CategoricalFeatures = "from_dtype"
) -> tuple[Schema, Table]:
    """Read the input of `fit`, (rows, features), and learn its columns.

    The estimator gets ``n_features_in_`` and ``feature_names_in_``. Raises ValueError if `X` cannot be read.
    """
    source = X.first if isinstance(X, RowsOnDisk) else open_source(X, estimator=estimator)
    validate_data(estimator, _seen_by_sklearn(source), reset=True, skip_check_array=True)
    if isinstance(X, RowsOnDisk):
        return X.schema, Table(X.X, X.schema.categorical)
    warn_of_row_index(source)
    schema = Schema.common(workers().gather(Schema.of(source, categorical_features=categorical_features)))
    return schema, schema.read(source)


def read_input(estimator: BaseEstimator, X: object, schema: Schema) -> Table:
    """Read an input like that of `fit`, (rows, features); ValueError if it cannot be read, or has other columns."""
    if isinstance(X, RowsOnDisk):
        return Table(X.X, X.schema.categorical)
    numbers = _plain_numbers(X, schema)
    return _read_any(estimator, X, schema) if numbers is None else Table(numbers, ())


def _plain_numbers(X: object, schema: Schema) -> Floats | None:
    """Return a small table of plain numbers, without infinities, that looks like that of `fit`; None if it is another.

    A prediction for one row would spend most of its time on what this leaves out.
    """
    if schema.categories or getattr(X, "size", MAX_CELLS + 1) > MAX_CELLS:
        return None
    if isinstance(X, np.ndarray):
        values, names_fit = X, schema.names is None
    else:
        import narwhals as nw

        if not nw.dependencies.is_pandas_dataframe(X) or X.columns.tolist() != list(schema.names or ()):
            return None
        values, names_fit = X.to_numpy(), schema.names is not None
    fits = names_fit and type(values) is np.ndarray and values.ndim == 2 and values.shape[1] == schema.n_features
    if not (fits and len(values) and (values.dtype == np.float64 or np.can_cast(values.dtype, np.float64))):
        return None
    numbers = np.ascontiguousarray(values, np.float64)
    return None if True in np.isinf(numbers).tobytes() else numbers  # of few cells, in half the time of any()


@interrupts.deferred()
def _read_any(estimator: BaseEstimator, X: object, schema: Schema) -> Table:
    source = open_source(X, estimator=estimator)
    validate_data(estimator, _seen_by_sklearn(source), reset=False, skip_check_array=True)
    return schema.read(source)


def _seen_by_sklearn(source: Source) -> Any:
    """Return what scikit-learn can look at for names and shape."""
    # before 1.9 scikit-learn knows tables other than pandas' by the interchange protocol, which polars 2 has dropped
    old = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9)
    if old and source.names is not None and not hasattr(source.original, "__dataframe__"):
        named = SimpleNamespace(shape=source.original.shape, column_names=lambda: source.names)
        named.__dataframe__ = lambda: named
        return named
    return source.original
