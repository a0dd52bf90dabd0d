"""Settings of LightGBM and XGBoost as estimators of this package."""

from __future__ import annotations

import json
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from boostbp.backends._lightgbm_params import natives as lightgbm_natives
from boostbp.backends.native_params import XGBOOST, Natives
from boostbp.estimators import BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival
from boostbp.losses import Huber, task_of
from boostbp.network.layers import LayerSpec
from boostbp.runtime import checks, messages
from boostbp.runtime.messages import MEANT, NOT_THERE, require

if TYPE_CHECKING:
    from lightgbm import Booster as LightGBMBooster
    from lightgbm import LGBMModel
    from xgboost import Booster as XGBoostBooster
    from xgboost import XGBModel

Estimator: TypeAlias = BoostBPRegressor | BoostBPClassifier | BoostBPRanker | BoostBPSurvival

_KINDS: Mapping[str, type[Any]] = {
    "classification": BoostBPClassifier,
    "ranking": BoostBPRanker,
    "regression": BoostBPRegressor,
    "survival": BoostBPSurvival,
}
_ALPHA = 0.9  # LightGBM's default level of quantile, and width of huber
_DEFAULT_OBJECTIVES = {"Classifier": "binary", "Ranker": "lambdarank"}  # by the names of the libraries' classes
# Objectives that are no loss here, but say the task.
_CLASSES = {"multiclassova", "multiclass_ova", "ova", "ovr", "binary:logitraw", "binary:hinge", "reg:logistic"}
_SQUARED = {"regression", "l2", "mse", "mean_squared_error", "l2_root", "root_mean_squared_error", "rmse"}
_SQUARED |= {"reg:squarederror", "reg:linear"}
# Parameters that do not change a model, or that an estimator finds in the data.
_NEEDLESS = {
    "num_class",
    "num_classes",
    "num_trees",  # of XGBoost's boosters, as the updaters are
    "updater",
    "updater_seq",
    "enable_categorical",
    "multi_strategy",
    "importance_type",
    "validate_parameters",
}
_NEEDLESS |= {
    "fail_on_invalid_gpu_id",
    "disable_default_eval_metric",
    "seed_per_iteration",
    "is_provide_training_metric",
}
_CONFIGURED = {"generic_param", "tree_train_param", "learner_train_param", "objective"}  # sections that users set
_CONFIGURED |= {"gbtree_model_param", "gbtree_train_param", "dart_train_param"}


def from_lightgbm(settings: Mapping[str, Any] | LGBMModel | LightGBMBooster) -> Estimator:
    """Return a boostbp estimator with the given LightGBM settings; its ``repr`` is the constructor call.

    Settings at LightGBM's defaults are left out, as the estimator chooses these itself. A warning explains each setting
    that has no equivalent here.

    Parameters
    ----------
    settings : mapping, lightgbm.LGBMModel or lightgbm.Booster
        Parameters of `lightgbm.train` under any of their names, an estimator, or a booster.

    Returns
    -------
    BoostBPRegressor, BoostBPClassifier or BoostBPRanker
        By the objective. It isn't fitted, and has ``quality=1``: single layers without a network.

    Raises
    ------
    TypeError
        If `settings` is something else.
    ValueError
        If two names of one parameter have different values.

    Examples
    --------
    >>> from boostbp import from_lightgbm
    >>> from_lightgbm({"objective": "binary", "num_leaves": 63, "eta": 0.05, "cat_smooth": 5})
    BoostBPClassifier(backend_params={'cat_smooth': 5}, learning_rate=0.05,
                      output={'max_leaves': 63}, quality=1)
    """
    return _estimator(_Switch("lightgbm", lightgbm_natives()), settings, _of_lightgbm_booster)


def from_xgboost(settings: Mapping[str, Any] | XGBModel | XGBoostBooster) -> Estimator:
    """Return an estimator with the settings of XGBoost and ``backend="xgboost"``, as `from_lightgbm` does.

    Parameters
    ----------
    settings : mapping, xgboost.XGBModel or xgboost.Booster
        Parameters of `xgboost.train`, an estimator, or a booster.

    Returns
    -------
    BoostBPRegressor, BoostBPClassifier, BoostBPRanker or BoostBPSurvival
        By the objective. It isn't fitted.

    Raises
    ------
    TypeError
        If `settings` is something else.
    ValueError
        If two names of one parameter have different values.

    Examples
    --------
    >>> from boostbp import from_xgboost
    >>> from_xgboost({"max_depth": 4, "subsample": 0.8, "gamma": 0.1})
    BoostBPRegressor(backend='xgboost', backend_params={'gamma': 0.1}, max_depth=4,
                     output={'subsample': 0.8}, quality=1)
    """
    return _estimator(_Switch("xgboost", XGBOOST), settings, _of_xgboost_booster)


