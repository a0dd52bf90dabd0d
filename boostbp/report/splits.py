"""Splits of a table into rows to learn from, to stop by, and to report on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from boostbp.report.contenders import Split
from boostbp.report.datasets import Task
from boostbp.report.trial import Data, take

REFUSED = frozenset(',:[]{}"<')  # in names of columns, by LightGBM or XGBoost


def splits(
    X: Any, y: NDArray[Any], task: Task, *, test_size: float, valid_size: float, folds: int | None, seed: int
) -> Iterator[Data]:
    """Test rows for the report, validation rows inside the rest; classes keep their shares.

    Parameters
    ----------
    X : (rows, features) array or pandas.DataFrame
    y : (rows,) array
    task : {"classification", "regression"}
    test_size, valid_size : float
        Shares of the rows, and of the rows that are not test rows.
    folds : int or None
        None: one split. Otherwise each row is a test row in one of so many.
    seed : int

    Raises
    ------
    ValueError
        If there are too few rows, or too few of a class.
    """
    n_classes = 0
    labels: tuple[str, ...] = ()
    if folds is not None and not 2 <= folds <= len(y):
        raise ValueError(
            f"folds={folds} does not split {len(y)} rows: give at least 2 and at most the rows, or leave it out."
        )
    if task == "classification":
        classes, y = np.unique(y, return_inverse=True)
        n_classes, labels = len(classes), tuple(map(str, classes))
        fewest, needed = np.bincount(y).min(), max(4, folds or 0)
        if n_classes < 2 or fewest < needed:
            raise ValueError(
                f"y has {n_classes} classes, the smallest with {fewest} rows: a comparison needs at least "
                f"2 classes with {needed} rows each. Remove or merge small classes."
            )

    def cut(rows: NDArray[np.intp], share: float) -> list[NDArray[np.intp]]:
        kept: list[NDArray[np.intp]] = train_test_split(
            rows, test_size=share, random_state=seed, stratify=y[rows] if n_classes else None
        )
        return kept

    X, rows = _named_for_all(X), np.arange(len(y))
    if folds is None:
        cuts = [cut(rows, test_size)]
    else:
        cuts = (StratifiedKFold if n_classes else KFold)(folds, shuffle=True, random_state=seed).split(rows, y)
    for rest, test in cuts:
        fit, valid = cut(rest, valid_size)
        split = Split(take(X, fit), y[fit], take(X, valid), y[valid])
        yield Data(split, take(X, test), y[test], n_classes, labels)


def _named_for_all(X: Any) -> Any:
    """The table with columns called by numbers, if a library would refuse one of its names."""
    if not hasattr(X, "iloc") or not any(set(str(name)) & REFUSED for name in X.columns):
        return X
    return X.set_axis([f"x{column}" for column in range(X.shape[1])], axis=1)
