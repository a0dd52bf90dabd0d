"""Evaluation metrics of predictions: by the names of LightGBM, XGBoost and scikit-learn, or the user's own.

A metric compares `prediction` with `y`, each (rows, outputs), under `weight`, (rows,). Predictions are on the scale of
`y`, after the link of the loss. For two classes, `prediction` is a column of P(class 1), and `y` a column of 0 and 1;
for more, they have a column for each class, and for several labels a column for each label. For several regression
outputs, the metric is the mean over the outputs.

All names and aliases of both libraries are known, except for LightGBM's
``cross_entropy_lambda``, which reads weights as numbers of trials. If the two libraries define a name differently
(``mape`` of a small `y`, ``gamma_deviance``), the metric is XGBoost's.

NDCG and mean average precision are metrics of the losses of rankings alone, whose `y` has the columns relevance and
query. Metrics that depend on how training rows are censored, such as Brier scores, are those of scikit-survival: they
take what `BoostBPSurvival` predicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from boostbp.losses import LOSSES, Loss, traits_of
from boostbp.metrics import scores
from boostbp.metrics.custom_metrics import CustomMetric, is_maximised, name_of
from boostbp.metrics.ranking import by_query, mean_average_precision, ndcg
from boostbp.metrics.scores import against_the_rest, by_sklearn, of_labels
from boostbp.metrics.survival import concordance_index
from boostbp.metrics.survival_curves import StepFunction, breslow
from boostbp.runtime import messages
from boostbp.runtime.arrays import Floats
from boostbp.runtime.messages import nearest, unsupported

__all__ = [
    "Metric",
    "StepFunction",
    "breslow",
    "concordance_index",
    "default_metric",
    "load_metric",
    "mean_average_precision",
    "ndcg",
]

Function = Callable[[Floats, Floats, Floats], float]


@dataclass(frozen=True, slots=True)
class Metric:
    """A score of predictions.

    Attributes
    ----------
    name : str
        Name in the history.
    greater_is_better : bool
        Whether the best epoch has the largest value.
    function : callable
        ``function(prediction, y, weight) -> float``.
    takes_raw : bool
        Whether the function takes raw outputs instead of predictions, as for the mean of a loss without `inverse_link`.
    """

    name: str
    greater_is_better: bool
    function: Function
    takes_raw: bool = False

    def __call__(self, prediction: Floats, y: Floats, weight: Floats) -> float:
        """Return the metric, or the worst value (inf or -inf) if a prediction is not finite or the metric is NaN.

        Raises ValueError if no row has a positive weight, or the rows do not determine the metric.
        """
        worst = -np.inf if self.greater_is_better else np.inf
        if not np.isfinite(prediction).all():
            return worst
        if not weight.sum() > 0:
            raise ValueError(f"eval_metric={self.name!r}: the weights sum to 0. Give some row a positive weight.")
        with np.errstate(over="ignore"):  # a huge error may have the metric inf
            value = self.function(prediction, y, weight)
        if not np.isnan(value):
            return value
        messages.warn(f"eval_metric={self.name!r} gave NaN, which counts as the worst: return a number, such as 0.")
        return worst


def _called(names: str, greater_is_better: bool, function: Function) -> dict[str, tuple[bool, Function]]:
    return dict.fromkeys(names.split(), (greater_is_better, function))


# For each name: whether greater is better, and the function.
_REGRESSION = {
    **_called("rmse root_mean_squared_error l2_root", False, scores.rmse),
    **_called("mse l2 mean_squared_error regression regression_l2", False, partial(by_sklearn, "mean_squared_error")),
    **_called("mae l1 mean_absolute_error regression_l1", False, partial(by_sklearn, "mean_absolute_error")),
    **_called("mape mean_absolute_percentage_error", False, partial(by_sklearn, "mean_absolute_percentage_error")),
    **_called("rmsle", False, scores.rmsle),
    **_called("r2", True, scores.r2),
    **_called("fair", False, scores.fair),
    **_called("mphe", False, scores.pseudo_huber),
    **_called("poisson", False, scores.poisson),
    **_called("poisson-nloglik", False, scores.poisson_nloglik),
    **_called("gamma gamma-nloglik", False, scores.gamma),
    **_called("gamma_deviance gamma-deviance", False, scores.gamma_deviance),
}
_LOGLOSS = """
    logloss log_loss binary_logloss multi_logloss mlogloss binary multiclass softmax multiclassova multiclass_ova ova
    ovr cross_entropy xentropy kullback_leibler kldiv
