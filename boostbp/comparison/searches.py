"""The fit of a contender on all training rows of a fold, with a search of its length and its parameters.

Models of boostbp and estimators of the user choose by themselves. For other libraries, a fifth of the training rows
chooses the number of rounds, and among settings drawn at random; then the model is trained again on all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.utils import _safe_indexing

from boostbp.comparison.contenders import Contender, Model, Split, train_contender
from boostbp.search import Choice, Integer, Number, Space, sample

_VALID_SIZE = 0.2  # share of the training rows that chooses. Arbitrary
_SAMPLED: Space = {
    "learning_rate": Number(0.02, 0.2, log=True),
    "subsample": Number(0.5, 1.0),
    "reg_lambda": Number(1e-3, 30.0, log=True),
}
_LIGHTGBM: Space = {
    **_SAMPLED,
    "num_leaves": Integer(4, 128, log=True),
    "min_child_samples": Integer(5, 100, log=True),
    "colsample_bytree": Number(0.1, 1.0),
    "extra_trees": Choice((False, True)),
}
# The ranges that studies of these libraries search, such as pytabkit's.
TUNED_SPACES: Mapping[str, Space] = {
    "lightgbm": _LIGHTGBM,
    "linear_tree": {**_LIGHTGBM, "linear_lambda": Number(1e-3, 10.0, log=True)},
    "xgboost": {
        **_SAMPLED,
        "max_depth": Integer(2, 10),
        "min_child_weight": Number(1.0, 50.0, log=True),
        "colsample_bytree": Number(0.1, 1.0),
    },
    "catboost": {
        "learning_rate": Number(0.02, 0.2, log=True),
        "depth": Integer(4, 8),
        "l2_leaf_reg": Number(0.1, 30.0, log=True),
        "random_strength": Number(0.1, 10.0, log=True),
        "rsm": Number(0.3, 1.0),
    },
}
# Returns the error of a model on rows, less is better: error(model, X, y, groups).
ErrorOf = Callable[[Model, Any, Any, "NDArray[np.intp] | None"], float]


def searched(contender: Contender) -> bool:
    """Return whether rounds and parameters are searched here."""
    return (contender.space or contender.kind) in TUNED_SPACES


def fit_contender(
    contender: Contender,
    rows: Split,
    *,
    task: str,
    n_jobs: int,
    seed: int,
    error: ErrorOf,
    tune: int = 0,
    seconds: float = 0.0,
) -> Model:
    """Train a contender on all rows.

    With `tune`, so many settings are tried, the first that of the contender, and more until `seconds` have passed. The
    `error` of the validation rows chooses among them.
    """
    train = partial(train_contender, task=task, n_jobs=n_jobs, seed=seed)
    if not searched(contender):
        return train(contender, rows).model
    start, best, chosen = time.perf_counter(), np.inf, None
    split = with_validation(rows, task, seed)
    for number, params in enumerate(_settings(contender, seed), 1):
        drawn = replace(contender, params=params)
        fitted = train(drawn, split)
        value = error(fitted.model, split.X_valid, split.y_valid, split.groups_valid) if tune > 1 else 0.0
        if chosen is None or value < best:
            best, chosen = value, (drawn, fitted.length)
        if number >= tune and (tune < 2 or time.perf_counter() - start >= seconds):
            break
    assert chosen is not None
    return train(chosen[0], rows, length=max(1, chosen[1] or 1)).model


def _settings(contender: Contender, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the parameters of a contender as they are, and then random ones without end."""
    yield dict(contender.params)
    rng = np.random.default_rng(seed)
    while True:
        yield sample(rng, TUNED_SPACES[contender.space or contender.kind], contender.params)


def with_validation(rows: Split, task: str, seed: int) -> Split:
    """Return training rows with a fifth of them as validation rows: of each class, or of whole groups and queries."""
    number = np.arange(len(rows.y))
    if rows.groups is not None:
        splitter = GroupShuffleSplit(1, test_size=_VALID_SIZE, random_state=seed)
        fit, valid = next(splitter.split(number, groups=rows.groups))
    else:
        strata = {"classification": rows.y, "survival": np.signbit(rows.y)}.get(task)
        fit, valid = train_test_split(number, test_size=_VALID_SIZE, random_state=seed, stratify=strata)
    X, X_valid = (_safe_indexing(rows.X, part) for part in (fit, valid))
    groups, groups_valid = (None, None) if rows.groups is None else (rows.groups[fit], rows.groups[valid])
    return Split(X, rows.y[fit], X_valid, rows.y[valid], groups, groups_valid)
