"""Files and models that commands read, made once, and comparisons without a process for each model."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from command_line import QUICK, run
from flat_parameters import parameters
from pyarrow import csv, parquet
from sklearn.datasets import load_diabetes, load_iris

from boostbp import BoostBPClassifier, BoostBPRegressor, save
from boostbp.cli.report import comparison

TINY = {"n_estimators": 3, "min_samples_leaf": 5, "epochs": 2, "early_stopping": False, "random_state": 0}
DEEP = TINY | {"deep": True}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """iris with labels, a category and a key; diabetes with numbers: as CSV and as Parquet."""
    where = tmp_path_factory.mktemp("data")
    iris = load_iris(as_frame=True)
    flowers = iris.data.rename(columns=lambda name: name.removesuffix(" (cm)").replace(" ", "_"))
    flowers["colour"] = np.array(["blue", "white", "violet"])[np.arange(150) % 3]
    flowers["key"] = [f"{row:03d}" for row in range(150)]
    flowers["species"] = iris.target_names[iris.target]
    people = load_diabetes(as_frame=True).frame
    for name, frame in {"iris": flowers, "diabetes": people}.items():
        table = pa.Table.from_pandas(frame, preserve_index=False)
        csv.write_csv(table, where / f"{name}.csv")
        parquet.write_table(table, where / f"{name}.parquet")
    return where


@pytest.fixture(scope="session")
def model(folder):
    where = folder / "iris.model"
    result = run("fit", folder / "iris.csv", "-t", "species", "-m", where, "--drop", "key", *QUICK)
    assert result.exit_code == 0, result.output
    assert "150 rows, 5 features, classification of 'species'" in result.stderr
    assert f"saved to {where}" in " ".join(result.stderr.split())
    assert result.stdout == ""
    return where


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A classifier of iris with names of species, a regressor of diabetes, and their tables."""
    where = tmp_path_factory.mktemp("models")
    iris, people = load_iris(as_frame=True), load_diabetes(as_frame=True)
    X, y = iris.data, iris.target_names[iris.target]
    model = BoostBPClassifier((4, 3), **parameters(**DEEP)).fit(X, y)
    save(model, where / "iris.boostbp")
    X.assign(species=y).to_csv(where / "iris.csv", index=False)
    save(BoostBPRegressor((2,), **parameters(**DEEP)).fit(people.data, people.target), where / "diabetes.boostbp")
    people.frame.to_parquet(where / "diabetes.parquet")
    return where


@pytest.fixture
def one_process(tune):
    """Models of a comparison are trained in this process, from the files that another one would read.

    A process takes seconds to start: tests/cli/report has those.
    """

    def run(folder, job):
        (folder / "job.pkl").write_bytes(pickle.dumps(job))
        comparison._work(folder)
        return pickle.loads((folder / "result.pkl").read_bytes())

    tune(comparison, _run=run)
