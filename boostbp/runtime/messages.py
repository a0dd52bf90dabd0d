"""Messages: warnings at the user's line, errors with names and cures, suggestions for unknown parameters."""

from __future__ import annotations

import sys
import traceback
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from html import escape
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any

# Packages whose frames may be between the user's line and a warning: this one, and those that wrap or call its methods.
_BETWEEN = {"boostbp", "concurrent", "contextlib", "functools", "joblib", "sklearn", "threading"}
# Packages whose frames may be in the traceback of an error that is not the user's; their errors may quote user data.
_PACKAGES = _BETWEEN | {"lightgbm", "narwhals", "numpy", "pandas", "polars", "pyarrow", "scipy", "xgboost"}
MAX_MESSAGE = 2000  # characters of a message, of which a cell of a file may have millions. Arbitrary
# Unicode categories of control characters (with which escape sequences of terminals begin), of invisible and
# direction-changing marks, of surrogates, and of line and paragraph separators.
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS = "\u200c\u200d"  # invisible marks that some scripts and emoji need


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line of the user's code."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(brief(message), category, stacklevel=level)


def brief(message: str) -> str:
    """Return a message, without its middle if it is long: it names the argument first, and the cure last."""
    half, count = MAX_MESSAGE // 2, len(message)
    return message if count <= MAX_MESSAGE else f"{message[:half]} ... ({count} characters) ... {message[-half:]}"


def shorten(error: BaseException | None) -> None:
    """Shorten the messages of an error and of its causes that this package or a library raised."""
    while error is not None:
        modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
        if modules and modules[-1].partition(".")[0] in _PACKAGES:
            error.args = tuple(brief(text) if isinstance(text, str) else text for text in error.args)
        error = error.__cause__ or error.__context__


def is_of_user(error: BaseException) -> bool:
    """Return whether an error that was caught came from code of the user: a loss, a backend, a callback."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    return not {name.partition(".")[0] for name in modules} <= _PACKAGES


@contextmanager
def named_in_errors(source: str) -> Iterator[None]:
    """Prefix errors about an input with the name of its argument, or add it to an error of the user as a note."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if is_of_user(error):
            error.add_note(f"{source} was being read.")
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{source}: {error}") from error


def printable(text: str) -> str:
    r"""Return text in which invisible characters that could affect a terminal or reader are escaped.

    >>> print(printable("price\x1b[2J"))
    price\x1b[2J
    """
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in _HIDDEN and character not in _JOINERS
        else character
        for character in text
    )


def require(module: str, *, extra: str, what: str) -> ModuleType:
    """Import a module for a feature `what`, as the user wrote it; an ImportError names the `extra` that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(f"{what} needs the {error.name} package: pip install 'boostbp[{extra}]'.") from error


class Lines(str):
    """Text that notebooks show as it is printed, line by line."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self)


def counted(number: int, what: str) -> str:
    """Return a number of things in words: "1 epoch", "2 epochs"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


# Name of a parameter here: its names in LightGBM, XGBoost, CatBoost and scikit-learn.
_OTHER_NAMES: Mapping[str, str] = {
    "max_leaves": "num_leaves max_leaf_nodes n_leaves",
    "min_samples_leaf": "min_child_samples min_data_in_leaf",
    "learning_rate": "eta shrinkage shrinkage_rate",
    "n_estimators": "num_boost_round num_iterations num_trees iterations n_iter",
    "colsample_bytree": "feature_fraction sub_feature rsm max_features",
    "subsample": "bagging_fraction sub_row max_samples",
    "reg_lambda": "lambda_l2 lambda l2_leaf_reg l2_regularization linear_lambda",
    "max_bins": "max_bin border_count",
    "max_depth": "depth",
    "loss": "objective loss_function criterion application",
    "alpha": "quantile quantile_alpha",
    "eval_metric": "metric scoring",
    "n_jobs": "num_threads nthread thread_count",
    "random_state": "seed random_seed random_number",
    "verbose": "verbosity silent",
    "epochs": "max_iter n_epochs",
    "hidden_layer_sizes": "hidden_sizes hidden_layers hidden_layer layers units",
    "categorical_features": "categorical_feature cat_features enable_categorical",
    "class_weight": "class_weights",
    "validation": "validation_fraction test_size",
    "basis": "linear_tree",
    "monotone_constraints": "monotonic_cst monotone_constraint mc",
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
_RANKING = "use BoostBPRanker, whose fit takes group or qid; losses.LambdaRank has parameters of lambdarank."
# Names of native parameters in `backend_params`.
_NATIVE = """
    bagging_freq subsample_freq cat_l2 cat_smooth colsample_bylevel colsample_bynode data_sample_strategy device
    device_type feature_fraction_bynode gamma grow_policy max_cat_threshold max_cat_to_onehot max_delta_step
    min_data_per_group min_gain_to_split min_split_gain min_split_loss min_sum_hessian_in_leaf other_rate path_smooth
    sampling_method top_rate
