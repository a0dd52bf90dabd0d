"""Models of a comparison by name, from a file or a function, or as estimators of scikit-learn's interface."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from boostbp.comparison.contenders import SINGLE_LAYER, Contender

ModelLike: TypeAlias = "str | tuple[str, Any] | Any"
_LIBRARIES = {
    **dict(zip(("lightgbm", "linear_tree", "xgboost"), SINGLE_LAYER, strict=True)),
    "catboost": Contender("CatBoost", "catboost"),
}
_OURS = tuple(f"quality={quality}" for quality in range(1, 6))
_NAMES = (*_LIBRARIES, "boostbp", *_OURS)
_CURE = f"use one of {', '.join(_NAMES)}, a file.joblib, package.module:make_model, or an estimator"
DEFAULT_QUALITIES = (1, 3)


def contenders_of(models: Iterable[ModelLike], params: Mapping[str, Any] | None = None) -> tuple[Contender, ...]:
    """Return models as contenders with labels of their own; `params` are those of all boostbp models by name."""
    contenders: list[Contender] = []
    if isinstance(models, str) or not (models := list(models)):
        raise ValueError(f"models={models!r} is not allowed: give a list of one model or more.")
    for model in models:
        contender = _contender(model, params or {})
        if contender in contenders:  # named twice
            continue
        labels = [other.label for other in contenders]
        if contender.label in labels:
            raise ValueError(f"models: two are called {contender.label!r}: give names, as ('mine', LGBMRegressor()).")
        contenders.append(contender)
    return tuple(contenders)


def _contender(model: ModelLike, params: Mapping[str, Any]) -> Contender:
    if isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], str):
        label, named = model
        return _of_estimator(named, label)
    if not isinstance(model, str):
        return _of_estimator(model, type(model).__name__)
    name = model.lower().removeprefix("boostbp ")
    if name in _LIBRARIES:
        return _LIBRARIES[name]
    if name in _OURS:
        return Contender(f"boostbp {name}", "deep", {**params, "quality": int(name[-1])})
    if name == "boostbp":
        return Contender("boostbp", "deep", params)
    if Path(model).suffix in (".joblib", ".pkl", ".pickle"):
        import joblib

        return _of_estimator(joblib.load(model), Path(model).stem)
    module, colon, attribute = model.partition(":")
    if not colon:
        raise ValueError(f"model {model!r} is not known: {_CURE}.")
    return _of_estimator(_made_by(module, attribute), attribute)


def _made_by(module: str, attribute: str) -> Any:
    """Return the estimator that a module holds, or that a function or class there makes; the folder is searched."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    value = getattr(import_module(module), attribute, None)
    if value is None:
        raise ValueError(f"model '{module}:{attribute}' does not exist: {module} has no {attribute!r}.")
    return value if hasattr(value, "fit") and not isinstance(value, type) else value()


def _of_estimator(estimator: Any, label: str) -> Contender:
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise TypeError(f"model {estimator!r} is no estimator with fit and get_params: {_CURE}.")
    return Contender(label, "estimator", {"estimator": estimator})


def reference_of(contenders: Sequence[Contender], reference: str | None) -> str:
    """Return the label of the model that others are compared with: the named one, LightGBM, or the first."""
    labels = {contender.label.lower(): contender.label for contender in contenders}
    if reference is None:
        return labels.get(SINGLE_LAYER[0].label.lower(), contenders[0].label)
    named = labels.get(reference.lower()) or labels.get(f"boostbp {reference.lower()}")
    if named is None:
        raise ValueError(f"reference={reference!r} is not one of the models: give one of {', '.join(labels.values())}.")
    return named
