"""XGBoost's parameters: those that are passed on, those that are refused, and those that `TreeParams` becomes."""

from __future__ import annotations

import json
import re
from types import ModuleType
from typing import Any

from boostbp.backends.base import TreeParams
from boostbp.backends.native_params import (
    AMOUNT,
    COUNT,
    MONOTONE,
    NO_DEVICE,
    PART,
    SHARE,
    SWITCH,
    Natives,
    by_name,
    column_groups,
    on_card,
    words,
)
from boostbp.runtime import checks


def _device(name: str, value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"cpu|(cuda|gpu)(:\d{1,4})?", value):
        raise ValueError(
            f"{name}={checks.shown(value)} is not known: use 'cpu', 'cuda', or 'cuda:1' for the second card."
        )
    return value


ALIASES = {"alpha": "reg_alpha", "eta": "learning_rate", "gamma": "min_split_loss", "lambda": "reg_lambda"}
NATIVES = Natives(
    "XGBoost",
    # Bounds of values are those of XGBoost's documentation.
    allowed=by_name(
        {
            SHARE: "colsample_bylevel colsample_bynode colsample_bytree subsample",
            PART: "sparse_threshold",
            AMOUNT: "max_delta_step min_split_loss reg_alpha reg_lambda",
            COUNT: "max_cached_hist_node max_cat_threshold max_cat_to_onehot",
            SWITCH: "debug_synchronize",
            words("depthwise", "lossguide"): "grow_policy",
            words("uniform", "gradient_based"): "sampling_method",
            _device: "device",
        }
    ),
    reasons={
        "booster": "only 'gbtree' grows trees that depend on the gradient alone (dart rescales earlier ones, gblinear "
        "grows none). Leave it out.",
        "tree_method": "the input is binned once, which only 'hist' can use. Leave it out; device='cuda' grows trees "
        "on a card.",
        "monotone_constraints": MONOTONE,
        "min_child_weight": "it becomes min_samples_leaf, which counts rows. Use that.",
        "scale_pos_weight": "boostbp computes the gradients. Use class_weight of BoostBPClassifier, or sample_weight.",
        "feature_types": "the types of columns are those of the input. Use categorical_features.",
        "num_parallel_tree": "a round grows one tree per output. Leave it out.",
        "feature_weights": "it names features by number, and layers above hidden ones number hidden units. Leave it "
        "out.",
        **dict.fromkeys(("base_score", "boost_from_average"), "boostbp chooses where predictions start. Leave it out."),
        **dict.fromkeys(("num_class", "num_target"), "boostbp counts the outputs itself. Leave it out."),
    },
    defaults={"booster": ("gbtree",), "tree_method": ("hist", "auto"), "num_parallel_tree": (1,)},
)


def native(library: ModuleType, growth: TreeParams, n_columns: int) -> dict[str, Any]:
    """Return the parameters of a Booster on so many columns, but for the number of targets.

    Raises ValueError if a native parameter is refused, see `Natives`, or names a card that is not there.
    """
    groups = column_groups(growth, n_columns)
    native = NATIVES.checked(growth.params, ALIASES, interaction_constraints=groups)
    if "interaction_constraints" in native:  # XGBoost reads lists as lists of names
        native["interaction_constraints"] = json.dumps(native["interaction_constraints"])
    if growth.monotone:
        native["monotone_constraints"] = f"({','.join(map(str, growth.monotone))})"
    if on_card(native):
        native["fail_on_invalid_gpu_id"] = True
        _check_card(library, growth, native)
    leafwise = growth.max_leaves is not None or growth.max_depth < 0
    return {
        "grow_policy": "lossguide" if leafwise else "depthwise",
        "colsample_bytree": max(
            growth.colsample_bytree, 1e-30
        ),  # XGBoost refuses numbers that are subnormal in float32
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


def _check_card(library: ModuleType, growth: TreeParams, native: dict[str, Any]) -> None:
    """Refuse a card that is not there: XGBoost would only warn, and grow on the CPU."""
    params = {"num_feature": 1, "tree_method": "hist", "device": native["device"], "fail_on_invalid_gpu_id": True}
    with library.config_context(verbosity=0):
        config = json.loads(library.Booster(params).save_config())
    if config["learner"]["generic_param"]["device"] == "cpu":
        raise ValueError(f"XGBoost finds no card for backend_params={checks.shown(dict(growth.params))}. {NO_DEVICE}")
