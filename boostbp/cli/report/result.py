"""The result of one model: scores, costs, and the data of its pictures; several results as a table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from boostbp.cli.report.contenders import Model
from boostbp.network.history import History
from boostbp.runtime.arrays import Floats

_UNLIMITED = 10_000  # a width that fits any table
# Names that the libraries give to the two losses of a comparison.
_LOG_LOSSES = ("binary_logloss", "multi_logloss", "logloss", "mlogloss", "log_loss")
_LOSSES = {**dict.fromkeys(_LOG_LOSSES, "log-loss"), "rmse": "RMSE", "l2": "RMSE"}


@dataclass(frozen=True, slots=True)
class Curve:
    """Loss of the validation rows by epoch or round."""

    loss: str  # "log-loss", "RMSE", or the library's name for it
    values: Floats  # (epochs or rounds,) float64
    kept: int  # index in `values` of the kept model
    epochs: bool  # whether steps are epochs of a network or rounds of a layer
    steps: tuple[int, ...]  # the epochs or rounds, one for each of `values`


@dataclass(frozen=True, slots=True)
class Evidence:
    """The data of one model's pictures."""

    observed: NDArray[Any]  # (test rows,): class numbers, or numbers
    predicted: Floats  # (test rows, classes) or (test rows,)
    curve: Curve | None
    history: History | None  # of a deep model
    # Epoch -> (rows, units) float64: the last hidden layer of the first test rows at the kept epoch and, for a single
    # network, before back-propagation (epoch 0). Empty if no network is part of the model.
    hidden: Mapping[int, Floats]
    labels: tuple[str, ...] = ()  # names of the classes


def curve_of(model: Model, length: int | None) -> Curve | None:
    """Return the learning curve of a fitted model that kept `length` rounds or epochs; None if it recorded none."""
    history = getattr(model, "history_", None)
    if history is not None:
        if not history.curves:
            return None
        values = np.array(next(iter(history.curves.values())))
        kept = history.iterations.index(history.best_iteration)
        loss = str(_LOSSES.get(history.metric, history.metric))
        return Curve(loss, values, kept, not history.by_rounds, tuple(history.iterations))
    recorded = getattr(model, "evals_result_", None) or getattr(model, "evals_result", dict)()
    if not recorded or length is None:
        return None
    name, values = next(iter(next(iter(recorded.values())).items()))
    numbers = np.array(values, np.float64)
    rounds = tuple(range(1, len(numbers) + 1))
    return Curve(str(_LOSSES.get(name, name)), np.sqrt(numbers) if name == "l2" else numbers, length - 1, False, rounds)


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
    length: int | None = None  # chosen number of rounds or epochs; median over folds
    model_bytes: int | None = None  # size of the fitted model as pickle writes it; mean over folds
    folds: Sequence[Mapping[str, float]] = ()  # scores of each fold; empty for a single split
    evidence: Evidence | None = field(default=None, repr=False, compare=False)  # of the first fold, if asked for
    unit: Literal["rounds", "epochs"] = "rounds"  # of `length`
    # Of a deep model, over folds of that of the first one: what hidden layers gained, in words ("" if none were tried),
    # and whether that is a measurable gain.
    depth: str = ""
    depth_pays: bool = False

    def score_text(self, score: str) -> str:
        """Return a score with four digits, and its standard deviation over folds if there are any."""
        text = f"{self.scores[score]:.4f}"
        return f"{text} ± {statistics.stdev(fold[score] for fold in self.folds):.4f}" if self.folds else text

    def facts(self) -> dict[str, Any]:
        """Return all fields except the evidence as plain values."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "evidence"}


def over_folds(results: Sequence[Result]) -> Result:
    """Summarise one model over several folds; if it did not run in a fold, return that result."""
    if len(results) == 1:
        return results[0]
    for number, result in enumerate(results, 1):
        if result.state != "ran":
            return replace(result, reason=f"fold {number}: {result.reason}", evidence=None)

    def cost(name: str, summary: Callable[[list[float]], float]) -> Any:
        values = [getattr(result, name) for result in results]
        return None if None in values else summary(values)

    folds = [result.scores for result in results]
    return replace(
        results[0],
        scores={name: statistics.fmean(fold[name] for fold in folds) for name in folds[0]},
        folds=folds,
        fit_seconds=cost("fit_seconds", statistics.fmean),
        predict_seconds=cost("predict_seconds", statistics.fmean),
        peak_bytes=cost("peak_bytes", max),
        length=cost("length", lambda lengths: round(statistics.median(lengths))),
        model_bytes=cost("model_bytes", lambda sizes: round(statistics.fmean(sizes))),
    )


class Score(NamedTuple):
    """A score of the test rows: heading, meaning and direction."""

    heading: str
    note: str
    greater_is_better: bool


SCORES = {
    "accuracy": Score("accuracy", "share of test rows with the right class", True),
    "log_loss": Score("log-loss", "mean negative log-probability of the true class", False),
    "r2": Score("R2", "share of the variance of the test rows that is explained", True),
    "rmse": Score("RMSE", "root of the mean squared error, in units of the target", False),
}
# Heading, format, meaning, field of `Result` and its unit.
_COSTS = (
    ("fit s", ".2f", "wall time of one fit", "fit_seconds", 1),
    ("predict s", ".4f", "wall time of predicting the test rows", "predict_seconds", 1),
    ("peak MB", ".0f", "peak memory of the fit", "peak_bytes", 1e6),
    ("model MB", ".2f", "size of the pickled model", "model_bytes", 1e6),
    ("kept", ".0f", "rounds or epochs that the validation rows chose; of an average, of its leading part", "length", 1),
)


class Cell(NamedTuple):
    """A text, its number (None if there is none), and whether it is the best score."""

    text: str
    value: float | None
    best: bool = False


class Column(NamedTuple):
    """A heading, its meaning, whether larger is better, and a cell for each result."""

    heading: str
    note: str
    greater_is_better: bool
    cells: Sequence[Cell]


def columns(results: Sequence[Result]) -> list[Column]:
    """Return all columns except the model's name: scores, with their standard deviation over folds, then costs."""
    shown = []
    for name, score in SCORES.items():
        values = [result.scores.get(name) for result in results]
        if known := [value for value in values if value is not None]:
            best = max(known) if score.greater_is_better else min(known)
            cells = [
                Cell(result.state if value is None else result.score_text(name), value, value == best)
                for result, value in zip(results, values, strict=True)
            ]
            shown.append(Column(*score, cells))
    for heading, form, note, name, unit in _COSTS:
        costs = [getattr(result, name) for result in results]
        units = [f" {result.unit}" if name == "length" else "" for result in results]
        cells = [
            Cell("", None) if cost is None else Cell(f"{cost / unit:{form}}{of}", cost / unit)
            for cost, of in zip(costs, units, strict=True)
        ]
        shown.append(Column(heading, note, False, cells))
    return shown


