"""The models of a comparison: the deep model on a backend, and single-layer models of other libraries.

Single-layer models keep the defaults of their library except for a learning rate of 0.05, at most 2,000 rounds, and
early stopping after 50 rounds without gain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime.messages import require
from boostbp.search import nested

if TYPE_CHECKING:
    from pandas import DataFrame
    from sklearn.base import BaseEstimator

    from boostbp.estimators.base import BaseBoostBP

RATE, MAX_ROUNDS, STOPPING_ROUNDS = 0.05, 2000, 50
Table: TypeAlias = "NDArray[Any] | DataFrame"  # (rows, features)
Model: TypeAlias = "BaseBoostBP | BaseEstimator"  # of any library: each has the interface of scikit-learn


@dataclass(frozen=True, slots=True)
class Contender:
    """A model to be trained."""

    label: str  # name in the table
    kind: str  # name of its trainer: "deep", "lightgbm", "xgboost", or another one of the caller
    # parameters other than the defaults of its kind, with the names of `boostbp.search.nested`
    params: Mapping[str, Any] = field(default_factory=dict)
    space: str | None = None  # name of its search space; its kind by default


def deep(backend: str, params: Mapping[str, Any]) -> Contender:
    """Return the multi-layered model on a backend as a contender."""
    return Contender(f"boostbp ({backend})", "deep", {**params, "backend": backend})


SINGLE_LAYER = (
    Contender("LightGBM", "lightgbm"),
    Contender("LightGBM linear_tree", "lightgbm", {"linear_tree": True}, "linear_tree"),
    Contender("XGBoost", "xgboost"),
)


class Split(NamedTuple):
    """Training rows, and validation rows for early stopping, if any."""

    X: Table
    y: NDArray[Any]
    X_valid: Table | None = None
    y_valid: NDArray[Any] | None = None

    @property
    def whole(self) -> bool:
        """Whether all rows are training rows."""
        return self.X_valid is None


class Fitted(NamedTuple):
    """A trained model with its number of rounds or epochs."""

    model: Model
    length: int | None


# Arguments: the contender, the split, whether targets are classes, threads, seed and length; see `train_contender`.
Trainer = Callable[[Contender, Split, bool, int, int, int | None], Fitted]


def train_contender(
    contender: Contender,
    split: Split,
    *,
    task: str,
    n_jobs: int,
    seed: int,
    length: int | None = None,
    trainers: Mapping[str, Trainer] | None = None,
) -> Fitted:
    """Train a contender; raise ImportError if its library is not installed.

    Labels are 0 .. classes - 1. `length` is the number of rounds or epochs; with validation rows, the largest one.
    """
    contender = replace(contender, params=nested(contender.params))
    return (trainers or TRAINERS)[contender.kind](contender, split, task == "classification", n_jobs, seed, length)


def _deep(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    from boostbp.estimators import BoostBPClassifier, BoostBPRegressor

    params = {"n_jobs": n_jobs, "random_state": seed, **contender.params}
    single = np.size(contender.params.get("hidden_layer_sizes", 1)) == 0
    if length is not None:
        params["n_estimators" if single else "epochs"] = length
    if split.whole and length is not None:
        params["early_stopping"] = False
    model = (BoostBPClassifier if classes else BoostBPRegressor)(**params)
    model.fit(split.X, split.y, eval_set=None if split.whole else [(split.X_valid, split.y_valid)])
    return Fitted(model, model.best_iteration_)


def length_of(contender: Contender, split: Split, length: int | None, limit: int) -> int:
    """Return `length`, or `limit` if there are validation rows; otherwise raise ValueError."""
    if length is None and split.whole:
        raise ValueError(f"{contender.label or contender.kind} needs validation rows for early stopping, or a length.")
    return limit if length is None else length


def _params(contender: Contender, split: Split, length: int | None, **defaults: object) -> dict[str, Any]:
    """Return the parameters of a single-layer model; `defaults` are those of its library."""
    n_rounds = length_of(contender, split, length, MAX_ROUNDS)
    return {"learning_rate": RATE, "n_estimators": n_rounds, **defaults, **contender.params}


def _lightgbm(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    lightgbm = require("lightgbm", extra="all", what=contender.label)
    params = _params(contender, split, length, subsample_freq=1, verbosity=-1)
    model = (lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor)(n_jobs=n_jobs, random_state=seed, **params)
    if split.whole:
        return Fitted(model.fit(split.X, split.y), length)
    # eval_set is deprecated since 4.7, and eval_X is new in that version.
    if "eval_X" in inspect.signature(model.fit).parameters:
        eval_set = {"eval_X": split.X_valid, "eval_y": split.y_valid}
    else:
        eval_set = {"eval_set": [(split.X_valid, split.y_valid)]}
    model.fit(split.X, split.y, **eval_set, callbacks=[lightgbm.early_stopping(STOPPING_ROUNDS, verbose=False)])
    return Fitted(model, model.best_iteration_)


def _xgboost(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    xgboost = require("xgboost", extra="xgboost", what=contender.label)
    patience = None if split.whole else STOPPING_ROUNDS
    defaults = {"early_stopping_rounds": patience, "enable_categorical": True, "verbosity": 0}
    params = _params(contender, split, length, **defaults)
    model = (xgboost.XGBClassifier if classes else xgboost.XGBRegressor)(n_jobs=n_jobs, random_state=seed, **params)
    if split.whole:
        return Fitted(model.fit(split.X, split.y), length)
    model.fit(split.X, split.y, eval_set=[(split.X_valid, split.y_valid)], verbose=False)
    return Fitted(model, model.best_iteration + 1)


TRAINERS: Mapping[str, Trainer] = {"deep": _deep, "lightgbm": _lightgbm, "xgboost": _xgboost}
