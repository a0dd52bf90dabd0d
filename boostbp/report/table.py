"""A comparison as a table: its columns, for the terminal and for the page, and the table in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from boostbp.report.result import Result

_UNLIMITED = 10_000  # characters in which any table fits


class Score(NamedTuple):
    """A score of the test rows: its heading, what it means, and its direction."""

    heading: str
    note: str
    greater_is_better: bool


SCORES = {
    "accuracy": Score("accuracy", "share of test rows with the right class", True),
    "log_loss": Score("log-loss", "mean negative log-probability of the true class", False),
    "r2": Score("R2", "share of the variance of the test rows that is explained", True),
    "rmse": Score("RMSE", "root of the mean squared error, in units of the target", False),
}
# Heading, format, meaning and value of each cost.
_COSTS: tuple[tuple[str, str, str, Callable[[Result], float | None]], ...] = (
    ("fit s", ".2f", "wall time of one fit", lambda result: result.fit_seconds),
    ("predict s", ".4f", "wall time of predicting the test rows", lambda result: result.predict_seconds),
    ("peak MB", ".0f", "peak memory of the fit", lambda result: _megabytes(result.peak_bytes)),
    ("model MB", ".2f", "size of the pickled model", lambda result: _megabytes(result.model_bytes)),
    ("length", ".0f", "epochs or rounds that the validation rows chose", lambda result: result.length),
)


class Cell(NamedTuple):
    """Text, the number behind it (None if there is none), and whether it is the best score."""

    text: str
    value: float | None
    best: bool = False


class Column(NamedTuple):
    """A heading, what it means, whether larger is better, and a cell for each result."""

    heading: str
    note: str
    greater_is_better: bool
    cells: tuple[Cell, ...]


def columns(results: Sequence[Result]) -> list[Column]:
    """Return all columns but the model's name: scores, with their standard deviation over folds, then costs."""
    scores = [
        Column(*score, _score_cells(name, score.greater_is_better, results))
        for name, score in SCORES.items()
        if any(name in result.scores for result in results)
    ]
    costs = []
    for heading, form, note, cost_of in _COSTS:
        values = [cost_of(result) for result in results]
        cells = tuple(Cell("" if value is None else f"{value:{form}}", value) for value in values)
        costs.append(Column(heading, note, False, cells))
    return scores + costs


def _score_cells(name: str, greater_is_better: bool, results: Sequence[Result]) -> tuple[Cell, ...]:
    values = [result.scores[name] for result in results if name in result.scores]
    best = max(values) if greater_is_better else min(values)
    return tuple(
        Cell(result.score_text(name), result.scores[name], result.scores[name] == best)
        if name in result.scores
        else Cell(result.state, None)
        for result in results
    )


def _megabytes(size: int | None) -> float | None:
    return None if size is None else size / 1e6


def tables(results: Sequence[Result], title: str, console: Console) -> list[Table]:
    """Render a comparison as one table, or as two where the console is too narrow: scores, and costs."""
    shown, options = columns(results), console.options
    whole = table(results, title, shown)
    if Measurement.get(console, options.update(width=_UNLIMITED), whole).maximum <= options.max_width:
        return [whole]
    n_scores = len(shown) - len(_COSTS)
    return [table(results, title, shown[:n_scores]), table(results, "", shown[n_scores:])]


def table(results: Sequence[Result], title: str, shown: Sequence[Column]) -> Table:
    """Render some columns, with the best of each score in bold; markup in the title is text."""
    rendered = Table(title=Text(title, style="table.title") if title else None, title_justify="left")
    rendered.add_column("model", overflow="fold")
    for column in shown:
        rendered.add_column(column.heading, justify="right", overflow="fold")
    for row, result in enumerate(results):
        cells = [column.cells[row] for column in shown]
        styles = ["bold" if cell.best else "dim" if cell.value is None else "" for cell in cells]
        texts = [Text(cell.text, style=style) for cell, style in zip(cells, styles, strict=True)]
        rendered.add_row(Text(result.model), *texts)
    return rendered
