"""LightGBM's parameters: what `TreeParams` says, what passes through, what is refused and why."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from boostbp import checks
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
    words,
)

_NUMBER_OF: Check = partial(checks.whole, least=-1, most=checks.LARGEST_INT)  # -1: LightGBM chooses
# What values may be, by the bounds in LightGBM's documentation.
_TAKES: dict[str, Check] = by_name(
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
        _NUMBER_OF: "gpu_device_id gpu_platform_id",
        words("bagging", "goss"): "data_sample_strategy",
        words("cpu", "gpu", "cuda"): "device_type",
    }
)

_REPLACED_BY = {
    "num_iterations": "n_estimators",
    "learning_rate": "learning_rate",
    "num_leaves": "max_leaves",
    "max_depth": "max_depth",
    "min_data_in_leaf": "min_samples_leaf",
    "max_bin": "max_bins",
    "num_threads": "n_jobs",
    "seed": "random_state",
    "linear_lambda": "reg_lambda",
    "extra_trees": "extra_trees",
    "verbosity": "verbose",
    "categorical_feature": "the categorical columns of the input",
    "early_stopping_round": "early stopping of boostbp",
    "early_stopping_min_delta": "early stopping of boostbp",
}

_REASONS = {
    "zero_as_missing": "routing could not tell 0.0 from NaN. Recode zeros as NaN.",
    "use_quantized_grad": "quantised gradients give wrong linear leaves. Leave it off.",
    "linear_tree": "set by hand it would fit leaves that boostbp fits itself. Choose the leaves by boostbp's basis.",
    "boosting": "only 'gbdt' grows trees that depend on the gradient alone (dart and rf rescale earlier ones).",
    "tree_learner": "boostbp's rows are in one place. Use 'serial'.",
    "objective": "the gradients come from boostbp. Choose the loss there.",
    "metric": "boostbp scores its own predictions. Choose the metric there.",
    "num_class": "boostbp grows one tree per output and counts the outputs itself. Leave it out.",
}
# Parameters that speak of features by number or name. Only a layer by itself sees the features, and what is fitted
# without LightGBM, in leaves and under the trees, would not know of them. `interaction_constraints` alone holds there.
_OF_FEATURES = {
    "monotone_constraints": MONOTONE,
    "ignore_column": "it names columns of a file. Leave these columns out of the input.",
    **dict.fromkeys(
        ("feature_contri", "cegb_penalty_feature_lazy", "cegb_penalty_feature_coupled"),
        "it sets prices of features by number, which only splits would pay: regressions in the leaves and under the "
        "trees use all features, and hidden layers have units in their place. Leave features out of the input.",
    ),
    "forcedsplits_filename": "its splits name features by number, and hidden layers have units in their place. "
    "Leave it out.",
    **dict.fromkeys(
        ("max_bin_by_feature", "forcedbins_filename"),
        "it sets bins of features by number, and hidden layers have units in their place. Use max_bins.",
    ),
}
_HARMLESS = {
    "zero_as_missing": (False, 0, "false"),
    "use_quantized_grad": (False, 0, "false"),
    "linear_tree": (False, 0, "false"),
    "boosting": ("gbdt", "gbrt"),
    "tree_learner": ("serial",),
    "device_type": ("cpu",),
    "objective": ("none", "custom"),
}

_NO_EFFECT = {
    "it belongs to an objective of LightGBM, and the gradients come from boostbp. Use class_weight of "
    "BoostBPClassifier, or sample_weight.": "is_unbalance scale_pos_weight",
    "it belongs to ranking, which is not supported. Use LGBMRanker of LightGBM.": (
        "lambdarank_truncation_level lambdarank_norm lambdarank_position_bias_regularization label_gain eval_at"
    ),
    "it belongs to an objective or metric of LightGBM, and the gradients come from boostbp. Leave it out.": (
        "sigmoid boost_from_average reg_sqrt alpha fair_c poisson_max_delta_step "
        "tweedie_variance_power multi_error_top_k auc_mu_weights objective_seed metric_freq is_provide_training_metric "
        "first_metric_only"
    ),
    "it belongs to boosting='dart', which is not supported. Leave it out.": (
        "drop_rate max_drop skip_drop xgboost_dart_mode uniform_drop drop_seed"
    ),
    "it belongs to the quantised training, which is not supported. Leave it out.": (
        "num_grad_quant_bins quant_train_renew_leaf stochastic_rounding"
    ),
    "how constraints are kept is up to boostbp, whose leaves are others. Leave it out.": (
        "monotone_constraints_method monotone_penalty"
    ),
    "it belongs to training on several machines or cards, which is not supported. Leave it out.": (
        "num_machines machines machine_list_filename local_listen_port time_out pre_partition top_k gpu_device_id_list "
        "num_gpu"
    ),
    "it belongs to the command line and the model files of LightGBM. Leave it out.": (
        "config task data valid input_model output_model output_result snapshot_freq saved_feature_importance_type "
        "convert_model convert_model_language refit_decay_rate two_round header label_column weight_column "
        "group_column save_binary precise_float_parser parser_config_file start_iteration_predict "
        "num_iteration_predict predict_raw_score predict_leaf_index predict_contrib predict_disable_shape_check "
        "pred_early_stop pred_early_stop_freq pred_early_stop_margin"
    ),
    "it needs labels or queries, and LightGBM is given gradients only. Leave it out.": (
        "bagging_by_query pos_bagging_fraction neg_bagging_fraction"
    ),
}


_NATIVES = Natives(
    "LightGBM",
    takes=_TAKES,
    reasons=_REASONS | _OF_FEATURES | by_name(_NO_EFFECT),
    replaced_by=_REPLACED_BY,
    harmless=_HARMLESS,
)


@cache
def _canonical(library: Any) -> dict[str, str]:
    """Every name that LightGBM knows -> its main name."""
    aliases = library.basic._ConfigAliases._get_all_param_aliases()
    return {alias: name for name, group in aliases.items() for alias in group}


def native(library: Any, growth: TreeParams, shape: tuple[int, int]) -> dict[str, Any]:
    """The parameters of Dataset and Booster, for an input of (rows, columns).

    Raises ValueError if a native parameter is unknown to LightGBM, would break the method or repeats `TreeParams`.
    """
    n_rows, n_columns = shape
    natives = _NATIVES.grouped("interaction_constraints", growth, n_columns)
    native = natives.checked(growth.params, _canonical(library))
    # Left to itself LightGBM times both layouts and takes the faster, so that trees could depend on the clock. By
    # rows is a little faster with one thread, but every booster then holds a copy of the bins. CUDA knows no other.
    layout = "force_row_wise" if native.get("device_type") == "cuda" else "force_col_wise"
    wise = {} if {"force_row_wise", "force_col_wise"} & set(native) else {layout: True}
    # Of a draw of categories LightGBM tries one group alone, and none of fewer than 100 rows: columns whose categories
    # have fewer would never be split. A group is a leaf to be, and needs as many rows.
    groups = {"min_data_per_group": growth.min_samples_leaf} if growth.extra_trees else {}
    monotone = {"monotone_constraints": list(growth.monotone)} if growth.monotone else {}
    return {
        "deterministic": True,
        "feature_pre_filter": False,
        **wise,
        "feature_fraction": growth.colsample_bytree,
        **groups,
        **monotone,
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
        # The scores of LightGBM are not looked at, but goss samples only after 1 / learning_rate trees.
        "learning_rate": 1.0,
        "verbosity": -1,
    }
