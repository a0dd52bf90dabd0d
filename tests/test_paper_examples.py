"""The scripts of the paper's experiments: data, cells that survive an interruption, and a quick run."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import needs_torch

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor

FOLDER = Path(__file__).parents[1] / "examples" / "paper"


def run(script, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", f"examples.paper.{script}", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=FOLDER.parents[1],
    )


def test_folds_of_2016_have_the_sizes_of_scikit_learn_0_18():
    """On the classes of Yeast, whose fold sizes are on record: each class starts with the larger parts."""
    from examples.paper.tasks import folds_of_2016

    y = np.repeat(range(10), [463, 429, 244, 163, 51, 44, 35, 30, 20, 5])
    folds = folds_of_2016(y, 10, 0)
    assert [len(test) for _, test in folds] == [152, 151, 151, 150, 148, 147, 146, 147, 147, 145]
    assert np.array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(1484))
    assert all(not np.intersect1d(train, test).size for train, test in folds)


def test_income_has_the_113_columns_of_the_paper(tmp_path):
    from examples.paper import tasks

    people = [
        "39, State-gov, 77516, Bachelors, 13, Never-married, Sales, Husband, White, Male, 0, 0, 40, Cuba, <=50K",
        "50, ?, 83311, HS-grad, 13, Divorced, Tech-support, Wife, Black, Female, 7, 0, 13, Japan, >50K",
    ]
    (tmp_path / "adult.data").write_text("\n".join(people) + "\n\n")
    (tmp_path / "adult.test").write_text("|1x3 Cross validator\n" + people[1] + ".\n\n")
    task = tasks.load("income", tmp_path)
    # six numbers, and for each category its values with one column more for "?"
    assert task.X.shape == (3, 6 + (1 + 1) + 7 * (2 + 1))
    assert task.y.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(task.X[:, 0], [39, 50, 50])
    np.testing.assert_array_equal(task.X[:, 1], [0, 1, 1])  # workclass "?"


def test_absent_data_are_named_with_their_cure(tmp_path):
    from examples.paper import tasks

    with pytest.raises(FileNotFoundError, match=r"drug_consumption\.data is needed: get it from https.*--data-dir"):
        tasks.load("drug", tmp_path)


def test_random_network_has_the_standard_deviation_of_the_paper():
    from examples.paper.tasks import random_network

    X, y = random_network()
    assert X.shape == (6000, 32)
    assert abs(y.std() - 0.045) < 0.0005


def test_settings_are_parameters_of_their_estimators():
    from examples.paper import candidates

    for params in candidates.CIRCLE.values():
        BoostBPClassifier((2,), **params)
    for params in candidates.CURVE.values():
        BoostBPAutoencoder((2,), **params)
    for tried in (*candidates.PAPER.values(), *candidates.BEST.values()):
        assert tried
        for params in tried:
            BoostBPRegressor(**params)


def test_validation_rows_are_training_rows():
    from examples.paper import models, tasks

    rows = np.arange(100)
    task = tasks.Task(rows[:, None].astype(float), rows % 4, [(rows[:80], rows[80:])], "classification")
    found = list(models.splits(task, 0, 3, seed=0))
    assert len({tuple(split.X_valid.ravel()) for split in found}) == 3
    for split in found:
        assert sorted([*split.X.ravel(), *split.X_valid.ravel()]) == rows[:80].tolist()
        assert np.bincount(split.y_valid).tolist() == [3, 3, 3, 3]


def test_finished_cells_are_not_run_again_and_a_torn_line_is(tmp_path):
    from examples.paper.common import Cell, Experiment, Options, Row, complaints
    from examples.paper.common import run as run_cells

    ran = []

    def work(data_dir, *, number):
        ran.append(number)
        if number == 2:
            raise FloatingPointError("exploded")
        if number == 4:
            raise FileNotFoundError("get the file")
        if number == 5:
            raise ValueError("a mistake")
        return {"score": float(number)}

    def rows(found):
        return [Row("numbers", "a model", [outcome["score"] for _, outcome in found if "score" in outcome])]

    def draw(axes, found):
        axes[0, 0].plot([1, 2])

    experiment = Experiment(
        "numbers", "Numbers", lambda options: [Cell(work, {"number": n}) for n in range(6)], rows, draw
    )
    options = Options(out=tmp_path)
    first = run_cells(experiment, options)
    assert ran == [0, 1, 2, 3, 4, 5]
    assert first[2][1]["failed"] == "exploded"
    assert set(first[2][1]) == {"failed", "seconds", "date", "source"}
    assert complaints(first) == [
        "1 of 6 cells: None: exploded",
        "1 of 6 cells: get the file",
        "1 of 6 cells: None: ValueError: a mistake",
    ]
    log = tmp_path / "cells.jsonl"
    log.write_text(log.read_text()[:-5])  # interrupted while the last line was written
    again = run_cells(experiment, options)
    assert [outcome.get("score") for _, outcome in again] == [0.0, 1.0, None, 3.0, None, None]
    assert ran[6:] == [3, 4, 5]  # absent data may have come, and code been mended
    kept = json.loads((tmp_path / "numbers-lightgbm.json").read_text())
    assert kept["rows"][0]["values"] == [0.0, 1.0, 3.0]
    assert kept["made"]["source"] == [first[0][1]["source"]]
    assert (tmp_path / "numbers-lightgbm.png").stat().st_size > 1000
    run_cells(experiment, options)
    assert ran[9:] == [4, 5]  # the line after the torn one is whole


def test_record_holds_finished_cells_of_the_experiments_without_their_pictures(tmp_path):
    from examples.paper import common

    record, everything = importlib.import_module("examples.paper.record"), importlib.import_module("examples.paper.all")
    keys = [cell.key for cell in everything.EXPERIMENTS[2].cells(common.Options())]
    outcomes = {
        keys[1]: {"score": 1.0},
        keys[0]: {"score": 2.0},
        keys[2]: {"points": [], "score": 4.0},
        "no longer": {"score": 3.0},
    }
    lines = "".join(json.dumps({"cell": key, "outcome": outcome}) + "\n" for key, outcome in outcomes.items())
    (tmp_path / "cells.jsonl").write_text(lines)
    recorded = tmp_path / "recorded.jsonl"
    record.main(["--out", str(tmp_path), "--record", str(recorded)])
    whole = [(keys[0], {"score": 2.0}), (keys[1], {"score": 1.0})]
    assert list(common.read(recorded).items()) == [*whole, (keys[2], {"score": 4.0, "pictured": False})]
    assert list(common.read(recorded, pictured=True).items()) == whole  # the other is run again, for its picture


def test_recorded_cells_are_taken_where_they_are_asked_for(tmp_path):
    from examples.paper import common

    def work(data_dir):
        return {"score": 1.0}

    cell = common.Cell(work, {})
    record = tmp_path / "recorded.jsonl"
    record.write_text(json.dumps({"cell": cell.key, "outcome": {"score": 2.0}}) + "\n")
    experiment = common.Experiment("one", "One", lambda options: [cell], lambda found: [], lambda axes, found: None)
    scores = [
        common.run(experiment, common.Options(out=tmp_path / str(recorded), recorded=recorded, record=record))[0][1][
            "score"
        ]
        for recorded in (True, False)
    ]
    assert scores == [2.0, 1.0]


def test_scores_are_means_over_seeds_and_a_failed_fold_reaches_nothing():
    from examples.paper.scores import at_least, row, scores

    def found(*outcomes):
        keys = [{"data": "d", "model": "m", "fold": fold} for fold in (0, 0, 1, 1)]
        return list(zip(keys, outcomes, strict=True))

    scored = [{"score": score, "seconds": 2.0} for score in (0.1, 0.2, 0.4, 0.5)]
    assert scores(found(*scored), "d") == {"m": {0: pytest.approx(0.15), 1: pytest.approx(0.45)}}
    assert scores(found(*scored[:2], *[{"failed": "exploded"}] * 2), "d") == {"m": {0: pytest.approx(0.15)}}

    def line(*outcomes):
        return row(found(*outcomes), "d", "m", ".2", ">= .3000", at_least(0.3))

    whole = line(*scored)
    assert (whole.values, whole.reached, whole.note) == (pytest.approx([0.15, 0.45]), True, "2 s")
    assert line(*scored[:3], {"score": 0.46}).reached is False  # a mean of .29
    assert line(*scored[:3], {"failed": "exploded"}).reached is False
    assert line(*scored[:3], {"missing": "no data"}).reached is None
    assert line(*scored[:3], {"broken": "a mistake"}).reached is None
    weighed = line(
        *({**each, "chosen": [{"networks": weight}]} for each, weight in zip(scored, (0, 1, 1, 1), strict=True))
    )
    assert weighed.note == "2 s, weight of networks 0.75"


@needs_torch
def test_what_is_trained_again_has_the_length_that_was_validated(before):
    """Single layers, GBDT-NN and the paper's settings for the length found; others of ours find one by themselves."""
    from examples.paper import models, tasks

    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 4))
    task = tasks.Task(X, (X[:, 0] > 0).astype(int), [(np.arange(120), np.arange(120, 160))], "classification")
    trained = []

    def note(_, contender, split, length=None, **how):
        trained.append((len(split.X), split.whole, length))

    before(models, "train", note)
    small = {"hidden_layer_sizes": [2], "n_estimators": 2, "deep": True, "epochs": 3}
    paper = {**small, "early_stopping": False, "backprop": {"structure_epochs": 1}}
    mixed = {"hidden_layer_sizes": [2], "n_estimators": 2, "epochs": 2}
    shared = {"fold": 0, "seed": 0, "parts": 1, "again": True}
    made = []
    for model, candidates in (
        ("GBDT-BP, paper's settings", [paper]),
        ("GBDT-BP, best settings", [small]),
        ("NN-GBDT, best settings", [mixed, {**mixed, "epochs": 1}]),
        ("GBDT-NN, best settings", [mixed]),
    ):
        trained.clear()
        outcome = models.scored_task(task, model=model, backend="lightgbm", candidates=candidates, **shared)
        made.append((list(trained), outcome["chosen"][0]))
    (of_paper, chosen), (of_best, _), (above, _), (below, under) = made
    for twice, of in ((of_paper, chosen), (below, under)):
        assert twice == [(102, False, None), (120, True, of["length"])]
        assert of["length"] is not None
    assert of_best == [(120, True, None)]
    assert above == [(102, False, None), (102, False, None), (120, True, None)]
    trained.clear()
    outcome = models.scored_task(task, model="LightGBM", trials=2, **shared)
    assert trained == [(120, True, outcome["chosen"][0]["length"])]


