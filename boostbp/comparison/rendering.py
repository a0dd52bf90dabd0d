"""A comparison as a table: on a terminal, in HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from boostbp.comparison.measured import Measured
from boostbp.comparison.verdict import Judgement, percent
from boostbp.runtime.messages import printable

_UNLIMITED = 10_000  # a width that fits any table
# Heading, format, meaning, field of `FoldOutcome` and its unit.
_COSTS = (
    ("fit s", ".2f", "wall time of one fit, mean", "fit_seconds", 1),
    ("row ms", ".3f", "wall time of predicting one row", "row_seconds", 1e-3),
    ("peak MB", ".0f", "peak memory of the fit", "peak_bytes", 1e6),
    ("model MB", ".2f", "size of the pickled model", "model_bytes", 1e6),
)


class Cell(NamedTuple):
    """A text, its number, None without one, and whether it is the best score."""

    text: str
    value: float | None
    best: bool = False


class Column(NamedTuple):
    """A heading, its meaning, whether larger is better, and a cell for each model."""

    heading: str
    note: str
    greater_is_better: bool
    cells: Sequence[Cell]


def columns(comparison: Measured) -> list[Column]:
    """Return all columns except the model's name: scores, the difference from the reference, costs."""
    ran, judgement = comparison.ran, comparison.judgement
    shown = []
    for name, measure in comparison.plan.measures.items():
        values = [float(comparison.scores_of(m, name).mean()) if m in ran else None for m in comparison.models]
        known = [value for value in values if value is not None]
        best = (max if measure.greater_is_better else min)(known, default=None)
        states = [state.partition(":")[0] for state in comparison.states.values()]
        cells = [
            Cell(state if value is None else f"{value:.4f}", value, value is not None and value == best)
            for state, value in zip(states, values, strict=True)
        ]
        shown.append(Column(measure.heading, f"{measure.note}; mean over folds", measure.greater_is_better, cells))
    shown += _differences(comparison, judgement)
    for heading, form, note, field, unit in _COSTS:
        costs = [comparison.cost(model, field) for model in comparison.models]
        cells = [Cell("", None) if cost is None else Cell(f"{cost / unit:{form}}", cost / unit) for cost in costs]
        shown.append(Column(heading, note, False, cells))
    return shown


def _differences(comparison: Measured, judgement: Judgement) -> list[Column]:
    """Return the columns of the difference from the reference and of the chance to be better."""
    cells, chances = [], []
    for model in comparison.models:
        difference = judgement.differences.get(model)
        if difference is None:
            cells.append(Cell("reference" if model == comparison.plan.reference else "", None))
            chances.append(Cell("", None))
            continue
        mean, low, high = (float(judgement.shown(v)) for v in (difference.mean, difference.low, difference.high))
        form = ".1f" if judgement.is_ratio else ".4f"
        unit = " %" if judgement.is_ratio else ""
        cells.append(Cell(f"{mean:+{form}}{unit} ({low:+{form}} to {high:+{form}})", mean))
        chances.append(Cell(percent(difference.chance), difference.chance))
    heading = comparison.plan.measures[comparison.plan.metric].heading
    note = f"what is gained in {heading} over {comparison.plan.reference}, with a 95 % interval for all models together"
    better = "chance that the model is better than the reference"
    return [Column(f"gain in {heading}", note, True, cells), Column("better", better, True, chances)]


def difference_facts(judgement: Judgement, model: str) -> dict[str, Any] | None:
    """Return the difference of a model from the reference as plain values; None without one."""
    difference = judgement.differences.get(model)
    return None if difference is None else {**asdict(difference), "is_log_ratio": judgement.is_ratio}


def tables_for(comparison: Measured, console: Console) -> list[Table]:
    """Render a comparison as one table, or scores and costs in tables of their own if the console is too narrow."""
    shown, unlimited = columns(comparison), console.options.update(width=_UNLIMITED)

    def fits(part: Sequence[Column]) -> bool:
        width = Measurement.get(console, unlimited, table(comparison.models, "", part)).maximum
        return bool(width <= console.options.max_width)

    parts: list[list[Column]] = []
    for section in [shown] if fits(shown) else [shown[: -len(_COSTS)], shown[-len(_COSTS) :]]:
        parts.append([])
        for column in section:
            if parts[-1] and not fits([*parts[-1], column]):
                parts.append([])
            parts[-1].append(column)
    title = printable(f"{comparison.plan.name}: {comparison.facts}")
    return [table(comparison.models, "" if number else title, part) for number, part in enumerate(parts)]


def table(models: Sequence[str], title: str, shown: Sequence[Column]) -> Table:
    """Render some columns, with the best of each score in bold, and the title without markup."""
    rendered = Table(title=Text(title, style="table.title") if title else None, title_justify="left")
    rendered.add_column("model", overflow="fold")
    for column in shown:
        rendered.add_column(column.heading, justify="right", overflow="fold")
    for model, *cells in zip(models, *(column.cells for column in shown), strict=True):
        styles = ["bold" if cell.best else "dim" if cell.value is None else "" for cell in cells]
        texts = (Text(cell.text, style=style) for cell, style in zip(cells, styles, strict=True))
        rendered.add_row(Text(printable(model)), *texts)
    return rendered


def as_html(comparison: Measured) -> str:
    """Return the verdict and the table for a notebook."""
    shown = columns(comparison)
    head = "".join(f'<th title="{html.escape(c.note)}">{html.escape(c.heading)}</th>' for c in shown)
    rows = [
        f"<tr><th>{html.escape(model)}</th>"
        + "".join(f"<td>{html.escape(c.cells[row].text)}</td>" for c in shown)
        + "</tr>"
        for row, model in enumerate(comparison.models)
    ]
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in (comparison.facts, *comparison.notes))
    verdict = f"<p><strong>{html.escape(comparison.verdict)}</strong></p>"
    return f"{verdict}<table><tr><th>model</th>{head}</tr>{''.join(rows)}</table>{notes}"
