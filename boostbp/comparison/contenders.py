"""The models of a comparison: those of boostbp, single-layer models of other libraries, and estimators of the user.

LightGBM, XGBoost and CatBoost keep their defaults except for a learning rate of 0.05, at most 2,000 rounds, and early
stopping after 50 rounds without gain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from boostbp.runtime.messages import require
from boostbp.search import nested

if TYPE_CHECKING:
    from pandas import DataFrame
    from sklearn.base import BaseEstimator

    from boostbp.estimators.base import BaseBoostBP

RATE, MAX_ROUNDS, STOPPING_ROUNDS = 0.05, 2000, 50
_PLACES = 10  # of a query, whose NDCG stops a ranking of LightGBM; that of all places would hardly change
ComparedTask: TypeAlias = Literal["classification", "regression", "ranking", "survival"]
Table: TypeAlias = "NDArray[Any] | DataFrame"  # (rows, features)
Model: TypeAlias = "BaseBoostBP | BaseEstimator"  # of any library: each has the interface of scikit-learn
# Names of estimators: those of a library begin alike, and end by their task.
_STARTS = {"deep": "BoostBP", "lightgbm": "LGBM", "xgboost": "XGB", "catboost": "CatBoost"}
_ENDS = {"classification": "Classifier", "ranking": "Ranker", "regression": "Regressor", "survival": "Regressor"}
# Names by which libraries call the threads and the seed of an estimator.
_TAKE_ALL = ("lightgbm", "xgboost", "catboost")  # cores, if no number of threads is given
_THREADS, _SEEDS = ("n_jobs", "thread_count", "nthread"), ("random_state", "random_seed", "seed")


@dataclass(frozen=True, slots=True)
class Contender:
    """A model to be trained."""

    label: str  # name in the table
    kind: str  # name of its trainer: "deep", "lightgbm", "xgboost", "catboost", "estimator", or one of the caller
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
    # (rows,) whole numbers, ascending: the query of each row in a ranking, otherwise its group, if rows have any
    groups: NDArray[np.intp] | None = None
    groups_valid: NDArray[np.intp] | None = None

    @property
    def whole(self) -> bool:
        """Whether all rows are training rows."""
        return self.X_valid is None


class Fitted(NamedTuple):
    """A trained model with its number of rounds or epochs."""

    model: Model
    length: int | None


# Arguments: the contender, the split, the task, threads, seed and length; see `train_contender`.
Trainer = Callable[[Contender, Split, str, int, int, int | None], Fitted]


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

    Labels are 0 .. classes - 1, and survival times of censored rows negative. An estimator of the user takes both as
    the user has them. `length` is the number of rounds or epochs; with validation rows, the largest one.
    """
    contender = replace(contender, params=nested(contender.params))
    return (trainers or TRAINERS)[contender.kind](contender, split, task, n_jobs, seed, length)


def _class_of(contender: Contender, task: str, module: Any) -> Any:
    """Return the estimator of a library for a task."""
    if contender.kind == "lightgbm" and task == "survival":
        raise ValueError(f"{contender.label} has no loss of survival times: leave it out, or compare with xgboost.")
    end = "Survival" if contender.kind == "deep" and task == "survival" else _ENDS[task]
    return getattr(module, f"{_STARTS[contender.kind]}{end}")


def _deep(contender: Contender, split: Split, task: str, n_jobs: int, seed: int, length: int | None) -> Fitted:
    from boostbp import estimators

    params = {"n_jobs": n_jobs, "random_state": seed, **contender.params}
    single = np.size(contender.params.get("hidden_layer_sizes", 1)) == 0
    if length is not None:
        params["n_estimators" if single else "epochs"] = length
    if split.whole and length is not None:
        params["early_stopping"] = False
    model = _class_of(contender, task, estimators)(**params)
    rows = {"qid" if task == "ranking" else "groups": split.groups} if split.groups is not None else {}
    model.fit(split.X, split.y, eval_set=None if split.whole else [(split.X_valid, split.y_valid)], **rows)
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


