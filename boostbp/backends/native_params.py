"""Native parameters of the libraries: an allow-list for each library, and why other parameters are refused.

A parameter reaches a library only if it is on the list and its value passes the check there. The libraries' own checks
are incomplete: some join all parameters to one text, in which a value can contain another parameter, let integers
overflow, or end the process for a column that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from boostbp.backends.base import TreeParams
from boostbp.runtime import checks
from boostbp.runtime.interrupts import fork_safe
from boostbp.runtime.messages import MEANT, is_of_user, nearest

T = TypeVar("T")
Check = Callable[[str, Any], Any]  # returns the value for the library from name and value, or raises ValueError


def _by_name(names: Mapping[T, str]) -> dict[str, T]:
    """Return a mapping with one entry for each name: ``{"x": "a b"}`` becomes ``{"a": "x", "b": "x"}``."""
    return {name: value for value, words in names.items() for name in words.split()}


@dataclass(frozen=True, slots=True)
class Natives:
    """Native parameters of a library, by their main names."""

    title: str  # name of the library in messages
    # Checks of the parameters that are passed on
    allowed: Mapping[str, Check]
    # Reasons against other parameters, with the cure. For a parameter on neither list, the message names the equivalent
    # parameter of boostbp (`boostbp.runtime.messages.MEANT`), or is a general one.
    reasons: Mapping[str, str]
    # values of refused parameters that boostbp sets itself: these are accepted, and have no effect
    defaults: Mapping[str, tuple[Any, ...]]
    aliases: Mapping[str, str] = field(default_factory=dict)  # the main name of each other name that the library knows

    def checked(self, params: Mapping[str, Any], **more: Check) -> dict[str, Any]:
        """Return the user's parameters by their main names; `more` are checks that depend on the input."""
        allowed, aliases, values = {**self.allowed, **more}, self.aliases, dict[str, Any]()
        for name, value in params.items():
            main = aliases.get(name, name)
            param = f"backend_params[{checks.shown(name)}]"
            if main in values:
                raise ValueError(f"{param}={checks.shown(value)} sets {main!r} a second time: keep one of the two.")
            if main in allowed:
                values[main] = allowed[main](param, value)
            elif not (np.isscalar(value) and value in self.defaults.get(main, ())):
                known = [*allowed, *(alias for alias in aliases if aliases[alias] in allowed)]
                near = None if name in aliases else nearest(name, known)
                raise ValueError(f"{param}={checks.shown(value)} {self._refusal(name, main, near)}")
        return values

    def _refusal(self, name: str, main: str, near: str | None) -> str:
        if main in self.reasons:
            return f"is not supported: {self.reasons[main]}"
        parameter = MEANT.get(main, main)
        if parameter in MEANT.values():
            return f"clashes with {parameter}: set {parameter} instead, and leave {name!r} out of backend_params."
        cure = "Check its name, or leave it out." if near is None else f"Did you mean {near!r}?"
        use = f"{self.title} does not use {checks.shown(name)} to grow a tree from given gradients"
        return f"is not supported: {use}. {cure}"


_SWITCH: Check = partial(checks.one_of, allowed=(True, False, 1, 0, "true", "false"))
_PART: Check = partial(checks.at_least, least=0, most=1)
_AMOUNT: Check = partial(checks.at_least, least=0)
_COUNT: Check = partial(checks.whole, least=1, most=checks.LARGEST_INT)
_WHOLE: Check = partial(checks.whole, least=0, most=checks.LARGEST_INT)


def _words(*allowed: str) -> Check:
    return partial(checks.one_of, allowed=allowed)


def _device(name: str, value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"cpu|(cuda|gpu)(:\d{1,4})?", value):
        raise ValueError(f"{name}={checks.shown(value)} is not known: use 'cpu', 'cuda', or a card such as 'cuda:1'.")
    return value


def _max_features(name: str, value: object) -> Any:
    if value is None or isinstance(value, str):
        return checks.one_of(name, value, ("sqrt", "log2", None))
    return checks.share(name, value) if isinstance(value, float | np.floating) else _COUNT(name, value)


