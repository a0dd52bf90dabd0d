"""The same task over backends and single-layer models: score, time and memory."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from boostbp.report.contenders import SINGLE_LAYER, Split, deep, mixture
from boostbp.report.datasets import Task
from boostbp.report.trial import Data, Job
from boostbp.trees.threads import count

__all__ = ["Result", "compare"]


@dataclass(frozen=True, slots=True)
class Result:
    """How one model did.

    Attributes
    ----------
    model : str
        Name of the model.
    state : {"ran", "skipped", "failed"}
        Skipped means that its library is not installed.
    reason : str
        Why it did not run; empty if it ran.
    scores : mapping of str to float
        On the test rows: accuracy and log_loss, or r2 and rmse.
    fit_seconds : float or None
        Wall time of one fit, after a rehearsal on few rows.
    predict_seconds : float or None
        Wall time of predicting all test rows, median of 3.
    peak_bytes : int or None
        Peak memory of the fit above what was in use before it; None where it cannot be measured.
    length : int or None
        Rounds or epochs that the validation rows chose.
    """

    model: str
    state: Literal["ran", "skipped", "failed"]
    reason: str
    scores: Mapping[str, float]
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    peak_bytes: int | None = None
    length: int | None = None


def compare(
    X: Any,
    y: NDArray[Any],
    *,
    task: Task,
    backends: Sequence[str] = ("lightgbm", "xgboost"),
    params: Mapping[str, Any] | None = None,
    also: Sequence[str] = (),
    test_size: float = 0.25,
    valid_size: float = 0.2,
    n_jobs: int = 1,
    seed: int = 0,
    watch: Callable[[str], None] | None = None,
) -> list[Result]:
    """Train the deep model and single-layer models on the same split, each in its own process.

    Parameters
    ----------
    X : (rows, features) array or pandas.DataFrame
    y : (rows,) array
        Labels or numbers.
    task : {"classification", "regression"}
    backends : sequence of str
        Libraries that grow the trees of the deep model.
    params : mapping, optional
        Parameters of the deep model over its defaults.
    also : sequence of {"gbdt-nn", "nn-gbdt"}
        Mixtures with a neural network, with their defaults; they need torch.
    test_size : float
        Share of the rows that are kept for the report and used for nothing else.
    valid_size : float
        Share of the other rows by which every model chooses its length.
    n_jobs : int
        Threads of every model; -1 for all cores.
    seed : int
        Of the split and of the models.
    watch : callable, optional
        Called with the name of each model before it is trained.

    Returns
    -------
    list of Result
        The deep models, the mixtures, then the single-layer models. A model that fails does not stop the others.

    Raises
    ------
    ValueError
        If the rows cannot be split, or a name of `also` is not known.
    """
    mixtures = [mixture(name) for name in dict.fromkeys(also)]
    contenders = [*(deep(backend, params or {}) for backend in dict.fromkeys(backends)), *mixtures, *SINGLE_LAYER]
    data = _split(X, np.asarray(y), task, test_size, valid_size, seed)
    results = []
    with TemporaryDirectory(prefix="boostbp-") as folder:
        (Path(folder) / "data.pkl").write_bytes(pickle.dumps(data, protocol=5))
        for contender in contenders:
            if watch is not None:
                watch(contender.label)
            results.append(_run(Path(folder), Job(contender, task, count(n_jobs), seed)))
    return results


def _split(X: Any, y: NDArray[Any], task: Task, test_size: float, valid_size: float, seed: int) -> Data:
    """Test rows for the report, validation rows inside the rest; classes keep their shares."""
    n_classes = 0
    if task == "classification":
        classes, y = np.unique(y, return_inverse=True)
        n_classes = len(classes)
        fewest = np.bincount(y).min()
        if n_classes < 2 or fewest < 4:
            raise ValueError(
                f"y has {n_classes} classes, the smallest with {fewest} rows: a comparison needs at least "
                "2 classes with 4 rows each. Remove or merge small classes."
            )
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=test_size, random_state=seed, stratify=y if n_classes else None
    )
    X, X_valid, y, y_valid = train_test_split(
        X, y, test_size=valid_size, random_state=seed, stratify=y if n_classes else None
    )
    return Data(Split(X, y, X_valid, y_valid), X_test, y_test, n_classes)


def _run(folder: Path, job: Job) -> Result:
    """Run one trial in a child process."""
    outcome_file = folder / "outcome.json"
    outcome_file.unlink(missing_ok=True)
    (folder / "job.pkl").write_bytes(pickle.dumps(job))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(job.n_jobs))
    paths = {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    # -P: the folder we happen to be in must not come before the packages of this process.
    child = subprocess.run(
        [sys.executable, "-P", "-m", "boostbp.report.trial", str(folder)],
        env={**os.environ, **threads, **paths},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if outcome_file.exists():
        return Result(**{"model": job.contender.label, "scores": {}, **json.loads(outcome_file.read_text())})
    last = child.stderr.strip().rpartition("\n")[2]
    reason = f"its process ended with code {child.returncode}: {last}"
    return Result(job.contender.label, "failed", reason, {})
