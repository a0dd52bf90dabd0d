"""A comparison as a table: its columns, for the terminal and for the page, and the table in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from boostbp.report.result import Result

_WIDE = 10_000  # columns in which any table fits


class _Score(NamedTuple):
    heading: str
    digits: int
    greater_is_better: bool
    note: str


SCORES = {
    "accuracy": _Score("accuracy", 4, True, "share of test rows with the right class"),
    "log_loss": _Score("log-loss", 4, False, "mean negative log-probability of the true class"),
    "r2": _Score("R2", 4, True, "share of the variance of the test rows that is explained"),
    "rmse": _Score("RMSE", 4, False, "root of the mean squared error, in units of the target"),
}
_COSTS: tuple[tuple[str, str, str, Callable[[Result], float | None]], ...] = (
    ("fit s", ".2f", "wall time of one fit", lambda result: result.fit_seconds),
    ("predict s", ".4f", "wall time of predicting the test rows", lambda result: result.predict_seconds),
    ("peak MB", ".0f", "peak memory of the fit", lambda result: _mega(result.peak_bytes)),
    ("model MB", ".2f", "size of the pickled model", lambda result: _mega(result.model_bytes)),
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
    """All columns but the model's name: scores, with their standard deviation over folds, then costs."""
    scores = [name for name in SCORES if any(name in result.scores for result in results)]
    return [*(_score(name, results) for name in scores), *(_cost(*cost, results) for cost in _COSTS)]


def _score(name: str, results: Sequence[Result]) -> Column:
    score = SCORES[name]
    values = [result.scores[name] for result in results if name in result.scores]
    best = max(values) if score.greater_is_better else min(values)
    cells = []
    for result in results:
        if name not in result.scores:
            cells.append(Cell(result.state, None))
            continue
        value, std = result.scores[name], result.std(name)
        text = f"{value:.{score.digits}f}" + ("" if std is None else f" ± {std:.{score.digits}f}")
        cells.append(Cell(text, value, value == best))
    return Column(score.heading, score.note, score.greater_is_better, tuple(cells))


def _cost(
    heading: str, form: str, note: str, of: Callable[[Result], float | None], results: Sequence[Result]
) -> Column:
    values = [of(result) for result in results]
    return Column(heading, note, False, tuple(Cell("" if v is None else f"{v:{form}}", v) for v in values))


def _mega(size: int | None) -> float | None:
    return None if size is None else size / 1e6


def tables(results: Sequence[Result], title: str, console: Console) -> list[Table]:
    """Render a comparison as one table, or where the console is too narrow as two: scores, and costs."""
    shown, options = columns(results), console.options
    whole = table(results, title, shown)
    if Measurement.get(console, options.update(width=_WIDE), whole).maximum <= options.max_width:
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
        rendered.add_row(Text(result.model), *(_text(column.cells[row]) for column in shown))
    return rendered


def _text(cell: Cell) -> Text:
    return Text(cell.text, style="bold" if cell.best else "dim" if cell.value is None else "")