def _min_samples_split(name: str, value: object) -> float | int:
    if isinstance(value, float | np.floating) and value <= 1:
        return checks.share(name, value)
    return checks.whole(name, value, 2, checks.LARGEST_INT)


# Why parameters of several libraries are refused
_MONOTONE = "leaves and base must obey it, too. Use output={'monotone_constraints': ...}, or that of fit_layer."
_OF_LAYER = "it is a parameter of the layer. Use output={'extra_trees': ...}, or hidden."
_WEIGHTS = "boostbp computes the gradients. Use class_weight of BoostBPClassifier, or sample_weight."
_BY_NUMBER = "it names features by number, and layers above hidden ones number hidden units. Leave it out."
# Bounds of values are those of the libraries' documentation.
LIGHTGBM = Natives(
    "LightGBM",
    allowed=_by_name(
        {
            _SWITCH: "deterministic enable_bundle feature_pre_filter force_col_wise force_row_wise gpu_use_dp "
            "is_enable_sparse use_missing",
            checks.share: "bagging_fraction feature_fraction feature_fraction_bynode",
            _PART: "other_rate top_rate",
            _AMOUNT: "cat_l2 cat_smooth cegb_penalty_split cegb_tradeoff lambda_l1 lambda_l2 min_gain_to_split "
            "min_sum_hessian_in_leaf path_smooth",
            checks.finite: "histogram_pool_size max_delta_step",
            _COUNT: "bin_construct_sample_cnt max_cat_threshold max_cat_to_onehot min_data_in_bin min_data_per_group",
            _WHOLE: "bagging_freq bagging_seed data_random_seed extra_seed feature_fraction_seed",
            partial(checks.whole, least=-1, most=checks.LARGEST_INT): "gpu_device_id gpu_platform_id",  # -1: it chooses
            _words("bagging", "goss"): "data_sample_strategy",
            _words("cpu", "gpu", "cuda"): "device_type",
        }
    ),
    reasons=_by_name(
        {
            _MONOTONE: "monotone_constraints",
            _OF_LAYER: "extra_trees",
            _WEIGHTS: "is_unbalance scale_pos_weight",
            _BY_NUMBER: "cegb_penalty_feature_coupled cegb_penalty_feature_lazy feature_contri forcedsplits_filename "
            "ignore_column",
            "routing could not tell 0.0 from NaN. Recode zeros as NaN.": "zero_as_missing",
            "quantised gradients give wrong linear leaves. Leave it off.": "use_quantized_grad",
            "boostbp fits the leaves itself. Choose them by basis, or by leaves='native'.": "linear_tree",
            "hidden layers have units in the place of features. Use max_bins.": "max_bin_by_feature",
            "only 'gbdt' grows trees by the gradient alone (dart and rf rescale earlier ones).": "boosting",
            "boostbp itself chooses how workers share the rows. Use 'serial'.": "tree_learner",
            "it belongs to rankings. Use BoostBPRanker, and losses.LambdaRank for its loss.": "eval_at label_gain "
            "lambdarank_norm lambdarank_position_bias_regularization lambdarank_truncation_level",
        }
    ),
    defaults={
        **dict.fromkeys(("zero_as_missing", "use_quantized_grad", "linear_tree"), (False, "false")),
        "boosting": ("gbdt", "gbrt"),
        "tree_learner": ("serial",),
    },
)
XGBOOST = Natives(
    "XGBoost",
    allowed=_by_name(
        {
            checks.share: "colsample_bylevel colsample_bynode colsample_bytree subsample",
            _PART: "sparse_threshold",
            _AMOUNT: "max_delta_step min_split_loss reg_alpha reg_lambda",
            _COUNT: "max_cached_hist_node max_cat_threshold max_cat_to_onehot",
            _SWITCH: "debug_synchronize",
            _words("depthwise", "lossguide"): "grow_policy",
            _words("uniform", "gradient_based"): "sampling_method",
            _device: "device",
        }
    ),
    reasons=_by_name(
        {
            _MONOTONE: "monotone_constraints",
            _WEIGHTS: "scale_pos_weight",
            _BY_NUMBER: "feature_weights",
            "boostbp counts the outputs itself, and chooses where predictions start. Leave it out.": "base_score "
            "boost_from_average num_class num_target",
            "only 'gbtree' grows trees by the gradient alone. Leave it out.": "booster",
            "the input is binned once: only 'hist' can use bins; a card is device='cuda'. Leave it out.": "tree_method",
            "it becomes min_samples_leaf, which counts rows. Use that.": "min_child_weight",
            "the types of columns are those of the input. Use categorical_features.": "feature_types",
            "a round grows one tree per output. Leave it out.": "num_parallel_tree",
        }
    ),
    defaults={"booster": ("gbtree",), "tree_method": ("hist", "auto"), "num_parallel_tree": (1,)},
    aliases={"alpha": "reg_alpha", "eta": "learning_rate", "gamma": "min_split_loss", "lambda": "reg_lambda"},
)
SKLEARN = Natives(
    "scikit-learn's DecisionTreeRegressor",
    allowed={
        **dict.fromkeys(("ccp_alpha", "min_impurity_decrease"), _AMOUNT),
        "max_features": _max_features,
        "min_samples_split": _min_samples_split,
        "min_weight_fraction_leaf": partial(checks.at_least, least=0, most=0.5),
    },
    reasons={
        "criterion": "a tree fits -grad / hess by weighted squared error. Leave it out.",
        "monotonic_cst": _MONOTONE,
        "splitter": _OF_LAYER,
    },
    defaults={"criterion": ("squared_error", "friedman_mse")},  # two names of one criterion; the second is deprecated
)


