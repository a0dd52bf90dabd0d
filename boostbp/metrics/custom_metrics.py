"""Custom metrics: adapters from metric functions of the user or of scikit-learn to the arrays of a training."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from boostbp.metrics.scores import labels
from boostbp.runtime.arrays import Floats, read_only, refuse_writes

# Functions of scikit-learn that take labels instead of probabilities.
_OF_LABELS = """
    accuracy_score balanced_accuracy_score cohen_kappa_score f1_score fbeta_score hamming_loss jaccard_score
    matthews_corrcoef precision_score recall_score zero_one_loss
"""


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall("[a-z0-9]+", name.lower()))


# Words in names of metrics that are better when greater, of those that are better when smaller, and what reverses both.
_GOOD = _words(
    "acc accuracy auc aucpr auroc corr correlation f1 fbeta gain gini kappa likelihood mcc ndcg pearson precision "
    "profit r2 recall reward spearman"
)
_BAD = _words("brier cost crps deviance error interval loss mae mape mse pinball regret rmse rmsle winkler")
_NEGATIVE = _words("neg negative minus")


@dataclass(frozen=True, slots=True)
class CustomMetric:
    """Function ``f(prediction, y, weight)`` from ``f(y_true, y_pred)`` of the user or of scikit-learn."""

    function: Callable[..., object]
    classes: bool  # whether predictions are classes: the function then receives their numbers, not one-hot rows
    of_labels: bool  # whether it also receives labels instead of probabilities
    weighted: bool  # whether it takes ``sample_weight``
    multilabel: bool = False  # whether a row may have several labels: the function then receives all columns

    @classmethod
    def of(cls, function: Callable[..., object], *, classes: bool, multilabel: bool = False) -> CustomMetric:
        """Adapt a function; raise ValueError if it needs labels and predictions are numbers."""
        of_labels = _is_sklearn(function) and name_of(function) in _OF_LABELS.split()
        if of_labels and not classes:
            raise ValueError(f"eval_metric={name_of(function)} is for classes, and numbers are predicted: use 'rmse'.")
        return cls(function, classes, of_labels, _takes_weight(function), multilabel)

    def __call__(self, prediction: Floats, y: Floats, weight: Floats) -> float:
        """Call the function on read-only arrays; TypeError unless it returns a single number."""
        # Functions of users and of scikit-learn expect one output as (rows,); (rows, 1) could broadcast to a matrix.
        as_labels = (lambda columns: (columns > 0.5).astype(np.int64)) if self.multilabel else labels
        y_true = as_labels(y) if self.classes else _flat(y)
        y_pred = as_labels(prediction) if self.of_labels else _flat(prediction)
        options = {"sample_weight": read_only(weight)} if self.weighted else {}
        with refuse_writes(f"eval_metric={name_of(self.function)!r} writes into its arguments: work on a copy."):
            value: Any = self.function(read_only(y_true), read_only(y_pred), **options)
        with suppress(TypeError, ValueError):  # a ragged list, or an object that is not a number
            if not isinstance(value, str | bytes) and np.ndim(value) == 0:  # text may spell a number
                return float(value)
        cure = "return a single number; the tuple (name, function, greater_is_better) says whether greater is better"
        raise TypeError(f"eval_metric={name_of(self.function)!r} returned {value!r}: {cure}.")


def _flat(columns: Floats) -> Floats:
    return columns[:, 0] if columns.shape[1] == 1 else columns


def _innermost(function: Callable[..., object]) -> Callable[..., object]:
    return _innermost(function.func) if isinstance(function, partial) else function


def name_of(function: Callable[..., object]) -> str:
    """Return the name of a function, of the function of a partial, or of an object's class."""
    inner = _innermost(function)
    return str(getattr(inner, "__name__", type(inner).__name__))


def is_maximised(function: Callable[..., object]) -> bool:
    """Return whether greater is better: if the name of the function ends in ``_score``, as in scikit-learn.

    Raises ValueError if other words in the name of the user's function suggest the opposite.
    """
    name = name_of(function)
    words = _words(name)
    # the one function of scikit-learn among those of labels that is maximised without that ending
    maximised = name.endswith("_score") or name == "matthews_corrcoef"
    good, bad = bool(words & _GOOD), bool(words & _BAD)
    suggested = good != bool(words & _NEGATIVE)
    # Names with words of both kinds, such as gain_loss, or of none suggest no direction.
    if good != bad and suggested != maximised and not _is_sklearn(function):
        fault = f"would be {'max' if maximised else 'min'}imised, but its name suggests the opposite"
        cure = f"eval_metric=({name!r}, {name}, {suggested}), where True means that greater is better"
        raise ValueError(f"eval_metric={name} {fault}. Say which: {cure}.")
    return maximised


def _is_sklearn(function: Callable[..., object]) -> bool:
    return str(getattr(_innermost(function), "__module__", "")).startswith("sklearn.")


def _takes_weight(function: Callable[..., object]) -> bool:
    try:
        return "sample_weight" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a compiled function without a signature
        return False
