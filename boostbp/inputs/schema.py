"""Schema: the columns of the training table, and the reader of other tables with these columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from boostbp.inputs.categories import Category, categories_of, codes_of, fault_of, sort_categories
from boostbp.inputs.dates import with_date_numbers
from boostbp.inputs.faults import Fault, refuse_faults
from boostbp.inputs.files.options import FileOptions
from boostbp.inputs.files.tables import ColumnRoles
from boostbp.inputs.matrices import dense_rows, finite_rows, n_row_blocks
from boostbp.inputs.row_numbers import warn_of_row_index
from boostbp.inputs.sources import DECLARED, Column, Source, label_of, open_source, places_of
from boostbp.runtime import checks, interrupts, messages, plain
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.sparse import Matrix, Sparse, Table

SHOWN_COLUMNS = 20  # column names in an error, at most. Arbitrary
_EXACT = 2**53  # float64 holds every whole number up to this one
CategoricalFeatures = str | Iterable[str | int | bool] | None  # "from_dtype", None, or names, numbers or a mask


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of the table that a model was fitted to."""

    n_features: int
    names: tuple[str, ...] | None  # column names; None if the table had none, or not only strings
    # categorical column -> its values (str, int, float, bool), in the order of their codes
    categories: Mapping[int, tuple[Category, ...]]
    dtypes: tuple[str, ...]  # type of each column, for messages
    other_names: tuple[str, ...] | None = None  # column names that are not only strings, as `label_of` writes them
    file_options: FileOptions | None = None  # how the training file was read; None for tables in memory

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Column names of any type, as `label_of` writes them; None if the table had none."""
        return self.other_names if self.names is None else tuple([label_of(name) for name in self.names])

    @property
    def categorical(self) -> tuple[int, ...]:
        """Numbers of the categorical columns, ascending."""
        return tuple(sorted(self.categories))

    @classmethod
    def of(
        cls, source: Source, *, categorical_features: CategoricalFeatures = "from_dtype", checked: bool = True
    ) -> Schema:
        """Return the schema of a training table.

        `categorical_features` is "from_dtype" (columns of a dataframe that hold categories or strings), None, column
        names, column numbers, or a mask. If `checked`, undeclared text that spells numbers or dates is refused, and
        nearly distinct values cause a warning; a part of a table cannot show this.
        """
        n_features = source.original.shape[1]
        chosen = _chosen(source, categorical_features)
        names = source.names or tuple(map(str, range(n_features)))
        numeric = {names[j]: column for j, column in enumerate(source.columns) if j not in chosen}
        if source.block is None:
            _refuse_text([*numeric.values()], categorical_features)
        faults = [fault for name, column in numeric.items() if (fault := _fault_of_numbers(column, name))]
        by_name = not isinstance(categorical_features, str)
        categories: dict[int, tuple[Category, ...]] = {}
        for j in chosen:
            column = source.column(j)
            categories[j] = categories_of(column.factors, column.label)
            declared = by_name or column.dtype in DECLARED
            if checked and (fault := fault_of(column.factors, column.label, names[j], declared=declared)):
                faults.append(fault)
        refuse_faults(faults)
        dtypes = tuple(column.dtype for column in source.columns) or (str(cast(Any, source.block).dtype),) * n_features
        return cls(n_features, source.names, categories, dtypes, None if source.names else source.labels)

    @classmethod
    def common(cls, schemas: Sequence[Schema], parts: Sequence[str] = ()) -> Schema:
        """Return the schema of a table from those of its parts; errors name them ``worker 0`` and so on, or by `parts`.

        If the parts differ in categories or their order, the categories are sorted like those of a text column.
        """
        first, categories = schemas[0], dict(schemas[0].categories)
        parts = parts or [f"worker {number}" for number in range(len(schemas))]
        for part, other in zip(parts, schemas, strict=True):
            for name in ("n_features", "names", "other_names", "categorical"):
                if (value := getattr(other, name)) != (expected := getattr(first, name)):
                    cure = "give all of them the same columns, and name those with categories in categorical_features"
                    raise ValueError(f"X of {part} has {name}={value!r}, that of {parts[0]} has {expected!r}: {cure}.")
        for j in categories:
            distinct = dict.fromkeys(schema.categories[j] for schema in schemas)
            if len(distinct) > 1:
                categories[j] = sort_categories(value for values in distinct for value in values)
        return replace(first, categories=categories)

    def read(self, source: Source) -> Table:
        """Read a table with these columns, as many and in this order.

        A float64, C-contiguous array without categories is not copied. A sparse matrix stays sparse: entries that it
        does not store are 0, and a stored NaN is missing. A category that fit did not see has the code
        ``len(categories[column])``. Raises ValueError if columns have another name or type than at fit, or contain
        infinity.
        """
        return table_of(self.blocks(source), self)

    def blocks(self, source: Source, n_threads: int | None = None) -> Iterator[Matrix]:
        """Return the rows of a table as `read` does; for some threads in blocks, unless they need no copy."""
        self._check_names(source)
        block, total = source.block, source.original.shape[0]
        read = range(self.n_features) if block is None else self.categories
        columns = {j: self._values(source, j) for j in read}  # once, as it checks whole columns
        if sp.issparse(block):
            return iter([finite_rows(Sparse.of(block).replaced(columns), source)])
        is_ready = not columns and block is not None and block.dtype == np.float64 and block.flags.c_contiguous
        n_blocks = 1 if is_ready or n_threads is None else n_row_blocks(total, self.n_features, n_threads)
        # blocks of equal sizes, as a few rows at the end would need a layout of their own
        ends = [number * total // n_blocks for number in range(n_blocks + 1)]
        return (finite_rows(dense_rows(block, columns, slice(*ends)), source, ends[0]) for ends in pairwise(ends))

    def _check_names(self, source: Source) -> None:
        """Raise ValueError if columns have other names than at fit, or another order; an array has the names 0, 1, ...

        If the names of one table are strings, and the other has none or others, scikit-learn warns.
        """
        labels, known = source.labels, self.labels or tuple(map(str, range(self.n_features)))
        if labels is None or labels == known or (source.names is None) != (self.names is None):
            return
        if self.labels or {*labels} == {*known}:
            j = next((j for j, pair in enumerate(zip(labels, known, strict=False)) if pair[0] != pair[1]), -1)
            shown = ", ".join(known[:SHOWN_COLUMNS]) + ", ..." * (len(known) > SHOWN_COLUMNS)
            cure = f"pass those of fit in their order, X[[{shown}]]"
            raise ValueError(f"Column {j} of X is named {labels[j]}, and that of fit {known[j]}: {cure}.")

    def _values(self, source: Source, j: int) -> NDArray[Any]:
        column = source.column(j)
        if j in self.categories:
            return codes_of(column.factors, self.categories[j], column.label)
        if source.block is None and (text := column.text()) is not None:
            at_fit = f"held numbers ({self.dtypes[j]}) at fit"
            raise ValueError(f"{column.label} holds {text!r}, but {at_fit}: pass numbers.")
        return column.numbers()

    def roles(self) -> ColumnRoles:
        """Return the roles, with the types in training, of the columns that a model of this table reads from a file."""
        if self.names is None:
            raise ValueError("The model was trained without feature names: train it on a table, or with boostbp fit.")
        # as text: float64 may not hold large whole numbers, and text that spells a number is the same category
        categorical = [self.names[j] for j in self.categories]
        return ColumnRoles.like(self.names, categorical, self.file_options or FileOptions())

    @classmethod
    def decoded(cls, facts: object) -> Schema:
        """Return the schema that `boostbp.runtime.plain.encode` received; raise ValueError if it is inconsistent."""
        new = {"other_names": None, "file_options": None}  # which earlier files have not
        facts = {**new, **facts} if isinstance(facts, dict) else facts
        schema: Schema = plain.decode_as(cls, facts)
        n_features = schema.n_features
        if not (
            len(schema.dtypes) == n_features
            and all(names is None or len(names) == n_features for names in (schema.names, schema.other_names))
            and all(0 <= j < n_features and len({*values}) == len(values) for j, values in schema.categories.items())
        ):
            raise ValueError(f"This is not a schema of columns: {schema!r:.999} contradicts itself.")
        return schema


def _refuse_text(columns: Sequence[Column], categorical_features: CategoricalFeatures) -> None:
    texts = {column.label: text for column in columns if (text := column.text()) is not None}
    if texts:
        labels = ", ".join(texts).replace(", Column", ",")
        fault = f"could not be read as numbers (the first holds {next(iter(texts.values()))!r})"
        given = f"categorical_features={categorical_features!r} does not make it categorical"
        cure = "name such columns there, pass a dataframe with categorical_features='from_dtype', or encode them"
        raise ValueError(f"{labels} {fault}, and {given}: {cure}.")


def _fault_of_numbers(column: Column, name: str) -> Fault | None:
    """Return why a column holds no numbers; warn if distinct whole numbers, (rows,), are equal in float64."""
    try:
        values = column.numbers()
    except ValueError as error:
        return Fault(name, str(error))
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not len(values):
        return None
    if max(-int(values.min()), int(values.max())) > _EXACT:
        n_distinct, n_floats = len(np.unique(values)), len(np.unique(values.astype(np.float64)))
        if n_floats < n_distinct:
            fault = f"whole numbers beyond 2**53, of which {n_distinct} become {n_floats} in float64"
            cure = "subtract a constant, or name it in categorical_features if they are identifiers"
            messages.warn(f"{column.label} holds {fault}: {cure}.")
    return None


def _chosen(source: Source, categorical_features: CategoricalFeatures) -> list[int]:
    """Return the numbers of the categorical columns, ascending."""
    if categorical_features is None:
        return []
    if isinstance(categorical_features, str) and categorical_features == "from_dtype":
        return [j for j, column in enumerate(source.columns) if column.is_categorical]
    if not checks.is_container(categorical_features):
        cure = "use 'from_dtype', None, or a list of column names, column numbers or bools"
        raise ValueError(f"categorical_features={categorical_features!r} is not known: {cure}.")
    items: list[Any] = list(categorical_features)
    n_features = source.original.shape[1]
    if all(isinstance(item, (bool, np.bool_)) for item in items):
        if items and len(items) != n_features:
            raise ValueError(f"categorical_features is a mask of {len(items)} columns, but X has {n_features}.")
        return np.flatnonzero(items).tolist()
    whole = [isinstance(item, (int, np.integer)) and not isinstance(item, bool) for item in items]
    if not any(whole):
        return sorted({*places_of(items, source.labels, "categorical_features")})
    if not all(whole):
        raise ValueError(f"categorical_features={items!r} mixes kinds: use column names, column numbers or bools.")
    items, labels = [*map(int, items)], () if source.names else source.labels or ()
    if any(label.lstrip("-").isdigit() for label in labels) and any(labels[j : j + 1] != (str(j),) for j in items):
        cure = f"X.columns.isin({items}) if these are names, X.columns.isin(X.columns[{items}]) if they are numbers"
        fault = "may be names of columns or their numbers, which differ"
        raise ValueError(f"categorical_features={items} {fault}: use {cure}.")
    if wrong := [item for item in items if not 0 <= item < n_features]:
        raise ValueError(f"categorical_features holds {wrong}, but columns are numbered 0 to {n_features - 1}.")
    return sorted({*items})


@dataclass(frozen=True, slots=True)
class RowsOnDisk:
    """Rows that were read, as a replacement of the user's X."""

    X: Floats  # (rows, features) float64, with codes of categories
    schema: Schema
    first: Source  # the first block

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.X)

    def __getitem__(self, rows: NDArray[Any] | slice) -> Floats:
        """Return some of the rows, for splitters of scikit-learn."""
        return self.X[rows]


