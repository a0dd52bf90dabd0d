"""The models of a comparison: the deep model on a backend, and the models people use today.

All train on the same rows and choose their length on the same validation rows. The boosted single-layer
models keep their library's defaults but for a learning rate of 0.05, at most 2,000 rounds and early
stopping after 50 rounds without gain.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.extras import require
from boostbp.search import parameters

__all__ = [
    "MIXTURES",
    "SINGLE_LAYER",
    "Average",
    "Contender",
    "Fitted",
    "Split",
    "deep",
    "mixture",
    "train",
    "trees_of",
]

_RATE, _ROUNDS, _PATIENCE = 0.05, 2000, 50
_HIST_PATIENCE = 20  # it keeps the rounds that it waited
_MOST_AVERAGED = 20


@dataclass(frozen=True, slots=True)
class Contender:
    """A model to be trained.

    Attributes
    ----------
    label : str
        Name in the table.
    kind : {"deep", "gbdt-nn", "nn-gbdt", "mlp", "lightgbm", "xgboost", "hist", "average"}
    params : mapping
        Parameters over those that all of the kind have; see `boostbp.search.parameters` for the names.
    space : str or None
        Name of its search space, if that is not its kind.
    """

    label: str
    kind: str
    params: Mapping[str, Any] = field(default_factory=dict)
    space: str | None = None


def deep(backend: str, params: Mapping[str, Any]) -> Contender:
    """Make the multi-layered model on a backend a contender."""
    return Contender(f"boostbp ({backend})", "deep", {**params, "backend": backend})


MIXTURES = {"gbdt-nn": Contender("GBDT-NN", "gbdt-nn"), "nn-gbdt": Contender("NN-GBDT", "nn-gbdt")}


def mixture(name: str, backend: str) -> Contender:
    """Make a mixture, with its defaults but for the library, a contender; ValueError if there is none of that name."""
    if name not in MIXTURES:
        raise ValueError(f"also={name!r} is not known: use one of {', '.join(map(repr, MIXTURES))}.")
    return replace(MIXTURES[name], label=f"{MIXTURES[name].label} ({backend})", params={"backend": backend})


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


@dataclass(frozen=True, slots=True)
class Average:
    """The mean of some models' predictions."""

    models: list[Any]

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predicted target, (rows,)."""
        return np.mean([model.predict(X) for model in self.models], axis=0)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class, (rows, classes)."""
        return np.mean([model.predict_proba(X) for model in self.models], axis=0)


def train(
    contender: Contender, split: Split, *, task: str, n_jobs: int, seed: int, length: int | None = None
) -> Fitted:
    """Train a contender.

    Parameters
    ----------
    contender : Contender
    split : Split
        Labels are 0 .. classes - 1 for classification.
    task : {"classification", "regression"}
    n_jobs, seed : int
    length : int, optional
        Largest number of rounds or epochs, for a rehearsal; without rows to stop by, the number itself. Networks of
        ours need none: they hold rows out by themselves.

    Raises
    ------
    ImportError
        If its library is not installed.
    ValueError
        If a model that holds no rows out has neither rows to stop by nor a length; without these, an average.
    """
    trainers = {"lightgbm": _lightgbm, "xgboost": _xgboost, "hist": _hist, "average": _average}
    trainer = trainers.get(contender.kind, _ours)
    if split.whole:
        _check_whole(contender, length)
    given = replace(contender, params=parameters(contender.params))
    return trainer(given, split, task == "classification", n_jobs, seed, length)


def _check_whole(contender: Contender, length: int | None) -> None:
    """Refuse what cannot do without rows to stop by."""
    name = contender.label or contender.kind
    if contender.kind == "average":
        raise ValueError(f"{name} needs rows to stop by: each of its models has a length of its own.")
    if length is None and contender.kind not in ("deep", "gbdt-nn", "nn-gbdt"):
        raise ValueError(f"{name} has neither rows to stop by nor a length: give one.")


def trees_of(model: Any) -> int | None:
    """Number of trees of a trained model; None if it has none, or does not say."""
    if isinstance(model, Average):
        return sum(trees_of(each) or 0 for each in model.models)
    if hasattr(model, "booster_"):
        return int(model.n_iter_ * model.booster_.num_model_per_iteration())
    layers = getattr(getattr(model, "network_", None), "layers", ())
    return sum(layer.forest.n_trees for layer in layers if hasattr(layer, "forest")) or None


