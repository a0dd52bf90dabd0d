"""Several models on the same task: score, time and memory."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from boostbp.losses.base import Task
from boostbp.report.contenders import Contender, Split
from boostbp.report.result import Result, over_folds
from boostbp.report.trial import Data, Job, take
from boostbp.runtime.threads import count

_VALID_SIZE = 0.2  # share of the training rows by which every model chooses its length; arbitrary
_REFUSED_CHARACTERS = frozenset(',:[]{}"<')  # in names of columns, by LightGBM or XGBoost


def compare(
    X: Any,
    y: NDArray[Any],
    contenders: Sequence[Contender],
    *,
    task: Task,
    test_size: float = 0.25,
    folds: int | None = None,
    n_jobs: int = 1,
    seed: int = 0,
    evidence: bool = False,
    watch: Callable[[str], None] | None = None,
) -> list[Result]:
    """Train models on the same split, each in its own process, and return their results.

    A model that fails does not stop the others. Raises ValueError if the rows cannot be split.

    Parameters
    ----------
    X : (rows, features) array or pandas.DataFrame
    y : (rows,) array
        Labels or numbers.
    contenders : sequence of Contender
        The models.
    test_size : float
        Share of the rows that are kept for the scores and used for nothing else.
    folds : int, optional
        Number of folds of a cross-validation: each row is a test row in one fold, and `test_size` is not used.
    evidence : bool
        Whether results hold the data of a report's pictures.
    watch : callable, optional
        Called with the label of each model before its training.
    """
    parts = splits(X, np.asarray(y), task, test_size=test_size, folds=folds, seed=seed)
    runs: dict[str, list[Result]] = {contender.label: [] for contender in contenders}
    with TemporaryDirectory(prefix="boostbp-") as name:
        folder = Path(name)
        for fold, data in enumerate(parts):
            (folder / "data.pkl").write_bytes(pickle.dumps(data, protocol=5))
            for contender in contenders:
                if watch is not None:
                    watch(contender.label if folds is None else f"{contender.label}, fold {fold + 1} of {folds}")
                job = Job(contender, count(n_jobs), seed, evidence and fold == 0)
                runs[contender.label].append(_run(folder, job))
    return [results[0] if folds is None else over_folds(results) for results in runs.values()]


def check(X: Any, y: NDArray[Any], *, task: Task, test_size: float, folds: int | None, seed: int) -> None:
    """Raise ValueError if `compare` could not split these rows."""
    next(splits(X, np.asarray(y), task, test_size=test_size, folds=folds, seed=seed))


def _run(folder: Path, job: Job) -> Result:
    """Run one trial in a child process."""
    result_file = folder / "result.pkl"
    result_file.unlink(missing_ok=True)
    (folder / "job.pkl").write_bytes(pickle.dumps(job))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(job.n_jobs))
    paths = {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    # -P: the current folder must not come before the packages of this process.
    child = subprocess.run(
        [sys.executable, "-P", "-m", "boostbp.report.trial", str(folder)],
        env={**os.environ, **threads, **paths},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if result_file.exists():
        result: Result = pickle.loads(result_file.read_bytes())
        return result
    last_line = child.stderr.strip().rpartition("\n")[2]
    return Result(job.contender.label, "failed", f"its process ended with code {child.returncode}: {last_line}")


def splits(X: Any, y: NDArray[Any], task: Task, *, test_size: float, folds: int | None, seed: int) -> Iterator[Data]:
    """Yield one split, or one for each fold: test rows, and validation rows inside the rest; classes keep their shares.

    `test_size` is a share of the rows; with `folds`, each row is a test row in one of them. Raises ValueError if there
    are too few rows, or too few of a class.
    """
    labels: tuple[str, ...] = ()
    if folds is not None and not 2 <= folds <= len(y):
        raise ValueError(
            f"folds={folds} does not split {len(y)} rows: give at least 2 and at most the rows, or leave it out."
        )
    if task == "classification":
        classes, y = np.unique(y, return_inverse=True)
        labels = tuple(map(str, classes))
        fewest, needed = np.bincount(y).min(), max(4, folds or 0)
        if len(classes) < 2 or fewest < needed:
            raise ValueError(
                f"y has {len(classes)} classes, the smallest with {fewest} rows: a comparison needs at least "
                f"2 classes with {needed} rows each. Remove or merge small classes."
            )

    def cut(rows: NDArray[np.intp], share: float) -> list[NDArray[np.intp]]:
        parts: list[NDArray[np.intp]] = train_test_split(
            rows, test_size=share, random_state=seed, stratify=y[rows] if labels else None
        )
        return parts

    X, rows = _accepted_names(X), np.arange(len(y))
    if folds is None:
        cuts = [cut(rows, test_size)]
    else:
        cuts = (StratifiedKFold if labels else KFold)(folds, shuffle=True, random_state=seed).split(rows, y)
    for rest, test in cuts:
        fit, valid = cut(rest, _VALID_SIZE)
        split = Split(take(X, fit), y[fit], take(X, valid), y[valid])
        yield Data(split, take(X, test), y[test], labels)


def _accepted_names(X: Any) -> Any:
    """Return the table, with numbered columns if a library would refuse one of its names."""
    if not hasattr(X, "iloc") or not any(set(str(name)) & _REFUSED_CHARACTERS for name in X.columns):
        return X
    return X.set_axis([f"x{column}" for column in range(X.shape[1])], axis=1)
