"""LightGBM's parameters: those that are passed on, those that are refused, and those that `TreeParams` becomes."""

from __future__ import annotations

from functools import cache, partial
from types import ModuleType
from typing import Any

from boostbp.backends.base import TreeParams
from boostbp.backends.native_params import (
    AMOUNT,
    COUNT,
    MONOTONE,
    NUMBER,
    PART,
    SHARE,
    SWITCH,
    WHOLE,
    Check,
    Natives,
    by_name,
    column_groups,
    words,
)
from boostbp.runtime import checks

_OR_AUTOMATIC: Check = partial(checks.whole, least=-1, most=checks.LARGEST_INT)  # -1: LightGBM chooses
NATIVES = Natives(
    "LightGBM",
    # Bounds of values are those of LightGBM's documentation.
    allowed=by_name(
        {
            SWITCH: (
                "deterministic enable_bundle feature_pre_filter force_col_wise force_row_wise gpu_use_dp "
                "is_enable_sparse use_missing"
            ),
            SHARE: "bagging_fraction feature_fraction feature_fraction_bynode",
            PART: "other_rate top_rate",
            AMOUNT: (
                "cat_l2 cat_smooth cegb_penalty_split cegb_tradeoff lambda_l1 lambda_l2 min_gain_to_split "
                "min_sum_hessian_in_leaf path_smooth"
            ),
            NUMBER: "histogram_pool_size max_delta_step",
            COUNT: "bin_construct_sample_cnt max_cat_threshold max_cat_to_onehot min_data_in_bin min_data_per_group",
            WHOLE: "bagging_freq bagging_seed data_random_seed extra_seed feature_fraction_seed",
            _OR_AUTOMATIC: "gpu_device_id gpu_platform_id",
            words("bagging", "goss"): "data_sample_strategy",
            words("cpu", "gpu", "cuda"): "device_type",
        }
    ),
    reasons={
        "monotone_constraints": MONOTONE,
        "zero_as_missing": "routing could not tell 0.0 from NaN. Recode zeros as NaN.",
        "use_quantized_grad": "quantised gradients give wrong linear leaves. Leave it off.",
        "linear_tree": "boostbp fits the leaves itself. Choose them by basis, or by leaves='native'.",
        "extra_trees": "it is a parameter of the layer. Use output={'extra_trees': ...}, or hidden.",
        **dict.fromkeys(
            ("is_unbalance", "scale_pos_weight"),
            "boostbp computes the gradients. Use class_weight of BoostBPClassifier, or sample_weight.",
        ),
        "max_bin_by_feature": "hidden layers have units in the place of features. Use max_bins.",
        "boosting": "only 'gbdt' grows trees that depend on the gradient alone (dart and rf rescale earlier ones).",
        "tree_learner": "boostbp itself chooses how workers share the rows. Use 'serial'.",
        **by_name(
            {
                "it belongs to ranking, which is not supported. Use LGBMRanker of LightGBM.": (
                    "eval_at label_gain lambdarank_norm lambdarank_position_bias_regularization "
                    "lambdarank_truncation_level"
                ),
                "it names features by number, and only splits would obey: leaf regressions use all features of their "
                "path, and layers above hidden ones number hidden units. Leave it out.": (
                    "cegb_penalty_feature_coupled cegb_penalty_feature_lazy feature_contri forcedsplits_filename "
                    "ignore_column"
                ),
            }
        ),
    },
    defaults={
        **dict.fromkeys(("zero_as_missing", "use_quantized_grad", "linear_tree"), (False, "false")),
        "boosting": ("gbdt", "gbrt"),
        "tree_learner": ("serial",),
    },
)


@cache
def main_names(library: ModuleType) -> dict[str, str]:
    """Return the main name of each name that the installed LightGBM knows."""
    aliases = library.basic._ConfigAliases._get_all_param_aliases()
    return {alias: name for name, group in aliases.items() for alias in group}


def native(library: ModuleType, growth: TreeParams, shape: tuple[int, int]) -> dict[str, Any]:
    """Return the parameters of Dataset and Booster, for an input of (rows, columns).

    Raises ValueError if a native parameter is refused, see `Natives`.
    """
    n_rows, n_columns = shape
    groups = column_groups(growth, n_columns)
    native = NATIVES.checked(growth.params, main_names(library), interaction_constraints=groups)
    if not {"force_row_wise", "force_col_wise"} & set(native):
        # Left to itself LightGBM times both layouts and takes the faster, so that trees could depend on the clock. By
        # rows is a little faster with one thread, but every booster then holds a copy of the bins. CUDA knows no other.
        native["force_row_wise" if native.get("device_type") == "cuda" else "force_col_wise"] = True
    if growth.extra_trees:
        # Of a draw of categories LightGBM tries one group alone, and none of fewer than 100 rows by default: columns
        # whose categories have fewer rows would never be split. A group may become a leaf, and needs as many rows.
        native.setdefault("min_data_per_group", growth.min_samples_leaf)
    if growth.monotone:
        native["monotone_constraints"] = list(growth.monotone)
    return {
        "deterministic": True,
        "feature_pre_filter": False,
        "feature_fraction": growth.colsample_bytree,
        **native,
        "extra_trees": growth.extra_trees,
        "objective": "none",
        # A booster takes memory for all leaves that it is allowed, 3 kB each.
        "num_leaves": max(min(growth.leaves, n_rows), 2),
        "max_depth": growth.max_depth,
        "min_data_in_leaf": growth.min_samples_leaf,
        "max_bin": growth.max_bins,
        "num_threads": growth.n_threads,
        "seed": growth.random_state % 2**31,
        # Nobody reads LightGBM's scores, but goss begins to sample only after 1 / learning_rate trees.
        "learning_rate": 1.0,
        "verbosity": -1,
    }
