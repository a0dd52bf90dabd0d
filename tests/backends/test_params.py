"""Native parameters pass through, or are refused by name with the reason and the cure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from leaf_oracles import table, target

from boostbp.backends import available, load
from boostbp.backends._lightgbm_params import native
from boostbp.backends.base import Growth, Table

DATA = table(np.random.default_rng(0), 300)
GRAD = target(np.random.default_rng(1), DATA)


def sizes(name: str, params: dict[str, Any], **growth: Any) -> list[int]:
    settings = Growth(**{"max_depth": 4, "min_samples_leaf": 5} | growth, params=params)
    grower = load(name).bind(DATA, settings)
    return [grower.grow(GRAD, np.ones_like(GRAD))[0].n_leaves for _ in range(3)]


def refused(name: str, params: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        load(name).bind(DATA, Growth(params=params))


BREAKS_LIGHTGBM = {
    "zero_as_missing": (True, "routing could not tell 0.0 from NaN. Recode zeros as NaN"),
    "use_quantized_grad": (True, "wrong linear leaves"),
    "linear_tree": (True, "leaves that boostbp fits itself"),
    "linear_trees": (True, "leaves that boostbp fits itself"),
    "boosting": ("dart", "only 'gbdt'"),
    "boosting_type": ("rf", "only 'gbdt'"),
    "boost": ("dart", "only 'gbdt'"),
    "tree_learner": ("voting", "Use 'serial'"),
    "device": ("gpu", "only the CPU"),
    "device_type": ("cuda", "only the CPU"),
    "objective": ("binary", "gradients come from boostbp"),
    "application": ("regression", "gradients come from boostbp"),
    "metric": ("auc", "Choose the metric there"),
    "num_class": (3, "counts the outputs itself"),
    "monotone_constraints": ([1, 0, 0, 0], "would not keep them monotone"),
    "mc": ([1, 0, 0, 0], "would not keep them monotone"),
    "monotone_penalty": (1.0, "belongs to monotone_constraints"),
    "is_unbalance": (True, "gradients come from boostbp"),
    "scale_pos_weight": (2.0, "gradients come from boostbp"),
    "boost_from_average": (False, "gradients come from boostbp"),
    "alpha": (0.3, "gradients come from boostbp"),
    "drop_rate": (0.5, "boosting='dart'"),
    "num_grad_quant_bins": (4, "quantised training"),
    "num_machines": (2, "several machines"),
    "workers": ("a:1", "several machines"),
    "gpu_device_id": (0, "GPU"),
    "config": ("file", "command line"),
    "valid": ("file", "command line"),
    "two_round": (True, "command line"),
    "pos_bagging_fraction": (0.5, "labels"),
    "neg_bagging": (0.5, "labels"),
}
BREAKS_XGBOOST = {
    "booster": ("dart", "only 'gbtree'"),
    "tree_method": ("exact", "only 'hist' can use"),
    "device": ("cuda", "only the CPU"),
    "process_type": ("update", "not updated"),
    "updater": ("grow_colmaker", "would replace the grower"),
    "refresh_leaf": (True, "process_type='update'"),
    "multi_strategy": ("multi_output_tree", "boostbp chooses it"),
    "num_parallel_tree": (4, "one tree per output"),
    "num_target": (2, "counts the outputs itself"),
    "num_class": (2, "counts the outputs itself"),
    "base_score": (0.5, "predictions start where boostbp starts them"),
    "boost_from_average": (True, "predictions start where boostbp starts them"),
    "objective": ("binary:logistic", "gradients come from boostbp"),
    "scale_pos_weight": (2.0, "Use sample weights"),
    "eval_metric": ("auc", "Choose the metric there"),
    "disable_default_eval_metric": (True, "boostbp scores its own predictions"),
    "monotone_constraints": ("(1,0,0,0)", "would not keep them monotone"),
    "validate_parameters": (True, "checks the names itself"),
    "fail_on_invalid_gpu_id": (True, "only the CPU"),
    "rate_drop": (0.1, "booster='dart'"),
    "skip_drop": (0.1, "booster='dart'"),
    "one_drop": (True, "booster='dart'"),
    "sample_type": ("weighted", "booster='dart'"),
    "normalize_type": ("forest", "booster='dart'"),
    "feature_selector": ("cyclic", "booster='gblinear'"),
}
BREAKS_SKLEARN = {
    "criterion": ("absolute_error", "weighted squared error"),
    "monotonic_cst": ([1, 0, 0, 0], "would not keep them monotone"),
}
BREAKS = {"lightgbm": BREAKS_LIGHTGBM, "xgboost": BREAKS_XGBOOST, "sklearn": BREAKS_SKLEARN}

OURS = {
    "lightgbm": {
        "n_estimators": "num_iterations num_boost_round n_estimators nrounds max_iter",
        "learning_rate": "learning_rate eta shrinkage_rate",
        "max_leaves": "num_leaves max_leaves max_leaf_nodes",
        "max_depth": "max_depth",
        "min_samples_leaf": "min_data_in_leaf min_child_samples min_samples_leaf min_data",
        "max_bins": "max_bin max_bins",
        "n_jobs": "num_threads n_jobs nthread num_thread",
        "random_state": "seed random_state random_seed",
        "reg_lambda": "linear_lambda",
        "verbose": "verbosity verbose",
        "categorical columns": "categorical_feature cat_feature",
        "early stopping": "early_stopping_round early_stopping_rounds n_iter_no_change",
    },
    "xgboost": {
        "n_estimators": "n_estimators num_boost_round",
        "learning_rate": "learning_rate eta",
        "max_leaves": "max_leaves",
        "max_depth": "max_depth",
        "min_samples_leaf": "min_child_weight",
        "max_bins": "max_bin",
        "n_jobs": "nthread n_jobs",
        "random_state": "seed random_state",
        "verbose": "verbosity",
        "early stopping": "early_stopping_rounds",
    },
    "sklearn": {
        "max_leaves": "max_leaf_nodes",
        "max_depth": "max_depth",
        "min_samples_leaf": "min_samples_leaf",
        "random_state": "random_state",
    },
}


@pytest.mark.parametrize(
    ("name", "param", "value", "why"),
    [(name, param, *rest) for name, params in BREAKS.items() for param, rest in params.items()],
)
def test_what_would_break_the_method_is_refused_with_the_reason(name: str, param: str, value: Any, why: str) -> None:
    refused(name, {param: value}, rf"backend_params\['{param}'\]=.* is not supported: .*{why}")


@pytest.mark.parametrize(
    ("name", "ours", "param"),
    [(name, ours, p) for name, ps in OURS.items() for ours, params in ps.items() for p in params.split()],
)
def test_what_is_said_elsewhere_is_refused_with_the_place(name: str, ours: str, param: str) -> None:
    refused(name, {param: 3}, rf"backend_params\['{param}'\]=3 clashes with .*{ours}")


@pytest.mark.parametrize("name", available())
@pytest.mark.parametrize("param", ["colsample_bytre", "lambda_2", "max_feature", "", "name", "updater_seq"])
def test_a_misspelt_parameter_is_refused(name: str, param: str) -> None:
    refused(name, {param: 1}, rf"backend_params\['{param}'\]=1: .* has no parameter '{param}'. Check its name")


def test_a_parameter_under_two_names_is_refused() -> None:
    refused("lightgbm", {"lambda_l2": 1.0, "reg_lambda": 2.0}, r"'reg_lambda'\]=2.0 says 'lambda_l2' a second time")


PASSES = """
    bagging_fraction bagging_freq bagging_seed bin_construct_sample_cnt cat_l2 cat_smooth cegb_penalty_feature_coupled
    cegb_penalty_feature_lazy cegb_penalty_split cegb_tradeoff data_random_seed data_sample_strategy deterministic
    enable_bundle extra_seed feature_contri feature_fraction feature_fraction_bynode feature_fraction_seed
    feature_pre_filter force_col_wise force_row_wise forcedbins_filename forcedsplits_filename histogram_pool_size
    interaction_constraints is_enable_sparse lambda_l1 lambda_l2 max_bin_by_feature max_cat_threshold max_cat_to_onehot
    max_delta_step min_data_in_bin min_data_per_group min_gain_to_split min_sum_hessian_in_leaf other_rate path_smooth
    top_rate use_missing
