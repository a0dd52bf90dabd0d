"""Files and models that commands read, made once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import QUICK, run
from flat_parameters import parameters
from pyarrow import csv, parquet
from sklearn.datasets import load_diabetes, load_iris

from boostbp import BoostBPClassifier, BoostBPRegressor, save

TINY = {"n_estimators": 3, "min_samples_leaf": 5, "epochs": 2, "early_stopping": False, "random_state": 0}
DEEP = TINY | {"deep": True}
HOSTILE = "\x1b]0;owned\x07[bold red]:bomb:[link=http://evil.example]\x9b2J\u202ename"


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


@pytest.fixture(scope="session")
def claims(tmp_path_factory):
    """Counts of claims by exposure, as CSV and as Parquet: rows to fit, to check by, and of later."""
    where, rng = tmp_path_factory.mktemp("claims"), np.random.default_rng(0)
    exposure = rng.uniform(0.1, 3.0, 600)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 600), "area": np.array(list("abc"))[rng.integers(0, 3, 600)]})
    frame["log_exposure"] = np.log(exposure)
    frame["claims"] = rng.poisson(exposure * np.exp(frame.age / 80 + (frame.area == "a")))
    for name, rows in {"train": slice(0, 300), "valid": slice(300, 400), "later": slice(400, 600)}.items():
        table = pa.Table.from_pandas(frame[rows], preserve_index=False)
        csv.write_csv(table, where / f"{name}.csv")
        (where / name).mkdir()
        parquet.write_table(table, where / name / "0.parquet")
    return where


POISSON = ["-s", "loss=poisson", "-s", "quality=1", "-s", "n_estimators=20"]


def read_claims(claims, name):
    frame = pd.read_csv(claims / f"{name}.csv", dtype={"area": "category"})
    return frame[["age", "area"]].astype({"age": float}), frame.claims, frame.log_exposure


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """A model whose columns, classes and file have names that a terminal, or rich, would obey; its table."""
    where = tmp_path_factory.mktemp("hostile")
    iris = load_iris(as_frame=True)
    X = iris.data.set_axis([f"{HOSTILE}{number}" for number in range(4)], axis=1)
    y = np.array(["=1+cmd|x", "-2", f"[red]{HOSTILE}"])[iris.target]
    name = where / f"{HOSTILE.replace('/', '|')}.boostbp"
    save(BoostBPClassifier((2,), **parameters(**DEEP)).fit(X, y), name)
    X.assign(**{"=cmd|y": np.where(y == "-2", "-2.5", "@SUM(A1)"), "target": y}).to_csv(
        where / "table.csv", index=False
    )
    return where, name, y


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0] + 0.1 * rng.standard_normal(120))
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"
