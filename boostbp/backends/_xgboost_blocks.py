"""A sparse input as XGBoost bins it: dense rows in float32, a few megabytes at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from boostbp.backends._float32 import representable
from boostbp.trees.sparse import Sparse, tiles

__all__ = ["blocks"]


def blocks(library: Any, X: Sparse, types: Sequence[str] | None) -> Any:
    """A `DataIter` over the rows.

    XGBoost takes absent entries of a sparse matrix for missing ones, but here they are zeros.

    Parameters
    ----------
    library : module
        xgboost.
    types : sequence of str or None
        Its ``feature_types``.
    """
    columns = np.arange(X.shape[1])
    pieces = tiles(0, len(X), len(columns))

    class Blocks(library.DataIter):
        def __init__(self) -> None:
            super().__init__()
            self.reset()

        def reset(self) -> None:
            self.ahead = iter(pieces)

        def next(self, input_data: Any) -> bool:
            rows = next(self.ahead, None)
            if rows is not None:
                input_data(data=representable(X.dense(columns, rows)), feature_types=types)
            return rows is not None

    return Blocks()
