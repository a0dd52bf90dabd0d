"""A page for all tests of it: drawing its pictures takes seconds."""

from __future__ import annotations

import pytest
from studies import study

from boostbp.comparison.page import write_report


@pytest.fixture(scope="package")
def report(tmp_path_factory):
    """The file of a report on two data sets."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(path, [study(), study("regression")], {"seed": "0", "a long setting": "x" * 300})
    return path


@pytest.fixture
def xgboost_that(tmp_path, monkeypatch):
    """Let a module of this code be the package xgboost in the processes of a comparison."""
    monkeypatch.syspath_prepend(tmp_path)
    return (tmp_path / "xgboost.py").write_text
