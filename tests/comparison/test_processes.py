"""A process for each model: no model takes the others down, and all have the same rows."""

from __future__ import annotations

import os
import signal

import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier

from boostbp import compare

X, Y = load_iris(return_X_y=True)
QUICK = {"folds": 2, "repeats": 1}


class Killed(DummyClassifier):
    """Ends its process."""

    def fit(self, X, y):
        print("about to end", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


class InProcess(DummyClassifier):
    """Knows the process that trained it."""

    def fit(self, X, y):
        self.threads_ = os.environ["OMP_NUM_THREADS"]
        self.process_ = os.getpid()
        return super().fit(X, y)


def process(model, X, y):
    return float(model.process_)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_library_that_kills_its_process_leaves_the_others_alone():
    result = compare(X, Y, models=[DummyClassifier(), Killed()], **QUICK)
    assert result.states["DummyClassifier"] == "ran"
    assert "SIGKILL" in result.states["Killed"]
    assert "about to end" in result.states["Killed"]
    assert result.verdict.startswith("No verdict")


@pytest.mark.slow
def test_each_model_has_one_process_of_its_own():
    result = compare(X, Y, models=[("a", InProcess()), ("b", InProcess())], metric=process, **QUICK)
    first, second = (set(result.scores_of(model, "process")) for model in "ab")
    assert len(first) == len(second) == 1
    assert not first & second | {os.getpid()} & (first | second)


@pytest.mark.slow
def test_missing_library_is_skipped_with_the_cure(xgboost_that):
    xgboost_that("raise ModuleNotFoundError('No module', name='xgboost')")
    result = compare(X, Y, models=["xgboost", DummyClassifier()], **QUICK)
    assert result.states["XGBoost"].startswith("skipped: XGBoost needs the xgboost package: pip install")
    assert result.states["DummyClassifier"] == "ran"
