"""Custom metrics: adapts metric functions of the user or of scikit-learn to the arrays that they expect."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from boostbp.metrics.scores import labels
from boostbp.runtime.arrays import Floats, read_only, refuse_writes

# Functions of scikit-learn that take labels, where others take probabilities.
_OF_LABELS = """
    accuracy_score balanced_accuracy_score cohen_kappa_score f1_score fbeta_score hamming_loss jaccard_score
    matthews_corrcoef precision_score recall_score zero_one_loss
"""


@dataclass(frozen=True, slots=True)
class CustomMetric:
    """``f(prediction, y, weight)`` of a function ``f(y_true, y_pred)`` of the user or of scikit-learn."""

    function: Callable[..., object]
    classes: bool  # whether classes are predicted: the function then sees their numbers, not one-hot rows
    of_labels: bool  # whether it also sees labels in place of probabilities
    weighted: bool  # whether it takes ``sample_weight``

    @classmethod
    def of(cls, function: Callable[..., object], *, classes: bool) -> CustomMetric:
        """Adapt a function; ValueError if it is one of scikit-learn's for labels, and numbers are predicted."""
        of_labels = _is_sklearn(function) and name_of(function) in _OF_LABELS.split()
        if of_labels and not classes:
            raise ValueError(
                f"eval_metric={name_of(function)} is for classes, and numbers are predicted: use a metric of numbers, "
                "such as 'rmse', or a classifier."
            )
        return cls(function, classes, of_labels, _takes_weight(function))

    def __call__(self, prediction: Floats, y: Floats, weight: Floats) -> float:
        """Call the function on read-only arrays; TypeError unless it returns a single number."""
        # Functions of users and of scikit-learn take one output as (rows,), and would broadcast (rows, 1) to a square.
        y_true = labels(y) if self.classes else _flat(y)
        y_pred = labels(prediction) if self.of_labels else _flat(prediction)
        options = {"sample_weight": read_only(weight)} if self.weighted else {}
        with refuse_writes(f"eval_metric={name_of(self.function)!r} writes into its arguments: work on a copy."):
            value: Any = self.function(read_only(y_true), read_only(y_pred), **options)
        with suppress(TypeError, ValueError):  # a ragged list, or an object that is no number
            if not isinstance(value, str | bytes) and np.ndim(value) == 0:  # text is not a number, whatever it spells
                return float(value)
        raise TypeError(
            f"eval_metric={name_of(self.function)!r} returned {value!r}: return a single number, and say whether "
            "greater is better by the tuple (name, function, greater_is_better)."
        )


def _flat(columns: Floats) -> Floats:
    return columns[:, 0] if columns.shape[1] == 1 else columns


def _innermost(function: Callable[..., object]) -> Callable[..., object]:
    while isinstance(function, partial):
        function = function.func
    return function


def name_of(function: Callable[..., object]) -> str:
    """Return the name of a function, of what a partial calls, or of an object's class."""
    inner = _innermost(function)
    return str(getattr(inner, "__name__", type(inner).__name__))


def is_maximised(function: Callable[..., object]) -> bool:
    """Return whether greater is better: if the name of the function ends in ``_score``, as in scikit-learn."""
    # the one function of scikit-learn among those of labels that is maximised without that ending
    return name_of(function).endswith("_score") or name_of(function) == "matthews_corrcoef"


def _is_sklearn(function: Callable[..., object]) -> bool:
    return str(getattr(_innermost(function), "__module__", "")).startswith("sklearn.")


def _takes_weight(function: Callable[..., object]) -> bool:
    try:
        return "sample_weight" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a compiled function without a signature
        return False
