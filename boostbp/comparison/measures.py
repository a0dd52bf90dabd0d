"""What predictions are judged by: the metrics of each task, those of scikit-learn by name, and scorers of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.metrics import get_scorer

from boostbp.comparison.contenders import ComparedTask
from boostbp.metrics import concordance_index, ndcg
from boostbp.runtime.arrays import Floats

# Arguments: the target as models of boostbp take it, predictions, and the query of each row.
Function: TypeAlias = Callable[[NDArray[Any], Floats, "NDArray[np.intp] | None"], float]
RARE = 0.1  # share below which a class is called rare. Arbitrary
_PLACES = 10


@dataclass(frozen=True, slots=True)
class Measure:
    """A score of test rows: its heading, its meaning, its direction, and a function or a scorer of the user."""

    heading: str
    note: str
    greater_is_better: bool
    function: Function | None = None
    scorer: Callable[..., float] | None = None  # scorer(model, X, y); greater is better


def _plain(function: Callable[..., Any], y: NDArray[Any], predicted: Floats, groups: object, **options: Any) -> float:
    return float(function(y, predicted, **options))


def _of_second(function: Callable[..., Any], y: NDArray[Any], predicted: Floats, groups: object) -> float:
    """Return a metric of two classes, of the probability of the second one."""
    return float(function(y, predicted[:, 1]))


def _average_precision(rare: int, y: NDArray[Any], predicted: Floats, groups: object) -> float:
    return float(metrics.average_precision_score(y == rare, predicted[:, rare]))


def _log_loss(y: NDArray[Any], predicted: Floats, groups: object) -> float:
    shares = predicted / predicted.sum(axis=1, keepdims=True)  # of float32, some libraries' sums are not 1
    return float(metrics.log_loss(y, shares, labels=np.arange(predicted.shape[1])))


def _balanced(y: NDArray[Any], predicted: Floats, groups: object) -> float:
    return float(metrics.balanced_accuracy_score(y, predicted.argmax(axis=1)))


def _accuracy(y: NDArray[Any], predicted: Floats, groups: object) -> float:
    return float(metrics.accuracy_score(y, predicted.argmax(axis=1)))


def _ndcg(k: int | None, y: NDArray[Any], predicted: Floats, groups: NDArray[np.intp] | None) -> float:
    return float(ndcg(y, predicted, qid=groups, k=k))


def _concordance(y: NDArray[Any], predicted: Floats, groups: object) -> float:
    return float(concordance_index(~np.signbit(y), np.abs(y), predicted))


_ACCURACY = Measure("accuracy", "share of test rows with the right class", True, _accuracy)
_LOG_LOSS = Measure("log-loss", "mean negative log-probability of the true class", False, _log_loss)
_REGRESSION = {
    "rmse": Measure(
        "RMSE",
        "root of the mean squared error, in units of the target",
        False,
        partial(_plain, metrics.root_mean_squared_error),
    ),
    "mae": Measure(
        "MAE", "mean absolute error, in units of the target", False, partial(_plain, metrics.mean_absolute_error)
    ),
    "r2": Measure(
        "R2", "share of the variance of the test rows that is explained", True, partial(_plain, metrics.r2_score)
    ),
}
_SEVERAL = {
    "log_loss": _LOG_LOSS,
    "balanced_accuracy": Measure("balanced accuracy", "mean over classes of the share found", True, _balanced),
    "accuracy": _ACCURACY,
}
_CONCORDANCE = Measure("concordance", "share of pairs of rows in the right order of their events", True, _concordance)


def measures_of(task: ComparedTask, y: NDArray[Any], classes: NDArray[Any]) -> dict[str, Measure]:
    """Return the metrics of a task by name; the verdict rests on the first one unless the user names another."""
    if task == "regression":
        return dict(_REGRESSION)
    if task == "survival":
        return {"concordance": _CONCORDANCE}
    if task == "ranking":
        return {name: measure_by_name(name, {}) for name in (f"ndcg@{_PLACES}", "ndcg")}
    if len(classes) > 2:
        return dict(_SEVERAL)
    rare = rarer(y)
    of_rare = f"average precision of {str(classes[rare])!r}, the rarer class"
    return {
        "auc": Measure(
            "AUC",
            "chance that a row of one class is ranked above one of the other",
            True,
            partial(_of_second, metrics.roc_auc_score),
        ),
        "average_precision": Measure("avg. precision", of_rare, True, partial(_average_precision, rare)),
        "log_loss": _LOG_LOSS,
        "brier": Measure(
            "Brier", "mean squared error of the probability", False, partial(_of_second, metrics.brier_score_loss)
        ),
    }


def rarer(y: NDArray[Any]) -> int:
    """Return the number of the rarer of two classes; of equal ones, the second."""
    return int(np.mean(y) <= 0.5)


def measure_by_name(name: str, known: Mapping[str, Measure]) -> Measure:
    """Return a metric by its name: of the task, ``pinball@0.9``, ``ndcg@5``, or one of scikit-learn's scorers."""
    if name in known:
        return known[name]
    stem, _, number = name.partition("@")
    if stem == "ndcg":
        places = int(number) if number else None
        heading = f"NDCG@{places}" if places else "NDCG"
        return Measure(heading, "gain of the order of a query over the best one", True, partial(_ndcg, places))
    if stem == "pinball" and number:
        function = partial(_plain, metrics.mean_pinball_loss, alpha=float(number))
        return Measure(f"pinball {number}", f"pinball loss of the quantile of level {number}", False, function)
    if name == "accuracy" and "log_loss" in known:
        return _ACCURACY
    try:
        scorer = get_scorer(name)
    except ValueError as error:
        cure = f"give one of {', '.join(known)}, pinball@0.9, or the name of a scorer of scikit-learn"
        raise ValueError(f"metric={name!r} is not known: {cure}.") from error
    return Measure(name, "a scorer of scikit-learn; greater is better", True, scorer=scorer)


def with_metric(known: dict[str, Measure], metric: str | Callable[..., float] | None) -> tuple[str, dict[str, Measure]]:
    """Return the name of the metric of the verdict, and all metrics, that one first."""
    if metric is None:
        name, measure = next(iter(known.items()))
    elif callable(metric):
        name = getattr(metric, "__name__", "scorer")
        measure = Measure(name, "a scorer of the user; greater is better", True, scorer=metric)
    else:
        name, measure = metric, measure_by_name(metric, known)
    return name, {name: measure, **{other: known[other] for other in known if other != name}}
