"""XGBoost's parameters: what `TreeParams` says, what passes through, what is refused and why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from boostbp import checks
from boostbp.backends.base import TreeParams
from boostbp.backends.native_params import (
    AMOUNT,
    COUNT,
    CURE,
    MONOTONE,
    PART,
    SHARE,
    SWITCH,
    Check,
    Natives,
    on_card,
    words,
)


def _card(name: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"(cuda|gpu)(:\d{1,4})?", value):
        raise ValueError(
            f"{name}={checks.shown(value)} is not known: use 'cpu', 'cuda', or 'cuda:1' for the second card."
        )
    return value


# What values may be, by the bounds in XGBoost's documentation.
_TAKES: dict[str, Check] = {
    "colsample_bylevel": SHARE,
    "colsample_bynode": SHARE,
    "colsample_bytree": SHARE,
    "debug_synchronize": SWITCH,
    "device": _card,
    "grow_policy": words("depthwise", "lossguide"),
    "max_cached_hist_node": COUNT,
    "max_cat_threshold": COUNT,
    "max_cat_to_onehot": COUNT,
    "max_delta_step": AMOUNT,
    "min_split_loss": AMOUNT,
    "reg_alpha": AMOUNT,
    "reg_lambda": AMOUNT,
    "sampling_method": words("uniform", "gradient_based"),
    "sparse_threshold": PART,
    "subsample": SHARE,
}
_ALIASES = {"alpha": "reg_alpha", "eta": "learning_rate", "gamma": "min_split_loss", "lambda": "reg_lambda"}

_REPLACED_BY = {
    "n_estimators": "n_estimators",
    "num_boost_round": "n_estimators",
    "learning_rate": "learning_rate",
    "max_depth": "max_depth",
    "max_leaves": "max_leaves",
    "min_child_weight": "min_samples_leaf",
    "max_bin": "max_bins",
    "nthread": "n_jobs",
    "n_jobs": "n_jobs",
    "seed": "random_state",
    "random_state": "random_state",
    "seed_per_iteration": "random_state",
    "verbosity": "verbose",
    "early_stopping_rounds": "early stopping of boostbp",
}

_REASONS = {
    "booster": "only 'gbtree' grows trees that depend on the gradient alone (dart rescales earlier ones, "
    "gblinear grows none). Leave it out.",
    "tree_method": "the input is binned once, which only 'hist' can use. Leave it out; what grows on a card is "
    "device='cuda'.",
    "process_type": "trees are grown, not updated. Leave it out.",
    "updater": "it would replace the grower of tree_method='hist'. Leave it out.",
    "refresh_leaf": "it belongs to process_type='update', which is not supported. Leave it out.",
    "multi_strategy": "boostbp chooses it: one tree for all outputs is its own setting. Leave it out.",
    "num_parallel_tree": "a round grows one tree per output. Leave it out.",
    "num_target": "boostbp counts the outputs itself. Leave it out.",
    "num_class": "boostbp counts the outputs itself. Leave it out.",
    "base_score": "predictions start where boostbp starts them. Leave it out.",
    "boost_from_average": "predictions start where boostbp starts them. Leave it out.",
    "objective": "the gradients come from boostbp. Choose the loss there.",
    "scale_pos_weight": "it belongs to an objective of XGBoost; the gradients come from boostbp. Use class_weight of "
    "BoostBPClassifier, or sample_weight.",
    "eval_metric": "boostbp scores its own predictions. Choose the metric there.",
    "disable_default_eval_metric": "boostbp scores its own predictions. Leave it out.",
    "validate_parameters": "boostbp checks the names itself. Leave it out.",
    "fail_on_invalid_gpu_id": "a card that is not there is always refused. Leave it out.",
    **dict.fromkeys(
        ("rate_drop", "skip_drop", "one_drop", "sample_type", "normalize_type"),
        "it belongs to booster='dart', which is not supported. Leave it out.",
    ),
    "feature_selector": "it belongs to booster='gblinear', which is not supported. Leave it out.",
}
# Parameters that speak of features by number or name. Only a layer by itself sees the features, and what is fitted
# without XGBoost, in leaves and under the trees, would not know of them. `interaction_constraints` alone holds there.
_OF_FEATURES = {
    "monotone_constraints": MONOTONE,
    "feature_weights": "it says how often to draw features by number, and hidden layers have units in their place. "
    "Leave it out.",
    **dict.fromkeys(
        ("feature_names", "feature_types", "enable_categorical"),
        "names and types of columns are those of the input. Use categorical_features.",
    ),
}
_HARMLESS = {
    "booster": ("gbtree",),
    "tree_method": ("hist", "auto"),
    "device": ("cpu",),
    "process_type": ("default",),
    "updater": ("grow_quantile_histmaker",),
    "num_parallel_tree": (1,),
    "seed_per_iteration": (True,),
}
_NATIVES = Natives(
    "XGBoost", takes=_TAKES, reasons=_REASONS | _OF_FEATURES, replaced_by=_REPLACED_BY, harmless=_HARMLESS
)


@cache
def _known(library: Any) -> dict[str, str]:
    """Names of the parameters that XGBoost's own configuration lists for growing trees -> their main names."""
    probe = library.Booster({"tree_method": "hist", "num_feature": 1})
    return {name: _ALIASES.get(name, name) for name in _names(json.loads(probe.save_config()))}


