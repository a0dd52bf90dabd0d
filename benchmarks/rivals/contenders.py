"""Rivals: the models that a deep model is measured against, by name, and how each is trained."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.comparison import contenders
from boostbp.comparison.contenders import MAX_ROUNDS, RATE, SINGLE_LAYER, Contender, Fitted, Split, Trainer, length_of

__all__ = ["CONTROLS", "MIXTURES", "RIVALS", "Average", "average", "rival", "train", "trees_of"]

_PATIENCE = 20  # of a model that keeps the rounds that it waited
_MOST_AVERAGED = 20

MIXTURES = {"gbdt-nn": Contender("GBDT-NN", "gbdt-nn"), "nn-gbdt": Contender("NN-GBDT", "nn-gbdt")}
RIVALS = {
    **dict(zip(("lightgbm", "linear_tree", "xgboost"), SINGLE_LAYER, strict=True)),
    "hist": Contender("HistGradientBoosting", "hist"),
    "single": Contender("single layer", "deep", {"hidden_layer_sizes": (), "backend": "lightgbm"}, "single"),
    "single-xgboost": Contender(
        "single layer (xgboost)", "deep", {"hidden_layer_sizes": (), "backend": "xgboost"}, "single"
    ),
    "mlp": Contender("MLP", "mlp"),
    **MIXTURES,
}
# What of a gain is owed to depth, and to back-propagation.
CONTROLS = {
    "linear-hidden": Contender("linear hidden layer", "deep", {"hidden__n_estimators": 0}),
    "before": Contender("before back-propagation", "deep", {"epochs": 0}),
}


def rival(name: str, **params: Any) -> Contender:
    """One of `RIVALS` or `CONTROLS`, with parameters that are given and hence not searched.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    known = RIVALS | CONTROLS
    if name not in known:
        raise ValueError(f"rival {name!r} is not known: use one of {', '.join(map(repr, known))}.")
    return replace(known[name], params={**known[name].params, **params})


def average(trees: int) -> Contender:
    """Single-layer LightGBM models with so many trees in all: what averaging alone gains."""
    return Contender("average of LightGBM", "average", {"trees": trees}, "lightgbm")


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


def trees_of(model: Any) -> int | None:
    """Number of trees of a trained model; None if it has none, or does not say."""
    if isinstance(model, Average):
        return sum(trees_of(each) or 0 for each in model.models)
    if hasattr(model, "booster_"):
        return int(model.n_iter_ * model.booster_.num_model_per_iteration())
    layers = getattr(getattr(model, "network_", None), "layers", ())
    return sum(layer.forest.n_trees for layer in layers if hasattr(layer, "forest")) or None


def _network(
    module: str,
    name: str,
    contender: Contender,
    split: Split,
    task: str,
    n_jobs: int,
    seed: int,
    length: int | None,
) -> Fitted:
    params: dict[str, Any] = {"n_jobs": n_jobs, "random_state": seed, **contender.params}
    if length is not None:
        params["epochs"] = length
    if split.whole and module == "benchmarks.rivals.mlp":
        length_of(contender, split, length, 0)
    elif split.whole and length is not None:
        params["early_stopping"] = False
    kind = getattr(import_module(module), f"{name}{'Classifier' if task == 'classification' else 'Regressor'}")
    model = kind(**params).fit(split.X, split.y, eval_set=None if split.whole else [(split.X_valid, split.y_valid)])
    return Fitted(model, model.history_.best_epoch)


def _average(contender: Contender, split: Split, task: str, n_jobs: int, seed: int, length: int | None) -> Fitted:
    """LightGBM models on samples of rows and features, until there are as many trees as the parameter ``trees``."""
    if split.whole:
        raise ValueError(f"{contender.label} needs rows to stop by: each of its models has a length of its own.")
    sampled = {"subsample": 0.8, "colsample_bytree": 0.8}
    params = {name: value for name, value in contender.params.items() if name != "trees"}
    one = replace(contender, kind="lightgbm", params=sampled | params)
    average = Average([])
    while len(average.models) < 2 or (
        len(average.models) < _MOST_AVERAGED and (trees_of(average) or 0) < contender.params["trees"]
    ):
        number = seed + len(average.models)
        average.models.append(contenders.TRAINERS["lightgbm"](one, split, task, n_jobs, number, length).model)
    return Fitted(average, len(average.models))


def _hist(contender: Contender, split: Split, task: str, n_jobs: int, seed: int, length: int | None) -> Fitted:
    from sklearn import ensemble
    from threadpoolctl import threadpool_limits

    params = {
        "learning_rate": RATE,
        "max_iter": length_of(contender, split, length, MAX_ROUNDS),
        "early_stopping": not split.whole,
    }
    params |= {"n_iter_no_change": _PATIENCE, "random_state": seed, **contender.params}
    kind = (
        ensemble.HistGradientBoostingClassifier if task == "classification" else ensemble.HistGradientBoostingRegressor
    )
    model = kind(**params)
    if "X_val" not in inspect.signature(model.fit).parameters:
        raise ImportError(f"{contender.label} needs scikit-learn 1.7 or newer, which stops by rows that are given.")
    held = {} if split.whole else {"X_val": split.X_valid, "y_val": split.y_valid}
    with threadpool_limits(n_jobs, "openmp"):
        model.fit(split.X, split.y, **held)
    return Fitted(model, int(model.n_iter_))


TRAINERS: Mapping[str, Trainer] = {
    **contenders.TRAINERS,
    "hist": _hist,
    "average": _average,
    "mlp": partial(_network, "benchmarks.rivals.mlp", "MLP"),
    "gbdt-nn": partial(_network, "benchmarks.mixtures", "GBDTNN"),
    "nn-gbdt": partial(_network, "benchmarks.mixtures", "NNGBDT"),
}
train = partial(contenders.train_contender, trainers=TRAINERS)
