"""Schema: what the columns of the training table were, and how to read other tables like it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_array

from boostbp import cautions
from boostbp.backends.base import Table
from boostbp.files import Columns
from boostbp.inputs.categories import Category, categories_of, check_categories, codes_of, in_order
from boostbp.inputs.columns import DECLARED, ArrayColumn
from boostbp.inputs.sources import Source, matrix_of
from boostbp.trees.sparse import Matrix, Sparse

_EXACT = 2**53  # float64 holds every whole number up to this one


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of the table that a model was fitted to."""

    n_features: int
    names: tuple[str, ...] | None  # column names; None if the table had none, or not only strings
    # categorical column -> its values (str, int, float, bool), in the order of their codes
    categories: Mapping[int, tuple[Category, ...]]
    dtypes: tuple[str, ...]  # what each column was; for people

    @classmethod
    def of(cls, source: Source, *, categorical_features: Any = "from_dtype", checked: bool = True) -> Schema:
        """Look at a training table.

        Parameters
        ----------
        categorical_features : "from_dtype", None or sequence of str, int or bool
            "from_dtype": columns of a dataframe that hold categories or strings. None: no column.
            Otherwise column names, column numbers, or a mask, (features,).
        checked : bool
            Whether to look for columns of categories that hold none, with a ValueError if strings that nobody calls
            categories spell numbers or dates, and a warning if nearly all values are distinct; a part of a table does
            not tell.

        Raises
        ------
        ValueError
            If a column that is not categorical holds strings, or `categorical_features` names no column.
        """
        columns = source.columns
        n_features = source.original.shape[1]
        chosen = _chosen(source, categorical_features)
        if source.block is None:
            _refuse_text([columns[j] for j in range(n_features) if j not in chosen], categorical_features)
        for j, column in enumerate(columns):
            if j not in chosen:
                _warn_of_rounding(column)
        by_name = not isinstance(categorical_features, str)
        categories: dict[int, tuple[Category, ...]] = {}
        for j in chosen:
            column = _column(source, j)
            categories[j] = categories_of(column.factors, column.label)
            if checked:
                check_categories(column.factors, column.label, declared=by_name or column.dtype in DECLARED)
        dtypes = tuple(column.dtype for column in columns) or (str(source.block.dtype),) * n_features
        return cls(n_features, source.names, categories, dtypes)

    @classmethod
    def common(cls, schemas: Sequence[Schema], parts: Sequence[str] = ()) -> Schema:
        """The schema of a table, by those of its parts, which errors call ``worker 0`` and so on, or as `parts` says.

        Categories that the parts have in another order than each other, or that only some have, are put in order as
        those of a column of text are. Raises ValueError if a part has other columns than the first, or other columns
        that hold categories.
        """
        first, parts = schemas[0], parts or [f"worker {number}" for number in range(len(schemas))]
        for part, other in zip(parts, schemas, strict=True):
            for what in ("n_features", "names"):
                if getattr(other, what) != getattr(first, what):
                    raise ValueError(
                        f"X of {part} has {what}={getattr(other, what)!r}, that of {parts[0]} has "
                        f"{getattr(first, what)!r}: give all of them the same columns."
                    )
            if other.categories.keys() != first.categories.keys():
                columns = sorted(other.categories.keys() ^ first.categories.keys())
                raise ValueError(
                    f"columns {columns} of X hold categories on {part} or on {parts[0]}, and numbers on the other: "
                    "name the columns with categories in categorical_features."
                )
        categories = dict(first.categories)
        for j in categories:
            of_parts = dict.fromkeys(schema.categories[j] for schema in schemas)
            if len(of_parts) > 1:
                categories[j] = in_order(value for part in of_parts for value in part)
        return replace(first, categories=categories)

    def read(self, source: Source) -> Table:
        """Read a table with these columns, as many and in this order.

        A float64, C-contiguous array without categories is not copied. A sparse matrix stays sparse: what it does not
        hold is 0, NaN that it holds is missing. A category that was not there at fit has the code
        ``len(categories[column])``. Raises ValueError if columns are of another type than at fit, or hold infinity.
        """
        X = self._matrix(source)
        try:
            with np.errstate(invalid="ignore"):  # its first look is a sum
                assert_all_finite(X.entries if isinstance(X, Sparse) else X, allow_nan=True, input_name="X")
        except ValueError as error:
            row, j, value = _infinity(X)
            raise ValueError(
                f"Input X contains infinity: {_column(source, j).label}, row {row} (counted from 0) holds {value}. "
                "Clip it, or make it missing (NaN)."
            ) from error
        return Table(X, tuple(sorted(self.categories)))

    def _matrix(self, source: Source) -> Matrix:
        if source.block is None:
            return matrix_of([self._values(source, j) for j in range(self.n_features)])
        if sp.issparse(source.block):
            return Sparse.of(source.block).replaced({j: self._values(source, j) for j in self.categories})
        with np.errstate(over="ignore"):  # wider floats than ours: infinity is refused below
            X = check_array(source.block, dtype=np.float64, order="C", ensure_all_finite=False)
        if self.categories and np.may_share_memory(X, source.block):
            X = X.copy()
        for j in self.categories:
            X[:, j] = self._values(source, j)
        return X

    def _values(self, source: Source, j: int) -> NDArray[Any]:
        column = _column(source, j)
        if j in self.categories:
            return codes_of(column.factors, self.categories[j], column.label)
        if source.block is None and (text := column.text()) is not None:
            raise ValueError(
                f"{column.label} holds {text!r}, but held numbers ({self.dtypes[j]}) at fit: pass numbers."
            )
        return column.numbers()

    def columns(self) -> Columns:
        """The columns of a file that a model of this table reads, as what they were in training.

        Raises ValueError if the table had no names.
        """
        if self.names is None:
            raise ValueError(
                "The model was trained without names of features: train it on a table, or with boostbp fit."
            )
        # as text: a float64 would not hold large whole numbers, and text that spells a number is that category, too
        categorical = [self.names[j] for j in self.categories]
        return Columns(
            features=self.names,
            categorical=categorical,
            numeric=[name for name in self.names if name not in categorical],
        )

    def to_dict(self) -> dict[str, Any]:
        """The schema in types that JSON holds."""
        return {
            "n_features": self.n_features,
            "names": None if self.names is None else list(self.names),
            "categories": {str(j): list(values) for j, values in self.categories.items()},
            "dtypes": list(self.dtypes),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` described; ValueError if the fields do not describe a schema."""
        try:
            schema = cls(
                fields["n_features"],
                None if fields["names"] is None else _listed(fields["names"]),
                {int(j): _listed(values) for j, values in fields["categories"].items()},
                _listed(fields["dtypes"]),
            )
            schema._check()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"This is not a schema of columns: {error!r}.") from error
        return schema

    def _check(self) -> None:
        if type(self.n_features) is not int or len(self.dtypes) != self.n_features:
            raise ValueError(f"{len(self.dtypes)} dtypes for {self.n_features!r} features")
        if self.names is not None and list(map(type, self.names)) != [str] * self.n_features:
            raise ValueError(f"the names are {self.names}")
        for j, values in self.categories.items():
            if not 0 <= j < self.n_features or not all(isinstance(value, (str, int, float)) for value in values):
                raise ValueError(f"column {j} of {self.n_features} has the categories {values}")
            if len(set(values)) != len(values):
                raise ValueError(f"column {j} has a category twice")


def _listed(values: Any) -> tuple[Any, ...]:
    """Return the members of a list or tuple; TypeError for text, which has letters for members, and all else."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{values!r:.99} is no list")
    return tuple(values)


def _infinity(X: Matrix) -> tuple[int, int, float]:
    """Row, column and value of an infinity."""
    if isinstance(X, Sparse):
        indptr, indices, data = X.arrays
        at = int(np.isinf(data).argmax())
        return int(indices[at]), int(np.searchsorted(indptr, at, "right")) - 1, float(data[at])
    row, j = divmod(int(np.isinf(X).argmax()), X.shape[1])
    return row, j, float(X[row, j])


def _column(source: Source, j: int) -> Any:
    if source.columns:
        return source.columns[j]
    return ArrayColumn(source.block[:, [j]].toarray()[:, 0], f"Column {j}")


def _refuse_text(columns: Sequence[Any], categorical_features: Any) -> None:
    wrong = [column for column in columns if column.text() is not None]
    if wrong:
        labels = ", ".join(column.label for column in wrong).replace(", Column", ",")
        raise ValueError(
            f"{labels} could not be read as numbers (the first holds {wrong[0].text()!r}), and "
            f"categorical_features={categorical_features!r} does not make it categorical: name such columns in "
            "categorical_features, pass a dataframe with categorical_features='from_dtype', or encode them as numbers."
        )


def _warn_of_rounding(column: Any) -> None:
    """Warn if whole numbers of a column, (rows,), are too large for float64 to tell them apart."""
    values = column.numbers()
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not len(values):
        return
    if max(abs(int(values.min())), abs(int(values.max()))) > _EXACT:
        here, kept = len(np.unique(values)), len(np.unique(values.astype(np.float64)))
        if kept < here:
            cautions.warn(
                f"{column.label} holds whole numbers beyond 2**53, of which float64 makes {kept} out of {here}: "
                "subtract a constant, or name it in categorical_features if they are identifiers."
            )


def _chosen(source: Source, categorical_features: Any) -> list[int]:
    if categorical_features is None:
        return []
    if isinstance(categorical_features, str) and categorical_features == "from_dtype":
        return [j for j, column in enumerate(source.columns) if column.is_categorical]
    if isinstance(categorical_features, str) or not isinstance(categorical_features, Iterable):
        raise ValueError(
            f"categorical_features={categorical_features!r} is not known: use 'from_dtype', None, "
            "or a list of column names, column numbers or bools."
        )
    return sorted(set(_positions(list(categorical_features), source)))


def _positions(wanted: list[Any], source: Source) -> Iterable[int]:
    n_features = source.original.shape[1]
    if all(isinstance(item, (bool, np.bool_)) for item in wanted):
        if wanted and len(wanted) != n_features:
            raise ValueError(f"categorical_features is a mask of {len(wanted)} columns, but X has {n_features}.")
        return np.flatnonzero(wanted).tolist()
    if all(isinstance(item, str) for item in wanted):
        unknown = [item for item in wanted if item not in (source.names or ())]
        if unknown:
            known = "X has no column names" if source.names is None else f"the columns are {list(source.names)}"
            raise ValueError(f"categorical_features names {unknown}, but {known}.")
        return [(source.names or ()).index(item) for item in wanted]
    if all(isinstance(item, (int, np.integer)) and not isinstance(item, bool) for item in wanted):
        wrong = [item for item in wanted if not 0 <= item < n_features]
        if wrong:
            raise ValueError(f"categorical_features holds {wrong}, but columns are numbered 0 to {n_features - 1}.")
        return [int(item) for item in wanted]
    raise ValueError(f"categorical_features={wanted!r} mixes kinds: use column names, column numbers or bools.")