def _names(config: Any) -> Iterator[str]:
    """Names in the sections of a configuration that are about growing trees, wherever they are."""
    if isinstance(config, dict):
        for key, value in config.items():
            yield from value if key in ("tree_train_param", "hist_train_param") else _names(value)
    elif isinstance(config, list):
        for value in config:
            yield from _names(value)


def native(library: Any, growth: TreeParams, n_columns: int) -> dict[str, Any]:
    """The parameters of a Booster on so many columns, but for the number of targets.

    Raises ValueError if a native parameter is unknown to XGBoost, would break the method or repeats `TreeParams`.
    """
    natives = _NATIVES.grouped("interaction_constraints", growth, n_columns)
    native = natives.checked(growth.params, _known(library) | {"device": "device"})
    if on_card(native):
        native["fail_on_invalid_gpu_id"] = True
    if "interaction_constraints" in native:  # lists would be lists of names
        native["interaction_constraints"] = json.dumps(native["interaction_constraints"])
    leafwise = growth.max_leaves is not None or growth.max_depth < 0
    return {
        "grow_policy": "lossguide" if leafwise else "depthwise",
        "colsample_bytree": max(growth.colsample_bytree, 1e-30),  # XGBoost refuses what float32 holds as subnormal
        **({"monotone_constraints": f"({','.join(map(str, growth.monotone))})"} if growth.monotone else {}),
        **native,
        "tree_method": "hist",
        "base_score": 0.0,
        "max_depth": max(growth.max_depth, 0),
        "max_leaves": growth.leaves if leafwise else 0,
        "min_child_weight": growth.min_samples_leaf,
        "max_bin": growth.max_bins,
        "nthread": growth.n_threads,
        "seed": growth.random_state,
        "seed_per_iteration": True,
    }


def check_card(library: Any, growth: TreeParams, params: dict[str, Any]) -> None:
    """Refuse a card that is not there: XGBoost would warn of it and grow on the CPU.

    Raises ValueError with what the user called it.
    """
    if not on_card(params):
        return
    names = "device", "fail_on_invalid_gpu_id", "tree_method"
    with library.config_context(verbosity=0):
        probe = library.Booster({"num_feature": 1} | {name: params[name] for name in names})
        device = json.loads(probe.save_config())["learner"]["generic_param"]["device"]
    if device == "cpu":
        raise ValueError(f"XGBoost finds no card for backend_params={checks.shown(dict(growth.params))}. {CURE}")