"""
_CLASSES = {
    **_called(_LOGLOSS, False, scores.logloss),
    **_called("error binary_error multi_error merror", False, partial(of_labels, "zero_one_loss")),
    **_called("accuracy", True, partial(of_labels, "accuracy_score")),
    **_called("auc roc_auc", True, partial(against_the_rest, "auc", "roc_auc_score")),
    **_called("auc_mu", True, scores.auc_mu),
    **_called("aucpr", True, scores.aucpr),
    **_called("average_precision", True, partial(against_the_rest, "average_precision", "average_precision_score")),
}
# Those of several labels of a row.
_LABELS = {
    **_called(_LOGLOSS, False, scores.logloss_of_labels),
    **_called("accuracy", True, scores.accuracy_of_labels),
    **{name: _CLASSES[name] for name in ("auc", "roc_auc", "aucpr", "average_precision")},
}
# Those of survival times take raw outputs, and the loss first. At last the default metric of a loss that they need.
_SURVIVAL: dict[str, tuple[bool, Callable[..., float], str | None]] = {
    "concordance": (True, scores.concordance, None),
    "cox-nloglik": (False, scores.cox_nloglik, "cox-nloglik"),
    "aft-nloglik": (False, scores.aft_nloglik, "aft-nloglik"),
    "interval-regression-accuracy": (True, scores.within_bounds, "aft-nloglik"),
}
# Metrics with a number in the name, as in XGBoost: the metric, the check of the number, and the valid numbers in words.
_AT: dict[str, tuple[Callable[..., float], Callable[[float], bool], str]] = {
    "tweedie-nloglik": (scores.tweedie, lambda power: 1 < power < 2, "rho, 1 < rho < 2"),
    "error": (scores.error_at, lambda threshold: 0 <= threshold <= 1, "t, a threshold from 0 to 1"),
    "multi_error": (scores.error_of_top, lambda k: k >= 1 and k.is_integer(), "k, a whole number from 1"),
}


# Metrics of rankings, at a number of first rows of a query in the name.
AT_FIRST_ROWS: dict[str, Callable[..., float]] = {
    "ndcg": ndcg,
    **dict.fromkeys(("map", "mean_average_precision"), mean_average_precision),
}

MetricLike = str | Callable[..., float] | tuple[str, Callable[..., float], bool] | Metric | None


def load_metric(metric: MetricLike, loss: Loss, *, classes: bool | None = None, scale: Floats | float = 1.0) -> Metric:
    """Return a metric from its name, or from the user's function.

    Raises ValueError if the name is unknown, a metric of classes is requested for numbers, or the name of a function
    suggests the opposite direction; TypeError if `metric` is none of the types below.

    Parameters
    ----------
    metric : str, callable, (name, callable, greater_is_better), Metric or None
        None is `default_metric`.
        A callable is ``f(y_true, y_pred) -> float``, optionally with ``sample_weight``. It receives a single output as
        (rows,). For classes, `y_true` has the numbers 0, 1, ..., and `y_pred` probabilities, (rows,) of class 1 or
        (rows, classes); scikit-learn's functions of labels (``accuracy_score``, ``f1_score``, ...) receive labels. With
        several labels of a row, all of these are (rows, labels). It
        is maximised if its name ends in ``_score``, as in scikit-learn, and minimised otherwise, or as a tuple says. A
        name that suggests the opposite of this rule (``accuracy``, ``brier_score``) needs a tuple.
    loss : Loss
        The loss of the training. A metric with the same name has its parameters: ``"quantile"`` its `alpha`,
        ``"tweedie"`` its `power`, ``"huber"`` its `delta` and its units.
    classes : bool or None
        Whether predictions are classes; None: as the loss declares.
    scale : (outputs,) or float
        Divisor of targets in training.
    """
    if classes is None:
        classes = traits_of(loss).task == "classification"
    adapted = partial(CustomMetric.of, classes=classes, multilabel=traits_of(loss).multilabel)
    if metric is None:
        return default_metric(loss, classes=classes, scale=scale)
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return _by_name(metric, loss, classes, scale)
    if isinstance(metric, tuple) and len(metric) == 3 and callable(metric[1]):
        name, function, greater_is_better = metric
        if not isinstance(greater_is_better, bool | np.bool_):
            raise TypeError(f"eval_metric={metric!r}: its third part says whether greater is better: True or False.")
        return Metric(str(name), bool(greater_is_better), adapted(function))
    if callable(metric) and not hasattr(metric, "_score_func"):
        return Metric(name_of(metric), is_maximised(metric), adapted(metric))
    cure = "pass a name, a function f(y_true, y_pred), or a tuple (name, function, greater_is_better)"
    raise TypeError(f"eval_metric={metric!r} is not a metric: {cure}; of a scikit-learn scorer, its metric function.")


def default_metric(loss: Loss, *, classes: bool = False, scale: Floats | float = 1.0) -> Metric:
    """Return the default metric of a loss: the one that it names, or its own mean."""
    traits = traits_of(loss)
    name = traits.default_metric or ("logloss" if classes else None)
    if name is not None:
        return _by_name(name, loss, classes or traits.task == "classification", scale)
    return replace(_mean_of(loss, scale), takes_raw=not _told_by_predictions(loss))


def _told_by_predictions(loss: Loss | type[Any]) -> bool:
    """Return whether the raw output, and so the loss, can be computed from predictions."""
    return bool(loss.scale_free) or hasattr(loss, "inverse_link")


def _mean_of(loss: Loss, scale: Floats | float) -> Metric:
    """Return the mean of a loss, in units of the target for a homogeneous loss, otherwise as in training."""
    return Metric(loss.name, False, partial(scores.mean_value, loss, 1.0 if traits_of(loss).homogeneous else scale))


def _of_losses() -> list[str]:
    """Return the names of the losses whose metric is their own mean."""
    return [name for name, loss in LOSSES.items() if not traits_of(loss).default_metric and _told_by_predictions(loss)]


def _of_ranking(name: str, loss: Loss) -> Metric:
    stem, _, number = name.partition("@")
    if stem not in AT_FIRST_ROWS or (number and not (number.isdecimal() and int(number) > 0)):
        cure = "use 'ndcg' or 'map', or 'ndcg@5' of the first 5 rows"
        raise ValueError(f"eval_metric={name!r} is not of rankings: {cure}.")
    options = {"label_gain": getattr(loss, "label_gain", None)} if stem == "ndcg" else {}
    return Metric(name, True, partial(by_query, partial(AT_FIRST_ROWS[stem], k=int(number or 0) or None, **options)))


def _by_name(name: str, loss: Loss, classes: bool, scale: Floats | float) -> Metric:
    traits = traits_of(loss)
    if traits.task == "ranking":
        return _of_ranking(name, loss)
    if traits.task == "survival":
        return _of_survival(name, loss)
    # The mean of a loss has the parameters of the training's loss if it has the same name, otherwise the defaults.
    if name in _of_losses():
        return _mean_of(loss, scale) if isinstance(loss, LOSSES[name]) else _mean_of(LOSSES[name](), 1.0)
    if name in _REGRESSION:
        return Metric(name, *_REGRESSION[name])
    stem, at, parameter = name.partition("@")
    if stem not in (_AT if at else _CLASSES):
        raise _unknown(name, classes)
    if stem in _CLASSES and not classes:
        raise ValueError(f"eval_metric={name!r} is for classes, and loss={loss.name!r} for numbers: use e.g. 'rmse'.")
    if traits.multilabel and name not in _LABELS:
        cure = "use logloss, accuracy, auc, aucpr, average_precision, or a function of scikit-learn: hamming_loss"
        raise ValueError(f"eval_metric={name!r} is not for several labels: {cure}.")
    if not at:
        return Metric(name, *(_LABELS if traits.multilabel else _CLASSES)[name])
    function, is_valid, words = _AT[stem]
    if stem == "error" and not traits.takes(1):  # two classes are one column
        raise ValueError(f"eval_metric={name!r} is for two classes: use 'multi_error', or 'multi_error@2'.")
    try:
        number = float(parameter)
    except ValueError:
        number = np.nan  # all comparisons with it are False
    if not is_valid(number):
        raise ValueError(f"eval_metric={name!r} must be {stem}@{words}.")
    return Metric(name, False, partial(function, number))


def _of_survival(name: str, loss: Loss) -> Metric:
    if name not in _SURVIVAL:
        raise ValueError(f"eval_metric={name!r} is not of survival times: use one of {', '.join(_SURVIVAL)}.")
    (greater_is_better, function, needed), default = _SURVIVAL[name], traits_of(loss).default_metric
    if needed not in (None, default):
        raise ValueError(f"eval_metric={name!r} is not of loss={loss.name!r}: use {default!r} or 'concordance'.")
    return Metric(name, greater_is_better, partial(function, loss), takes_raw=True)


def _unknown(name: str, classes: bool) -> ValueError:
    if name in _SURVIVAL:
        return ValueError(f"eval_metric={name!r} is for survival times: use BoostBPSurvival.")
    if reason := unsupported(name):
        return ValueError(f"eval_metric={name!r}: {reason}")
    # For a regressor, the message does not list metrics of classes, which it refuses.
    names = [*_REGRESSION, *_of_losses(), *(_CLASSES if classes else ())]
    if close := nearest(name, names):
        return ValueError(f"eval_metric={name!r} is unknown: did you mean {close!r}?")
    names += [f"{stem}@{at[2].partition(',')[0]}" for stem, at in _AT.items() if classes or stem not in _CLASSES]
    names.append("or a function f(y_true, y_pred)")
    return ValueError(f"eval_metric={name!r} is unknown: use one of {', '.join(names)}.")
