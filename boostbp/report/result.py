"""The result of one model: scores, costs, and the data of its pictures."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boostbp.network.history import History
from boostbp.runtime.arrays import Floats

# Names that the libraries give to the two losses of a comparison.
_LOG_LOSSES = ("binary_logloss", "multi_logloss", "logloss", "mlogloss", "log_loss")
_LOSSES = {**dict.fromkeys(_LOG_LOSSES, "log-loss"), "rmse": "RMSE", "l2": "RMSE"}


@dataclass(frozen=True, slots=True)
class Curve:
    """Loss of the validation rows by epoch or round."""

    loss: str  # "log-loss", "RMSE", or the library's name for it
    values: Floats  # (epochs or rounds,) float64
    kept: int  # index in `values` of the kept model
    epochs: bool  # by epoch of a network, or by round of a layer
    steps: tuple[int, ...]  # the epochs or rounds, one for each of `values`


@dataclass(frozen=True, slots=True)
class Evidence:
    """The data of one model's pictures."""

    observed: NDArray[Any]  # (test rows,): class numbers, or numbers
    predicted: Floats  # (test rows, classes) or (test rows,)
    curve: Curve | None
    history: History | None  # of a deep model
    # Epoch -> (rows, units) float64: the last hidden layer of the first test rows at the kept epoch, and that of one
    # network alone before back-propagation (epoch 0). Empty where no network is part of the model.
    hidden: Mapping[int, Floats]
    labels: tuple[str, ...] = ()  # names of the classes


def curve_of(model: Any, length: int | None) -> Curve | None:
    """Return the learning curve of a fitted model that kept `length` rounds or epochs; None if it recorded none."""
    history = getattr(model, "history_", None)
    if history is not None:
        if not history.curves:
            return None
        values = np.array(next(iter(history.curves.values())))
        kept = history.iterations.index(history.best_iteration)
        loss = _LOSSES.get(history.metric, history.metric)
        return Curve(loss, values, kept, not history.by_rounds, tuple(history.iterations))
    recorded = getattr(model, "evals_result_", None) or getattr(model, "evals_result", dict)()
    if not recorded or length is None:
        return None
    name, values = next(iter(next(iter(recorded.values())).items()))
    numbers = np.array(values, np.float64)
    rounds = tuple(range(1, len(numbers) + 1))
    return Curve(_LOSSES.get(name, name), np.sqrt(numbers) if name == "l2" else numbers, length - 1, False, rounds)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one model, over one split or several folds."""

    model: str  # label of the model
    state: Literal["ran", "skipped", "failed"]  # skipped: its library is not installed
    reason: str  # why it did not run; empty if it ran
    # on the test rows: accuracy and log_loss, or r2 and rmse; over several folds their means
    scores: Mapping[str, float] = field(default_factory=dict)
    fit_seconds: float | None = None  # wall time of one fit, after a rehearsal on few rows; mean over folds
    predict_seconds: float | None = None  # wall time of predicting all test rows, median of 3; mean over folds
    peak_bytes: int | None = None  # peak memory of the fit above that before it, None if unknown; largest of the folds
    length: int | None = None  # rounds or epochs that the validation rows chose; median over folds
    model_bytes: int | None = None  # size of the fitted model as pickle writes it; mean over folds
    folds: Sequence[Mapping[str, float]] = ()  # scores of each fold; empty for a single split
    evidence: Evidence | None = field(default=None, repr=False, compare=False)  # of the first fold, if asked for

    def score_text(self, score: str) -> str:
        """Return a score in four digits, with its standard deviation over the folds if there are any."""
        text = f"{self.scores[score]:.4f}"
        return f"{text} ± {statistics.stdev(fold[score] for fold in self.folds):.4f}" if self.folds else text

    def facts(self) -> dict[str, Any]:
        """Return all but the evidence, as plain values."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "evidence"}


def over_folds(results: Sequence[Result]) -> Result:
    """Summarise one model over several folds; if it did not run in a fold, return that result."""
    for number, result in enumerate(results, 1):
        if result.state != "ran":
            return replace(result, reason=f"fold {number}: {result.reason}", evidence=None)
    summaries: dict[str, Callable[[list[Any]], float]] = {
        "fit_seconds": statistics.fmean,
        "predict_seconds": statistics.fmean,
        "peak_bytes": max,
        "length": lambda lengths: round(statistics.median(lengths)),
        "model_bytes": lambda sizes: round(statistics.fmean(sizes)),
    }
    values = {name: [getattr(result, name) for result in results] for name in summaries}
    costs: dict[str, Any] = {
        name: None if None in values[name] else summary(values[name]) for name, summary in summaries.items()
    }
    folds = [result.scores for result in results]
    scores = {name: statistics.fmean(fold[name] for fold in folds) for name in folds[0]}
    return replace(results[0], scores=scores, folds=folds, **costs)
