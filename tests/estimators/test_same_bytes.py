"""The same model, byte for byte, for any number of threads, in another process, and beside other fits."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from itertools import product

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import WITH_CATEGORIES, few_rounds
from sklearn.datasets import load_iris
from threadpoolctl import threadpool_limits

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival, save

X, CLASSES = load_iris(return_X_y=True)
Y = X @ [[1.0, 0.0], [0.0, -2.0], [0.5, 1.0], [0.0, 3.0]] + np.sin(X[:, :2])
SMALL = {"n_estimators": 4, "max_depth": 3, "epochs": 2, "random_state": 0, "min_samples_leaf": 5}
KINDS = {"regressor": BoostBPRegressor, "classifier": BoostBPClassifier, "autoencoder": BoostBPAutoencoder}
KINDS |= {"ranker": BoostBPRanker, "survival": BoostBPSurvival}
WAYS = {
    "alone": {"deep": True},
    "shared": {"deep": True, "multi_strategy": "multi_output_tree"},
    "sampled": {"deep": True, "backend_params": {"bagging_fraction": 0.7, "bagging_freq": 1}},
    "native": {"deep": True, "leaves": "native"},
    "weighed": {},
    "weighed-sampled": {"backend_params": {"bagging_fraction": 0.7, "bagging_freq": 1}},
}
CASES = list(product(KINDS, WITH_CATEGORIES, ["alone", "shared"]))
CASES += [
    ("survival", "lightgbm", "weighed"),
    ("ranker", "lightgbm", "weighed"),
    ("regressor", "lightgbm", "weighed-sampled"),
    ("classifier", "xgboost", "weighed"),
]
CASES += [("regressor", "lightgbm", "sampled"), ("regressor", "lightgbm", "native")]
CASES = [case for case in CASES if case[1] in WITH_CATEGORIES]


def fit(kind, backend, way, **changes):
    asked = SMALL | WAYS[way] | changes
    if kind == "autoencoder":
        asked.pop("deep", None)  # it always is
    model = KINDS[kind]((4,), **parameters(backend=backend, **asked))
    times = np.abs(Y[:, 0]) * np.where(CLASSES, 1.0, -1.0)
    if kind == "ranker":
        return model.fit(X, CLASSES, qid=np.arange(len(X)) % 15)
    return model.fit(X, {"classifier": CLASSES, "survival": times}.get(kind, Y))


def digest(model, folder):
    """Of the model's file, but for the times that its history holds."""
    model.set_params(n_jobs=None)  # which the file holds too
    for epoch in model.history_.epochs:
        object.__setattr__(epoch, "seconds", 0.0)
    if model.history_.choice is not None:
        model.history_.choice.seconds.clear()
    path = folder / f"{threading.get_ident()}.boostbp"
    save(model, path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digests(folder, **changes):
    with few_rounds():  # in a fixture and in another process, too
        return {"-".join(case): digest(fit(*case, **changes), folder) for case in CASES}


def test_threads_of_matrix_products_change_no_byte(tmp_path):
    rng = np.random.default_rng(0)
    wide = rng.uniform(size=(2000, 32))  # products large enough for several threads
    target = np.abs(wide @ rng.standard_normal((32, 4))).sum(axis=1)
    settings = {"n_estimators": [0, 5], "epochs": 3, "deep": True, "random_state": 0}
    found = set()
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            found.add(digest(BoostBPRegressor((16,), **parameters(**settings)).fit(wide, target), tmp_path))
    assert len(found) == 1


def test_threads_of_sums_over_many_rows_change_no_byte(tmp_path):
    rng = np.random.default_rng(0)
    long = rng.uniform(size=(40_000, 2))
    target = long[:, 0] + rng.standard_normal(40_000)
    found = set()
    for n_threads in (1, 2, 3, 4):
        with threadpool_limits(n_threads, "blas"):
            model = BoostBPRegressor((), **parameters(n_estimators=2, early_stopping=False, random_state=0)).fit(
                long, target
            )
        found.add((digest(model, tmp_path), model.model_.targets.shift.tobytes()))
    assert len(found) == 1


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return digests(tmp_path_factory.mktemp("once"))


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_change_no_byte(expected, tmp_path, n_jobs):
    assert digests(tmp_path, n_jobs=n_jobs) == expected


CHILD = """
import json, sys
from pathlib import Path
from tests.estimators.test_same_bytes import digests
print(json.dumps(digests(Path(sys.argv[1]), n_jobs=2)))
"""


@pytest.mark.slow
def test_another_process_changes_no_byte(expected, tmp_path):
    changed = {"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, env=os.environ | changed
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(expected).replace("'", '"')


@pytest.mark.slow
def test_fits_side_by_side_change_no_byte(expected, tmp_path):
    """LightGBM holds one number of threads for the process, XGBoost one random state for each thread."""
    found, errors = {}, []
    start = threading.Barrier(2)

    def work(cases, n_jobs):
        try:
            start.wait(60)
            for case in cases:
                found["-".join(case)] = digest(fit(*case, n_jobs=n_jobs), tmp_path)
        except BaseException as error:
            errors.append(error)

    halves = [
        threading.Thread(target=work, args=(CASES[::2], 1)),
        threading.Thread(target=work, args=(CASES[:0:-1][::2], 2)),
    ]
    for half in halves:
        half.start()
    for half in halves:
        half.join()
    assert not errors
    assert found == {name: expected[name] for name in found}
    assert len(found) >= len(CASES) - 1
