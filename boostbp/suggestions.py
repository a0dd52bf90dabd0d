"""Suggestions: the parameter that was meant, where a name is not one of ours."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

# What LightGBM, XGBoost, CatBoost and scikit-learn call it -> what it is called here.
MEANT: Mapping[str, str] = {
    **dict.fromkeys(("num_leaves", "max_leaf_nodes", "n_leaves"), "max_leaves"),
    **dict.fromkeys(("min_child_samples", "min_data_in_leaf", "min_child_weight"), "min_samples_leaf"),
    **dict.fromkeys(("eta", "shrinkage", "shrinkage_rate"), "learning_rate"),
    **dict.fromkeys(("num_boost_round", "num_iterations", "num_trees", "iterations", "n_iter"), "n_estimators"),
    **dict.fromkeys(("feature_fraction", "colsample_bynode", "colsample_bylevel", "max_features"), "colsample_bytree"),
    **dict.fromkeys(("bagging_fraction", "max_samples"), "subsample"),
    **dict.fromkeys(
        ("lambda_l2", "lambda", "l2_leaf_reg", "l2_regularization", "linear_lambda", "alpha"), "reg_lambda"
    ),
    **dict.fromkeys(("max_bin", "border_count"), "max_bins"),
    **dict.fromkeys(("depth",), "max_depth"),
    **dict.fromkeys(("objective", "loss_function", "criterion", "application"), "loss"),
    **dict.fromkeys(("quantile", "quantile_alpha"), "alpha"),
    **dict.fromkeys(("metric", "scoring"), "eval_metric"),
    **dict.fromkeys(("early_stopping_rounds", "early_stopping_round", "patience"), "n_iter_no_change"),
    **dict.fromkeys(("num_threads", "nthread", "thread_count"), "n_jobs"),
    **dict.fromkeys(("seed", "random_seed", "random_number"), "random_state"),
    **dict.fromkeys(("verbosity", "silent"), "verbose"),
    **dict.fromkeys(("max_iter", "n_epochs"), "epochs"),
    **dict.fromkeys(("hidden_sizes", "layers", "units"), "hidden_layer_sizes"),
    **dict.fromkeys(("categorical_feature", "cat_features", "enable_categorical"), "categorical_features"),
    **dict.fromkeys(("class_weights",), "class_weight"),
    **dict.fromkeys(("validation_fraction", "test_size"), "validation"),
    **dict.fromkeys(("linear_tree",), "basis"),
    **dict.fromkeys(("monotonic_cst", "monotone_constraint", "mc"), "monotone_constraints"),
    **dict.fromkeys(("booster", "boosting", "boosting_type", "tree_method"), "backend_params"),
    **dict.fromkeys(("multi_output", "multi_output_tree"), "multi_strategy"),
    **dict.fromkeys(("lr", "learning_rate_init"), "step_size"),
    **dict.fromkeys(("timeout", "time_limit"), "max_time"),
    **dict.fromkeys(("warm_start",), "keep_state"),
    **dict.fromkeys(("init_score", "base_margin", "baseline"), "offset"),
    **dict.fromkeys(("eval_init_score", "base_margin_eval_set"), "eval_offset"),
    **dict.fromkeys(("sample_weight_eval_set",), "eval_sample_weight"),
    **dict.fromkeys(("xgb_model",), "init_model"),
}
_RANKING = "ranking is not supported, as losses are of single rows: use LGBMRanker of LightGBM or XGBRanker of XGBoost."
_SURVIVAL = "survival times are not supported: use XGBoost (survival:cox, survival:aft) or scikit-survival."
NOT_THERE: Mapping[str, str] = {
    **dict.fromkeys(("is_unbalance", "auto_class_weights"), "use class_weight='balanced' of BoostBPClassifier."),
    "scale_pos_weight": "use class_weight={negative: 1, positive: scale_pos_weight} of BoostBPClassifier.",
    "class_weight": "classes have weights in BoostBPClassifier; rows have them everywhere, sample_weight=... of fit.",
    "exposure": "give its logarithm as offset=... of fit and predict.",
    **dict.fromkeys(("group", "qid", "eval_group", "eval_qid", "lambdarank_truncation_level", "label_gain"), _RANKING),
    "reg_alpha": "leaf regressions have no L1 penalty; reg_lambda is their L2 penalty.",
    "lambda_l1": "leaf regressions have no L1 penalty; reg_lambda is their L2 penalty.",
    "min_split_gain": "give it as backend_params={'min_split_gain': ...}.",
    "gamma": "give it as backend_params={'gamma': ...}.",
    "tol": "the best epoch is kept, whatever it is better by; n_iter_no_change says when to stop.",
}


def suggestion(name: str, places: Mapping[str, str] | Iterable[str]) -> str:
    """Return the cure for an unknown parameter, a clause such as ``did you mean 'max_depth'?``.

    `places` has every parameter there is, and how to write it where that is not its bare name: ``{"max_leaves":
    "output={'max_leaves': ...}"}``.
    """
    written = dict(places) if isinstance(places, Mapping) else {known: repr(known) for known in places}
    if name in NOT_THERE:
        return NOT_THERE[name]
    meant = MEANT.get(name, name)
    if meant not in written and meant in NOT_THERE:
        return NOT_THERE[meant]
    if meant not in written:
        close = difflib.get_close_matches(name, written, 1)
        if not close:
            bare = [known for known, how in written.items() if how == repr(known)]
            return f"choose from {', '.join(bare)}."
        meant = close[0]
    return f"did you mean {written[meant]}?"


# Objectives and metrics of other libraries, but for those that begin with rank: or survival:.
_UNSUPPORTED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("lambdarank", "rank_xendcg", "xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart", "yetirank", "pairlogit"),
            *("ndcg", "map", "mean_average_precision"),
        ),
        _RANKING,
    ),
    **dict.fromkeys(("cox", "aft", "survivalaft", "cox-nloglik", "aft-nloglik"), _SURVIVAL),
}


def unsupported(name: str) -> str:
    """Return why an objective or metric of another library is not there, and what to use; "" if nothing is known."""
    stem = name.partition("@")[0].lower()
    kinds = {"rank": _RANKING, "survival": _SURVIVAL}
    return _UNSUPPORTED.get(stem) or (kinds.get(stem.partition(":")[0], "") if ":" in stem else "")
