"""Comparisons of quick models, trained once, and a package xgboost of one's own."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from studies import compared

NAME = "people & <income>.csv"
QUICK = ["dummy", "good", "<tree>", "broken"]


class Broken(Ridge):
    """Fails as it is trained."""

    def fit(self, X, y):
        raise RuntimeError("no luck <here>")


@pytest.fixture(scope="package")
def numbers():
    """A comparison on numbers, of four models of which one fails."""
    X, y = load_diabetes(return_X_y=True)
    models = [DummyRegressor(), Ridge(alpha=0.01), DecisionTreeRegressor(max_depth=2), Broken()]
    return compared(X, y, models=list(zip(QUICK, models, strict=True)), reference="dummy", name=NAME)


@pytest.fixture(scope="package")
def labels():
    """A comparison on two classes of text, of which one is rare."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.flatnonzero(y)[:350].tolist() + np.flatnonzero(y == 0)[:25].tolist()
    models = [DummyClassifier(), GaussianNB(), DecisionTreeClassifier(max_depth=2)]
    listed = list(zip(QUICK, models, strict=False))
    return compared(X[rows], np.array(["<sick>", "well"])[y[rows]], models=listed, reference="dummy", name="sick")


@pytest.fixture(scope="package")
def report(tmp_path_factory, numbers, labels):
    """The file of a report on two data sets."""
    from boostbp.comparison.page import write_report

    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(path, [labels, numbers])
    return path


@pytest.fixture
def xgboost_that(tmp_path, monkeypatch):
    """Let a module of this code be the package xgboost in the processes of a comparison."""
    monkeypatch.syspath_prepend(tmp_path)
    return (tmp_path / "xgboost.py").write_text
