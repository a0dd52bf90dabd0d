"""Held-out rows: training rows that are given away for early stopping, and to choose the model."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from boostbp import checks
from boostbp.backends.base import Table
from boostbp.learning.watch import EvalSet

__all__ = ["hold_out"]

Floats = NDArray[np.float64]
# Of early_stopping="auto": below so many rows none are given away, and so many at least are given away, or a quarter.
FEWEST, LEAST_HELD = 36, 50


def hold_out(
    estimator: Any, table: Table, y: Floats, weight: Floats, strata: Any
) -> tuple[Table, Floats, Floats, list[EvalSet]]:
    """Give some rows away, if the estimator's `early_stopping` wants it and there are enough."""
    stopping = checks.one_of("early_stopping", estimator.early_stopping, (True, False, "auto"))
    wanted = len(y) >= FEWEST if stopping == "auto" else stopping
    if not wanted or estimator.epochs == 0:
        return table, y, weight, []
    share = estimator.validation_fraction
    if stopping == "auto":
        share = max(share, min(LEAST_HELD / len(y), 0.25))
    if np.ceil(share * len(y)) >= len(y):
        raise ValueError(
            f"validation_fraction={estimator.validation_fraction!r} of {len(y)} rows leaves none to learn from: give a "
            "smaller share, more rows, or early_stopping=False."
        )
    from sklearn.model_selection import train_test_split  # brings a third of the package's time to import

    seed = check_random_state(estimator.random_state).randint(2**31 - 1)
    rows, lone = _without_lone(strata, len(y))
    n_held = min(int(np.ceil(share * len(y))), len(rows) - 1)
    if n_held < 1:
        return table, y, weight, []
    cut = partial(train_test_split, rows, test_size=n_held, random_state=seed)
    try:
        train, held = cut(stratify=None if strata is None else strata[rows])
    except ValueError:  # more classes than held-out rows, say: without strata
        train, held = cut()
        lone = np.concatenate([lone, held[~np.isin(strata[held], strata[train])]])
        held = np.setdiff1d(held, lone)
    train = np.concatenate([train, lone])
    if not (weight[held].any() and weight[train].any()):
        return table, y, weight, []
    train.sort()
    held.sort()
    held_out = EvalSet("held_out", table.X[held], y[held], weight[held], taken=True)
    return table.take(train), y[train], weight[train], [held_out]


def _without_lone(strata: Any, n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows that may be held out, and those that are the only one of their class, which nothing else would teach."""
    rows = np.arange(n_rows)
    if strata is None:
        return rows, rows[:0]
    _, classes, members = np.unique(strata, return_inverse=True, return_counts=True)
    lone = members[classes] == 1
    return rows[~lone], rows[lone]
