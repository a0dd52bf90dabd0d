"""The benchmark of error against seconds: its plan, its cells, a results file to go on from, what the tables say."""

from __future__ import annotations

import json
import time

import numpy as np
import pandas as pd
import pytest

from benchmarks.accuracy import data
from benchmarks.accuracy.data import SETS
from benchmarks.accuracy.results import Results
from benchmarks.frontier import __main__ as command
from benchmarks.frontier import models, plan, work
from benchmarks.frontier.models import FAMILIES, MODELS, REFERENCE, UnavailableError, fit_of, hold_out, limited
from benchmarks.frontier.plan import ALL, LOOKED_AT, QUICK, UNSEEN, Budget, cells, group_of, named
from benchmarks.frontier.render import figure, markdown
from benchmarks.frontier.summary import found_in, overall
from benchmarks.source import source
from boostbp import BoostBPRegressor


def line(name, model, error, seconds, *, fold=0, rows=100, reference=(0.5, 2.0), test_rows=50, **more):
    timed = {"error": error, "accuracy": None, "wall": 10 * seconds, "cpu": seconds}
    of_reference = {"error": reference[0], "accuracy": None, "wall": reference[1], "cpu": reference[1]}
    return {
        "key": [name, fold, model, rows], "set": name, "fold": fold, "model": model, "state": "ran", "reason": "",
        **timed, "reference": of_reference, "test_rows": test_rows, "source": source(), **more,
    }  # fmt: skip


LINES = [
    *(line(name, REFERENCE, 0.5, 2.0) for name in ("concrete", "kin8nm", "wine")),
    line("concrete", "catboost", 0.4, 8.0),
    line("kin8nm", "catboost", 0.5, 32.0),
    line("wine", "catboost", 0.001, 2.0),  # of 50 test rows: counts as .02
    line("concrete", "boostbp", 0.9, 1.0),
    line("concrete", "boostbp", 0.25, 4.0),  # run again
    line("concrete", "boostbp", 0.75, 1.0, fold=1),
    line("kin8nm", "boostbp", 0.06, 200.0),
]


def test_ratios_are_those_of_means_over_folds_and_last_lines_count():
    found = found_in(LINES, "cpu")
    concrete = found["boostbp"]["concrete"]
    assert concrete.error == pytest.approx((0.25 + 0.75) / (0.5 + 0.5))
    assert concrete.seconds == pytest.approx((4 + 1) / (2 + 2))
    assert (concrete.reference, concrete.rows, concrete.folds) == (0.5, 100, 2)
    assert found["catboost"]["wine"].error == pytest.approx(0.02 / 0.5)
    assert found_in(LINES, "wall")["catboost"]["concrete"].seconds == pytest.approx(80 / 2)


def test_models_over_sets_agree_with_numbers_by_hand():
    of = overall(found_in(LINES, "cpu"), ["concrete", "kin8nm", "wine"])
    assert list(of) == ["catboost", "boostbp", REFERENCE]  # best first
    catboost = of["catboost"]
    logs = np.log([0.8, 1.0, 0.04])
    assert catboost.sets == 3
    assert catboost.error == pytest.approx((0.8 * 1.0 * 0.04) ** (1 / 3))
    assert catboost.error_error == pytest.approx(np.std(logs, ddof=1) / 3**0.5)
    assert catboost.seconds == pytest.approx((4 * 16 * 1) ** (1 / 3))
    assert catboost.won == pytest.approx((1 + 0.5 + 1) / 3)  # equal on kin8nm
    # Ranks of concrete: catboost .8, then boostbp and LightGBM 1.0; of kin8nm: boostbp .12, then both others 1.0.
    assert catboost.rank == pytest.approx((1 + 2.5) / 2)
    assert of["boostbp"].rank == pytest.approx((2.5 + 1) / 2)
    assert of[REFERENCE].rank == pytest.approx((2.5 + 2.5) / 2)
    assert (of["boostbp"].sets, of["boostbp"].won) == (2, pytest.approx((0.5 + 1) / 2))


def test_model_of_few_sets_has_no_rank_and_takes_none_away():
    lines = [*LINES, line("concrete", "xrfm", 0.1, 1.0)]
    of = overall(found_in(lines, "cpu"), ["concrete", "kin8nm", "wine"])
    assert of["xrfm"].rank is None
    assert of["catboost"].rank == pytest.approx((1 + 2.5) / 2)