def _lightgbm(contender: Contender, split: Split, task: str, n_jobs: int, seed: int, length: int | None) -> Fitted:
    lightgbm = require("lightgbm", extra="all", what=contender.label)
    params = _params(contender, split, length, subsample_freq=1, verbosity=-1)
    model = _class_of(contender, task, lightgbm)(n_jobs=n_jobs, random_state=seed, **params)
    group = {"group": _sizes(split.groups)} if task == "ranking" else {}
    if split.whole:
        return Fitted(model.fit(split.X, split.y, **group), length)
    # eval_set is deprecated since 4.7, and eval_X is new in that version.
    if "eval_X" in inspect.signature(model.fit).parameters:
        evaluation: dict[str, Any] = {"eval_X": split.X_valid, "eval_y": split.y_valid}
    else:
        evaluation = {"eval_set": [(split.X_valid, split.y_valid)]}
    if task == "ranking":
        evaluation |= {"eval_group": [_sizes(split.groups_valid)], "eval_at": [_PLACES]}
    stopping = lightgbm.early_stopping(STOPPING_ROUNDS, verbose=False)
    model.fit(split.X, split.y, **group, **evaluation, callbacks=[stopping])
    return Fitted(model, model.best_iteration_)


def _sizes(groups: Any) -> NDArray[np.intp]:
    """Return the number of rows of each query, (queries,)."""
    return np.unique(groups, return_counts=True)[1]


def _xgboost(contender: Contender, split: Split, task: str, n_jobs: int, seed: int, length: int | None) -> Fitted:
    xgboost = require("xgboost", extra="xgboost", what=contender.label)
    patience = None if split.whole else STOPPING_ROUNDS
    defaults: dict[str, Any] = {"early_stopping_rounds": patience, "enable_categorical": True, "verbosity": 0}
    if task == "survival":
        defaults["objective"] = "survival:cox"
    params = _params(contender, split, length, **defaults)
    model = _class_of(contender, task, xgboost)(n_jobs=n_jobs, random_state=seed, **params)
    query = {"qid": split.groups} if task == "ranking" else {}
    if split.whole:
        return Fitted(model.fit(split.X, split.y, **query), length)
    queries = {"eval_qid": [split.groups_valid]} if task == "ranking" else {}
    model.fit(split.X, split.y, eval_set=[(split.X_valid, split.y_valid)], **query, **queries, verbose=False)
    return Fitted(model, model.best_iteration + 1)


def _catboost(contender: Contender, split: Split, task: str, n_jobs: int, seed: int, length: int | None) -> Fitted:
    catboost = require("catboost", extra="rivals", what=contender.label)
    defaults: dict[str, Any] = {
        "verbose": False,
        "allow_writing_files": False,
        "thread_count": n_jobs,
        "random_seed": seed,
    }
    if task in ("ranking", "survival"):
        defaults["loss_function"] = "YetiRank" if task == "ranking" else "Cox"
    model = _class_of(contender, task, catboost)(**_params(contender, split, length, **defaults))
    text = (
        [] if isinstance(split.X, np.ndarray) else [c for c in split.X.columns if split.X[c].dtype.kind not in "fiub"]
    )

    def pool(X: Table | None, y: NDArray[Any] | None, groups: NDArray[np.intp] | None) -> Any:
        return catboost.Pool(X, y, cat_features=text, group_id=groups if task == "ranking" else None)

    rows = pool(split.X, split.y, split.groups)
    if split.whole:
        return Fitted(model.fit(rows), length)
    valid = pool(split.X_valid, split.y_valid, split.groups_valid)
    model.fit(rows, eval_set=valid, early_stopping_rounds=STOPPING_ROUNDS)
    return Fitted(model, model.best_iteration_ + 1)


def _estimator(contender: Contender, split: Split, task: str, n_jobs: int, seed: int, length: int | None) -> Fitted:
    """Train a copy of an estimator of the user: its own settings, the threads of the comparison, a seed if it has none.

    Classes and survival times come as the user gave them.
    """
    model = clone(contender.params["estimator"])
    known = model.get_params()
    # None means one thread in scikit-learn, and all cores in LightGBM, XGBoost and CatBoost.
    owners = {name: known.get(name.rpartition("__")[0], model) for name in known}
    greedy = [name for name, owner in owners.items() if type(owner).__module__.partition(".")[0] in _TAKE_ALL]
    numbered = [name for name, value in known.items() if value is not None or name in greedy]
    threads = {name: n_jobs for name in numbered if name.rpartition("__")[2] in _THREADS}
    seeds = {name: seed for name, value in known.items() if name.rpartition("__")[2] in _SEEDS and value is None}
    model.set_params(**threads, **seeds)
    queries: dict[str, Any] = {}
    if task == "ranking":
        named = {"qid": split.groups, "group_id": split.groups, "group": _sizes(split.groups)}
        arguments = [name for name in named if name in inspect.signature(model.fit).parameters]
        queries = {name: named[name] for name in arguments[:1]}
    return Fitted(model.fit(split.X, split.y, **queries), None)


TRAINERS: Mapping[str, Trainer] = {
    "deep": _deep,
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
    "catboost": _catboost,
    "estimator": _estimator,
}
