"""A comparison as a table: the best scores, reasons, and no number cut."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from boostbp.comparison.rendering import as_html, columns, table, tables_for


def test_table_marks_the_best_and_says_who_did_not_run(numbers):
    rendered = table(numbers.models, "a title", columns(numbers))
    cells = [[str(cell) for cell in column.cells] for column in rendered.columns]
    assert cells[1][3] == "failed"
    assert cells[4][0] == "reference"
    assert cells[4][1].startswith("+28.9 % (+")
    assert cells[5][1] == "more than 99 %"
    assert cells[-1][3] == ""
    styles = [[cell.style for cell in column.cells] for column in rendered.columns[1:3]]
    assert styles == [["", "bold", "", "dim"]] * 2


@pytest.mark.parametrize("width", [60, 110, 200])
def test_no_number_is_cut_in_a_narrow_terminal(labels, width):
    console = Console(width=width, record=True, file=io.StringIO())
    shown = tables_for(labels, console)
    assert len(shown) == {60: 3, 110: 2, 200: 1}[width]
    for part in shown:
        console.print(part)
    text = console.export_text()
    assert "\u2026" not in text
    for column in columns(labels):
        assert all(cell.text in text for cell in column.cells)
    assert max(map(len, text.splitlines())) <= width


def test_a_notebook_shows_the_verdict_and_names_as_text(numbers):
    shown = as_html(numbers)
    assert "<strong>good has 29 % less RMSE than dummy (" in shown
    assert "&lt;tree&gt;" in shown
    assert "<tree>" not in shown
    assert numbers._repr_html_() == shown
