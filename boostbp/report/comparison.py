"""The same task over backends and single-layer models: score, time and memory."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.report.contenders import SINGLE_LAYER, deep
from boostbp.report.datasets import Task
from boostbp.report.result import Result, joined
from boostbp.report.splits import splits
from boostbp.report.trial import Job
from boostbp.trees.threads import count

VALID_SIZE = 0.2  # share of the rows that are no test rows, by which every model chooses its length


def compare(
    X: Any,
    y: NDArray[Any],
    *,
    task: Task,
    backends: Sequence[str] = ("lightgbm", "xgboost"),
    params: Mapping[str, Any] | None = None,
    test_size: float = 0.25,
    folds: int | None = None,
    n_jobs: int = 1,
    seed: int = 0,
    evidence: bool = False,
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
    test_size : float
        Share of the rows that are kept for the report and used for nothing else.
    folds : int, optional
        Cross-validation: each row is a test row in one of so many folds, and `test_size` has no meaning.
    n_jobs : int
        Threads of every model; -1 for all cores.
    seed : int
        Of the split and of the models.
    evidence : bool
        Whether results bring along what the pictures of a report need.
    watch : callable, optional
        Called with the name of each model before it is trained.

    Returns
    -------
    list of Result
        The deep models, then the single-layer models. A model that fails does not stop the others.

    Raises
    ------
    ValueError
        If the rows cannot be split.
    """
    contenders = [*(deep(backend, params or {}) for backend in dict.fromkeys(backends)), *SINGLE_LAYER]
    parts = splits(X, np.asarray(y), task, test_size=test_size, valid_size=VALID_SIZE, folds=folds, seed=seed)
    runs: dict[str, list[Result]] = {contender.label: [] for contender in contenders}
    with TemporaryDirectory(prefix="boostbp-") as name:
        folder = Path(name)
        for fold, data in enumerate(parts):
            (folder / "data.pkl").write_bytes(pickle.dumps(data, protocol=5))
            for contender in contenders:
                if watch is not None:
                    watch(contender.label if folds is None else f"{contender.label}, fold {fold + 1} of {folds}")
                job = Job(contender, task, count(n_jobs), seed, evidence and fold == 0)
                runs[contender.label].append(_run(folder, job))
    return [results[0] if folds is None else joined(results) for results in runs.values()]


def _run(folder: Path, job: Job) -> Result:
    """Run one trial in a child process."""
    outcome_file = folder / "outcome.pkl"
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
        return Result(**{"model": job.contender.label, "scores": {}, **pickle.loads(outcome_file.read_bytes())})
    last = child.stderr.strip().rpartition("\n")[2]
    reason = f"its process ended with code {child.returncode}: {last}"
    return Result(job.contender.label, "failed", reason, {})