def depth_in_words(results: Sequence[Result]) -> list[str]:
    """Return lines on whether hidden layers pay on the data of a comparison; none if no model tried any."""
    deep = [result for result in results if result.depth]
    if not deep:
        return []
    pays = any(result.depth_pays for result in deep)
    verdict = (
        "Depth pays on this table."
        if pays
        else "Depth does not pay on this table: try quality=1, which takes less time."
    )
    return [verdict, *(f"  {result.model}: {result.depth}" for result in deep)]


def tables_for(results: Sequence[Result], title: str, console: Console) -> list[Table]:
    """Render a comparison as one table, or as two, scores and costs, if the console is too narrow."""
    shown = columns(results)
    whole, n_scores = table(results, title, shown), len(shown) - len(_COSTS)
    unlimited = console.options.update(width=_UNLIMITED)
    if Measurement.get(console, unlimited, whole).maximum <= console.options.max_width:
        return [whole]
    return [table(results, title, shown[:n_scores]), table(results, "", shown[n_scores:])]


def table(results: Sequence[Result], title: str, shown: Sequence[Column]) -> Table:
    """Render some columns, with the best of each score in bold, and the title without markup."""
    rendered = Table(title=Text(title, style="table.title") if title else None, title_justify="left")
    rendered.add_column("model", overflow="fold")
    for column in shown:
        rendered.add_column(column.heading, justify="right", overflow="fold")
    for result, *cells in zip(results, *(column.cells for column in shown), strict=True):
        styles = ["bold" if cell.best else "dim" if cell.value is None else "" for cell in cells]
        texts = (Text(cell.text, style=style) for cell, style in zip(cells, styles, strict=True))
        rendered.add_row(Text(result.model), *texts)
    return rendered