MAX_CELLS = 1 << 20  # limit on tables that are first tried as plain numbers. Arbitrary


@interrupts.deferred()  # table libraries would treat exceptions of a handler as their own
def learn_schema(
    estimator: BaseEstimator, X: object, *, categorical_features: CategoricalFeatures = "from_dtype"
) -> tuple[Schema, Table]:
    """Read the input of `fit`; return it with its schema, and set the attributes that scikit-learn expects."""
    source = X.first if isinstance(X, RowsOnDisk) else open_source(X, estimator=estimator)
    validate_data(estimator, _seen_by_sklearn(source), reset=True, skip_check_array=True)
    if isinstance(X, RowsOnDisk):
        return X.schema, Table(X.X, X.schema.categorical)
    warn_of_row_index(source)
    schema = Schema.common(workers().gather(Schema.of(source, categorical_features=categorical_features)))
    return schema, schema.read(source)


def read_input(estimator: BaseEstimator, X: object, schema: Schema) -> Table:
    """Read an input with the columns of `fit`, (rows, features); raise ValueError if this is impossible."""
    return table_of(read_blocks(estimator, X, schema), schema)


def table_of(blocks: Iterator[Matrix], schema: Schema) -> Table:
    """Return the table of an input that is one block."""
    [X] = blocks
    return Table(X, schema.categorical)


