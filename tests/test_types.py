"""What type checkers say of users' programs: what a fit returns, and which words there are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import boostbp

# A line ends in what mypy says of it, or must pass.
PROGRAM = """
from collections.abc import Sequence
import numpy as np
from sklearn.pipeline import make_pipeline
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, load, save
from boostbp.dask import DaskBoostBPRegressor

X, y = np.zeros((40, 2)), np.zeros(40)
model = BoostBPRegressor().fit(X, y)
reveal_type(model)  # Revealed type is "boostbp.estimators.regressor.BoostBPRegressor"
reveal_type(BoostBPClassifier().fit(X, y))  # Revealed type is "boostbp.estimators.classifier.BoostBPClassifier"
reveal_type(BoostBPAutoencoder().fit(X))  # Revealed type is "boostbp.estimators.autoencoder.BoostBPAutoencoder"
reveal_type(model.fit_more(3))  # Revealed type is "boostbp.estimators.regressor.BoostBPRegressor"
reveal_type(DaskBoostBPRegressor().fit(X, y))  # Revealed type is "boostbp.dask.DaskBoostBPRegressor"
reveal_type(model.predict(X))  # Revealed type is "numpy.ndarray
reveal_type(model.score(X, y, offset=y))  # Revealed type is "float"
model.fit(X, y, eval_set=[(X, y)], offset=y, eval_offset=y, callbacks=[lambda progress: progress.epoch.epoch > 3])
model.fit("rows.parquet", y="y", sample_weight="w")
model.fit(X, y, eval_sets=[(X, y)])  # Unexpected keyword argument "eval_sets" for "fit"
model.fit(X, y, None, y)  # Too many positional arguments for "fit"
model.fit(X, y, keep_state="yes")  # Argument "keep_state" to "fit"
model.predict(X, offsets=y)  # Unexpected keyword argument "offsets" for "predict"
BoostBPRegressor((8,), quality=5, backend="xgboost", deep="auto", hidden={"max_depth": 2}, max_time=3.0)
BoostBPRegressor(quality=7)  # incompatible type "Literal[7]"; expected "Literal[1, 2, 3, 4, 5]"
BoostBPClassifier(quality=0)  # incompatible type "Literal[0]"; expected "Literal[1, 2, 3, 4, 5]"
BoostBPRegressor(backend="catboost")  # Argument "backend" to "BoostBPRegressor" has incompatible type
BoostBPAutoencoder(backend="catboost")  # Argument "backend" to "BoostBPAutoencoder" has incompatible type
BoostBPRegressor(deep="yes")  # Argument "deep" to "BoostBPRegressor" has incompatible type
BoostBPRegressor(num_leaves=3)  # Unexpected keyword argument "num_leaves" for "BoostBPRegressor"
save(model, "model")
loaded = load("model")
reveal_type(loaded)  # Revealed type is "boostbp.estimators.regressor.BoostBPRegressor | boostbp.
reveal_type(loaded.predict(X))  # Revealed type is "numpy.ndarray
assert isinstance(loaded, BoostBPClassifier)
reveal_type(loaded.predict_proba(X))  # Revealed type is "numpy.ndarray
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def run(program, *command, reads):
    """Run a checker on the program: on the installed package, or on the checkout if that is what is imported."""
    package = Path(boostbp.__file__).parents[1]
    more = {} if package.name in ("site-packages", "dist-packages") else {reads: str(package)}
    more["PYRIGHT_PYTHON_IGNORE_WARNINGS"] = "1"  # that there is a newer one
    return subprocess.run(
        [sys.executable, "-m", *command, program.name],
        cwd=program.parent,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more,
        capture_output=True,
        encoding="utf-8",
    )


@pytest.mark.slow
def test_mypy_knows_what_fits_return_and_which_arguments_there_are(program):
    pytest.importorskip("mypy", reason="needs mypy: pip install 'boostbp[dev]'")
    options = ("--strict", "--follow-imports=silent", "--ignore-missing-imports", "--no-error-summary", "--cache-dir=.")
    done = run(program, "mypy", *options, reads="MYPYPATH")
    assert not done.stderr
    told: dict[int, str] = {}
    for line in done.stdout.splitlines():
        file, number, message = line.split(":", 2)
        assert Path(file).name == program.name, line
        told[int(number)] = told.get(int(number), "") + message
    for number, line in enumerate(PROGRAM.splitlines(), 1):
        _, has_message, expected = line.partition("  # ")
        assert expected in told.get(number, ""), f"{line}\n{told.get(number)}"
        assert bool(has_message) == (number in told), f"{line}\n{told.get(number)}"


@pytest.mark.slow
def test_pyright_refuses_the_same_lines(program):
    pytest.importorskip("pyright", reason="needs pyright: pip install 'boostbp[dev]'")
    done = run(program, "pyright", "--outputjson", "--pythonpath", sys.executable, reads="PYTHONPATH")
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright cannot be run, perhaps for want of a network: {done.stderr[-200:]}")
    found = json.loads(done.stdout)["generalDiagnostics"]
    refused = {line["range"]["start"]["line"]: line["message"] for line in found if line["severity"] == "error"}
    lines = [line.partition("  # ") for line in PROGRAM.splitlines()]
    wrong = {number for number, (_, _, said) in enumerate(lines) if said and not said.startswith("Revealed type")}
    assert refused.keys() == wrong, {lines[number][0]: refused.get(number) for number in refused.keys() ^ wrong}
