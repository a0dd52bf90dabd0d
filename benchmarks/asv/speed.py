"""What a user waits for, in CPU seconds on one thread, by names that every version has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import boostbp

ROWS, REPEATS = 2_000, 5
# The models that quality 1 chooses change with the package; the network is the same work in all versions.
SETTINGS: dict[str, dict[str, Any]] = {
    "quality 1": {"quality": 1},
    "network": {"deep": True, "early_stopping": False, "epochs": 10, "n_estimators": 100},
}
NEW_PROCESS = """
import time
import numpy as np
begun = time.process_time()
import boostbp
imported = time.process_time()
X = np.random.default_rng(0).normal(size=(442, 8))
boostbp.BoostBPRegressor(quality=1, n_jobs=1, random_state=0).fit(X, X[:, 0] * X[:, 1])
print(imported - begun, time.process_time() - imported)
"""


def data(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a smooth target of eight features with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 8))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(scale=0.3, size=rows)


MANY, ONE = data(100_000)[0], data(1)[0]


def fit(model: str) -> Any:
    return boostbp.BoostBPRegressor(**SETTINGS[model], n_jobs=1, random_state=0).fit(*data(ROWS))


def new_process(**variables: str) -> list[float]:
    """Return the CPU seconds of the import and of the first fit in a new process."""
    command, env = [sys.executable, "-c", NEW_PROCESS], {**os.environ, **variables}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
    return [float(seconds) for seconds in done.stdout.split()]


def track_import() -> float:
    return min(new_process()[0] for _ in range(REPEATS))


def track_first_fit(of: str) -> float:
    """Return the CPU seconds of the first fit of a process, or of an installation, which may compile and keep code."""
    if of == "process":
        return min(new_process()[1] for _ in range(REPEATS))
    with tempfile.TemporaryDirectory() as folder:  # a copy without what numba kept, for commits before the core in C
        package = Path(boostbp.__file__).parent
        shutil.copytree(package, Path(folder, package.name), ignore=shutil.ignore_patterns("*.nb?"))
        return new_process(PYTHONPATH=folder)[1]


track_import.unit = track_first_fit.unit = "seconds"
track_first_fit.params, track_first_fit.param_names = ["installation", "process"], ["of"]
track_first_fit.timeout = 600


class Fitted:
    """Fits, and what is done with fitted models."""

    timer = time.process_time
    timeout, sample_time, rounds = 600, 0.05, 4
    params, param_names = list(SETTINGS), ["model"]

    def setup_cache(self) -> dict[str, Any]:
        """Return the models and leave their files in asv's folder of this commit."""
        models = {name: fit(name) for name in SETTINGS}
        for name, model in models.items():
            boostbp.save(model, f"{name}.boostbp")
        return models

    def time_fit(self, models: dict[str, Any], name: str) -> None:
        fit(name)

    def time_predict_100_000_rows(self, models: dict[str, Any], name: str) -> None:
        models[name].predict(MANY)

    def time_predict_one_row(self, models: dict[str, Any], name: str) -> None:
        models[name].predict(ONE)

    def time_load(self, models: dict[str, Any], name: str) -> None:
        boostbp.load(f"{name}.boostbp")
