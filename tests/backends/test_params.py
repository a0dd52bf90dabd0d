"""Native parameters pass through, or are refused by name with the reason and the cure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from leaf_oracles import table, target
from sklearn.tree import DecisionTreeRegressor

from boostbp import BoostBPRegressor, fit_layer
from boostbp.backends import _lightgbm_params, _xgboost_params, load, sklearn
from boostbp.backends.base import TreeParams

DATA = table(np.random.default_rng(0), 300)
GRAD = target(np.random.default_rng(1), DATA)
NATIVES = {
    "lightgbm": _lightgbm_params._NATIVES,
    "xgboost": _xgboost_params._NATIVES,
    "sklearn": sklearn._NATIVES,
}
INSTALLED: dict[str, Callable[[], Iterable[str]]] = {
    "lightgbm": lambda: import_module("lightgbm").basic._ConfigAliases._get_all_param_aliases(),
    "xgboost": lambda: _xgboost_params._known(import_module("xgboost")).values(),
    "sklearn": lambda: DecisionTreeRegressor().get_params(),
}


def sizes(name: str, params: dict[str, Any], **growth: Any) -> list[int]:
    settings = TreeParams(**{"max_depth": 4, "min_samples_leaf": 5} | growth, params=params)
    grower = load(name).bind(DATA, settings)
    return [grower.grow(GRAD, np.ones_like(GRAD))[0].n_leaves for _ in range(3)]


def refused(name: str, params: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        load(name).bind(DATA, TreeParams(params=params))


BREAKS_LIGHTGBM = {
    "zero_as_missing": (True, "routing could not tell 0.0 from NaN. Recode zeros as NaN"),
    "use_quantized_grad": (True, "wrong linear leaves"),
    "linear_tree": (True, "leaves that boostbp fits itself"),
    "linear_trees": (True, "leaves that boostbp fits itself"),
    "boosting": ("dart", "only 'gbdt'"),
    "boosting_type": ("rf", "only 'gbdt'"),
    "boost": ("dart", "only 'gbdt'"),
    "tree_learner": ("voting", "Use 'serial'"),
    "objective": ("binary", "gradients come from boostbp"),
    "application": ("regression", "gradients come from boostbp"),
    "metric": ("auc", "Choose the metric there"),
    "num_class": (3, "counts the outputs itself"),
    "monotone_constraints": ([1, 0, 0, 0], "must keep to it, too. Use output="),
    "mc": ([1, 0, 0, 0], "must keep to it, too. Use output="),
    "monotone_penalty": (1.0, "how constraints are kept is up to boostbp"),
    "is_unbalance": (True, "gradients come from boostbp"),
    "scale_pos_weight": (2.0, "gradients come from boostbp"),
    "boost_from_average": (False, "gradients come from boostbp"),
    "alpha": (0.3, "gradients come from boostbp"),
    "drop_rate": (0.5, "boosting='dart'"),
    "num_grad_quant_bins": (4, "quantised training"),
    "num_machines": (2, "several machines"),
    "workers": ("a:1", "several machines"),
    "num_gpu": (2, "several machines or cards"),
    "config": ("file", "command line"),
    "valid": ("file", "command line"),
    "two_round": (True, "command line"),
    "pos_bagging_fraction": (0.5, "labels"),
    "neg_bagging": (0.5, "labels"),
}
BREAKS_XGBOOST = {
    "booster": ("dart", "only 'gbtree'"),
    "tree_method": ("gpu_hist", r"only 'hist' can use. .*device='cuda'"),
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
    "scale_pos_weight": (2.0, "Use class_weight of BoostBPClassifier"),
    "eval_metric": ("auc", "Choose the metric there"),
    "disable_default_eval_metric": (True, "boostbp scores its own predictions"),
    "monotone_constraints": ("(1,0,0,0)", "must keep to it, too. Use output="),
    "validate_parameters": (True, "checks the names itself"),
    "fail_on_invalid_gpu_id": (True, "a card that is not there is always refused"),
    "rate_drop": (0.1, "booster='dart'"),
    "skip_drop": (0.1, "booster='dart'"),
    "one_drop": (True, "booster='dart'"),
    "sample_type": ("weighted", "booster='dart'"),
    "normalize_type": ("forest", "booster='dart'"),
    "feature_selector": ("cyclic", "booster='gblinear'"),
}
BREAKS_SKLEARN = {
    "criterion": ("absolute_error", "weighted squared error"),
    "monotonic_cst": ([1, 0, 0, 0], "must keep to it, too. Use output="),
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


@pytest.mark.parametrize("name", NATIVES)
@pytest.mark.parametrize("param", ["colsample_bytre", "lambda_2", "max_feature", "", "name", "updater_seq"])
def test_a_misspelt_parameter_is_refused(name: str, param: str) -> None:
    refused(name, {param: 1}, rf"backend_params\['{param}'\]=1: .* has no parameter '{param}'. Check its name")


def test_a_parameter_under_two_names_is_refused() -> None:
    refused("lightgbm", {"lambda_l2": 1.0, "reg_lambda": 2.0}, r"'reg_lambda'\]=2.0 says 'lambda_l2' a second time")


NUMBERED = {
    "lightgbm": {
        "feature_contri": ([1.0] * 4, "prices of features"),
        "fc": ([1.0] * 4, "prices of features"),
        "cegb_penalty_feature_lazy": ([1.0] * 4, "prices of features"),
        "cegb_penalty_feature_coupled": ([1.0] * 4, "prices of features"),
        "max_bin_by_feature": ([3] * 4, "Use max_bins"),
        "forcedbins_filename": ("bins.json", "Use max_bins"),
        "forcedsplits_filename": ("splits.json", "its splits name features by number"),
        "fs": ("splits.json", "its splits name features by number"),
        "ignore_column": ([0], "Leave these columns out"),
        "monotone_constraints": ([1] * 4, "must keep to it, too. Use output="),
    },
    "xgboost": {
        "feature_weights": ([1.0] * 4, "features by number"),
        "feature_types": (["q"] * 4, "categorical_features"),
        "feature_names": (["a", "b", "c", "d"], "names and types of columns"),
        "enable_categorical": (True, "categorical_features"),
        "monotone_constraints": ("(1,0,0,0)", "must keep to it, too. Use output="),
    },
}


@pytest.mark.parametrize(
    ("name", "param", "value", "why"),
    [(name, param, *rest) for name, params in NUMBERED.items() for param, rest in params.items()],
)
@pytest.mark.parametrize("alone", [True, False])
def test_what_speaks_of_features_by_number_is_refused(name: str, param: str, value: Any, why: str, alone: bool) -> None:
    with pytest.raises(ValueError, match=rf"backend_params\['{param}'\]=.* is not supported: .*{why}"):
        load(name).bind(DATA, TreeParams(params={param: value}, alone=alone))


@pytest.mark.parametrize("name", NATIVES)
def test_each_parameter_of_the_installed_library_is_decided_on(name: str) -> None:
    """A new release with another parameter fails here: read what it does, and give it a kind or a reason."""
    natives = NATIVES[name]
    decisions = [natives.takes, natives.reasons, natives.replaced_by, {"interaction_constraints": "grouped"}]
    for main in INSTALLED[name]():
        assert sum(main in decision for decision in decisions) == 1, main


def test_what_a_new_release_of_a_library_may_add_is_refused() -> None:
    known = {"lambda_l1": "lambda_l1", "feature_groups": "feature_groups"}
    with pytest.raises(ValueError, match=r"'feature_groups'\]=3 is not supported: it is not known what"):
        NATIVES["lightgbm"].checked({"feature_groups": 3}, known)


def test_lightgbm_s_own_defaults_are_of_the_kinds_that_are_written_down() -> None:
    import lightgbm

    data = lightgbm.Dataset(np.zeros((9, 1)), np.zeros(9), params={"verbosity": -1})
    text = lightgbm.train({"verbosity": -1, "num_threads": 1}, data, 1).model_to_string()
    defaults = lightgbm.Booster(model_str=text).params
    takes = NATIVES["lightgbm"].takes
    assert len(takes.keys() & defaults.keys()) > 30
    for name in takes.keys() & defaults.keys():
        value = takes[name](name, defaults[name])
        assert value == defaults[name]
        assert isinstance(value, bool) == isinstance(defaults[name], bool)
        assert isinstance(value, str) == isinstance(defaults[name], str)


@pytest.mark.parametrize("name", NATIVES)
def test_a_value_cannot_hold_another_parameter(name: str) -> None:
    for param in NATIVES[name].takes:
        for text in ("0.5 num_leaves=2", "1\nnum_threads=9", "bagging verbosity=2", " ", ""):
            with pytest.raises(ValueError, match=rf"backend_params\['{param}'\]="):
                load(name).bind(DATA, TreeParams(params={param: text}))


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
    refused(name, params, "says 'reg_alpha' a second time|clashes with learning_rate")


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
        load("lightgbm").bind(DATA, TreeParams(params={"lambda_l1": "x" * 10**6}))
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
    grower = load(name).bind(DATA, TreeParams(max_depth=3, **how))

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
    grower = load(name).bind(DATA, TreeParams(max_depth=2, **how))
    trees = [grower.grow(GRAD, np.ones_like(GRAD))[0].threshold.tobytes() for _ in range(520)]
    assert trees[512:520] != trees[:8]


@pytest.mark.parametrize(("name", "how"), SAMPLING)
def test_the_seed_of_growth_is_the_seed_of_the_first_grower(name: str, how: dict[str, Any]) -> None:
    def first(seed: int) -> bytes:
        grower = load(name).bind(DATA, TreeParams(random_state=seed, **how))
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
    grower = load("xgboost").bind(data, TreeParams(shared=True))
    with pytest.raises(ValueError, match=r"shared=True .*2 columns.*categorical columns \(2,\)"):
        grower.grow(np.ones((100, 2)), np.ones((100, 2)))
