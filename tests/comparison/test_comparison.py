"""The result of a comparison as users see it: printed, as JSON, as a page, pickled."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from tests.comparison.conftest import QUICK


def test_it_prints_as_the_verdict_and_the_table(numbers):
    text = str(numbers)
    assert text.startswith("good has 29 % less RMSE than dummy (")
    assert "regression, 442 rows, 10 features, 10 folds" in text
    assert all(model in text for model in QUICK)
    assert "broken failed: RuntimeError: no luck <here>" in text


def test_json_says_the_same(numbers, tmp_path):
    written = json.loads(numbers.to_json(tmp_path / "out.json"))
    assert written == json.loads((tmp_path / "out.json").read_text())
    assert written["verdict"] == numbers.verdict
    assert written["machine"]["lightgbm"]
    models = {row["model"]: row for row in written["models"]}
    assert models["dummy"]["difference"] is None
    difference = numbers.judgement.differences["good"]
    assert models["good"]["difference"]["low"] == difference.low
    assert models["good"]["scores"]["rmse"] == pytest.approx(np.mean(numbers.scores_of("good", "rmse")))
    assert models["broken"]["folds"] == []


def test_a_report_is_written(numbers, tmp_path):
    numbers.to_html(tmp_path / "report.html")
    assert numbers.verdict in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_it_is_pickled(labels):
    assert str(pickle.loads(pickle.dumps(labels))) == str(labels)
