"""A page for all tests of it: drawing its pictures takes seconds."""

from __future__ import annotations

import pytest
from studies import study

from boostbp.cli.report.page import write_report


@pytest.fixture(scope="package")
def report(tmp_path_factory):
    """The file of a report on two data sets."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(path, [study(), study("regression")], {"seed": "0", "a long setting": "x" * 300})
    return path