"""


def test_of_all_that_lightgbm_knows_only_what_shapes_trees_passes() -> None:
    import lightgbm

    passing, messages = set(), {}
    for main, aliases in lightgbm.basic._ConfigAliases._get_all_param_aliases().items():
        for name in {main, *aliases}:
            try:
                native(lightgbm, Growth(params={name: "any"}))
                passing.add(main)
            except ValueError as error:
                messages[name] = str(error)
    assert all(f"backend_params[{name!r}]" in message for name, message in messages.items())
    assert passing <= set(PASSES.split())


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("lightgbm", {"zero_as_missing": False, "linear_tree": False, "use_quantized_grad": False}),
        ("lightgbm", {"boosting": "gbdt", "tree_learner": "serial", "device": "cpu", "force_row_wise": True}),
        ("xgboost", {"booster": "gbtree", "tree_method": "hist", "device": "cpu", "num_parallel_tree": 1}),
        ("sklearn", {"criterion": "friedman_mse", "min_weight_fraction_leaf": 0.0}),
        ("sklearn", {"criterion": "squared_error"}),
    ],
)
def test_saying_what_holds_anyway_changes_nothing(name: str, params: dict[str, Any]) -> None:
    assert sizes(name, params) == sizes(name, {})


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("lightgbm", {"min_gain_to_split": 1e9}),
        ("lightgbm", {"min_split_gain": 1e9}),
        ("lightgbm", {"min_sum_hessian_in_leaf": 1e9}),
        ("xgboost", {"gamma": 1e9}),
        ("xgboost", {"min_split_loss": 1e9}),
        ("sklearn", {"min_impurity_decrease": 1e9}),
        ("sklearn", {"min_samples_split": 10_000}),
    ],
)
def test_native_parameters_reach_the_library(name: str, params: dict[str, Any]) -> None:
    assert sizes(name, {})[0] > 1
    assert sizes(name, params) == [1, 1, 1]


SAMPLING = [
    ("lightgbm", {"params": {"bagging_fraction": 0.5, "bagging_freq": 1}}),
    ("lightgbm", {"params": {"data_sample_strategy": "goss"}}),
    ("lightgbm", {"extra_trees": True}),
    ("lightgbm", {"params": {"feature_fraction_bynode": 0.5}}),
    ("xgboost", {"params": {"subsample": 0.5}}),
    ("xgboost", {"params": {"colsample_bynode": 0.5}}),
    ("sklearn", {"params": {"max_features": 1}}),
    ("sklearn", {"extra_trees": True}),
]


@pytest.mark.parametrize(("name", "how"), SAMPLING)
def test_sampling_differs_between_rounds_and_repeats_with_the_seed(name: str, how: dict[str, Any]) -> None:
    grower = load(name).bind(DATA, Growth(max_depth=3, **how))

    def rounds(seed: int) -> list[bytes]:
        fork = grower.fork(seed)
        return [fork.grow(GRAD, np.ones_like(GRAD))[0].threshold.tobytes() for _ in range(8)]

    assert len(set(rounds(1)[2:])) > 2
    assert rounds(1) == rounds(1)
    assert rounds(1) != rounds(2)


@pytest.mark.parametrize(
    ("name", "how"), [("lightgbm", {"extra_trees": True}), ("xgboost", {"params": {"subsample": 0.5}})]
)
def test_sampling_does_not_repeat_beyond_the_life_of_a_booster(name: str, how: dict[str, Any]) -> None:
    grower = load(name).bind(DATA, Growth(max_depth=2, **how))
    trees = [grower.grow(GRAD, np.ones_like(GRAD))[0].threshold.tobytes() for _ in range(520)]
    assert trees[512:520] != trees[:8]


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "sklearn"])
def test_the_seed_of_growth_is_the_seed_of_the_first_grower(name: str) -> None:
    how: Any = {"params": {"subsample": 0.5}} if name == "xgboost" else {"extra_trees": True}

    def first(seed: int) -> bytes:
        [tree] = load(name).bind(DATA, Growth(random_state=seed, **how)).grow(GRAD, np.ones_like(GRAD))
        return tree.threshold.tobytes()

    assert first(3) == first(3)
    assert len({first(seed) for seed in range(5)}) > 1


def test_categories_are_refused_where_the_library_has_none() -> None:
    with pytest.raises(ValueError, match=r"backend='sklearn' .* categorical columns \(1,\): .*one-hot.*lightgbm"):
        load("sklearn").bind(Table(np.zeros((5, 2)), (1,)), Growth())


def test_vector_leaves_of_xgboost_are_refused_with_categories() -> None:
    data = table(np.random.default_rng(0), 100, numeric=2, categories=(4,))
    grower = load("xgboost").bind(data, Growth(shared=True))
    with pytest.raises(ValueError, match=r"shared=True .*2 columns.*categorical columns \(2,\)"):
        grower.grow(np.ones((100, 2)), np.ones((100, 2)))