def test_page_says_what_was_looked_at_and_figure_is_drawn(tmp_path):
    left_out = [{"model": "xrfm", "state": "skipped", "reason": "pip install it"}] * 2
    page = markdown({1000: found_in([*LINES, line("letters", REFERENCE, 0.5, 2.0)], "cpu")}, "about", left_out)
    assert "| concrete | ordinary tables | yes | 100 | 1 | 0.5000 | 0.8 | 1 |" in page
    assert "| letters | many classes | no | 100 | 1 | 0.5000 |  |  |" in page
    assert "### Smooth targets (1)" in page
    assert "| catboost | 1 | 1.000 | 16 | 50% | 2.5 |" in page
    assert "- xrfm, 2 cells skipped: pip install it" in page
    ladder = [line("kin8nm", f"boostbp-{k}", 0.5 / k, 2.0 * k) for k in (1, 2, 3)]
    limits = [line("kin8nm", limited(times), 0.5 / times, 2.0 * times) for times in (1.5, 3)]
    for name in ("some.png", "some.svg"):
        figure({1000: found_in([*LINES, *ladder, *limits], "cpu")}, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5000
    figure({}, tmp_path / "none.png")
    assert (tmp_path / "none.png").exists()


def test_quick_is_small_and_nothing_sealed_is_run_unasked():
    groups = list(cells(QUICK, None, lambda *which: 5000))
    assert [len(group) for group in groups] == [len(QUICK.models)] * 6
    assert len(QUICK.models) <= 20
    assert {cell.rows for group in groups for cell in group} == {1000}
    assert QUICK.minutes < 15
    assert QUICK.models[0] == REFERENCE
    assert set(QUICK.sets) <= set(ALL) == set(SETS) - set(UNSEEN)
    assert not LOOKED_AT & set(UNSEEN)
    assert all(group_of(name) == "sealed tables" for name in UNSEEN)


def test_a_set_takes_part_once_beyond_its_rows_and_slow_models_come_last():
    there = {"iris": 120, "concrete": 2000, "adult": 60_000}

    def cells(budget):
        return plan.cells(budget, None, lambda name, fold, folder: there[name])

    budget = Budget(tuple(there), (REFERENCE, "realmlp", "catboost"), (3000, 1000, 10_000), 1, 1.0)
    groups = list(cells(budget))
    sizes = [("iris", 120, 1000), ("concrete", 1000, 1000), ("adult", 1000, 1000)]
    sizes += [("concrete", 2000, 3000), ("adult", 3000, 3000), ("adult", 10_000, 10_000)]
    assert [(group[0].set, group[0].rows, group[0].size) for group in groups] == sizes * 2
    assert [cell.model for cell in groups[0]] == [REFERENCE, "catboost"]
    assert [cell.model for cell in groups[6]] == ["realmlp"]
    budget = Budget(tuple(there), (REFERENCE,), (3000,), 1, 1.0, small_folds=3)
    sets = [(group[0].set, group[0].fold) for group in cells(budget)]
    assert sets == [("iris", 0), ("concrete", 0), ("adult", 0), ("iris", 1), ("iris", 2)]


def test_models_are_named_one_by_one_or_by_family():
    assert named(["catboost", "ours", "catboost"], [1.5, 30]) == (
        *(REFERENCE, "catboost", *FAMILIES["ours"]),
        *("boostbp@1.5x", "boostbp@30x"),
    )
    assert models.times_of("boostbp@1.5x") == 1.5
    assert models.times_of("boostbp-5") is None
    with pytest.raises(ValueError, match="'boost' is not known"):
        named(["boost"])
    with pytest.raises(ValueError, match="'boostbp-6' is not known"):
        fit_of("boostbp-6")
    assert len(set(MODELS)) == len(MODELS)


def test_what_cannot_be_run_says_what_it_needs(without):
    without("catboost")
    without("pytabkit")
    with pytest.raises(UnavailableError, match="pip install catboost"):
        fit_of("catboost")
    cell = plan.Cell("iris", 0, "realmlp", 100, 100)
    outcome = work.run(cell, None)
    assert outcome["state"] == "skipped"
    assert "pip install 'pytabkit[models]'" in outcome["reason"]


def test_quality_limits_and_backends_are_passed_on():
    names = (("boostbp-5-xgboost", None), ("boostbp-single", None), ("boostbp@3x", 1.5))
    params = [fit_of(name, seconds).args for name, seconds in names]
    assert params == [({"quality": 5, "backend": "xgboost"},), ({"deep": False},), ({"max_time": 1.5},)]
    model = fit_of("boostbp-1")(np.arange(20.0)[:, None], np.arange(20.0), False, 7)
    assert isinstance(model, BoostBPRegressor)
    assert (model.quality, model.n_jobs, model.random_state) == (1, 1, 7)


def test_a_tenth_is_held_out_but_50_rows_at_least_and_no_class_is_lost():
    for rows, n_held in ((1000, 100), (300, 50), (120, 30)):
        fit, held = hold_out(np.arange(rows) % 2, True, 0)
        assert len(held) == n_held
        assert sorted([*fit, *held]) == list(range(rows))
    y = np.array([0, 1, *range(2, 40), *[0] * 60])  # more classes than rows to hold out: 38 of one row each
    fit, held = hold_out(y, True, 0)
    assert set(y[fit]) == set(range(40))
    assert sorted([*fit, *held]) == list(range(100))


def test_rivals_get_text_for_categories_and_no_gaps_where_they_refuse_them():
    frame = pd.DataFrame({"x": [1.0, np.nan, 3.0, 5.0], "k": pd.Categorical(["a", None, "b", "a"])})
    texts, _ = models.prepare_of("chimeraboost-2")(frame, frame)
    assert list(texts["k"]) == ["a", "missing", "b", "a"]
    assert texts["x"].isna().sum() == 1
    filled, tested = models.prepare_of("xrfm")(frame, frame.iloc[1:2])
    assert list(filled["x"]) == [1.0, 3.0, 3.0, 5.0]
    assert list(tested["x"]) == [3.0]  # the median of the rows to learn from
    assert list(filled["x missing"]) == [0.0, 1.0, 0.0, 0.0]
    assert models.prepare_of("boostbp-3")(frame, frame)[0] is frame


def test_scores_agree_with_numbers_by_hand():
    class Model:
        classes_ = np.array([0, 2])

        def predict(self, X):
            return np.array([[1.0], [3.0]])

        def predict_proba(self, X):
            return np.array([[0.25, 0.75], [0.5, 0.5]], dtype=np.float32)

    error, accuracy = work.score(Model(), None, np.array([2, 1]), 1.0, True)
    assert error == pytest.approx(-(np.log(0.75) + np.log(1e-7)) / 2, rel=1e-6)  # it knows no class 1
    assert accuracy == 0.5
    assert work.score(Model(), None, np.array([1.0, 1.0]), 4.0, False) == (pytest.approx(2**0.5 / 4), None)


def test_brief_work_is_timed_three_times_and_long_work_once():
    for seconds, times in ((0.01, 3), (1.01, 1)):
        done = []
        result, wall, _ = work.timed(lambda done=done, seconds=seconds: done.append(time.sleep(seconds)) or len(done))
        assert result == len(done) == times
        assert wall >= seconds


@pytest.mark.slow
def test_command_goes_on_where_it_ended(tmp_path, capsys):
    arguments = ["--sets", "diabetes", "--rows", "1000", "--out", str(tmp_path), "--models", "lightgbm"]
    command.main([*arguments, "linear_tree", "--minutes", "1e-9"])
    assert "2 of 2 cells to run" in capsys.readouterr().out
    command.main([*arguments, "linear_tree"])
    file = tmp_path / "frontier.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["key"] for line in lines] == [["diabetes", 0, model, 353] for model in ("lightgbm", "linear_tree")]
    assert {line["state"] for line in lines} == {"ran"}
    first, second = lines
    assert first["error"] == first["reference"]["error"] == second["reference"]["error"]  # the same fit
    assert 0.5 < first["error"] < 1.0
    assert first["cpu"] == first["reference"]["cpu"] > 0
    page = (tmp_path / "frontier.md").read_text()
    assert "| diabetes | ordinary tables | yes | 353 | 1 |" in page
    assert (tmp_path / "frontier.png").stat().st_size > 5000
    capsys.readouterr()
    before = file.read_text()
    command.main([*arguments, "linear_tree"])
    assert "0 of 2 cells to run" in capsys.readouterr().out
    assert file.read_text() == before


def test_cells_of_other_code_are_run_again_on_demand_alone(tmp_path, capsys):
    file = tmp_path / "some.jsonl"
    old = [line("diabetes", model, 0.7, 1.0, rows=200, source="other") for model in (REFERENCE, "boostbp")]
    file.write_text("".join(json.dumps(each) + "\n" for each in old))
    arguments = ["--sets", "diabetes", "--rows", "200", "--models", "boostbp", "--results", str(file)]
    arguments += ["--minutes", "1e-9", "--out", str(tmp_path)]
    command.main(arguments)
    assert "0 of 2 cells to run" in capsys.readouterr().out
    command.main([*arguments, "--current"])
    assert "1 of 2 cells to run" in capsys.readouterr().out


def test_cells_on_record_are_those_of_known_sets_and_are_not_run_again(tmp_path):
    results = Results(tmp_path / "none.jsonl", command.RECORDED)
    keys = [tuple(line["key"]) for line in results.lines if line["state"] == "ran"]
    assert len(set(keys)) == len(keys) > 0
    assert {name for name, *_ in keys} <= {*ALL, *plan.UNSEEN}
    assert {model for *_, model, _ in keys} <= set(MODELS)
    assert results.of(plan.Cell("kin8nm", 0, "catboost", 3000, 10_000))["library"].startswith("catboost ")


def test_command_refuses_what_it_cannot_do(capsys):
    for arguments, reason in (
        (["--unseen", "--sets", "iris"], "leave out --sets"),
        (["--sets", "BudgetUK"], "invalid choice"),
        (["--sets", "iris", "--models", "boost"], "is not known"),
        (["--sets", "kin8nm"], "no data set is left"),
    ):
        with pytest.raises(SystemExit):
            command.main(arguments)
        assert reason in capsys.readouterr().err


def test_letters_have_26_classes_and_4000_rows_to_learn_from():
    table = SETS["letters"].load()
    assert table.X.shape == (5000, 16)
    assert len(np.unique(table.y)) == 26
    assert data.train_rows("letters", 0, None) == 4000
    assert len(data.cut("letters", 0, None, 1000).split.y) == 850
