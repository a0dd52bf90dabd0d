"""How one model did: scores, costs and what the pictures need."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boostbp.network.history import History

# What the libraries call the two losses that a comparison looks at.
_LOG_LOSSES = ("binary_logloss", "multi_logloss", "logloss", "mlogloss", "log_loss")
_LOSSES = {**dict.fromkeys(_LOG_LOSSES, "log-loss"), "rmse": "RMSE", "l2": "RMSE"}


@dataclass(frozen=True, slots=True)
class Curve:
    """Loss of the validation rows by epoch or round."""

    loss: str  # "log-loss", "RMSE", or what the library calls it
    values: NDArray[np.float64]  # (epochs or rounds,) float64
    kept: int  # where in `values` the model was taken from
    epochs: bool  # by epoch of a network, or by round of a layer
    steps: tuple[int, ...]  # the epochs or rounds, one for each of `values`


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the pictures of one model show."""

    observed: NDArray[Any]  # (test rows,): class numbers, or numbers
    predicted: NDArray[np.float64]  # (test rows, classes) or (test rows,)
    curve: Curve | None
    history: History | None  # of a deep model
    # mapping of int to (rows, units) float64: last hidden layer of the first test rows as kept, by its epoch, and of
    # one network alone before back-propagation (epoch 0); empty where no network is part of the model
    hidden: Mapping[int, NDArray[np.float64]]
    labels: tuple[str, ...] = ()  # names of the classes


def curve_of(model: Any, length: int | None) -> Curve | None:
    """The learning curve that a fitted model recorded, which kept so many rounds or epochs; None if it did not."""
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
    """How one model did."""

    model: str  # name of the model
    # {"ran", "skipped", "failed"}: skipped means that its library is not installed
    state: Literal["ran", "skipped", "failed"]
    reason: str  # why it did not run; empty if it ran
    # on the test rows: accuracy and log_loss, or r2 and rmse; over several folds their means
    scores: Mapping[str, float]
    fit_seconds: float | None = None  # wall time of one fit, after a rehearsal on few rows; over several folds the mean
    # wall time of predicting all test rows, median of 3; over several folds the mean
    predict_seconds: float | None = None
    # peak memory of the fit above what was in use before it; None where it cannot be measured; over several folds the
    # largest
    peak_bytes: int | None = None
    length: int | None = None  # rounds or epochs that the validation rows chose; over several folds the median
    model_bytes: int | None = None  # size of the fitted model as pickle writes it; over several folds the mean
    folds: Sequence[Mapping[str, float]] = ()  # scores of each fold; empty for a single split
    # what the pictures of a report show, of the first fold; None if nobody asked
    evidence: Evidence | None = field(default=None, repr=False, compare=False)

    def std(self, score: str) -> float | None:
        """Standard deviation of a score over the folds; None for a single split."""
        return statistics.stdev(fold[score] for fold in self.folds) if self.folds else None

    def facts(self) -> dict[str, Any]:
        """All but the evidence, as plain values."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "evidence"}


def joined(results: Sequence[Result]) -> Result:
    """One model over several folds; one that did not run in a fold did not run."""
    for number, result in enumerate(results, 1):
        if result.state != "ran":
            return replace(result, reason=f"fold {number}: {result.reason}", evidence=None)
    folds = [result.scores for result in results]

    def over(summary: Callable[[list[Any]], Any], name: str) -> Any:
        values = [getattr(result, name) for result in results]
        return None if None in values else summary(values)

    return replace(
        results[0],
        scores={name: statistics.fmean(fold[name] for fold in folds) for name in folds[0]},
        fit_seconds=over(statistics.fmean, "fit_seconds"),
        predict_seconds=over(statistics.fmean, "predict_seconds"),
        peak_bytes=over(max, "peak_bytes"),
        length=over(lambda lengths: round(statistics.median(lengths)), "length"),
        model_bytes=over(lambda sizes: round(statistics.fmean(sizes)), "model_bytes"),
        folds=folds,
    )