def column_groups(growth: TreeParams, n_columns: int) -> Check:
    """Return the check of ``interaction_constraints``, lists of column numbers, which only a single layer obeys."""

    def check(name: str, value: object) -> list[list[int]]:
        if not growth.is_whole_model:
            reason = "hidden layers mix the features, so no constraint would hold"
            cure = "Use hidden_layer_sizes=(), or leave it out"
            raise ValueError(f"{name}={checks.shown(value)} is not supported: {reason}. {cure}.")
        groups = [_elements(group) for group in _elements(value)]
        if not groups or not all(groups):
            raise checks.not_allowed(name, value, "lists of column numbers, such as [[0, 1], [2]]")
        column = partial(checks.whole, f"{name}, a column", least=0, most=n_columns - 1)
        return [sorted({column(number) for number in group}) for group in groups]

    return check


def _elements(value: object) -> list[Any]:
    """Return the elements of a list, tuple, set or array, and an empty list for other values."""
    several = isinstance(value, list | tuple | set | frozenset) or (isinstance(value, np.ndarray) and value.ndim)
    return list(value) if several else []  # type: ignore[call-overload]


NO_DEVICE = "Leave the device out to grow on the CPU, or use the library's build for it, on a machine that has one."
_device_lock: Any = fork_safe(RLock())


def on_card(params: Mapping[str, Any]) -> bool:
    """Return whether native parameters select another device than the CPU."""
    return any(params.get(name, "cpu") != "cpu" for name in ("device", "device_type"))


def device_turn(params: Mapping[str, Any]) -> AbstractContextManager[Any]:
    """Wait until no other grower uses a card, as one occupies it, and reserve it; on the CPU, do nothing."""
    return _device_lock if on_card(params) else nullcontext()


@contextmanager
def naming_params(library: str, params: Mapping[str, Any], error_type: type[Exception]) -> Iterator[None]:
    """Raise an error of a library as a ValueError that names the native parameters, if there are any."""
    try:
        yield
    except error_type as error:
        if not params or is_of_user(error):
            raise
        message = str(error).split("\nStack trace")[0].strip() + (f". {NO_DEVICE}" if on_card(params) else "")
        raise ValueError(f"{library} failed with backend_params={checks.shown(dict(params))}: {message}") from error
