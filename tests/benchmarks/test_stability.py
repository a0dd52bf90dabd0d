"""Random settings give finite, bounded models, or say why they stopped."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import stability


@pytest.mark.parametrize("number", [0, 2, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, *range(3, 20)))])
def test_a_random_setting_is_finite_and_bounded(number):
    found = stability.outcome(number)
    assert stability.good(found), found


def test_a_setting_is_the_same_each_time():
    assert stability.drawn(5) == stability.drawn(5) != stability.drawn(6)
    task, _ = stability.drawn(5)
    for once, again in zip(stability.data(5, task), stability.data(5, task), strict=True):
        np.testing.assert_array_equal(once, again)


def test_models_out_of_bounds_are_told():
    found = {"number": 3, "task": "regression", "clip": True, "error": "", "reach": 0.1, "reach_held": 0.2}
    found |= {"stop": "EPOCHS", "highest_loss": 0.5, "seconds": 1.0}
    assert stability.good(found)
    assert not stability.good(found | {"reach": 11.0})
    assert not stability.good(found | {"reach_held": 11.0})
    assert stability.good(found | {"reach_held": 11.0, "clip": False})
    assert not stability.good(found | {"reach_held": float("inf"), "clip": False})
    assert not stability.good(found | {"error": "ValueError: of a library"})
    lines = stability.report([found, found | {"number": 4, "reach": 12.5}]).splitlines()
    assert "1 finite and bounded, 1 not" in lines[0]
    assert lines[-1] == "  4: (12.5, 0.2)"


@pytest.mark.slow
def test_run_goes_on_where_it_was(tmp_path, capsys):
    file = tmp_path / "found.jsonl"
    assert stability.main(["--settings", "1", "--first", "4", "--file", str(file)]) == 0
    before = file.read_text()
    file.write_text(before + '{"number": 5, "tas')  # as a killed process leaves it
    assert stability.main(["--settings", "1", "--first", "4", "--file", str(file)]) == 0
    assert file.read_text() == before
    assert json.loads(before)["number"] == 4
    assert "1 settings" in capsys.readouterr().out
    file.write_text(json.dumps(json.loads(before) | {"source": "other code"}) + "\n")
    stability.main(["--settings", "1", "--first", "4", "--file", str(file)])
    assert [json.loads(line)["number"] for line in file.read_text().splitlines()] == [4, 4]  # fitted again
