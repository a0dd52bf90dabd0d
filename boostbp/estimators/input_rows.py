"""Input of a fitted model: a table that is read whole, or in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from boostbp.inputs.schema import Schema, read_blocks, read_input
from boostbp.runtime.arrays import TableLike
from boostbp.trees.sparse import Matrix, Table

if TYPE_CHECKING:
    from boostbp.estimators.base import BaseBoostBP


def read_rows(self: BaseBoostBP, X: TableLike, schema: Schema | None = None) -> Table:
    """Read a table with the columns of `schema`, by default those of the model."""
    return read_input(self, X, self.schema_ if schema is None else schema)


def read_in_blocks(estimator: BaseBoostBP, X: TableLike, schema: Schema, n_threads: int) -> Iterable[Matrix]:
    """Return the rows of a table in blocks for some threads; all at once for a class that reads tables by itself."""
    if type(estimator)._read is not read_rows:
        return [estimator._read(X, schema).X]
    return read_blocks(estimator, X, schema, n_threads)
