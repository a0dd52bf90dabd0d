"""A comparison as a table in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from boostbp.report.result import Result
from boostbp.report.table_columns import Cell, columns

__all__ = ["table"]


def table(results: Sequence[Result], title: str) -> Table:
    """Render a comparison, with the best of each score in bold.

    Parameters
    ----------
    results : sequence of Result
    title : str
        Markup in it is text.
    """
    shown = columns(results)
    rendered = Table(title=Text(title, style="table.title"), title_justify="left")
    rendered.add_column("model", no_wrap=True)
    for column in shown:
        rendered.add_column(column.heading, justify="right")
    for row, result in enumerate(results):
        rendered.add_row(Text(result.model), *(_text(column.cells[row]) for column in shown))
    return rendered


def _text(cell: Cell) -> Text:
    return Text(cell.text, style="bold" if cell.best else "dim" if cell.value is None else "")