def _estimator(switch: _Switch, settings: Any, of_booster: Callable[[Any], dict[str, Any]]) -> Any:
    given, kind = _settings(switch, settings, of_booster)
    main = {name: switch.natives.aliases.get(name, name) for name in given}
    values = {main[name]: value for name, value in given.items()}
    switch.begin(values.get("objective", kind), values.get("alpha"))
    for name in (name for name in given if main[name] not in ("objective", "alpha")):
        switch.put(main[name], name, given[name], given)
    if switch.notes:
        lines = "".join(f"\n- {note}" for note in switch.notes)
        messages.warn(f"What the estimator does otherwise than {switch.natives.title}:{lines}")
    return switch.kind(**switch.params)


def _settings(
    switch: _Switch, settings: Any, of_booster: Callable[[Any], dict[str, Any]]
) -> tuple[dict[str, Any], str]:
    """Return what was set by name, without values at their defaults, and the objective unless one was set."""
    module = type(settings).__module__.partition(".")[0]
    named = type(settings).__name__
    if isinstance(settings, Mapping):
        given = dict(checks.named("settings", settings))
    elif module == switch.backend and named == "Booster":
        given = of_booster(settings)
    elif module == switch.backend and hasattr(settings, "get_params"):
        usual = type(settings)().get_params()
        given = {name: v for name, v in settings.get_params().items() if not _same(v, usual.get(name))}
        if "RF" in named:  # a forest of XGBoost: one round
            given["num_parallel_tree"] = given.pop("n_estimators", 100)
    else:
        kinds = f"a dict of its parameters, an estimator or a Booster of {switch.natives.title}"
        raise TypeError(f"settings={checks.shown(settings)} is not allowed: give {kinds}.")
    objective = next((name for word, name in _DEFAULT_OBJECTIVES.items() if word in named), "regression")
    unique: dict[str, Any] = {}
    for name, value in given.items():
        main = switch.natives.aliases.get(name, name)
        other = next((other for other in unique if switch.natives.aliases.get(other, other) == main), name)
        if not _same(unique.setdefault(other, value), value):
            both = f"{other}={checks.shown(unique[other])} and {name}={checks.shown(value)}"
            raise ValueError(f"settings have {both}, two names of one parameter: keep one of the two.")
    return {name: value for name, value in unique.items() if value is not None}, objective


def _same(a: object, b: object) -> bool:
    """Return whether two settings are equal; NaN equals NaN."""
    return repr(a) == repr(b) or (np.isscalar(a) and np.isscalar(b) and bool(a == b))


def _of_lightgbm_booster(booster: Any) -> dict[str, Any]:
    """Return the parameters of a booster that differ from LightGBM's defaults; a loaded booster has all of them."""
    library, quiet = require("lightgbm", extra="all", what="from_lightgbm"), {"verbosity": -1}
    smallest = library.train(quiet, library.Dataset(np.zeros((2, 1)), np.zeros(2), params=quiet), 1)
    usual = library.Booster(model_str=smallest.model_to_string()).params
    main = lightgbm_natives().aliases
    given = {name: v for name, v in booster.params.items() if not _same(v, usual.get(main.get(name, name)))}
    given = {name: v for name, v in given.items() if main.get(name, name) != "num_iterations"}
    return {**given, "num_iterations": booster.current_iteration()}


def _of_xgboost_booster(booster: Any) -> dict[str, Any]:
    """Return the parameters of a booster that differ from XGBoost's defaults."""
    library = require("xgboost", extra="xgboost", what="from_xgboost")
    usual = dict(_configured(library.Booster({"num_feature": 1, "objective": "reg:squarederror"})))
    given = {name: v for name, v in _configured(booster) if not _same(v, usual.get(name))}
    given.pop("booster" if given.get("booster") == "gbtree" else "", None)
    return {**given, "n_estimators": booster.num_boosted_rounds()}


