"""Native parameters pass through, or are refused by name with the reason and the cure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from leaf_oracles import table, target
from sklearn.tree import DecisionTreeRegressor

from boostbp import BoostBPRegressor, fit_layer
from boostbp.backends import load_backend, native_params
from boostbp.backends.base import TreeParams
from boostbp.backends.native_params import Natives

DATA = table(np.random.default_rng(0), 300)
GRAD = target(np.random.default_rng(1), DATA)
NATIVES: dict[str, Natives] = {
    "lightgbm": native_params.LIGHTGBM,
    "xgboost": native_params.XGBOOST,
    "sklearn": native_params.SKLEARN,
}


def installed(name: str) -> set[str]:
    """The main names of the parameters by which the installed library grows trees, in its own words."""
    if name == "lightgbm":
        return set(import_module("lightgbm").basic._ConfigAliases._get_all_param_aliases())
    if name == "sklearn":
        return set(DecisionTreeRegressor().get_params())
    config = import_module("xgboost").Booster({"tree_method": "hist", "num_feature": 1}).save_config()
    names = {name for section in sections(json.loads(config)) for name in section} | {"device"}
    return {native_params.XGBOOST.aliases.get(name, name) for name in names}


def sections(config: Any) -> Iterator[dict[str, Any]]:
    """The sections of a configuration of XGBoost that are about growing trees, wherever they are."""
    for key, value in config.items() if isinstance(config, dict) else enumerate(config):
        if key in ("tree_train_param", "hist_train_param"):
            yield value
        elif isinstance(value, dict | list):
            yield from sections(value)


def sizes(name: str, params: dict[str, Any], **growth: Any) -> list[int]:
    settings = TreeParams(**{"max_depth": 4, "min_samples_leaf": 5} | growth, params=params)
    grower = load_backend(name).bind(DATA, settings)
    return [grower.grow(GRAD, np.ones_like(GRAD))[0].n_leaves for _ in range(3)]


def refused(name: str, params: dict[str, Any], match: str, **growth: Any) -> None:
    with pytest.raises(ValueError, match=match):
        load_backend(name).bind(DATA, TreeParams(params=params, **growth))


REASONS: dict[str, dict[str, tuple[Any, str]]] = {
    "lightgbm": {
        "mc": ([1, 0, 0, 0], "Use output={'monotone_constraints'"),
        "zero_as_missing": (True, "routing could not tell 0.0 from NaN. Recode zeros as NaN"),
        "use_quantized_grad": (True, "wrong linear leaves"),
        "linear_trees": (True, "fits the leaves itself. .* leaves='native'"),
        "lambdarank_norm": (True, "Use BoostBPRanker"),
        "boosting": ("dart", "only 'gbdt'"),
        "boost": ("rf", "only 'gbdt'"),
        "tree_learner": ("voting", "Use 'serial'"),
        "feature_contri": ([1.0] * 4, "names features by number"),
        "fs": ("splits.json", "names features by number"),
        "cegb_penalty_feature_lazy": ([1.0] * 4, "names features by number"),
        "ignore_column": ([0], "names features by number"),
        "max_bin_by_feature": ([3] * 4, "Use max_bins"),
        "is_unbalance": (True, "Use class_weight"),
        "scale_pos_weight": (2.0, "Use class_weight"),
        "extra_tree": (True, "output={'extra_trees'"),
    },
    "xgboost": {
        "monotone_constraints": ("(1,0,0,0)", "Use output={'monotone_constraints'"),
        "booster": ("dart", "only 'gbtree'"),
        "tree_method": ("gpu_hist", "only 'hist' can use .*device='cuda'"),
        "num_parallel_tree": (4, "one tree per output"),
        "num_target": (2, "counts the outputs itself"),
        "base_score": (0.5, "chooses where predictions start"),
        "feature_weights": ([1.0] * 4, "names features by number"),
        "feature_types": (["q"] * 4, "categorical_features"),
        "scale_pos_weight": (2.0, "Use class_weight"),
        "min_child_weight": (3, "min_samples_leaf"),
    },
    "sklearn": {
        "criterion": ("absolute_error", "weighted squared error"),
        "monotonic_cst": ([1, 0, 0, 0], "Use output={'monotone_constraints'"),
        "splitter": ("random", "output={'extra_trees'"),
    },
}
# Parameters without a part in the growth of a tree from gradients, and misspelt ones.
UNKNOWN: dict[str, dict[str, str]] = {
    "lightgbm": {
        **dict.fromkeys(("sigmoid", "drop_rate", "workers", "num_gpu", "config", "valid", "two_round"), "Check"),
        **dict.fromkeys(("pos_bagging_fraction", "num_grad_quant_bins", "", "name"), "Check"),
        "lambda_2": "Did you mean 'lambda_l2'",
        "min_split_gian": "Did you mean 'min_split_gain'",
    },
    "xgboost": {
        **dict.fromkeys(("process_type", "updater", "rate_drop", "feature_selector", "validate_parameters"), "Check"),
        **dict.fromkeys(("fail_on_invalid_gpu_id", "refresh_leaf", "", "name", "updater_seq"), "Check"),
        "colsample_bytre": "Did you mean 'colsample_bytree'",
    },
    "sklearn": {"max_feature": "Did you mean 'max_features'", "splits": "Check", "": "Check"},
}
CLASHES = {
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
        "loss": "objective application",
        "eval_metric": "metric",
        "alpha": "alpha",
        "categorical_features": "categorical_feature cat_feature",
    },
    "xgboost": {
        "n_estimators": "n_estimators num_boost_round",
        "learning_rate": "learning_rate eta",
        "max_leaves": "max_leaves",
        "max_depth": "max_depth",
        "max_bins": "max_bin",
        "n_jobs": "nthread n_jobs",
        "random_state": "seed random_state",
        "verbose": "verbosity",
        "loss": "objective",
        "eval_metric": "eval_metric",
        "multi_strategy": "multi_strategy",
        "categorical_features": "enable_categorical",
    },
    "sklearn": {
        "max_leaves": "max_leaf_nodes",
        "max_depth": "max_depth",
        "min_samples_leaf": "min_samples_leaf",
        "random_state": "random_state",
    },
}


@pytest.mark.parametrize("name", NATIVES)
@pytest.mark.parametrize("is_whole_model", [True, False])
def test_what_would_break_the_method_is_refused_with_the_reason(name: str, is_whole_model: bool) -> None:
    for param, (value, reason) in REASONS[name].items():
        message = rf"backend_params\['{param}'\]=.* is not supported: .*{reason}"
        refused(name, {param: value}, message, is_whole_model=is_whole_model)


@pytest.mark.parametrize("name", NATIVES)
def test_what_is_said_elsewhere_is_refused_with_the_place(name: str) -> None:
    for ours, params in CLASHES[name].items():
        for param in params.split():
            message = rf"backend_params\['{param}'\]=3 clashes with {ours}: set {ours} instead, and leave '{param}' out"
            refused(name, {param: 3}, message)


@pytest.mark.parametrize("name", NATIVES)
def test_a_parameter_that_grows_no_tree_is_refused_and_a_misspelt_one_too(name: str) -> None:
    for param, cure in UNKNOWN[name].items():
        message = rf"backend_params\['{param}'\]=1 is not supported: .* does not use '{param}' to grow .*{cure}"
        refused(name, {param: 1}, message)


@pytest.mark.parametrize("name", NATIVES)
def test_the_allowed_parameters_are_those_of_the_installed_library_and_no_other_passes(name: str) -> None:
    """A new release that renames or drops a parameter fails here: libraries only warn of an unknown one."""
    allowed = NATIVES[name].allowed.keys() | ({"interaction_constraints"} if name != "sklearn" else set())
    assert allowed <= installed(name)
    for param in installed(name) - allowed:
        refused(name, {param: 3}, rf"backend_params\['{param}'\]=3 (is not supported|clashes with)")


def test_a_parameter_under_two_names_is_refused() -> None:
    refused("lightgbm", {"lambda_l2": 1.0, "reg_lambda": 2.0}, r"'reg_lambda'\]=2.0 sets 'lambda_l2' a second time")


@pytest.mark.parametrize("name", NATIVES)
def test_a_value_cannot_hold_another_parameter(name: str) -> None:
    for param in NATIVES[name].allowed:
        for text in ("0.5 num_leaves=2", "1\nnum_threads=9", "bagging verbosity=2", " ", ""):
            with pytest.raises(ValueError, match=rf"backend_params\['{param}'\]="):
                load_backend(name).bind(DATA, TreeParams(params={param: text}))


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("lightgbm", {"force_col_wise": True, "force_row_wise": True}, "at the same time"),
        ("lightgbm", {"data_sample_strategy": "goss", "top_rate": 0.9, "other_rate": 0.9}, "rate"),
        ("xgboost", {"lambda": 1e300}, "reg_lambda"),
    ],
)
def test_what_the_library_says_names_the_parameters(name: str, params: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=rf"failed with backend_params=.*{next(iter(params))}.*{said}"):
        sizes(name, params)


@pytest.mark.parametrize(("name", "params"), [("xgboost", {"alpha": 1, "reg_alpha": 2}), ("xgboost", {"eta": 1})])
def test_xgboost_s_other_names_are_known(name: str, params: dict[str, Any]) -> None:
    refused(name, params, "sets 'reg_alpha' a second time|clashes with learning_rate")


@pytest.mark.parametrize("given", [3, "abc", [("a", 1)], {"a"}, True, np.zeros(2)])
def test_parameters_are_a_mapping(given: Any) -> None:
    with pytest.raises(ValueError, match=r"backend_params=.* is not allowed: give a dict"):
        TreeParams(params=given)
    with pytest.raises(ValueError, match=r"backend_params=.* is not allowed: give a dict"):
        fit_layer(np.zeros((9, 1)), np.zeros(9), {"backend_params": given})
    with pytest.raises(ValueError, match=r"backend_params=.* is not allowed: give a dict"):
        BoostBPRegressor(backend_params=given).fit(np.zeros((9, 1)), np.arange(9))


@pytest.mark.parametrize("key", [3, None, ("a", "b"), b"lambda_l1"])
def test_names_are_strings(key: Any) -> None:
    with pytest.raises(ValueError, match=r"backend_params has the name .*strings"):
        TreeParams(params={key: 1})


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(ValueError, match="characters") as caught:
        load_backend("lightgbm").bind(DATA, TreeParams(params={"lambda_l1": "x" * 10**6}))
    assert len(str(caught.value)) < 500


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
    grower = load_backend(name).bind(DATA, TreeParams(max_depth=3, **how))

    def rounds(seed: int) -> list[bytes]:
        fork = grower.fork(slice(0, 1), seed)
        return [fork.grow(GRAD, np.ones_like(GRAD))[0].threshold.tobytes() for _ in range(8)]

    assert len(set(rounds(1)[2:])) > 2
    assert rounds(1) == rounds(1)
    assert rounds(1) != rounds(2)


@pytest.mark.parametrize(
    ("name", "how"), [("lightgbm", {"extra_trees": True}), ("xgboost", {"params": {"subsample": 0.5}})]
)
def test_sampling_does_not_repeat_beyond_the_life_of_a_booster(name: str, how: dict[str, Any]) -> None:
    grower = load_backend(name).bind(DATA, TreeParams(max_depth=2, **how))
    trees = [grower.grow(GRAD, np.ones_like(GRAD))[0].threshold.tobytes() for _ in range(520)]
    assert trees[512:520] != trees[:8]


@pytest.mark.parametrize(("name", "how"), SAMPLING)
def test_the_seed_of_growth_is_the_seed_of_the_first_grower(name: str, how: dict[str, Any]) -> None:
    def first(seed: int) -> bytes:
        grower = load_backend(name).bind(DATA, TreeParams(random_state=seed, **how))
        return b"".join(grower.grow(GRAD, np.ones_like(GRAD))[0].threshold.tobytes() for _ in range(4))

    assert first(3) == first(3)
    assert len({first(seed) for seed in range(5)}) > 1


NO_SAMPLING: dict[str, dict[str, Any]] = {
    "lightgbm": {"feature_fraction": 1.0},
    "xgboost": {"colsample_bytree": 1.0},
    "sklearn": {"max_features": None},
}


@pytest.mark.parametrize("name", NO_SAMPLING)
def test_native_parameters_win_over_the_features_that_a_layer_draws(name: str) -> None:
    assert sizes(name, NO_SAMPLING[name], colsample_bytree=0.2) == sizes(name, {})
    assert sizes(name, {}, colsample_bytree=0.2) != sizes(name, {})


def test_vector_leaves_of_xgboost_are_refused_with_categories() -> None:
    data = table(np.random.default_rng(0), 100, numeric=2, categories=(4,))
    grower = load_backend("xgboost").bind(data, TreeParams(multi_output=True))
    with pytest.raises(ValueError, match=r"multi_output=True .*2 columns.*categorical columns \(2,\)"):
        grower.grow(np.ones((100, 2)), np.ones((100, 2)))