def test_table_says_what_was_reached():
    from examples.paper.common import Row, markdown

    rows = [
        Row("d", "m", [0.25, 0.75], "0.4", ">= .45", True),
        Row("d", "m", [0.25], "", ">= .45", False, "a note"),
        Row("d", "n", [], "", ">= .45", False),
        Row("d", "o", [], "", ">= .45"),
    ]
    assert markdown(rows).splitlines()[2:] == [
        "| d | m | 0.4 | 0.5 ± 0.25 (2) | >= .45: yes |",
        "| d | m |  | 0.25, a note | >= .45: **no** |",
        "| d | n |  | none | >= .45: **no** |",
        "| d | o |  | none | >= .45 |",
    ]


def test_sheet_holds_all_pictures_at_one_width(tmp_path):
    from matplotlib.image import imread, imsave

    everything = importlib.import_module("examples.paper.all")
    for name, shape in (("a", (10, 40, 3)), ("b", (20, 20, 3))):
        imsave(tmp_path / f"{name}.png", np.zeros(shape))
    everything.sheet([tmp_path / "a.png", tmp_path / "b.png"], tmp_path / "sheet.png")
    height, width = imread(tmp_path / "sheet.png").shape[:2]
    assert abs(height / width - (10 / 40 + 1)) < 0.01


