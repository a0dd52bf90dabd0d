"""The command line's fit shows what goes on to people, and nothing to pipes; compare refuses before it trains."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from command_line import run

from boostbp import storage

SHORT = ("-s", "quality=1", "-s", "n_estimators=4")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0] + 0.1 * rng.standard_normal(120))
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.mark.parametrize(("flags", "shows"), [((), False), (("--progress",), True), (("--progress", "-q"), False)])
def test_a_fit_shows_its_progress_where_it_is_asked_to(table, tmp_path, flags, shows):
    result = run("fit", table, "-t", "y", "-m", tmp_path / "model", *SHORT, *flags)
    assert result.exit_code == 0, result.output
    assert ("boostbp, first layers" in result.stderr) is shows
    assert result.stdout == ""
    assert storage.load(tmp_path / "model").verbose == "auto"
    if "-q" not in flags:
        [seconds] = re.findall(r"Fitted in ([\d.]+) s and saved to", result.stderr)
        [training] = re.findall(r"Training took ([\d.]+) s", result.stderr)
        assert float(seconds) >= float(training) - 0.1  # rounded


@pytest.mark.parametrize(
    ("sources", "more", "reason"),
    [
        (["table.csv", "breast_cancer"], ["--target", "y"], "'breast_cancer' has its own target"),
        (["iris", "table.csv"], [], "needs the name of the column that is predicted"),
        (["diabetes", "iris"], ["--folds", "60"], "a comparison needs at least 2 classes with 60 rows each"),
    ],
)
def test_compare_refuses_before_it_trains(table, sources, more, reason):
    paths = [table if source == "table.csv" else source for source in sources]
    result = run("compare", *paths, *more)
    assert result.exit_code == 1
    assert reason in " ".join(result.stderr.split())
    assert result.stdout == ""  # no table of a data set before the one that is refused
