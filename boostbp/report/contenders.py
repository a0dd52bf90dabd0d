"""The models of a comparison: the deep model on a backend, and the models people use today.

All train on the same rows and choose their length on the same validation rows. The boosted single-layer
models keep their library's defaults but for a learning rate of 0.05, at most 2,000 rounds and early
stopping after 50 rounds without gain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.extras import require
from boostbp.search import nested

RATE, ROUNDS, PATIENCE = 0.05, 2000, 50


@dataclass(frozen=True, slots=True)
class Contender:
    """A model to be trained."""

    label: str  # name in the table
    kind: str  # {"deep", "lightgbm", "xgboost"}, or one of others' trainers
    # parameters over those that all of the kind have; see `boostbp.search.parameters` for the names
    params: Mapping[str, Any] = field(default_factory=dict)
    space: str | None = None  # name of its search space, if that is not its kind


def deep(backend: str, params: Mapping[str, Any]) -> Contender:
    """Make the multi-layered model on a backend a contender."""
    return Contender(f"boostbp ({backend})", "deep", {**params, "backend": backend})


SINGLE_LAYER = (
    Contender("LightGBM", "lightgbm"),
    Contender("LightGBM linear_tree", "lightgbm", {"linear_tree": True}, "linear_tree"),
    Contender("XGBoost", "xgboost"),
)


class Split(NamedTuple):
    """Rows to learn from, and rows to stop by, if any."""

    X: Any
    y: NDArray[Any]
    X_valid: Any = None
    y_valid: NDArray[Any] | None = None

    @property
    def whole(self) -> bool:
        """Whether all rows are there to learn from."""
        return self.X_valid is None


class Fitted(NamedTuple):
    """A trained model and the number of rounds or epochs that it kept."""

    model: Any
    length: int | None


# A contender with parameters of the model, the split, whether these are classes, threads, seed and length.
Trainer = Callable[[Contender, Split, bool, int, int, int | None], Fitted]


def train(
    contender: Contender,
    split: Split,
    *,
    task: str,
    n_jobs: int,
    seed: int,
    length: int | None = None,
    trainers: Mapping[str, Trainer] | None = None,
) -> Fitted:
    """Train a contender; ImportError if its library is not installed.

    Parameters
    ----------
    split : Split
        Labels are 0 .. classes - 1 for classification.
    length : int, optional
        Largest number of rounds or epochs, for a rehearsal; without rows to stop by, the number itself. Networks of
        ours need none: they hold rows out by themselves.
    trainers : mapping of str to callable, optional
        Of each kind of contender; those of this file by default.
    """
    described = replace(contender, params=nested(contender.params))
    trainer = (trainers or TRAINERS)[contender.kind]
    return trainer(described, split, task == "classification", n_jobs, seed, length)


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


def length_of(contender: Contender, split: Split, length: int | None, most: int) -> int:
    """The largest number of rounds of a model that stops by rows, or its number without such rows.

    Raises ValueError if there are neither rows to stop by nor a length.
    """
    if length is None and split.whole:
        name = contender.label or contender.kind
        raise ValueError(f"{name} has neither rows to stop by nor a length: give one.")
    return most if length is None else length


def _lightgbm(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    lightgbm = require("lightgbm", extra="all", what=contender.label)
    params = {
        "learning_rate": RATE,
        "n_estimators": length_of(contender, split, length, ROUNDS),
        "subsample_freq": 1,
        "verbosity": -1,
    }
    params |= contender.params
    model = (lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor)(n_jobs=n_jobs, random_state=seed, **params)
    if split.whole:
        return Fitted(model.fit(split.X, split.y), length)
    # eval_set is deprecated from 4.7 on, and eval_X is unknown before.
    if "eval_X" in inspect.signature(model.fit).parameters:
        eval_set = {"eval_X": split.X_valid, "eval_y": split.y_valid}
    else:
        eval_set = {"eval_set": [(split.X_valid, split.y_valid)]}
    model.fit(split.X, split.y, **eval_set, callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)])
    return Fitted(model, model.best_iteration_)


def _xgboost(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    xgboost = require("xgboost", extra="xgboost", what=contender.label)
    params = {
        "learning_rate": RATE,
        "n_estimators": length_of(contender, split, length, ROUNDS),
        "early_stopping_rounds": None if split.whole else PATIENCE,
        "enable_categorical": True,
        "verbosity": 0,
    }
    params |= contender.params
    model = (xgboost.XGBClassifier if classes else xgboost.XGBRegressor)(n_jobs=n_jobs, random_state=seed, **params)
    if split.whole:
        return Fitted(model.fit(split.X, split.y), length)
    model.fit(split.X, split.y, eval_set=[(split.X_valid, split.y_valid)], verbose=False)
    return Fitted(model, model.best_iteration + 1)


TRAINERS: Mapping[str, Trainer] = {"deep": _deep, "lightgbm": _lightgbm, "xgboost": _xgboost}