def _configured(booster: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and values of the sections that users set, wherever they are nested."""

    def walk(node: Mapping[str, Any], inside: bool) -> Iterator[tuple[str, Any]]:
        for name, value in node.items():
            if isinstance(value, Mapping):
                yield from walk(value, inside or name in _CONFIGURED)
            elif inside and name != "name" and value not in ("", "()"):
                yield name, _number(value)

    yield from walk(json.loads(booster.save_config())["learner"], inside=False)


def _number(text: str) -> Any:
    """Return a value of XGBoost's configuration; its numbers are in float32."""
    with suppress(ValueError, SyntaxError):
        value = literal_eval(text)
        return float(str(np.float32(value))) if isinstance(value, float) else value
    return text


@dataclass
class _Switch:
    """The translation of one set of parameters: those of the estimator so far, and sentences about the others."""

    backend: str
    natives: Natives
    kind: type[Any] = BoostBPRegressor
    params: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, name: str, value: object, reason: str) -> None:
        self.notes.append(f"{name}={checks.shown(value)}: {reason}")

    def begin(self, objective: Any, alpha: float | None) -> None:
        """Choose the estimator and its loss by the objective, two of which have LightGBM's parameter `alpha`."""
        self.params = {"quality": 1} | ({} if self.backend == "lightgbm" else {"backend": self.backend})
        if not isinstance(objective, str):
            self.note("objective", objective, "give an object with value, gradient and hessian as loss=...")
            return
        task = task_of(objective)
        if task is None and objective not in _SQUARED:
            task = "classification" if objective in _CLASSES else "ranking" if "rank:" in objective else "regression"
            self.note("objective", objective, f"it is not built in, and the default loss of {task} is in its place.")
        elif objective not in _SQUARED and task != "classification":
            self.params["loss"] = objective
        if objective == "huber":
            self.params["loss"] = Huber(_ALPHA if alpha is None else alpha)
        elif objective == "quantile":
            self.params["alpha"] = _ALPHA if alpha is None else alpha
        elif alpha is not None:
            self.note("alpha", alpha, "it is a parameter of the objectives quantile and huber alone.")
        self.kind = _KINDS[task or "regression"]

    def put(self, main: str, name: str, value: Any, given: Mapping[str, Any]) -> None:
        """Put a parameter where it belongs, or say why it has no place."""
        place, native, value = MEANT.get(main, main), value, _VALUES[main](value) if main in _VALUES else value
        if value is None or main in _NEEDLESS or (np.isscalar(value) and value in self.natives.defaults.get(main, ())):
            return
        if place == "eval_metric" and isinstance(value, list):
            value, *others = value
            self.notes.extend(f"{name}={other!r}: a fit has one metric." for other in others)
        if (reason := self.reason_against(main, value, given)) is not None:
            self.note(name, native, reason)
        elif place in signature(self.kind).parameters and place != "loss":
            if not _same(self.params.setdefault(place, value), value):
                self.note(name, native, f"{place}={self.params[place]!r} is there already.")
        elif place in {f.name for f in fields(LayerSpec)}:
            self.nested("output", name, place, value)
        elif main in self.natives.allowed:
            self.nested("backend_params", name, name, value)
        else:
            reason = self.natives.reasons.get(main) or NOT_THERE.get(main) or NOT_THERE.get(name)
            self.note(name, native, reason or "boostbp has nothing in its place.")

    def reason_against(self, main: str, value: Any, given: Mapping[str, Any]) -> str | None:
        """Return why a parameter that has a place does not get its value there."""
        if main == "bagging_fraction" and not any(given.get(name) for name in ("bagging_freq", "subsample_freq")):
            return "LightGBM draws rows only if bagging_freq is set, so it had no effect."
        if main == "bagging_freq":
            return "rows are drawn anew for each tree."
        if main not in ("is_unbalance", "scale_pos_weight") or self.kind is not BoostBPClassifier:
            return None
        self.params["class_weight"] = "balanced" if value is True else {0: 1, 1: value}
        return "it became class_weight; if the classes are not 0 and 1, write yours in their place."

    def nested(self, parameter: str, name: str, key: str, value: Any) -> None:
        """Put a value into a parameter that is a dict, if it passes the check there."""
        try:
            if isinstance(value, str) and key == "monotone_constraints":
                value = literal_eval(value)
            LayerSpec(**{key: value}) if parameter == "output" else self.natives.checked({key: value})
        except (ValueError, SyntaxError) as error:
            self.note(name, value, f"{error}")
        else:
            known = self.params.setdefault(parameter, {})
            if not _same(known.setdefault(key, value), value):
                self.note(name, value, f"{key}={known[key]!r} is there already.")


def _is_on(value: Any) -> bool:
    """Return whether a switch is on, which LightGBM also reads as text."""
    return str(value).lower() not in ("false", "0", "0.0", "-")


def _columns(value: Any) -> Any:
    """Return LightGBM's categorical features, a list or text such as ``name:a,b`` or ``0,1``."""
    if not isinstance(value, str):
        return value
    names = value.removeprefix("name:").split(",")
    return None if value == "auto" else names if value.startswith("name:") else [_number(name) for name in names]


def _metrics(value: Any) -> Any:
    """Return a metric, or a list of several, which the libraries also write as text with commas."""
    names = value.split(",") if isinstance(value, str) else value
    names = [name for name in names if name not in ("", "None", "custom")] if isinstance(names, list) else names
    return (names or [None])[0] if isinstance(names, list) and len(names) < 2 else names


# What a value becomes here; None leaves the parameter out.
_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "bagging_freq": lambda value: None if value in (0, 1) else value,
    "categorical_feature": _columns,
    "eval_metric": _metrics,
    "is_unbalance": lambda value: True if _is_on(value) else None,
    "linear_tree": lambda value: "linear" if _is_on(value) else None,
    "max_depth": lambda value: -1 if value == 0 else value,  # of XGBoost, as below
    "max_leaves": lambda value: None if value == 0 else value,
    "metric": _metrics,
    "missing": lambda value: value if value == value else None,  # NaN is missing in any case
    "quantile_alpha": lambda value: value[0] if isinstance(value, list) and len(value) == 1 else value,
    "scale_pos_weight": lambda value: None if value == 1 else value,
    "verbosity": lambda value: 0 if value in (-1, 0) else None,
}
