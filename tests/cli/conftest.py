"""Comparisons without a process for each model, which takes seconds to start: tests/cli/report has those."""

from __future__ import annotations

import pickle

import pytest

from boostbp.cli.report import comparison


@pytest.fixture
def one_process(tune):
    """Models of a comparison are trained in this process, from the files that another one would read."""

    def run(folder, job):
        (folder / "job.pkl").write_bytes(pickle.dumps(job))
        comparison._work(folder)
        return pickle.loads((folder / "result.pkl").read_bytes())

    tune(comparison, _run=run)
