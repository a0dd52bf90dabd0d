"""Suggestions: the parameter that was meant, where a name is not one of ours."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

# What is called so here, and what LightGBM, XGBoost, CatBoost and scikit-learn call it.
_OTHER_NAMES: Mapping[str, str] = {
    "max_leaves": "num_leaves max_leaf_nodes n_leaves",
    "min_samples_leaf": "min_child_samples min_data_in_leaf min_child_weight",
    "learning_rate": "eta shrinkage shrinkage_rate",
    "n_estimators": "num_boost_round num_iterations num_trees iterations n_iter",
    "colsample_bytree": "feature_fraction colsample_bynode colsample_bylevel max_features",
    "subsample": "bagging_fraction max_samples",
    "reg_lambda": "lambda_l2 lambda l2_leaf_reg l2_regularization linear_lambda alpha",
    "max_bins": "max_bin border_count",
    "max_depth": "depth",
    "loss": "objective loss_function criterion application",
    "alpha": "quantile quantile_alpha",
    "eval_metric": "metric scoring",
    "n_iter_no_change": "early_stopping_rounds early_stopping_round patience",
    "n_jobs": "num_threads nthread thread_count",
    "random_state": "seed random_seed random_number",
    "verbose": "verbosity silent",
    "epochs": "max_iter n_epochs",
    "hidden_layer_sizes": "hidden_sizes layers units",
    "categorical_features": "categorical_feature cat_features enable_categorical",
    "class_weight": "class_weights",
    "validation": "validation_fraction test_size",
    "basis": "linear_tree",
    "monotone_constraints": "monotonic_cst monotone_constraint mc",
    "backend_params": "booster boosting boosting_type tree_method",
    "multi_strategy": "multi_output multi_output_tree",
    "step_size": "lr learning_rate_init",
    "max_time": "timeout time_limit",
    "keep_state": "warm_start",
    "offset": "init_score base_margin baseline",
    "eval_offset": "eval_init_score base_margin_eval_set",
    "eval_sample_weight": "sample_weight_eval_set",
    "init_model": "xgb_model",
}
MEANT = {other: name for name, others in _OTHER_NAMES.items() for other in others.split()}
_RANKING = "ranking is not supported, as losses are of single rows: use LGBMRanker of LightGBM or XGBRanker of XGBoost."
_SURVIVAL = "survival times are not supported: use XGBoost (survival:cox, survival:aft) or scikit-survival."
NOT_THERE: Mapping[str, str] = {
    **dict.fromkeys(("is_unbalance", "auto_class_weights"), "use class_weight='balanced' of BoostBPClassifier."),
    "scale_pos_weight": "use class_weight={negative: 1, positive: scale_pos_weight} of BoostBPClassifier.",
    "class_weight": "classes have weights in BoostBPClassifier; rows have them everywhere, sample_weight=... of fit.",
    "pred_contrib": "use attributions(X), or explain(X) for the plots of shap.",
    "pred_leaf": "use apply(X).",
    **dict.fromkeys(("raw_score", "output_margin"), "use decision_function(X) of BoostBPClassifier."),
    **dict.fromkeys(
        ("num_iteration", "start_iteration", "iteration_range", "ntree_limit"),
        "use staged_predict(X), which yields the predictions after each round.",
    ),
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
    **dict.fromkeys(("lambdarank", "rank_xendcg", "xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart"), _RANKING),
    **dict.fromkeys(("yetirank", "pairlogit", "ndcg", "map", "mean_average_precision"), _RANKING),
    **dict.fromkeys(("cox", "aft", "survivalaft", "cox-nloglik", "aft-nloglik"), _SURVIVAL),
}


def unsupported(name: str) -> str:
    """Return why an objective or metric of another library is not there, and what to use; "" if nothing is known."""
    stem = name.partition("@")[0].lower()
    kinds = {"rank": _RANKING, "survival": _SURVIVAL}
    return _UNSUPPORTED.get(stem) or (kinds.get(stem.partition(":")[0], "") if ":" in stem else "")
