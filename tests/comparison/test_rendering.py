"""Results as a table: the best scores, reasons, and what depth is worth."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from boostbp.comparison.rendering import Result, columns, depth_in_words, table, tables_for

SINGLE = ["LightGBM", "LightGBM linear_tree", "XGBoost"]


def test_table_marks_the_best_and_says_who_did_not_run():
    results = [
        Result("one", "ran", "", {"r2": 0.5, "rmse": 2.0}, 1.0, 0.1, 5_000_000, 7),
        Result("two", "ran", "", {"r2": 0.4, "rmse": 1.0}, 2.0, 0.2, None, None),
        Result("three", "skipped", "needs it", {}),
    ]
    rendered = table(results, "a title", columns(results))
    cells = [[str(cell) for cell in column.cells] for column in rendered.columns]
    assert cells[1] == ["0.5000", "0.4000", "skipped"]
    assert cells[-3] == ["5", "", ""]
    styles = [[cell.style for cell in column.cells] for column in rendered.columns[1:3]]
    assert styles == [["bold", "", "dim"], ["", "bold", "dim"]]
    console = Console(width=100, record=True, quiet=True)
    console.print(rendered)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("std", [False, True])
def test_no_number_is_cut_in_a_narrow_terminal(width, std):
    folds = ({"accuracy": 0.91, "log_loss": 0.2}, {"accuracy": 0.95, "log_loss": 0.3}) if std else ()
    scores = {"accuracy": 0.93123, "log_loss": 0.25456}
    names = ["boostbp (lightgbm)", "boostbp (xgboost)", *SINGLE]
    results = [Result(name, "ran", "", scores, 10.25, 0.0123, 45_000_000, 412, 1_230_000, folds) for name in names]
    console = Console(width=width, record=True, file=io.StringIO())
    shown = tables_for(results, "a title", console)
    assert len(shown) == (1 if width == 120 else 2)
    for part in shown:
        console.print(part)
    text = console.export_text()
    assert "…" not in text
    assert text.count("0.9312") == text.count("0.2546") == text.count("10.25") == text.count("0.0123") == len(names)
    assert text.count("412") == len(names)
    assert max(map(len, text.splitlines())) <= width


def test_it_says_whether_depth_pays():
    single, deep_model = (
        Result("one layer", "ran", ""),
        Result("deep", "ran", "", depth="They helped.", depth_pays=True),
    )
    assert depth_in_words([single]) == []
    assert depth_in_words([single, deep_model]) == ["Depth pays on this table.", "  deep: They helped."]
    no_gain = replace(deep_model, depth="No effect.", depth_pays=False)
    assert depth_in_words([no_gain])[0] == "Depth does not pay on this table: try quality=1, which takes less time."
    assert depth_in_words([no_gain, deep_model])[0] == "Depth pays on this table."
