"""The folds of a comparison, the same for all models: training and test rows, repeated with other draws."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, TimeSeriesSplit

from boostbp.runtime.messages import counted

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]  # training rows, test rows


def folds_of(
    n_rows: int,
    folds: int | str | Any,
    repeats: int,
    *,
    strata: NDArray[Any] | None = None,
    groups: NDArray[np.intp] | None = None,
    seed: int = 0,
) -> list[Fold]:
    """Return the folds of all repeats: of the same shares of `strata`, and of whole `groups`.

    `folds` is their number, ``"time"`` for five blocks that each follow their training rows, or a splitter of
    scikit-learn, which is used once. Raises ValueError if the rows are too few.
    """
    number = np.arange(n_rows)
    if folds == "time":
        folds = TimeSeriesSplit(5)
    if not isinstance(folds, int | np.integer):
        if isinstance(folds, str) or not hasattr(folds, "split"):
            raise ValueError(f"folds={folds!r}: give a whole number, 'time', or a splitter of scikit-learn.")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The groups parameter is ignored")  # which is an error below
            return checked_folds(list(folds.split(number, strata, groups)), strata, groups)
    _check(n_rows, int(folds), repeats, strata, groups)
    if groups is None:
        kind = KFold if strata is None else StratifiedKFold
    else:
        kind = GroupKFold if strata is None else StratifiedGroupKFold
    splitters = [kind(folds, shuffle=True, random_state=seed + repeat) for repeat in range(repeats)]
    return checked_folds(
        [fold for splitter in splitters for fold in splitter.split(number, strata, groups)], strata, groups
    )


def checked_folds(folds: list[Fold], strata: NDArray[Any] | None, groups: NDArray[np.intp] | None) -> list[Fold]:
    """Return folds; raise ValueError if one divides a group, or has a part with rows of one class."""
    for train, test in folds:
        if groups is not None and np.isin(groups[test], groups[train]).any():
            cure = "give a number of folds, or a splitter of whole groups such as GroupKFold"
            raise ValueError(
                f"folds: rows of one group are training and test rows, so scores would be too good: {cure}."
            )
        if strata is not None and min(len(np.unique(strata[part])) for part in (train, test)) < 2:
            raise ValueError("folds: a part has rows of one class only: give fewer folds, or other groups.")
    return folds


def _check(n_rows: int, folds: int, repeats: int, strata: NDArray[Any] | None, groups: NDArray[np.intp] | None) -> None:
    """Raise ValueError if a fold would lack a class or rows."""
    if repeats < 1:
        raise ValueError(f"repeats={repeats} is not allowed: give 1 or more.")
    n_units, units = (n_rows, "row") if groups is None else (len(np.unique(groups)), "group")
    if not 2 <= folds <= n_units:
        raise ValueError(f"folds={folds} does not split {counted(n_units, units)}: give 2 to {n_units}.")
    counts = np.unique(strata, return_counts=True)[1] if strata is not None else np.array([n_rows])
    needed = max(4, folds)
    if strata is not None and (len(counts) < 2 or counts.min() < needed):
        found = f"y has {len(counts)} classes, the smallest with {counts.min()} rows"
        cure = f"a comparison needs at least 2 classes with {needed} rows each, so merge small classes"
        raise ValueError(f"{found}: {cure}, or give fewer folds.")


def ratio_of_rows(folds: Sequence[Fold]) -> float:
    """Return the mean ratio of test rows to training rows."""
    return float(np.mean([len(test) / len(train) for train, test in folds]))
