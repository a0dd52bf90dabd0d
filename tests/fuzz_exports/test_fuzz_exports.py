"""Random models as graphs and programs: some here, any number by ``python -m tests.fuzz_exports``."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

import boostbp

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.fuzz_exports import check
from tests.fuzz_exports.__main__ import PROGRAM
from tests.fuzz_exports.cases import case_of
from tests.support.child_cases import tried

pytestmark = pytest.mark.skipif(check.COMPILER is None, reason="needs a C compiler: cc, gcc or clang")


@pytest.mark.slow
def test_exports_give_what_predict_gives_or_are_refused():
    outcomes, failures = tried(PROGRAM, 35, seed=1)
    assert (outcomes.total(), failures) == (35, [])


def test_a_case_makes_the_same_data_each_time():
    cases = [case_of(3, number) for number in range(40)]
    assert cases == [case_of(3, number) for number in range(40)]
    assert len({case.kind for case in cases}) == 3
    for case in cases[:10]:
        X = case.table(0)
        assert repr(X.tolist()) == repr(case.table(0).tolist())
        if case.kind != "autoencoder":
            assert repr(case.target_of(X).tolist()) == repr(case.target_of(X).tolist())


def fitted_case():
    """A case whose model is fitted and exported, and the model."""
    for number in range(100):
        case = case_of(7, number)
        if case.kind == "regressor" and case.target == "normal":
            try:
                return case, case.fitted()
            except ValueError:
                continue
    raise AssertionError("no case is fitted")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("export", ["to_onnx", "to_c"])
def test_a_difference_is_a_failure(export, monkeypatch, tmp_path):
    case, model = fitted_case()
    right = getattr(boostbp, export)

    def wrong(model, **words):
        moved, targets = copy.copy(model), model.model_.targets
        moved.model_ = replace(model.model_, targets=replace(targets, shift=targets.shift + 1e-9))
        return right(moved, **words)

    rows, cells = check.rows_of(case, model)
    of_export = check.check_graph if export == "to_onnx" else check.check_program
    of_export(case, model, rows, cells, tmp_path)
    monkeypatch.setattr(boostbp, export, wrong)
    (tmp_path / "again").mkdir()  # a library of the same path would not be loaded again
    with pytest.raises(AssertionError, match="predict"):
        of_export(case, model, rows, cells, tmp_path / "again")


def test_an_error_of_another_kind_is_a_failure():
    def refuses(*_):
        raise ValueError("classes_ holds 'a', and more")

    def foreign(*_):
        raise ValueError("could not broadcast")

    assert not check.exported(refuses, None, None, None, np.zeros(1), None)
    with pytest.raises(AssertionError, match="names no reason of ours: could not broadcast"):
        check.exported(foreign, None, None, None, np.zeros(1), None)