@pytest.mark.slow
def test_quick_circle_ends_separated(tmp_path):
    done = run("circle", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "> .999 on each: yes" in done.stdout
    assert (tmp_path / "circle-lightgbm.png").exists()


def test_all_holds_every_experiment_and_its_options():
    everything = importlib.import_module("examples.paper.all")
    written = {path.stem for path in FOLDER.glob("*.py") if "EXPERIMENT = " in path.read_text()}
    assert {experiment.name for experiment in everything.EXPERIMENTS} == written
    arguments = {"--backend": "xgboost", "--data-dir": "d", "--folds": "2", "--seeds": "1", "--jobs": "2", "--out": "o"}
    options = everything.parser("").parse_args(["--quick", *(word for pair in arguments.items() for word in pair)])
    built = everything.Options(**vars(options))
    for experiment in everything.EXPERIMENTS:
        cells = experiment.cells(built)
        assert len({cell.key for cell in cells}) == len(cells)
        assert {cell.about.get("backend", "xgboost") for cell in cells} == {"xgboost"}


def test_nothing_is_said_to_be_reached_or_exploded_before_all_cells_have_ended():
    everything = importlib.import_module("examples.paper.all")
    outcome = {"score": 0.99, "threshold": 1.0, "accuracy": 1.0}
    for name in ("circle", "classification", "random_network"):
        [experiment] = [one for one in everything.EXPERIMENTS if one.name == name]
        abouts = [cell.about for cell in experiment.cells(everything.Options())]
        asked = [about for about in abouts if "best" in about.get("settings", about.get("model"))]
        for lacking in ({"missing": "no library"}, {"broken": "a mistake"}):
            found = [(about, lacking if about is asked[-1] else outcome) for about in abouts]
            last = [row for row in experiment.rows(found) if row.aim and row.data in ("Circle", "mnist3000", name)]
            assert {row.reached for row in last} == {None}, name
    [fragile] = [one for one in everything.EXPERIMENTS if one.name == "fragile"]
    found = [(cell.about, {"missing": "no library"}) for cell in fragile.cells(everything.Options())]
    assert {row.note for row in fragile.rows(found) if row.data == "Curve"} == {"0 of 0 exploded"}


def test_each_fold_and_cut_draws_trials_of_its_own(before):
    """The first cut of the first fold draws as a single search with this seed does."""
    from examples.paper import models, tasks

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    halves = np.arange(60), np.arange(60, 120)
    task = tasks.Task(X, (X[:, 0] > 0).astype(int), [halves, halves[::-1]], "classification")
    seeds = []
    before(models, "tune", lambda *_, seed, **how: seeds.append(seed))
    for fold in (0, 1):
        models.scored_task(task, fold=fold, seed=3, parts=2, model="LightGBM", trials=1)
    assert seeds[0] == 3
    assert len(set(seeds)) == 4


@pytest.mark.parametrize("state", ["scored", "failed"])
def test_tables_and_pictures_come_of_any_outcome(state):
    """Made-up outcomes of full runs: every experiment has its rows, and aims are judged by what there is."""
    from examples.paper.common import picture

    everything = importlib.import_module("examples.paper.all")
    outcomes = {
        "circle": {"accuracy": 0.9, "threshold": 0.8, "points": {"0": [[0, 1], [2, 3]]}, "colours": [0, 1]},
        "curve": {"error": 0.1, "stop": "EPOCHS", "points": {"0": [[0, 1, 2], [2, 3, 4]]}, "colours": [0, 1]},
        "tsne": {"neighbours": 0.5, "silhouette": 0.1, "training silhouette": 0.2},
        "fragile": {
            "exploded": False,
            "epochs": 2,
            "loss": [1.0, 0.5],
            "accuracy": [0.5, 0.6],
            "score": 0.02,
            "rmse": 0.03,
        },
    }
    for experiment in everything.EXPERIMENTS:
        outcome = outcomes.get(experiment.name, {"score": 0.5}) if state == "scored" else {state: "reason"}
        found = [(cell.about, outcome) for cell in experiment.cells(everything.Options())]
        rows = experiment.rows(found)
        assert all(bool(row.values) == (state == "scored") for row in rows), experiment.name
        assert ("yes" in everything.markdown(rows)) <= (state == "scored")
        drawn = [ax for ax in picture(experiment, found).axes if ax.lines or ax.collections]
        assert drawn or state == "failed" or experiment.name == "tsne"
