"""The speed suites run and say what they measured; no time is asserted."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from benchmarks import __main__ as suites
from benchmarks import (
    beyond_memory,
    cases,
    contract,
    distributed,
    intervals,
    many_rows,
    modes,
    overhead,
    prediction,
    scaling,
    shares,
)
from benchmarks.cases import Case
from boostbp.backends import available

TINY = Case(rows=300, features=3, outputs=2, rounds=2, depth=2)
LIBRARIES = [name for name in ("lightgbm", "xgboost") if name in available()]


CASES = dict.fromkeys(cases.CASES, TINY)


@pytest.mark.parametrize("backend", LIBRARIES)
def test_every_suite_of_a_case_runs_and_is_written(backend, tmp_path, capsys):
    file = tmp_path / "out.json"
    wanted = ["overhead", "vjp", "threads", "profile"]
    options = ["--backend", backend, "--case", "small", "--repeats", "1", "--json", str(file)]
    found = suites.main([*wanted, *options], CASES)
    assert [result["suite"] for result in found["results"]] == wanted
    assert json.loads(file.read_text())["results"] == found["results"]
    assert all(name in capsys.readouterr().out for name in [f"small {backend}"])
    assert found["results"][2]["same bits"] is True


@pytest.mark.parametrize("backend", LIBRARIES)
def test_shares_of_a_profile_add_up_to_the_whole(backend):
    found = shares.profile(TINY, backend)
    seconds = found.pop("seconds")
    assert seconds > 0
    assert set(found) >= {"bin", "grow", "parse", "route", "sums", "solve", "evaluate", "pull back", "Python"}
    assert all(share > 0 for share in found.values())
    assert sum(found.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("backend", LIBRARIES)
def test_bare_library_grows_the_trees_that_we_grow(backend):
    """One round from the same start, so the floor and our fit are the same work."""
    X, Y = cases.data(TINY)
    inputs = cases.bound(TINY, X, backend)
    [tree, _] = inputs.grower.grow(-Y, np.ones_like(Y))
    assert tree.n_leaves == 4
    assert set(overhead.bare.arrangements(inputs, Y, backend, 2)) == {
        "one booster, 2 native threads",
        "2 boosters, 1 thread each",
    }


@pytest.mark.skipif("lightgbm" not in LIBRARIES, reason="the other model is LightGBM's")
@pytest.mark.slow
@pytest.mark.parametrize("table", ["diabetes", "iris"])
def test_default_models_are_put_beside_lightgbms(table):
    found = prediction.default_model(table, None, rows=120, repeats=1)
    assert all(value > 0 for value in found.values())
    assert {"kB", "times LightGBM's file", "times the Booster's", "times the wrapper's"} <= set(found)


def test_growth_is_the_slope_of_the_logarithms():
    found = scaling.growth(TINY, LIBRARIES[0], rows=(200, 400), repeats=1)
    low, high = found["seconds by rows"].values()
    assert found["exponent"] == pytest.approx(np.log2(high / low))


@pytest.mark.parametrize("backend", LIBRARIES)
def test_suites_of_cheaper_modes_run(backend):
    options = ["--backend", backend, "--case", "small", "--repeats", "1"]
    found = suites.main(["kept", "shared", "sampled", *options], CASES)
    kept, shared, sampled = found["results"]
    assert kept["share of full"] > 0
    assert set(shared["training MSE"]) == {"each", "one"}
    assert set(sampled["MSE on fresh rows"]) == {"all", "a tenth"}


def test_an_interrupted_run_goes_on(tmp_path):
    file = tmp_path / "out.json"
    suites.main(["kept", "--case", "small", "--repeats", "1", "--json", str(file)], CASES)
    before = json.loads(file.read_text())["results"]
    found = suites.main(["kept", "vjp", "--case", "small", "--repeats", "1", "--json", str(file)], CASES)
    assert found["results"][: len(before)] == before
    assert {result["suite"] for result in found["results"]} == {"kept", "vjp"}


@pytest.mark.slow
def test_modes_are_told_by_epochs():
    [task] = [name for name in modes.tasks(None) if name == "digits"]
    found = modes.mode(task, "shared trees", None, rows=300, epochs=1)
    seconds, scores = zip(*found["curve"], strict=True)
    assert len(found["curve"]) == 2
    assert 0 < seconds[0] < seconds[1] <= found["seconds"] * (1 + 1e-9)
    assert found["best score"] == min(scores)


def test_unknown_suite_is_refused(capsys):
    with pytest.raises(SystemExit):
        suites.main(["speed"])
    assert "unknown suite ['speed']" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of processes from /proc")
def test_blocks_of_rows_give_the_model_of_arrays(capsys):
    [found] = beyond_memory.main(["--rows", "1500", "--backend", "lightgbm", "--model", "network"])
    assert found["difference"] == 0.0
    assert min(found["MB"], found["seconds"], found["ratio"]) > 0
    assert "ratio: " in capsys.readouterr().out


@pytest.mark.slow
def test_many_rows_tells_of_each_model_on_each_size(capsys):
    found = many_rows.main(["--rows", "400", "--models", "lightgbm", "1"])
    assert [(each["rows"], each["model"]) for each in found] == [(400, "lightgbm"), (400, "1")]
    for each in found:
        assert each["seconds"] > 0
        assert 0 < each["before_mb"] <= each["peak_mb"]
        assert 0 < each["error"] < 2  # the standard deviation of the target is 1.6
    assert capsys.readouterr().out.count("rows: 400") == 2


@pytest.mark.slow
@pytest.mark.skipif("xgboost" not in LIBRARIES, reason="needs xgboost: pip install 'boostbp[xgboost]'")
def test_workers_are_measured_against_one_process():
    found = distributed.apart("epoch", "xgboost", 2, 400)
    assert found["workers agree"]
    assert found["difference"] < 1e-9
    assert found["messages"]["sum"] > 0
    assert found["megabytes"]["gather"] > 0
    assert found["seconds"] > 0
    assert distributed.grown("epoch", "xgboost", 1, 400, 5)["messages"] == {}


@pytest.mark.parametrize("model", ["boostbp, quality 1", "boostbp, residuals", "LightGBM"])
def test_intervals_are_measured_beside_quantiles(model):
    if model == "LightGBM":
        pytest.importorskip("lightgbm")
    found = intervals.intervals("diabetes", model, None, rows=300, splits=2)
    assert {f"{what} {coverage}" for what in ("coverage", "width") for coverage in (0.8, 0.9)} <= set(found)
    assert ("pinball" in found) == (model != "boostbp, residuals")
    assert found["width 0.8"] < found["width 0.9"]
    # 75 rows of calibration: Beta(k, n + 1 - k) has a deviation of .035
    assert 0.75 < found["coverage 0.9"] <= 1.0


def test_quantiles_of_another_library_are_corrected_as_ours_are():
    X, y = np.random.default_rng(0).normal(size=(400, 2)), np.arange(400.0)
    model = intervals.BoostBPRegressor((), loss="quantile", alpha=intervals.LEVELS, n_estimators=5, random_state=0)
    model.fit(X[:200], y[:200]).calibrate(X[200:], y[200:])
    parts = intervals.Parts(X[:200], y[:200], X[200:], y[200:], X, y)
    corrected = intervals._corrected(model.predict(X[200:]), model.predict(X), parts)
    for coverage, expected in corrected.intervals.items():
        np.testing.assert_allclose(model.predict_interval(X, coverage), expected, rtol=1e-12)


def test_sets_of_classes_are_measured():
    pytest.importorskip("lightgbm")
    found = intervals.intervals("iris", "LightGBM", None, rows=100, splits=1)
    assert found["accuracy"] > 0.8
    assert 0 < found["size 0.8"] <= found["size 0.9"] <= 3


def test_a_model_whose_package_is_missing_is_left_out(without):
    without("chimeraboost")
    found = intervals.intervals("diabetes", "ChimeraBoost", None, rows=100, splits=1)
    assert found == {"left out": "it needs the package chimeraboost"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "option", "model"),
    [(10.0, "--qualities=1", "boostbp-1"), (-0.99, "--qualities=1", "boostbp-1"), (10.0, "--max-time=2", "boostbp@2x")],
)
def test_a_broken_contract_is_told_and_ends_with_a_status(limit, option, model, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(contract, "LIMITS", (limit, limit))
    options = ["--data-dir", str(tmp_path), "--tables", "diabetes", option, "--splits", "2"]
    monkeypatch.setattr(sys, "argv", ["contract", *options, "--rows", "120", "--jobs", "1"])
    assert contract.main() == (limit < 0)
    [line, verdict] = capsys.readouterr().out.splitlines()
    assert line.startswith(f"diabetes           {model:20} ")
    assert line.endswith("worse than the library") is (limit < 0)
    assert verdict == ("The contract holds." if limit > 0 else "The contract is broken 1 times.")
