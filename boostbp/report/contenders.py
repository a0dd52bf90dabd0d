"""The models of a comparison: the deep model on a backend, and the single-layer models people use today.

All train on the same rows and choose their length on the same validation rows. The single-layer
models keep their library's defaults but for a learning rate of 0.05, at most 2,000 rounds and early
stopping after 50 rounds without gain.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from boostbp.extras import require

__all__ = ["MIXTURES", "SINGLE_LAYER", "Contender", "Fitted", "Split", "deep", "mixture", "train"]

_RATE, _ROUNDS, _PATIENCE = 0.05, 2000, 50


@dataclass(frozen=True, slots=True)
class Contender:
    """A model to be trained.

    Attributes
    ----------
    label : str
        Name in the table.
    kind : {"deep", "gbdt-nn", "nn-gbdt", "lightgbm", "xgboost"}
    params : mapping
        Parameters over those that all of the kind have.
    """

    label: str
    kind: Literal["deep", "gbdt-nn", "nn-gbdt", "lightgbm", "xgboost"]
    params: Mapping[str, Any] = field(default_factory=dict)


def deep(backend: str, params: Mapping[str, Any]) -> Contender:
    """Make the multi-layered model on a backend a contender."""
    return Contender(f"boostbp ({backend})", "deep", {**params, "backend": backend})


MIXTURES = {"gbdt-nn": Contender("GBDT-NN", "gbdt-nn"), "nn-gbdt": Contender("NN-GBDT", "nn-gbdt")}


def mixture(name: str) -> Contender:
    """Make a mixture with a neural network, with its defaults, a contender; ValueError if there is none such."""
    if name not in MIXTURES:
        raise ValueError(f"also={name!r} is not known: use one of {', '.join(map(repr, MIXTURES))}.")
    return MIXTURES[name]


SINGLE_LAYER = (
    Contender("LightGBM", "lightgbm"),
    Contender("LightGBM linear_tree", "lightgbm", {"linear_tree": True}),
    Contender("XGBoost", "xgboost"),
)


class Split(NamedTuple):
    """Rows to learn from, and rows to stop by."""

    X: Any
    y: NDArray[Any]
    X_valid: Any
    y_valid: NDArray[Any]


class Fitted(NamedTuple):
    """A trained model and the number of rounds or epochs that it kept."""

    model: Any
    length: int | None


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
        Largest number of rounds or epochs, for a rehearsal.

    Raises
    ------
    ImportError
        If its library is not installed.
    """
    trainers = {"deep": _deep, "gbdt-nn": _deep, "nn-gbdt": _deep, "lightgbm": _lightgbm, "xgboost": _xgboost}
    return trainers[contender.kind](contender, split, task == "classification", n_jobs, seed, length)


def _deep(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    from boostbp import estimators
    from boostbp.interop import mixtures

    kinds: dict[str, tuple[Any, Any]] = {
        "deep": (estimators.BoostBPClassifier, estimators.BoostBPRegressor),
        "gbdt-nn": (mixtures.GBDTNNClassifier, mixtures.GBDTNNRegressor),
        "nn-gbdt": (mixtures.NNGBDTClassifier, mixtures.NNGBDTRegressor),
    }
    params = {"n_jobs": n_jobs, "random_state": seed, "verbose": 0, **contender.params}
    if length is not None:
        params["epochs"] = length
    model = kinds[contender.kind][0 if classes else 1](**params)
    model.fit(split.X, split.y, eval_set=[(split.X_valid, split.y_valid)])
    return Fitted(model, getattr(model.history_, "best_epoch", None))


def _lightgbm(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    lightgbm = require("lightgbm", extra="all", what=contender.label)
    params = {"learning_rate": _RATE, "n_estimators": length or _ROUNDS, "verbosity": -1, **contender.params}
    model = (lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor)(n_jobs=n_jobs, random_state=seed, **params)
    stop = lightgbm.early_stopping(_PATIENCE, verbose=False)
    # eval_set is deprecated from 4.7 on, and eval_X is unknown before.
    if "eval_X" in inspect.signature(model.fit).parameters:
        held = {"eval_X": split.X_valid, "eval_y": split.y_valid}
    else:
        held = {"eval_set": [(split.X_valid, split.y_valid)]}
    model.fit(split.X, split.y, **held, callbacks=[stop])
    return Fitted(model, model.best_iteration_)


def _xgboost(contender: Contender, split: Split, classes: bool, n_jobs: int, seed: int, length: int | None) -> Fitted:
    xgboost = require("xgboost", extra="xgboost", what=contender.label)
    model = (xgboost.XGBClassifier if classes else xgboost.XGBRegressor)(
        learning_rate=_RATE,
        n_estimators=length or _ROUNDS,
        early_stopping_rounds=_PATIENCE,
        enable_categorical=True,
        n_jobs=n_jobs,
        random_state=seed,
        verbosity=0,
        **contender.params,
    )
    model.fit(split.X, split.y, eval_set=[(split.X_valid, split.y_valid)], verbose=False)
    return Fitted(model, model.best_iteration + 1)
