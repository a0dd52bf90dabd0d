"""Custom metrics: adapts metric functions of the user or of scikit-learn to the arrays that they expect."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from boostbp.floats import Floats
from boostbp.metrics.scores import labels
from boostbp.read_only import read_only, refuse_writes

_OF_LABELS = frozenset(
    (
        "accuracy_score",
        "balanced_accuracy_score",
        "cohen_kappa_score",
        "f1_score",
        "fbeta_score",
        "hamming_loss",
        "jaccard_score",
        "matthews_corrcoef",
        "precision_score",
        "recall_score",
        "zero_one_loss",
    )
)


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall("[a-z0-9]+", name.lower()))


# Words of names from which a reader knows whether greater is better, and what turns them round.
_GOOD = _words(
    "acc accuracy auc aucpr auroc corr correlation f1 fbeta gain gini kappa likelihood mcc ndcg pearson precision "
    "profit r2 recall reward spearman"
)
_BAD = _words("brier cost crps deviance error interval loss mae mape mse pinball regret rmse rmsle winkler")
_NEGATIVE = _words("neg negative minus")


def adapt(function: Callable[..., Any], *, classes: bool) -> Callable[[Floats, Floats, Floats], float]:
    """Make ``f(prediction, y, weight)`` of ``function(y_true, y_pred)``, with or without ``sample_weight``.

    Of `classes` the function sees their numbers, not one-hot rows; ValueError if scikit-learn's is for labels, and
    there are none.
    """
    of_labels = _is_sklearn(function) and name_of(function) in _OF_LABELS
    if of_labels and not classes:
        raise ValueError(
            f"eval_metric={name_of(function)} is for classes, and numbers are predicted: use a metric of numbers, such "
            "as 'rmse', or a classifier."
        )
    return partial(_call, function, of_labels, classes, _takes_weight(function))


def _call(
    function: Callable[..., Any],
    of_labels: bool,
    numbered: bool,
    weighted: bool,
    prediction: Floats,
    y: Floats,
    weight: Floats,
) -> float:
    y_true = labels(y) if numbered else _flat(y)
    y_pred = labels(prediction) if of_labels else _flat(prediction)
    beside = {"sample_weight": read_only(weight)} if weighted else {}
    with refuse_writes(f"eval_metric={name_of(function)!r} writes into its arguments: work on a copy."):
        value = function(read_only(y_true), read_only(y_pred), **beside)
    number = _number(value)
    if number is None:
        raise TypeError(
            f"eval_metric={name_of(function)!r} returned {value!r}: return a single number, and say whether "
            f"greater is better by the tuple (name, function, greater_is_better)."
        )
    return number


def _number(value: Any) -> float | None:
    """As a float; None if it is not a single number, such as text, whatever it spells."""
    try:
        return None if isinstance(value, str | bytes) or np.ndim(value) != 0 else float(value)
    except (TypeError, ValueError):
        return None


def _flat(columns: Floats) -> Floats:
    return columns[:, 0] if columns.shape[1] == 1 else columns


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, partial):
        function = function.func
    return function


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function, of what a partial calls, or of an object's class."""
    inner = _innermost(function)
    return str(getattr(inner, "__name__", type(inner).__name__))


def is_maximised(function: Callable[..., Any]) -> bool:
    """Whether the best value of a function is its greatest: where its name ends in ``_score``, as in scikit-learn.

    Raises ValueError if other words in the name of the user's own function say the opposite.
    """
    name = name_of(function)
    words = _words(name)
    maximised = name.endswith("_score") or name == "matthews_corrcoef"
    good, bad = bool(words & _GOOD), bool(words & _BAD)
    suggested = good != bool(words & _NEGATIVE)
    if good != bad and suggested != maximised and not _is_sklearn(function):
        raise ValueError(
            f"eval_metric={name} would be {'max' if maximised else 'min'}imised, as a function is whose name "
            f"{'ends' if maximised else 'does not end'} in _score, but its name suggests the opposite. Say which: "
            f"eval_metric=({name!r}, {name}, {suggested}), where True means that greater is better."
        )
    return maximised


def _is_sklearn(function: Callable[..., Any]) -> bool:
    return str(getattr(_innermost(function), "__module__", "")).startswith("sklearn.")


def _takes_weight(function: Callable[..., Any]) -> bool:
    try:
        return "sample_weight" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a compiled function without a signature
        return False