def read_blocks(estimator: BaseEstimator, X: object, schema: Schema, n_threads: int | None = None) -> Iterator[Matrix]:
    """Return an input with the columns of `fit`, as `Schema.blocks` does; raise ValueError for any other."""
    if isinstance(X, RowsOnDisk):
        return iter([X.X])
    if (numbers := _plain_numbers(X, schema)) is not None:
        return iter([numbers])
    with interrupts.deferred():
        if (options := schema.file_options) is not None and options.dates:
            X = with_date_numbers(X, options.dates, options.day_first)
        source = open_source(X, estimator=estimator)
        validate_data(estimator, _seen_by_sklearn(source), reset=False, skip_check_array=True)
        return schema.blocks(source, n_threads)


def _plain_numbers(X: object, schema: Schema) -> Floats | None:
    """Return a small table of finite numbers without checks that take long for one row; None for any other input."""
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
    return None if True in np.isinf(numbers).tobytes() else numbers  # for few cells, twice as fast as any()


def _seen_by_sklearn(source: Source) -> Any:
    """Return an object from which scikit-learn can read names and shape."""
    # before 1.9 scikit-learn needs the interchange protocol for tables other than pandas', which polars 2 has dropped
    old = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9)
    if old and source.names is not None and not hasattr(source.original, "__dataframe__"):
        named = SimpleNamespace(shape=source.original.shape, column_names=lambda: source.names)
        named.__dataframe__ = lambda: named
        return named
    return source.original