def _ours(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    from boostbp.learning.layers.rounds import rounds_of

    rooms = {
        "deep": ("boostbp.estimators", "BoostBP"),
        "gbdt-nn": ("boostbp.interop.mixtures", "GBDTNN"),
        "nn-gbdt": ("boostbp.interop.mixtures", "NNGBDT"),
        "mlp": ("boostbp.report.mlp", "MLP"),
    }
    room, name = rooms[contender.kind]
    params = {"n_jobs": n_jobs, "random_state": seed, **contender.params}
    single = contender.kind == "deep" and np.size(contender.params.get("hidden_layer_sizes", 1)) == 0
    if length is not None:
        params["n_estimators" if single else "epochs"] = length
        if split.whole and contender.kind != "mlp":
            params["early_stopping"] = False
    estimator = getattr(importlib.import_module(room), f"{name}{'Classifier' if classes else 'Regressor'}")
    eval_set = None if split.whole else [(split.X_valid, split.y_valid)]
    model = estimator(**params).fit(split.X, split.y, eval_set=eval_set)
    return Fitted(model, rounds_of(model.network_.layers[-1].forest) if single else model.history_.best_epoch)


def _lightgbm(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    lightgbm = require("lightgbm", extra="all", what=contender.label)
    params = {"learning_rate": _RATE, "n_estimators": length or _ROUNDS, "subsample_freq": 1, "verbosity": -1}
    params |= contender.params
    model = (lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor)(n_jobs=n_jobs, random_state=seed, **params)
    if split.whole:
        return Fitted(model.fit(split.X, split.y), length)
    # eval_set is deprecated from 4.7 on, and eval_X is unknown before.
    if "eval_X" in inspect.signature(model.fit).parameters:
        held = {"eval_X": split.X_valid, "eval_y": split.y_valid}
    else:
        held = {"eval_set": [(split.X_valid, split.y_valid)]}
    model.fit(split.X, split.y, **held, callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)])
    return Fitted(model, model.best_iteration_)


def _average(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    """LightGBM models on samples of rows and features, until there are as many trees as the parameter ``trees``."""
    sampled = {"subsample": 0.8, "colsample_bytree": 0.8}
    params = {name: value for name, value in contender.params.items() if name != "trees"}
    one = replace(contender, params=sampled | params)
    average = Average([])
    while len(average.models) < 2 or (
        len(average.models) < _MOST_AVERAGED and (trees_of(average) or 0) < contender.params["trees"]
    ):
        number = seed + len(average.models)
        average.models.append(_lightgbm(one, split, classes, n_jobs, number, length).model)
    return Fitted(average, len(average.models))


def _xgboost(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    xgboost = require("xgboost", extra="xgboost", what=contender.label)
    params = {
        "learning_rate": _RATE,
        "n_estimators": length or _ROUNDS,
        "early_stopping_rounds": None if split.whole else _PATIENCE,
        "enable_categorical": True,
        "verbosity": 0,
    }
    params |= contender.params
    model = (xgboost.XGBClassifier if classes else xgboost.XGBRegressor)(n_jobs=n_jobs, random_state=seed, **params)
    if split.whole:
        return Fitted(model.fit(split.X, split.y), length)
    model.fit(split.X, split.y, eval_set=[(split.X_valid, split.y_valid)], verbose=False)
    return Fitted(model, model.best_iteration + 1)


def _hist(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    from sklearn import ensemble
    from threadpoolctl import threadpool_limits

    params = {"learning_rate": _RATE, "max_iter": length or _ROUNDS, "early_stopping": not split.whole}
    params |= {"n_iter_no_change": _HIST_PATIENCE, "random_state": seed, **contender.params}
    kind = ensemble.HistGradientBoostingClassifier if classes else ensemble.HistGradientBoostingRegressor
    model = kind(**params)
    if "X_val" not in inspect.signature(model.fit).parameters:
        raise ImportError(f"{contender.label} needs scikit-learn 1.7 or newer, which stops by rows that are given.")
    held = {} if split.whole else {"X_val": split.X_valid, "y_val": split.y_valid}
    with threadpool_limits(n_jobs, "openmp"):
        model.fit(split.X, split.y, **held)
    return Fitted(model, int(model.n_iter_))