"""
NOT_THERE: Mapping[str, str] = {
    **dict.fromkeys(("is_unbalance", "auto_class_weights"), "use class_weight='balanced' of BoostBPClassifier."),
    "scale_pos_weight": "use class_weight={negative: 1, positive: scale_pos_weight} of BoostBPClassifier.",
    "class_weight": "BoostBPClassifier has class_weight; fit of each estimator has sample_weight.",
    "pred_contrib": "use attributions(X), or explain(X) for the plots of shap.",
    "pred_leaf": "use apply(X).",
    **dict.fromkeys(("raw_score", "output_margin"), "use decision_function(X) of BoostBPClassifier."),
    **dict.fromkeys(("num_iteration", "start_iteration", "iteration_range", "ntree_limit"), "use staged_predict(X)."),
    "exposure": "give its logarithm as offset=... of fit and predict.",
    **dict.fromkeys(("group", "qid", "eval_group", "eval_qid", "eval_at"), _RANKING),
    **dict.fromkeys(("lambdarank_truncation_level", "label_gain", "lambdarank_norm", "sigmoid"), _RANKING),
    **dict.fromkeys(("reg_alpha", "lambda_l1"), "leaf regressions have no L1 penalty; reg_lambda is their L2 penalty."),
    "alpha": "the level of a quantile is alpha of BoostBPRegressor; leaves have no L1 penalty, and reg_lambda is L2.",
    "activation": "units are boosted trees, which have no activation; basis says what their leaves compute.",
    **{name: f"it is a native parameter: give it as backend_params={{{name!r}: ...}}." for name in _NATIVE.split()},
    "interaction_constraints": "with hidden_layer_sizes=(), set backend_params={'interaction_constraints': ...}.",
    **dict.fromkeys(("booster", "boosting", "boosting_type"), "dart, rf and gblinear are not supported: leave it out."),
    "tree_method": "the input is always binned (hist); a card is backend_params={'device': ...}.",
    "min_child_weight": (
        "min_samples_leaf counts rows; in LightGBM, backend_params={'min_child_weight': ...} also bounds the hessian."
    ),
    **dict.fromkeys(
        ("early_stopping_rounds", "early_stopping_round", "patience"),
        "layers choose their rounds on held-out rows without it; for epochs of a network, "
        "deep=True with backprop={'n_iter_no_change': ...}.",
    ),
    **dict.fromkeys(
        ("aft_loss_distribution", "aft_loss_distribution_scale"),
        "use loss=losses.AFT(distribution, scale=...) of BoostBPSurvival.",
    ),
    "tweedie_variance_power": "use loss=losses.Tweedie(power) of BoostBPRegressor.",
    "huber_slope": "use loss=losses.Huber(delta) of BoostBPRegressor.",
    "missing": "only NaN is missing: recode other values as NaN.",
    "tol": "the best epoch is kept, however small its gain; n_iter_no_change decides when to stop.",
}

# What to use in place of attributes of LightGBM's, XGBoost's and CatBoost's estimators: these.
_IN_PLACE_OF: Mapping[str, str] = {
    "trees_to_dataframe() for the trees, boostbp.save(model, path) for a file": "booster_ get_booster",
    "boostbp.save(model, path), to_onnx or to_c": "save_model",
    "boostbp.load(path)": "load_model",
    "best_iteration_": "best_iteration best_ntree_limit get_best_iteration",
    "best_score_": "best_score get_best_score",
    "evals_result_": "evals_result get_evals_result",
    "feature_names_in_": "feature_name_ feature_names_",
    "n_features_in_": "n_features_",
    "feature_importances_, or importance(kind)": "get_feature_importance",
    "get_params()": "get_xgb_params",
}
ATTRIBUTES = {name: cure for cure, names in _IN_PLACE_OF.items() for name in names.split()}

# Share of letters in the same order from which on a name counts as a misspelling. That of "device" and "deep" is .6.
MIN_SIMILARITY = 0.8


def suggestion(name: str, places: Mapping[str, str] | Iterable[str]) -> str:
    """Return the cure for an unknown parameter, a clause such as ``did you mean 'max_depth'?``.

    `places` has all known ones; as a mapping, also how to write them: ``{"max_leaves": "output={'max_leaves': ...}"}``.
    """
    written = dict(places) if isinstance(places, Mapping) else {known: repr(known) for known in places}
    if name in NOT_THERE:
        return NOT_THERE[name]
    meant = MEANT.get(name, name)
    if meant not in written and meant in NOT_THERE:
        return NOT_THERE[meant]
    if meant not in written:
        other_names = [other for other, name_here in MEANT.items() if name_here in written]
        close = nearest(name, [*written, *other_names])
        if close is None:
            bare = [known for known, how in written.items() if how == repr(known)]
            return f"choose from {', '.join(bare)}."
        meant = MEANT.get(close, close)
    return f"did you mean {written[meant]}?"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name; None if all are too different."""
    spelled = {other.lower(): other for other in known}
    close = get_close_matches(name.lower(), spelled, n=1, cutoff=MIN_SIMILARITY)
    return spelled[close[0]] if close else None


def unsupported(name: str) -> str:
    """Return why an objective or metric of another library is not supported, and an alternative, or ""."""
    stem = name.partition("@")[0].lower()
    return _RANKING if stem in ("yetirank", "ndcg", "map", "mean_average_precision") or stem.startswith("rank:") else ""
