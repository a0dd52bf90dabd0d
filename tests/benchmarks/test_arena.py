"""The recorded fits of TabArena's protocol are those that the documents speak of."""

from __future__ import annotations

from benchmarks import lines
from benchmarks.accuracy.data import SETS
from benchmarks.arena import MODELS, RECORDED, TABLES, TUNED, Cell

DRAWN = 2  # configurations that every model has finished


def test_tables_are_ones_that_no_default_was_chosen_by():
    assert {SETS[name].group for name in TABLES} == {"unseen"}


def test_default_and_drawn_configurations_are_recorded():
    ran = {tuple(line["key"]) for line in lines.read(RECORDED) if line["state"] == "ran"}
    for model in MODELS:
        assert {tuple(Cell(table, model, 0).key) for table in TABLES} <= ran
        assert {tuple(Cell(table, model, n + 1).key) for table in TABLES[:TUNED] for n in range(DRAWN)} <= ran
